//! A pair is set up with real members of etcd, on loopback addresses: two heads and a witness, what goes wrong on the way, and what
//! must go on afterwards. `conformance/register` runs these: they need Debian's `etcd-server`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts processes, measures time")]

mod servers;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base::HeadId;
use servers::*;
use setup::{DoorEvent, Leader, Member, MemberEvent, PairFile, Refusal, SetupError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn three_commands_make_a_pair_and_each_server_knows_what_it_needs() {
    let (first, other, witness, created) = whole_pair(1).await;
    let (own, theirs) = (first.server.pair(), other.pair());
    assert_eq!((theirs.head, theirs.partner, theirs.array), (own.partner, A, ARRAY));
    assert_eq!((&own.partner_listen, &theirs.partner_listen), (&theirs.listen, &own.listen));
    assert_eq!(own.link_key.0, theirs.link_key.0);
    assert_eq!(own.authority, theirs.authority);
    let id = std::fs::read_to_string(other.path().join("head")).expect("it was written");
    assert_eq!(id, format!("{}\n", own.partner));
    assert!(!witness.path().join("pair.json").exists() && !witness.path().join("head").exists());
    {
        let events = first.door_events.lock().expect("nobody panics with it");
        for (purpose, server) in [(HEAD, &other), (WITNESS, &witness)] {
            let joined = DoorEvent::Joined { purpose, listen: server.ports.to_vec() };
            assert!(events.contains(&joined), "{events:?}");
        }
    }
    // the other head has not seen the witness join
    voters(&other, 3).await;
    assert_eq!(other.pair().members[0], other.ports[0].client().to_string(), "its own one is first");
    assert_eq!(setup::refresh_members(other.path()).await.expect("etcd answers"), None);

    // a token works once
    let late = Server::new(1, 4);
    assert_eq!(refusal(late.join(&created.witness).await), Refusal::Used { purpose: WITNESS });
    assert_eq!(refusal(late.join(&created.head).await), Refusal::Used { purpose: HEAD });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn the_register_survives_the_loss_of_any_member_and_a_restart_of_all() {
    let (mut first, mut other, mut witness, _) = whole_pair(7).await;
    voters(&other, 3).await;
    // the leader goes to the witness, whoever has it
    assert!(matches!(setup::lead_by_witness(&other.pair()).await, Ok(Leader::Moved | Leader::Witness)));
    eventually("the witness leads", || async {
        matches!(setup::lead_by_witness(&first.server.pair()).await, Ok(Leader::Witness))
    })
    .await;

    let pair = other.pair();
    // a silent witness is left alone, and leads again when it is back
    witness.stop_member().await;
    swap(&pair).await;
    assert!(matches!(setup::lead_by_witness(&pair).await, Ok(Leader::WitnessSilent)));
    witness.start_member();
    eventually("the witness leads again", || async {
        matches!(setup::lead_by_witness(&pair).await, Ok(Leader::Witness))
    })
    .await;
    // it hangs, so that it has to be killed in the end
    signal("-STOP", &witness);
    println!("with the witness stopped a swap took {:?}", swap(&pair).await);
    for server in [&mut witness, &mut first.server] {
        server.stop_member().await;
        println!("without {:?} a swap took {:?}", server.ports, swap(&pair).await);
        server.start_member();
        voters(&other, 3).await;
        eventually("all members answer", || answers(server)).await;
    }
    other.stop_member().await;
    println!("without the other head a swap took {:?}", swap(&first.server.pair()).await);

    // all of them from their files
    for server in [&mut first.server, &mut witness] {
        server.stop_member().await;
    }
    for server in [&mut witness, &mut other, &mut first.server] {
        server.start_member();
    }
    println!("after a restart of all members a swap took {:?}", swap(&pair).await);
    voters(&other, 3).await;
    first.door.stop().await;
    for server in [&mut first.server, &mut witness, &mut other] {
        server.stop_member().await;
        let (process, _) = server.process();
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "etcd has ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn who_has_no_good_token_gets_nothing() {
    let (first, created) = create(2).await;
    let other = Server::new(2, 2);
    let nothing = |server: &Server| {
        assert!(!PairFile::path(server.path()).exists() && !server.path().join("register/key.pem").exists());
    };

    // a head with an array of its own
    std::fs::write(other.path().join("catalog.json"), r#"{"pools":[{}]}"#).expect("the directory is ours");
    let refused = other.join(&created.head).await.expect_err("it has a pool");
    assert!(matches!(refused, SetupError::HasArray { .. }), "{refused}");
    std::fs::remove_file(other.path().join("catalog.json")).expect("it is there");

    // a token of another pair, with the address of this one's door
    let strange = Server::new(2, 9);
    let stranger =
        setup::create(strange.path(), HeadId(9), ARRAY, 0, &strange.ports, 500).expect("it is alone");
    let strange_token = elsewhere(&stranger.head, created.head.door);
    let refused = other.join(&strange_token).await.expect_err("another authority");
    assert!(matches!(refused, SetupError::WrongAuthority { .. }), "{refused}");
    println!("{refused}");

    // nobody listens there
    let lost = elsewhere(&created.head, "127.77.2.200:3262".parse().expect("an address"));
    let refused = other.join(&lost).await.expect_err("nobody is there");
    assert!(matches!(refused, SetupError::Door { .. }), "{refused}");
    println!("{refused}");

    // the witness's token on a head
    let refused = setup::join_head(&created.witness, &other.ports, other.path()).await.map(drop);
    assert_eq!(refusal(refused), Refusal::OtherPurpose { purpose: WITNESS });

    // an hour later
    let path = first.server.path().join("tokens.json");
    let text = std::fs::read_to_string(&path).expect("it was written");
    let mut tokens: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    for token in tokens["tokens"].as_array_mut().expect("a list") {
        token["expires_s"] = 1.into();
    }
    std::fs::write(&path, tokens.to_string()).expect("it is ours");
    let refused = refusal(other.join(&created.head).await);
    println!("{refused}");
    assert_eq!(refused, Refusal::Expired { purpose: HEAD });
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(refusal(other.join(&created.head).await), Refusal::Unknown { purpose: HEAD });
    nothing(&other);

    // an address of the first head, from a server that could listen there
    let token = setup::new_token(first.server.path(), HEAD).expect("it is a head of a pair");
    let same = ["127.77.2.1:4261".parse().expect("an address")];
    let refused = setup::join_head(&token, &same, other.path()).await.map(drop);
    assert!(matches!(refusal(refused), Refusal::AddressTaken { .. }));

    // what is no TLS, and what is no request, is closed
    let mut socket = TcpStream::connect(created.head.door).await.expect("the door listens");
    socket.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("it is open");
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, socket.read_to_end(&mut answer)).await.expect("it is closed").ok();
    nothing(&other);
    assert_eq!(setup::members(&created.pair).await.expect("etcd answers"), created.pair.members);

    // a good one, and then the server is part of the pair
    let token = setup::new_token(first.server.path(), HEAD).expect("it is a head of a pair");
    other.join(&token).await.expect("the token is good");
    let refused = other.join(&token).await.expect_err("it has joined");
    assert!(matches!(refused, SetupError::Paired { .. }), "{refused}");
    let refused = setup::create(other.path(), A, ARRAY, 0, &other.ports, 500).expect_err("it has joined");
    assert!(matches!(refused, SetupError::Paired { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn a_join_that_broke_off_is_repeated_with_another_token() {
    let (first, created) = create(3).await;
    let mut other = Server::new(3, 2);
    let new_token = |purpose| setup::new_token(first.server.path(), purpose).expect("a head of a pair");

    // the connection breaks while the files are sent
    let proxy = TcpListener::bind("127.77.3.1:5000").await.expect("it is free");
    let through = elsewhere(&created.head, "127.77.3.1:5000".parse().expect("an address"));
    let cut = tokio::spawn(cut_after(proxy, created.head.door, 3000));
    let broken = other.join(&through).await.expect_err("it was cut");
    cut.await.expect("it has cut");
    assert!(matches!(broken, SetupError::Door { .. }), "{broken}");
    println!("{broken}");
    assert_eq!(refusal(other.join(&created.head).await), Refusal::Used { purpose: HEAD });

    // etcd has the new member, and the last files cannot be written
    std::fs::create_dir(other.path().join("head")).expect("the directory is ours");
    let broken = other.join(&new_token(HEAD)).await.expect_err("a directory is in the way");
    assert!(matches!(broken, SetupError::File { .. }), "{broken}");
    assert!(!PairFile::path(other.path()).exists());
    std::fs::remove_dir(other.path().join("head")).expect("it is empty");

    // the witness has to wait for it
    let mut witness = Server::new(3, 3);
    let refused = refusal(witness.join(&created.witness).await);
    println!("{refused}");
    assert!(matches!(refused, Refusal::JoinPending { .. }), "{refused}");

    // the same server at another address
    other.ports = ports(3, 4);
    other.join(&new_token(HEAD)).await.expect("the token is good");
    other.start_member();
    voters(&first.server, 2).await;
    witness.join(&new_token(WITNESS)).await.expect("the token is good");
    witness.start_member();
    voters(&first.server, 3).await;
    assert_eq!(first.server.pair().partner_listen, other.pair().listen);

    // a head at the address of the witness
    other.stop_member().await;
    let third = Server::new(3, 6);
    let taken = ["127.77.3.3:7261".parse().expect("an address")];
    let refused = setup::join_head(&new_token(HEAD), &taken, third.path()).await.map(drop);
    assert!(matches!(refusal(refused), Refusal::AddressTaken { .. }));
    other.start_member();

    // a member that lives is not replaced, and one whose server was lost is
    let mut again = Server::new(3, 5);
    let refused = refusal(again.join(&new_token(WITNESS)).await);
    println!("{refused}");
    assert!(matches!(refused, Refusal::MemberLives { .. }), "{refused}");
    witness.stop_member().await;
    again.join(&new_token(WITNESS)).await.expect("the witness was lost");
    again.start_member();
    let address = again.ports[0].client().to_string();
    eventually("the new witness votes", || async {
        let _refreshed = setup::refresh_members(other.path()).await;
        let members = other.pair().members;
        members.len() == 3 && members.contains(&address)
    })
    .await;
    other.stop_member().await;
    println!("without the other head a swap took {:?}", swap(&first.server.pair()).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn etcd_is_started_again_when_it_dies_and_runs_once() {
    let (first, created) = create(4).await;
    let refused = Member::open(first.server.path()).map(drop).expect_err("it runs");
    assert!(matches!(refused, SetupError::MemberRuns { .. }), "{refused}");
    for count in 2..4 {
        signal("-KILL", &first.server);
        eventually("it is started again", || async { first.server.process().1 == count }).await;
        println!("the swap after a kill took {:?}", swap(&created.pair).await);
    }
    let events = first.server.events.lock().expect("nobody panics with it").clone();
    assert!(
        events.iter().any(|event| matches!(event, MemberEvent::Ended { how, .. } if how == "signal 9")),
        "{events:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn a_member_that_cannot_start_says_why() {
    let server = Server::new(5, 1);
    setup::create(server.path(), A, ARRAY, 0, &server.ports, 500).expect("it is alone");
    let taken = TcpListener::bind(server.ports[0].peer()).await.expect("it is free");
    let mut server = server;
    server.start_member();
    let events = server.events.clone();
    let ended = || {
        let events = events.lock().expect("nobody panics with it");
        events.iter().filter(|event| matches!(event, MemberEvent::Ended { .. })).cloned().collect::<Vec<_>>()
    };
    eventually("it has ended twice", || async { ended().len() >= 2 }).await;
    let text = format!("{:?}", ended());
    assert!(text.contains("address already in use"), "{text}");
    drop(taken);
    eventually("it runs", || answers(&server)).await;
    server.stop_member().await;
}

/// Where the helper below finds its state directory.
const KILLED: &str = "SETUP_TEST_STATE_DIR";

/// The process that is killed by the test below; nothing if it is run as a test.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn a_supervisor_that_is_killed() {
    let Some(directory) = std::env::var_os(KILLED).map(std::path::PathBuf::from) else { return };
    let member = Member::open(&directory).expect("nobody else runs it");
    let note = move |event: MemberEvent| {
        if let MemberEvent::Started { process } = event {
            std::fs::write(directory.join("process"), process.to_string()).expect("the directory is ours");
        }
    };
    member.run(std::future::pending(), note).await.expect("a thread can be started");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn etcd_dies_with_its_supervisor() {
    let server = Server::new(6, 1);
    setup::create(server.path(), A, ARRAY, 0, &server.ports, 500).expect("it is alone");
    let mut supervisor = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", "a_supervisor_that_is_killed"])
        .env(KILLED, server.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it can be run again");
    eventually("etcd answers", || answers(&server)).await;
    // longer than the pools of threads keep one that has nothing to do
    sleep(Duration::from_secs(12)).await;
    let process = std::fs::read_to_string(server.path().join("process")).expect("it was started");
    let etcd = format!("/proc/{process}");
    assert!(Path::new(&etcd).exists(), "etcd stays while its supervisor is there");
    supervisor.kill().and_then(|()| supervisor.wait()).expect("it runs");
    eventually("etcd has ended, too", || async { !answers(&server).await }).await;
    Member::open(server.path()).expect("nobody supervises it any more");
}
