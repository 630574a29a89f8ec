//! The door: where the other head and the witness join, with a token. A head that is part of a pair keeps it open.
//!
//! What always holds: a joiner gets nothing without a token that is good, and the token is used up first; each connection has a time
//! and each message a size; a few connections are served at a time, one join is carried out at a time. The door also gives a member
//! that has caught up its vote, because the joiner cannot.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;

use crate::cluster::Cluster;
use crate::create::host_addresses;
use crate::error::SetupError;
use crate::exchange::{self, Answer, Files, HeadFiles, Ready, Request};
use crate::issued;
use crate::membership::{self, joiner_name};
use crate::pair_file::{Keys, PairFile};
use crate::ports::{ADDRESSES_MAX, Ports};
use crate::refusal::Refusal;
use crate::tls;
use crate::token::Purpose;

/// Connections that are served at a time; others are closed at once.
const CONNECTIONS_MAX: usize = 4;
/// How long a stranger may take to show a token, and a joiner to write its files.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a whole join may take.
pub(crate) const JOIN_TIME_MAX: Duration = Duration::from_secs(90);
/// How often the door looks whether a new member has caught up.
const PROMOTE_EVERY: Duration = Duration::from_secs(1);

/// What the door has done. `pair.json` has changed: the daemon reads it again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DoorEvent {
    /// The other head or the witness has its files and is about to start its member of etcd.
    Joined { purpose: Purpose, listen: Vec<Ports> },
    /// The members of etcd that vote have changed.
    Members(Vec<String>),
    /// A join was refused or broke off. Nothing is to be read again.
    Refused { from: String, why: String },
}

/// A door that listens.
pub struct Door {
    state_dir: PathBuf,
    listeners: Vec<TcpListener>,
    acceptor: TlsAcceptor,
}

/// What all connections share.
struct Room<E> {
    state_dir: PathBuf,
    on_event: E,
    /// Held while a join is carried out.
    join: Mutex<()>,
    places: Semaphore,
    /// There may be a member without a vote.
    learner: AtomicBool,
}

impl Door {
    /// Listens on the second port of each of the head's addresses.
    pub async fn open(state_dir: &Path) -> Result<Door, SetupError> {
        let pair = PairFile::load(state_dir)?
            .ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
        let mut listeners = Vec::new();
        for address in pair.ports().iter().map(Ports::door) {
            let listener = TcpListener::bind(address).await;
            listeners.push(listener.map_err(|error| SetupError::Listen { address, error })?);
        }
        let acceptor = TlsAcceptor::from(Arc::new(tls::server_config(&pair)?));
        Ok(Door { state_dir: state_dir.to_owned(), listeners, acceptor })
    }

    /// Lets those in who have a token, until `stop` completes. A join that is under way then breaks off.
    pub async fn serve(
        self,
        stop: impl Future<Output = ()>,
        on_event: impl Fn(DoorEvent) + Send + Sync + 'static,
    ) {
        let room = Arc::new(Room {
            state_dir: self.state_dir,
            on_event,
            join: Mutex::new(()),
            places: Semaphore::new(CONNECTIONS_MAX),
            // an earlier start of the head may have left one
            learner: AtomicBool::new(true),
        });
        // all of them end when this is dropped
        let mut tasks = JoinSet::new();
        for listener in self.listeners {
            tasks.spawn(accept(listener, self.acceptor.clone(), room.clone()));
        }
        tasks.spawn(promote(room));
        stop.await;
    }
}

async fn accept<E: Fn(DoorEvent) + Send + Sync + 'static>(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    room: Arc<Room<E>>,
) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, from)) = listener.accept().await else {
            // out of file descriptors, for example
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            continue;
        }
        let (room, acceptor) = (room.clone(), acceptor.clone());
        connections.spawn(async move {
            let Ok(_place) = room.places.try_acquire() else { return };
            let served = timeout(JOIN_TIME_MAX, room.serve(acceptor, socket)).await;
            let why = match served {
                Ok(Ok(())) => return,
                Ok(Err(why)) => why,
                Err(_) => "it took too long".to_owned(),
            };
            (room.on_event)(DoorEvent::Refused { from: from.ip().to_string(), why });
        });
    }
}

/// Gives new members their votes, and notes who votes.
async fn promote<E: Fn(DoorEvent) + Send + Sync>(room: Arc<Room<E>>) {
    let mut ticks = interval(PROMOTE_EVERY);
    loop {
        ticks.tick().await;
        if !room.learner.load(Ordering::Acquire) {
            continue;
        }
        let _join = room.join.lock().await;
        // what fails is tried again
        if let Ok(true) = room.promote_once().await {
            room.learner.store(false, Ordering::Release);
        }
    }
}

impl<E: Fn(DoorEvent) + Send + Sync> Room<E> {
    fn load(&self) -> Result<PairFile, SetupError> {
        PairFile::load(&self.state_dir)?
            .ok_or_else(|| SetupError::NoPair { path: PairFile::path(&self.state_dir) })
    }

    async fn promote_once(&self) -> Result<bool, SetupError> {
        let all = membership::promote(&Cluster::new(&self.load()?)?).await?;
        if let Some(members) = refresh_members(&self.state_dir).await? {
            (self.on_event)(DoorEvent::Members(members));
        }
        Ok(all)
    }

    /// One connection. The error is for this head's log.
    async fn serve(&self, acceptor: TlsAcceptor, socket: TcpStream) -> Result<(), String> {
        let handshake = timeout(MESSAGE_TIME_MAX, acceptor.accept(socket)).await;
        let mut stream = handshake.map_err(|_| "no TLS in time")?.map_err(|error| error.to_string())?;
        let request: Request = match timeout(MESSAGE_TIME_MAX, exchange::receive(&mut stream)).await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => {
                return refuse(&mut stream, Refusal::NotUnderstood).await.and(Err(error.to_string()));
            }
            Err(_) => return Err("it did not show a token in time".to_owned()),
        };
        let outcome = self.join(&mut stream, request).await;
        if let Err(refusal) = &outcome {
            refuse(&mut stream, refusal.clone()).await?;
        }
        // the joiner may have closed it already
        let _closed = stream.shutdown().await;
        outcome.map_err(|refusal| refusal.to_string())
    }

    async fn join<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: &mut S,
        request: Request,
    ) -> Result<(), Refusal> {
        if request.version != exchange::VERSION {
            return Err(Refusal::Version { version: request.version });
        }
        let head = |error: SetupError| Refusal::Head { why: error.to_string() };
        issued::spend(&self.state_dir, &request.secret, request.purpose).map_err(head)??;
        let _join = self.join.lock().await;
        let pair = self.load().map_err(head)?;
        let listen = check_addresses(&pair, &request)?;
        let cluster = Cluster::new(&pair).map_err(head)?;
        membership::check_place(&cluster, &pair, request.purpose, &listen).await?;
        let files = files_for(&pair, request.purpose, &listen).map_err(head)?;
        let broke =
            |error: std::io::Error| Refusal::Head { why: format!("the connection broke off: {error}") };
        exchange::send(stream, &Answer::Files(Box::new(files))).await.map_err(broke)?;
        let ready = timeout(MESSAGE_TIME_MAX, exchange::receive(stream)).await;
        let Ready {} = ready.map_err(|_| Refusal::NotUnderstood)?.map_err(broke)?;
        let enrolled = membership::enroll(&cluster, &pair, request.purpose, &listen).await;
        let initial_cluster = enrolled.map_err(|error| Refusal::Etcd { why: error.to_string() })?;
        self.learner.store(true, Ordering::Release);
        if request.purpose == Purpose::Head {
            let note = |pair: &mut PairFile| {
                pair.partner_listen.clone_from(&request.listen);
                true
            };
            PairFile::update(&self.state_dir, note).map_err(head)?;
        }
        exchange::send(stream, &Answer::Enrolled { initial_cluster }).await.map_err(broke)?;
        (self.on_event)(DoorEvent::Joined { purpose: request.purpose, listen });
        Ok(())
    }
}

async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, refusal: Refusal) -> Result<(), String> {
    let sent = timeout(MESSAGE_TIME_MAX, exchange::send(stream, &Answer::Refused(refusal))).await;
    sent.map_err(|_| "it did not take the answer")?.map_err(|error| error.to_string())
}

/// The addresses can be listened on, and are none of another server of the array: a certificate for them would let the joiner
/// stand in for that server.
fn check_addresses(pair: &PairFile, request: &Request) -> Result<Vec<Ports>, Refusal> {
    let ports: Result<Vec<Ports>, _> = request.listen.iter().map(|link| Ports::of_link(*link)).collect();
    let ports = ports.map_err(|error| Refusal::Addresses { why: error.to_string() })?;
    if ports.is_empty() || ports.len() > ADDRESSES_MAX {
        return Err(Refusal::Addresses { why: format!("there must be 1 to {ADDRESSES_MAX}") });
    }
    let partner = pair.partner_listen.iter().filter(|_| request.purpose == Purpose::Witness);
    for taken in pair.listen.iter().chain(partner) {
        if ports.iter().any(|ports| ports.address() == taken.ip()) {
            return Err(Refusal::AddressTaken { address: taken.ip().to_string() });
        }
    }
    Ok(ports)
}

/// What the joiner needs. The witness gets no key but its own.
fn files_for(pair: &PairFile, purpose: Purpose, listen: &[Ports]) -> Result<Files, SetupError> {
    let name = joiner_name(pair, purpose);
    let identity = pair.authority().issue(&name, &host_addresses(listen))?;
    let head = HeadFiles {
        head: pair.partner,
        partner: pair.head,
        seat: 1 - pair.seat,
        partner_listen: pair.listen.clone(),
        link_key: pair.link_key.clone(),
        authority_key: pair.authority.key.clone(),
    };
    Ok(Files {
        array: pair.array,
        name,
        own: Keys { certificate: identity.certificate, key: identity.key },
        authority: pair.authority.certificate.clone(),
        members: pair.members.clone(),
        takeover_ms: pair.takeover_ms,
        head: (purpose == Purpose::Head).then_some(head),
    })
}

/// Asks etcd for the members that vote and notes them in `pair.json`. Gives them if they have changed.
pub async fn refresh_members(state_dir: &Path) -> Result<Option<Vec<String>>, SetupError> {
    let pair =
        PairFile::load(state_dir)?.ok_or_else(|| SetupError::NoPair { path: PairFile::path(state_dir) })?;
    let members = membership::members(&pair).await?;
    if members == pair.members {
        return Ok(None);
    }
    PairFile::update(state_dir, |pair| {
        pair.members.clone_from(&members);
        true
    })?;
    Ok(Some(members))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair_file::tests::example;
    use register::Authority;

    fn request(purpose: Purpose, listen: &[&str]) -> Request {
        let listen = listen.iter().map(|text| text.parse().unwrap()).collect();
        Request { version: exchange::VERSION, purpose, secret: [0; 16], listen }
    }

    #[test]
    fn nobody_gets_a_certificate_for_the_address_of_another_server() {
        let mut pair = example();
        pair.partner_listen.push("192.0.2.2:3261".parse().unwrap());
        let check = |purpose, listen: &[&str]| check_addresses(&pair, &request(purpose, listen)).map(drop);
        let taken = |address: &str| Err(Refusal::AddressTaken { address: address.to_owned() });
        assert_eq!(check(Purpose::Head, &["192.0.2.1:9000"]), taken("192.0.2.1"));
        assert_eq!(check(Purpose::Witness, &["192.0.2.3:9000", "192.0.2.2:9000"]), taken("192.0.2.2"));
        assert_eq!(check(Purpose::Head, &["192.0.2.2:3261"]), Ok(()), "it joins again");
        assert_eq!(check(Purpose::Witness, &["192.0.2.3:3261"]), Ok(()));
        for listen in [&[][..], &["0.0.0.0:3261"], &["192.0.2.3:65535"], &["192.0.2.3:1"; 9]] {
            assert!(matches!(check(Purpose::Head, listen), Err(Refusal::Addresses { .. })), "{listen:?}");
        }
    }

    #[test]
    fn the_witness_gets_no_key_but_its_own() {
        let authority = Authority::new("5").unwrap();
        let keys = Keys { certificate: authority.certificate, key: authority.key };
        let pair = PairFile { authority: keys, ..example() };
        let listen = ["192.0.2.3".parse().unwrap()];
        let files = files_for(&pair, Purpose::Witness, &listen).unwrap();
        let text = serde_json::to_string(&files).unwrap();
        let secret = pair.authority.key.lines().nth(1).unwrap();
        assert!(files.head.is_none() && !text.contains(secret) && !text.contains("abab"), "{text}");
        let files = files_for(&pair, Purpose::Head, &listen).unwrap();
        assert_eq!(files.head.unwrap().head, pair.partner);
    }
}
