//! For `fuzz`: bytes at each stage of a connection, as they are and with a good checksum. And for `pairsim`: a link that is up.

use base::{ArrayId, HeadId, crc32c};

use super::frame::Frame;
use super::hello::HELLO_BYTES;
use super::{Link, LinkEvent, LinkKey, LinkOptions, Start, VERSIONS};

/// What an end of a link between these two heads is told. The first of them opens it.
fn options(ids: [HeadId; 2], at: usize) -> LinkOptions {
    LinkOptions {
        array: ArrayId(1),
        me: ids[at],
        start: Start(at as u128),
        other: ids[1 - at],
        key: LinkKey([1; 32]),
        versions: VERSIONS,
        nonce: [at as u8; 32],
        is_opener: at == 0,
    }
}

/// Both ends of a link that is up.
pub fn connected(ids: [HeadId; 2]) -> [Link; 2] {
    let (mut from_0, mut from_1) = (Vec::new(), Vec::new());
    let mut ends = [Link::new(options(ids, 0), &mut from_0), Link::new(options(ids, 1), &mut from_1)];
    for _ in 0..2 {
        let (for_0, for_1) = (std::mem::take(&mut from_1), std::mem::take(&mut from_0));
        ends[0].receive(&for_0, &mut from_0).expect("they are partners");
        ends[1].receive(&for_1, &mut from_1).expect("they are partners");
    }
    assert!(ends.iter().all(Link::is_up));
    ends
}

const HEADS: [HeadId; 2] = [HeadId(1), HeadId(2)];

fn up() -> Link {
    let [one, _] = connected(HEADS);
    one
}

/// Any bytes: before the hello, as a hello, over a link that is up, and as a frame.
pub fn link(bytes: &[u8]) {
    let mut answer = Vec::new();
    let stranger = Link::new(options(HEADS, 0), &mut answer).receive(bytes, &mut answer);
    assert_eq!(stranger.unwrap_or_default(), [], "nothing is believed before the proof");
    let mut hello = [0; HELLO_BYTES];
    let length = bytes.len().min(HELLO_BYTES);
    hello[..length].copy_from_slice(&bytes[..length]);
    hello[..8].copy_from_slice(b"TANGPAIR");
    let checksum = crc32c(&hello[..108]);
    hello[108..].copy_from_slice(&checksum.to_le_bytes());
    let mut link = Link::new(options(HEADS, 0), &mut answer);
    let _refused_or_not = link.receive(&hello, &mut answer);
    assert!(!link.is_up(), "a hello alone proves nothing");
    let _broken_or_not = up().receive(bytes, &mut answer);
    let Some((kind, content)) = bytes.split_first_chunk::<2>() else { return };
    let mut framed = Vec::new();
    Frame::raw(u16::from_le_bytes(*kind), content).encode(&mut framed);
    let mut link = up();
    if let Ok(events) = link.receive(&framed, &mut answer) {
        for event in events {
            let LinkEvent::Message(message) = event else { panic!("the link is up already") };
            let mut again = Vec::new();
            link.send(&message, &mut again);
            assert_eq!(again, framed, "what is understood is said in the same way");
        }
    }
}
