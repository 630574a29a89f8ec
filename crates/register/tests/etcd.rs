//! The register in a real etcd of three members with TLS, on loopback. `conformance/register` runs these: they need Debian's
//! `etcd-server`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts processes, measures time")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base::HeadId;
use pair::{Question, Register, Revision, Term};
use register::{Authority, Client, ClientError, Identity};
use tempfile::TempDir;

const A: HeadId = HeadId(1);
const B: HeadId = HeadId(2);
const ARRAY: &str = "0123";

struct Member {
    process: Child,
    /// `host:port` for clients.
    address: String,
}

/// Three members, ended when this is dropped.
struct Etcd {
    members: Vec<Member>,
    authority: Authority,
    _directory: TempDir,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.members {
            // one that was stopped must go on to die; one that has ended is fine
            let _ended = member.process.kill();
            let _waited = member.process.wait();
        }
    }
}

/// Ports that nobody has now.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    listeners.iter().map(|listener| listener.local_addr().expect("it has an address").port()).collect()
}

fn write_identity(directory: &Path, identity: &Identity) -> [String; 3] {
    let files =
        [("ca.pem", &identity.authority), ("cert.pem", &identity.certificate), ("key.pem", &identity.key)];
    files.map(|(name, text)| {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("the directory is ours");
        path.to_string_lossy().into_owned()
    })
}

impl Etcd {
    fn start() -> Etcd {
        let directory = TempDir::new().expect("a directory");
        let authority = Authority::new(ARRAY).expect("keys can be made");
        let ports = free_ports(6);
        let peers: Vec<String> =
            (0..3).map(|n| format!("m{n}=https://127.0.0.1:{}", ports[2 * n + 1])).collect();
        let members = (0..3)
            .map(|n| {
                let home = directory.path().join(format!("m{n}"));
                std::fs::create_dir(&home).expect("the directory is ours");
                let identity = authority.issue(&format!("m{n}"), &["127.0.0.1".to_owned()]).expect("a key");
                let [ca, certificate, key] = write_identity(&home, &identity);
                let address = format!("127.0.0.1:{}", ports[2 * n]);
                let peer = format!("https://127.0.0.1:{}", ports[2 * n + 1]);
                let url = format!("https://{address}");
                let process = Command::new("etcd")
                    .args(["--name", &format!("m{n}"), "--data-dir"])
                    .arg(home.join("data"))
                    .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
                    .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                    .args(["--initial-cluster", &peers.join(","), "--initial-cluster-state", "new"])
                    .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
                    .args(["--client-cert-auth", "--trusted-ca-file", &ca, "--cert-file", &certificate])
                    .args(["--key-file", &key, "--peer-client-cert-auth", "--peer-trusted-ca-file", &ca])
                    .args(["--peer-cert-file", &certificate, "--peer-key-file", &key])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("etcd is installed: scripts/install-packages pair");
                Member { process, address }
            })
            .collect();
        Etcd { members, authority, _directory: directory }
    }

    fn addresses(&self) -> Vec<String> {
        self.members.iter().map(|member| member.address.clone()).collect()
    }

    fn client(&self) -> Client {
        let identity = self.authority.issue("head", &[]).expect("a key");
        Client::new(ARRAY, self.addresses(), &identity).expect("its own keys fit")
    }

    fn signal(&self, member: usize, signal: &str) {
        let id = self.members[member].process.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().expect("kill is there");
        assert!(status.success());
    }
}

/// Asks until there is an answer; how long that took.
async fn patiently(client: &mut Client, question: Question) -> (Register, Duration) {
    let began = Instant::now();
    loop {
        match client.ask(question).await {
            Ok(content) => return (content, began.elapsed()),
            Err(why) => assert!(began.elapsed() < Duration::from_secs(60), "no answer for a minute: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A client of a register that has just been made.
async fn made(etcd: &Etcd) -> (Client, Register) {
    let mut client = etcd.client();
    let first = Register::first(A, B, Term(1));
    let began = Instant::now();
    loop {
        match client.create(first).await {
            Ok(content) => return (client, content),
            Err(why) => assert!(began.elapsed() < Duration::from_secs(60), "etcd does not start: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn swap(from: Register, new: Register) -> Question {
    Question::CompareAndSet { expected: from.revision, new }
}

#[tokio::test]
#[ignore = "needs etcd: conformance/register"]
async fn a_swap_is_won_by_one_and_the_other_is_told_what_is_there() {
    let etcd = Etcd::start();
    let (mut one, first) = made(&etcd).await;
    assert_eq!(first, Register::first(A, B, Term(1)));
    let mut two = etcd.client();
    assert_eq!(two.create(Register::first(B, A, Term(9))).await, Ok(first), "it is there already");
    let joined = first.joined();
    assert_eq!(one.ask(swap(first, joined)).await, Ok(joined));
    // the other head still knows the first content
    assert_eq!(two.ask(swap(first, first.restarted())).await, Ok(joined));
    assert_eq!(two.ask(swap(joined, joined.taken_over(B))).await, Ok(joined.taken_over(B)));
    assert_eq!(one.ask(Question::Read).await, Ok(joined.taken_over(B)));
    // sent again, because its answer was lost: it is seen to have won
    assert_eq!(two.ask(swap(joined, joined.taken_over(B))).await, Ok(joined.taken_over(B)));
}

#[tokio::test]
#[ignore = "needs etcd: conformance/register"]
async fn swaps_go_on_when_a_member_dies() {
    let mut etcd = Etcd::start();
    let (mut client, mut now) = made(&etcd).await;
    let mut times = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        let next = now.confirmed();
        (now, _) = patiently(&mut client, swap(now, next)).await;
        assert_eq!(now, next);
        times.push(began.elapsed());
    }
    times.sort();
    println!("100 swaps: p50 {:?}, p99 {:?}, longest {:?}", times[50], times[98], times[99]);
    // the one that the client talks to
    let process = &mut etcd.members[0].process;
    process.kill().and_then(|()| process.wait()).expect("it runs");
    let next = now.confirmed();
    let (content, took) = patiently(&mut client, swap(now, next)).await;
    assert_eq!(content, next);
    println!("a member was killed: the next swap took {took:?}");
    assert_eq!(patiently(&mut client, Question::Read).await.0, next);
}

#[tokio::test]
#[ignore = "needs etcd: conformance/register"]
async fn without_a_majority_there_is_no_answer_within_bounds_and_afterwards_there_is_without_a_restart() {
    let etcd = Etcd::start();
    let (mut client, first) = made(&etcd).await;
    etcd.signal(0, "-STOP");
    etcd.signal(1, "-STOP");
    for question in [Question::Read, swap(first, first.joined())] {
        let began = Instant::now();
        let answer = client.ask(question).await;
        assert!(
            matches!(&answer, Err(ClientError::Unreachable(reasons)) if reasons.len() == 3),
            "{answer:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
    etcd.signal(0, "-CONT");
    etcd.signal(1, "-CONT");
    let (content, took) = patiently(&mut client, Question::Read).await;
    println!("a majority came back: the next answer took {took:?}");
    // the swap that had no answer may have been carried out: the register tells
    assert!(content == first || content == first.joined(), "{content:?}");
    let (content, _) = patiently(&mut client, swap(content, content.left())).await;
    assert!(content.revision > Revision(1));
}

#[tokio::test]
#[ignore = "needs etcd: conformance/register"]
async fn who_has_no_key_of_the_array_is_told_that_and_changes_nothing() {
    let etcd = Etcd::start();
    let (mut client, first) = made(&etcd).await;
    // a key of another array's authority with the same name
    let stranger = Authority::new(ARRAY).and_then(|other| other.issue("head", &[])).expect("a key");
    let mut other = Client::new(ARRAY, etcd.addresses(), &stranger).expect("its own keys fit");
    let answer = other.ask(swap(first, first.restarted())).await;
    let Err(ClientError::Unreachable(reasons)) = &answer else { panic!("{answer:?}") };
    assert!(reasons.iter().all(|(_, why)| matches!(why, register::client::Broken::Tls(_))), "{answer:?}");
    // the right authority, and a certificate of a stranger
    let mixed = Identity { authority: etcd.authority.certificate.clone(), ..stranger };
    let mut other = Client::new(ARRAY, etcd.addresses(), &mixed).expect("a certificate and its key fit");
    let answer = other.ask(swap(first, first.restarted())).await;
    assert!(matches!(&answer, Err(ClientError::Unreachable(_))), "{answer:?}");
    println!("{}", answer.expect_err("checked above"));
    assert_eq!(client.ask(Question::Read).await, Ok(first));
}

#[tokio::test]
#[ignore = "needs etcd: conformance/register"]
async fn a_register_that_was_never_made_is_absent() {
    let etcd = Etcd::start();
    let (client, _) = made(&etcd).await;
    drop(client);
    let identity = etcd.authority.issue("head", &[]).expect("a key");
    let mut other = Client::new("another", etcd.addresses(), &identity).expect("its own keys fit");
    assert_eq!(other.ask(Question::Read).await, Err(ClientError::Absent));
    let first = Register::first(A, B, Term(1));
    assert_eq!(other.ask(swap(first, first.joined())).await, Err(ClientError::Absent));
}
