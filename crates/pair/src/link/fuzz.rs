//! For `fuzz`: bytes at each stage of a connection, as they are and with a good checksum.

use base::{ArrayId, HeadId, crc32c};

use super::frame::Frame;
use super::hello::HELLO_BYTES;
use super::{Link, LinkEvent, LinkKey, LinkOptions, Start, VERSIONS};

fn options(at: u128) -> LinkOptions {
    LinkOptions {
        array: ArrayId(1),
        me: HeadId(at),
        start: Start(at),
        other: HeadId(3 - at),
        key: LinkKey([1; 32]),
        versions: VERSIONS,
        nonce: [at as u8; 32],
        is_opener: at == 1,
    }
}

/// An end that is up.
fn up() -> Link {
    let (mut from_1, mut from_2) = (Vec::new(), Vec::new());
    let (mut one, mut two) = (Link::new(options(1), &mut from_1), Link::new(options(2), &mut from_2));
    two.receive(&from_1, &mut from_2).expect("they are partners");
    one.receive(&from_2, &mut from_1).expect("they are partners");
    assert!(one.is_up());
    one
}

/// Any bytes: before the hello, as a hello, over a link that is up, and as a frame.
pub fn link(bytes: &[u8]) {
    let mut answer = Vec::new();
    let stranger = Link::new(options(1), &mut answer).receive(bytes, &mut answer);
    assert_eq!(stranger.unwrap_or_default(), [], "nothing is believed before the proof");
    let mut hello = [0; HELLO_BYTES];
    let length = bytes.len().min(HELLO_BYTES);
    hello[..length].copy_from_slice(&bytes[..length]);
    hello[..8].copy_from_slice(b"TANGPAIR");
    let checksum = crc32c(&hello[..108]);
    hello[108..].copy_from_slice(&checksum.to_le_bytes());
    let mut link = Link::new(options(1), &mut answer);
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
