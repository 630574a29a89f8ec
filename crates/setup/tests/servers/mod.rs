//! Servers of a pair on loopback addresses, for the tests beside: what runs on them, and waiting for what happens.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base::{ArrayId, HeadId};
use pair::{Question, Register, Term};
use setup::{
    Created, Door, DoorEvent, Member, MemberEvent, PairFile, Ports, Purpose, Refusal, SetupError, Token,
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub const A: HeadId = HeadId(0xa);
pub const ARRAY: ArrayId = ArrayId(0x77);
pub const HEAD: Purpose = Purpose::Head;
pub const WITNESS: Purpose = Purpose::Witness;
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server's address: each test has a network of its own.
pub fn ports(test: u8, server: u8) -> [Ports; 1] {
    [format!("127.77.{test}.{server}:3261").parse().expect("an address")]
}

/// Something that runs until it is told to stop.
pub struct Running {
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<()>,
}

impl Running {
    pub fn start<F: Future<Output = ()> + Send + 'static>(
        run: impl FnOnce(oneshot::Receiver<()>) -> F,
    ) -> Running {
        let (stop, stopped) = oneshot::channel();
        Running { stop, task: tokio::spawn(run(stopped)) }
    }

    pub async fn stop(self) {
        self.stop.send(()).expect("it runs");
        self.task.await.expect("it ends without a panic");
    }
}

pub async fn until(stopped: oneshot::Receiver<()>) {
    // a test that has failed drops the sender
    let _order = stopped.await;
}

/// A server with its state directory, and what runs on it.
pub struct Server {
    pub directory: TempDir,
    pub ports: [Ports; 1],
    pub member: Option<Running>,
    pub events: Arc<Mutex<Vec<MemberEvent>>>,
}

impl Server {
    pub fn new(test: u8, server: u8) -> Server {
        let directory = TempDir::new().expect("a directory");
        Server { directory, ports: ports(test, server), member: None, events: Arc::default() }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn pair(&self) -> PairFile {
        PairFile::load(self.path()).expect("it can be read").expect("it is a head of a pair")
    }

    pub fn start_member(&mut self) {
        let member = Member::open(self.path()).expect("it has joined");
        let events = self.events.clone();
        self.member = Some(Running::start(async move |stopped| {
            let note = move |event: MemberEvent| {
                println!("{event}");
                events.lock().expect("nobody panics with it").push(event);
            };
            member.run(until(stopped), note).await.expect("a thread can be started");
        }));
    }

    pub async fn stop_member(&mut self) {
        self.member.take().expect("it runs").stop().await;
    }

    /// The newest process of etcd, and how many were started.
    pub fn process(&self) -> (u32, usize) {
        let events = self.events.lock().expect("nobody panics with it");
        let started = events.iter().filter_map(|event| match event {
            MemberEvent::Started { process } => Some(*process),
            MemberEvent::Ended { .. } => None,
        });
        (started.clone().next_back().unwrap_or(0), started.count())
    }

    pub async fn join(&self, token: &Token) -> Result<(), SetupError> {
        match token.purpose {
            HEAD => setup::join_head(token, &self.ports, self.path()).await.map(drop),
            WITNESS => setup::join_witness(token, &self.ports, self.path()).await,
        }
    }
}

/// The first head, with its member and its door.
pub struct First {
    pub server: Server,
    pub door: Running,
    pub door_events: Arc<Mutex<Vec<DoorEvent>>>,
}

pub async fn open_door(server: &Server) -> (Running, Arc<Mutex<Vec<DoorEvent>>>) {
    let door = Door::open(server.path()).await.expect("the address is free");
    let events: Arc<Mutex<Vec<DoorEvent>>> = Arc::default();
    let noted = events.clone();
    let running = Running::start(async move |stopped| {
        let note = move |event: DoorEvent| {
            println!("{event:?}");
            noted.lock().expect("nobody panics with it").push(event);
        };
        door.serve(until(stopped), note).await;
    });
    (running, events)
}

pub async fn create(test: u8) -> (First, Created) {
    let mut server = Server::new(test, 1);
    let created = setup::create(server.path(), A, ARRAY, 0, &server.ports, pair::TAKEOVER_MS_DEFAULT)
        .expect("it is alone");
    server.start_member();
    let first = setup::found_register(&created.pair).await.expect("etcd starts");
    assert_eq!(first, Register::first(A, created.pair.partner, Term(1)));
    assert_eq!(setup::found_register(&created.pair).await.expect("it is there"), first);
    let (door, door_events) = open_door(&server).await;
    (First { server, door, door_events }, created)
}

/// The token with the address of another door.
pub fn elsewhere(token: &Token, door: SocketAddr) -> Token {
    let mut token = token.clone();
    token.door = door;
    token
}

/// Waits until something holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "it does not happen: {what}");
        sleep(Duration::from_millis(100)).await;
    }
}

pub async fn voters(server: &Server, count: usize) {
    let what = format!("{count} members vote");
    eventually(&what, || async {
        // an error while there is no leader
        let _refreshed = setup::refresh_members(server.path()).await;
        server.pair().members.len() == count
    })
    .await;
}

pub fn refusal(outcome: Result<(), SetupError>) -> Refusal {
    match outcome {
        Err(SetupError::Refused(refusal)) => refusal,
        other => panic!("it was not refused: {other:?}"),
    }
}

/// To etcd on this server.
pub fn signal(signal: &str, server: &Server) {
    let (process, _) = server.process();
    let status = Command::new("kill").args([signal, &process.to_string()]).status();
    assert!(status.expect("kill is there").success());
}

/// A swap that must win, with the members that there are; how long it took.
pub async fn swap(pair: &PairFile) -> Duration {
    let mut client = pair.register().expect("its keys fit");
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "the register does not answer");
        if let Ok(now) = client.ask(Question::Read).await {
            let new = now.confirmed();
            let question = Question::CompareAndSet { expected: now.revision, new };
            if client.ask(question).await.is_ok_and(|after| after == new) {
                return began.elapsed();
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Both heads and the witness, all of which vote.
pub async fn whole_pair(test: u8) -> (First, Server, Server, Created) {
    let (first, created) = create(test).await;
    let [mut other, mut witness] = [2, 3].map(|server| Server::new(test, server));
    other.join(&created.head).await.expect("the token is good");
    other.start_member();
    voters(&first.server, 2).await;
    witness.join(&created.witness).await.expect("the token is good");
    witness.start_member();
    voters(&first.server, 3).await;
    (first, other, witness, created)
}

/// Passes on what both say, and cuts the connection after so many bytes of the door.
pub async fn cut_after(listener: TcpListener, door: SocketAddr, bytes: usize) {
    let (mut joiner, _) = listener.accept().await.expect("somebody joins");
    let mut door = TcpStream::connect(door).await.expect("the door listens");
    let (mut from_joiner, mut to_joiner) = joiner.split();
    let (from_door, mut to_door) = door.split();
    let there = tokio::io::copy(&mut from_joiner, &mut to_door);
    let mut first = from_door.take(bytes as u64);
    let back = tokio::io::copy(&mut first, &mut to_joiner);
    tokio::select! {
        _ = there => {}
        _ = back => {}
    }
}

pub async fn answers(server: &Server) -> bool {
    TcpStream::connect(server.ports[0].client()).await.is_ok()
}
