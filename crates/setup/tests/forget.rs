//! The array goes back to one head, with real members of etcd. `conformance/register` runs these: they need Debian's `etcd-server`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts processes, measures time")]
#![allow(dead_code, reason = "another test program uses the rest of `servers`")]

mod servers;

use pair::{Question, Register};
use servers::*;
use setup::{AloneAfterPair, Member, PairFile, SetupError};

async fn read(pair: &PairFile) -> Register {
    pair.register().expect("its keys fit").ask(Question::Read).await.expect("the register answers")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs etcd: conformance/register"]
async fn the_owner_forgets_the_other_head_and_is_alone() {
    let (mut first, mut other, mut witness, _) = whole_pair(8).await;
    let pair = first.server.pair();
    let mut client = pair.register().expect("its keys fit");
    let known = read(&pair).await;
    let joined = Question::CompareAndSet { expected: known.revision, new: known.joined() };
    client.ask(joined).await.expect("the register answers");

    // refused on the head that does not own, and while that one is in sync
    let refused = setup::disown(other.path(), true).await.expect_err("it is the partner");
    assert!(matches!(refused, SetupError::NotTheOwner), "{refused}");
    let refused = setup::disown(first.server.path(), false).await.expect_err("the other one is in sync");
    assert!(matches!(refused, SetupError::ForgetsInSync), "{refused}");
    assert!(read(&pair).await.is_in_sync(pair.partner) && !first.server.pair().is_forgotten);

    // as if it had broken off behind its first step, and then again behind the second
    setup::disown(first.server.path(), true).await.expect("it is meant");
    let forgotten = read(&pair).await;
    assert!(forgotten.other(pair.partner).is_none() && !forgotten.in_sync && forgotten.owner == A);
    PairFile { is_forgotten: false, ..first.server.pair() }
        .save(first.server.path())
        .expect("it can be saved");
    for _ in 0..2 {
        setup::disown(first.server.path(), false).await.expect("it goes on");
        assert_eq!(read(&pair).await, forgotten, "the register is changed once");
        assert!(first.server.pair().is_forgotten);
    }

    // the next start; etcd's supervisor ends by itself, and removes data and keys
    setup::finish_forgetting(first.server.path()).expect("it can be written");
    let register = first.server.path().join("register");
    eventually("etcd ends, and its data is gone", || async {
        !register.join("data").exists() && !register.join("key.pem").exists() && !answers(&first.server).await
    })
    .await;
    first.server.member.take().expect("it ran").task.await.expect("it has ended by itself");
    assert!(PairFile::load(first.server.path()).expect("it is not there").is_none());
    assert_eq!(
        AloneAfterPair::load(first.server.path()).expect("it was written").map(|alone| alone.seat),
        Some(0)
    );
    let none = Member::open(first.server.path()).map(drop).expect_err("it is gone");
    assert!(matches!(none, SetupError::NoMember { .. }), "{none}");

    // what the others hold says so, too
    assert!(read(&other.pair()).await.other(pair.partner).is_none());
    other.stop_member().await;
    witness.stop_member().await;

    // and a pair can be made again, in a later term
    first.door.stop().await;
    let again =
        setup::create(first.server.path(), A, ARRAY, 7, &first.server.ports, pair::TAKEOVER_MS_DEFAULT)
            .expect("it is alone");
    first.server.start_member();
    let value = setup::found_register(&again.pair).await.expect("etcd starts");
    assert_eq!((value.term.0, value.owner, value.partner), (8, A, again.pair.partner));
    assert_ne!(value.partner, pair.partner);
    first.server.stop_member().await;
}
