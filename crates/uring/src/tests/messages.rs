//! Messages between shards, and from other threads.

use std::time::Duration;

use base::limits::{CONTROL_QUEUE_MAX, SHARD_QUEUE_MAX};
use base::{Nanos, ShardId};
use env::{Env, Event, Wait};

use super::{Driver, on_shards};
use crate::{Options, spawn_shards};

#[test]
fn shards_play_ping_pong() {
    on_shards::<u32, _>(2, |mut driver: Driver<u32>| {
        let other = ShardId(1 - driver.env.shard().0);
        assert_eq!(driver.env.shards(), 2);
        if driver.env.shard() == ShardId(0) {
            driver.env.send(other, 0).expect("room");
        }
        // each waits for the other, asleep or not
        loop {
            let count = driver.message();
            driver.env.send(other, count + 1).expect("room");
            if count >= 10_000 {
                return;
            }
        }
    });
}

#[test]
fn messages_arrive_in_order_and_a_full_queue_gives_them_back() {
    on_shards::<usize, _>(2, |mut driver: Driver<usize>| {
        let count = 3 * SHARD_QUEUE_MAX;
        if driver.env.shard() == ShardId(0) {
            let mut given_back = false;
            for number in 0..count {
                let mut message = number;
                while let Err(back) = driver.env.send(ShardId(1), message) {
                    assert_eq!(back, number);
                    message = back;
                    given_back = true;
                    driver.poll(Wait::No); // delivers
                    std::thread::yield_now();
                }
            }
            assert!(given_back, "the queue is bounded");
            driver.poll(Wait::No);
        } else {
            for expected in 0..count {
                assert_eq!(driver.message(), expected);
            }
        }
    });
}

#[test]
fn a_shard_sends_to_itself() {
    on_shards::<&'static str, _>(1, |mut driver: Driver<&'static str>| {
        driver.env.send(ShardId(0), "me").expect("room");
        driver.poll(Wait::Forever);
        assert_eq!(driver.messages, ["me"]);
    });
}

#[test]
fn a_mailbox_wakes_a_sleeper_is_bounded_and_closes_with_its_shard() {
    let shards = spawn_shards(&Options::new(1), |mut env| {
        let mut events = Vec::new();
        loop {
            env.poll(&mut events, Wait::Forever);
            for event in events.drain(..) {
                match event {
                    Event::Message(0) => return,
                    Event::Message(milliseconds) => std::thread::sleep(Duration::from_millis(milliseconds)),
                    Event::Completion(completion) => panic!("of what? {completion:?}"),
                }
            }
        }
    })
    .expect("shards");
    let mailbox = shards.mailboxes[0].clone();
    std::thread::sleep(Duration::from_millis(20)); // it sleeps in its ring
    mailbox.try_send(1).expect("room");
    std::thread::sleep(Duration::from_millis(20));
    mailbox.try_send(100).expect("room"); // deaf for a while
    std::thread::sleep(Duration::from_millis(20));
    let fit = (0..2 * CONTROL_QUEUE_MAX).take_while(|_| mailbox.try_send(1).is_ok()).count();
    assert_eq!(fit, CONTROL_QUEUE_MAX);
    assert!(!mailbox.is_closed());
    while mailbox.try_send(0).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for thread in shards.threads {
        thread.join().expect("it ends");
    }
    assert!(mailbox.is_closed());
    assert_eq!(mailbox.try_send(7), Err(7));
}

#[test]
fn what_a_shard_never_read_is_dropped_with_it() {
    let witness = std::sync::Arc::new(());
    let shards = spawn_shards::<std::sync::Arc<()>, _>(&Options::new(1), |env| {
        std::thread::sleep(Duration::from_millis(50));
        drop(env);
    })
    .expect("shards");
    let mailbox = shards.mailboxes[0].clone();
    mailbox.try_send(witness.clone()).expect("room");
    for thread in shards.threads {
        thread.join().expect("it ends");
    }
    // somebody who waits for an answer that would be sent when the message is read learns that it never will
    assert_eq!(std::sync::Arc::strong_count(&witness), 1);
}

#[test]
fn waiting_ends_at_the_deadline_and_not_before() {
    on_shards::<(), _>(1, |mut driver: Driver<()>| {
        for milliseconds in [0, 1, 30] {
            let start = driver.env.now();
            let deadline = start + Nanos::from_millis(milliseconds);
            driver.poll(Wait::Until(deadline));
            let now = driver.env.now();
            assert!(now >= deadline, "{:?} too early", deadline - now);
            assert!(now - start < Nanos::from_millis(milliseconds + 2000));
        }
    });
}

#[test]
fn random_numbers_differ() {
    on_shards::<(), _>(1, |mut driver: Driver<()>| {
        let numbers: base::HashSet<u64> = (0..1000).map(|_| driver.env.random_u64()).collect();
        assert_eq!(numbers.len(), 1000);
        assert!(driver.env.wall_clock_ms() > 1_700_000_000_000);
        assert!(driver.env.uptime() > base::Nanos(0));
    });
}
