//! Sockets over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, IoError, ListenerHandle, Operation, Outcome};

use super::{Driver, done, on_a_shard, on_shards};

fn listen(driver: &mut Driver<()>, address: &str) -> (ListenerHandle, SocketAddr) {
    let address = address.parse().expect("an address");
    match driver.run(Operation::Listen { address }) {
        Outcome::Listening(listener, bound) => (listener, bound),
        other => panic!("listening ended as {other:?}"),
    }
}

/// Two connected ends on the same shard: the one that connected, the one that accepted.
fn pair(driver: &mut Driver<()>, address: &str) -> (ConnectionHandle, ConnectionHandle) {
    let (listener, bound) = listen(driver, address);
    let accept = driver.start(Operation::Accept { listener });
    let connect = driver.run(Operation::Connect { address: bound });
    let Outcome::Connected { connection: client, local: client_local } = connect else {
        panic!("{connect:?}")
    };
    let accepted = driver.wait(accept);
    let Outcome::Accepted { connection: server, peer, local } = accepted else { panic!("{accepted:?}") };
    assert_eq!((peer, local), (client_local, bound));
    done(driver.run(Operation::CloseListener { listener })).expect("closed");
    (client, server)
}

fn received(outcome: Outcome) -> Result<BytesMut, IoError> {
    match outcome {
        Outcome::Received(buffer, result) => result.map(|()| buffer),
        other => panic!("receiving ended as {other:?}"),
    }
}

fn receive(
    driver: &mut Driver<()>,
    connection: ConnectionHandle,
    capacity: usize,
) -> Result<BytesMut, IoError> {
    let buffer = BytesMut::with_capacity(capacity);
    received(driver.run(Operation::Receive { connection, buffer }))
}

fn byte_at(index: usize) -> u8 {
    (index.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// A stream of `length` bytes in pieces of many sizes, some empty.
fn pieces(length: usize) -> Vec<Bytes> {
    let whole: Bytes = (0..length).map(byte_at).collect();
    let (mut at, mut count, mut pieces) = (0, 0usize, Vec::new());
    while at < length {
        let size = [0, 1, 7, 48, 4096, 3000][count % 6].min(length - at);
        pieces.push(whole.slice(at..at + size));
        at += size;
        count += 1;
    }
    pieces
}

#[test]
fn large_vectored_sends_arrive_whole_through_small_buffers() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        on_a_shard(move |mut driver| {
            let (client, server) = pair(&mut driver, address);
            let length = 20_000_000;
            let data = pieces(length);
            assert!(data.len() > 10_000, "many times what the kernel takes at once");
            let send = driver.start(Operation::Send { connection: client, data });
            let (mut got, mut turn) = (0, 0usize);
            let mut buffer = BytesMut::new();
            while got < length {
                // some that is received stays in the buffer: only the spare room is filled
                if turn % 3 == 0 {
                    buffer.clear();
                }
                buffer.reserve([1, 100, 65_536][turn % 3]);
                turn += 1;
                let before = buffer.len();
                buffer = received(driver.run(Operation::Receive { connection: server, buffer }))
                    .expect("received");
                assert!(buffer.len() > before, "the peer has not finished");
                assert!(buffer[before..].iter().enumerate().all(|(i, &byte)| byte == byte_at(got + i)));
                got += buffer.len() - before;
            }
            assert_eq!(got, length);
            done(driver.wait(send)).expect("sent");
        });
    }
}

#[test]
fn both_directions_at_once_and_the_end_of_a_stream() {
    on_a_shard(|mut driver| {
        let (client, server) = pair(&mut driver, "127.0.0.1:0");
        let ping =
            driver.start(Operation::Send { connection: client, data: vec![Bytes::from_static(b"ping")] });
        let pong =
            driver.start(Operation::Send { connection: server, data: vec![Bytes::from_static(b"pong")] });
        assert_eq!(receive(&mut driver, server, 64).expect("received"), &b"ping"[..]);
        assert_eq!(receive(&mut driver, client, 64).expect("received"), &b"pong"[..]);
        done(driver.wait(ping)).expect("sent");
        done(driver.wait(pong)).expect("sent");
        done(driver.run(Operation::Send { connection: client, data: vec![] }))
            .expect("nothing is sent at once");
        done(driver.run(Operation::CloseConnection { connection: client })).expect("closed");
        assert_eq!(receive(&mut driver, server, 64).expect("finished"), &b""[..]);
    });
}

#[test]
fn a_connection_does_not_hold_small_segments_back() {
    on_a_shard(|mut driver| {
        pair(&mut driver, "127.0.0.1:0");
        for connection in driver.env.core.connections.iter() {
            assert!(rustix::net::sockopt::tcp_nodelay(&connection.socket).expect("known"));
        }
        assert_eq!(driver.env.core.connections.iter().count(), 2);
    });
}

#[test]
fn closing_ends_what_is_in_flight() {
    on_a_shard(|mut driver| {
        let (client, server) = pair(&mut driver, "127.0.0.1:0");
        let buffer = BytesMut::with_capacity(4096);
        let receive = driver.start(Operation::Receive { connection: server, buffer });
        // more than both sockets' buffers take, and nobody reads it
        let data = vec![Bytes::from(vec![7; 64 << 20])];
        let send = driver.start(Operation::Send { connection: server, data });
        driver.poll(env::Wait::No);
        let close = driver.start(Operation::CloseConnection { connection: server });
        assert_eq!(done(driver.run(Operation::CloseConnection { connection: server })), Err(IoError::Closed));
        done(driver.wait(close)).expect("closed");
        let ended = driver.ended.clone();
        let place = |token| ended.iter().position(|&ended| ended == token).expect("ended before");
        assert!(place(receive) < place(close) && place(send) < place(close));
        assert_eq!(received(driver.wait(receive)).err(), Some(IoError::Closed));
        assert_eq!(done(driver.wait(send)), Err(IoError::Closed));
        // the handle has ended
        assert_eq!(super::sockets::receive(&mut driver, server, 10).err(), Some(IoError::Closed));
        let data = vec![Bytes::from_static(b"late")];
        assert_eq!(done(driver.run(Operation::Send { connection: server, data })), Err(IoError::Closed));
        done(driver.run(Operation::CloseConnection { connection: client })).expect("closed");
        assert_eq!(driver.env.core.connections.iter().count(), 0);
    });
}

#[test]
fn data_that_arrived_is_not_delivered_after_closing() {
    on_a_shard(|mut driver| {
        let (client, server) = pair(&mut driver, "127.0.0.1:0");
        let data = vec![Bytes::from_static(b"unread")];
        done(driver.run(Operation::Send { connection: client, data })).expect("sent");
        // queued, not submitted, when the connection is closed
        let buffer = BytesMut::with_capacity(4096);
        let receive = driver.start(Operation::Receive { connection: server, buffer });
        let close = driver.start(Operation::CloseConnection { connection: server });
        assert_eq!(received(driver.wait(receive)).err(), Some(IoError::Closed));
        done(driver.wait(close)).expect("closed");
    });
}

#[test]
fn closing_a_listener_fails_its_accepts_and_frees_the_address_at_once() {
    on_a_shard(|mut driver| {
        let (listener, bound) = listen(&mut driver, "127.0.0.1:0");
        let accepts =
            [Operation::Accept { listener }, Operation::Accept { listener }].map(|op| driver.start(op));
        driver.poll(env::Wait::No);
        let queued = driver.start(Operation::Accept { listener });
        let close = driver.start(Operation::CloseListener { listener });
        for accept in accepts.into_iter().chain([queued]) {
            assert!(matches!(driver.wait(accept), Outcome::Failed(IoError::Closed)));
        }
        done(driver.wait(close)).expect("closed");
        assert!(matches!(driver.run(Operation::Accept { listener }), Outcome::Failed(IoError::Closed)));
        assert_eq!(done(driver.run(Operation::CloseListener { listener })), Err(IoError::Closed));
        let refused = driver.run(Operation::Connect { address: bound });
        assert!(matches!(refused, Outcome::Failed(IoError::Refused)), "{refused:?}");
        // for anybody, without any option
        drop(TcpListener::bind(bound).expect("free"));
    });
}

#[test]
fn an_address_that_another_process_has_is_refused_and_one_of_ours_shared() {
    on_shards::<(), _>(2, |mut driver| {
        let foreign = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = foreign.local_addr().expect("bound");
        let refused = driver.run(Operation::Listen { address });
        assert!(matches!(refused, Outcome::Failed(IoError::AddressInUse)), "{refused:?}");
        let refused =
            driver.run(Operation::Listen { address: "192.0.2.1:3260".parse().expect("an address") });
        assert!(matches!(refused, Outcome::Failed(IoError::AddressNotAvailable)), "{refused:?}");
        // the kernel deals connections to both listeners
        let (one, address) = listen(&mut driver, "127.0.0.1:0");
        let (two, _) = listen(&mut driver, &address.to_string());
        let accepts = [one, two].map(|listener| driver.start(Operation::Accept { listener }));
        let both = |driver: &Driver<()>| accepts.iter().all(|accept| driver.outcomes.contains_key(accept));
        let mut clients = Vec::new();
        while !both(&driver) {
            assert!(clients.len() < 200, "one listener gets nothing");
            clients.push(TcpStream::connect(address).expect("connected"));
            driver.poll(env::Wait::No);
        }
        // a process that did not try politely first is not let in
        assert!(TcpListener::bind(address).is_err());
    });
}

#[test]
fn a_reset_by_the_peer_is_closed() {
    on_a_shard(|mut driver| {
        let (listener, address) = listen(&mut driver, "127.0.0.1:0");
        let accept = driver.start(Operation::Accept { listener });
        let peer = TcpStream::connect(address).expect("connected");
        let Outcome::Accepted { connection, .. } = driver.wait(accept) else { panic!("accepted") };
        let pending = driver.start(Operation::Receive { connection, buffer: BytesMut::with_capacity(10) });
        driver.poll(env::Wait::No);
        rustix::net::sockopt::set_socket_linger(&peer, Some(std::time::Duration::ZERO)).expect("set");
        drop(peer);
        assert_eq!(received(driver.wait(pending)).err(), Some(IoError::Closed));
        let data = vec![Bytes::from_static(b"to nobody")];
        assert_eq!(done(driver.run(Operation::Send { connection, data })), Err(IoError::Closed));
        done(driver.run(Operation::CloseConnection { connection })).expect("closed");
    });
}

#[test]
fn the_system_s_own_sockets_talk_to_ours() {
    on_a_shard(|mut driver| {
        let (listener, address) = listen(&mut driver, "127.0.0.1:0");
        let peer = std::thread::spawn(move || {
            let mut peer = TcpStream::connect(address).expect("connected");
            peer.write_all(b"from outside").expect("written");
            let mut answer = Vec::new();
            peer.read_to_end(&mut answer).expect("read");
            answer
        });
        let Outcome::Accepted { connection, .. } = driver.run(Operation::Accept { listener }) else {
            panic!("accepted")
        };
        assert_eq!(receive(&mut driver, connection, 100).expect("received"), &b"from outside"[..]);
        let data = vec![Bytes::from_static(b"from "), Bytes::from_static(b"inside")];
        done(driver.run(Operation::Send { connection, data })).expect("sent");
        done(driver.run(Operation::CloseConnection { connection })).expect("closed");
        assert_eq!(peer.join().expect("it ends"), b"from inside");
    });
}
