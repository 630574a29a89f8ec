//! For `fuzz`: bytes at each stage of a connection, as they are and with a good checksum. And for `pairsim`: a link that is up.

use base::{ArrayId, HeadId, crc32c};

use super::frame::Frame;
use super::hello::HELLO_BYTES;
use super::{Link, LinkEvent, LinkKey, LinkOptions, Purpose, Start, VERSIONS};

/// What an end of a link between these two heads is told. The first of them opens it.
fn options(ids: [HeadId; 2], at: usize, purpose: Purpose) -> LinkOptions {
    LinkOptions {
        array: ArrayId(1),
        me: ids[at],
        start: Start(at as u128),
        other: ids[1 - at],
        key: LinkKey([1; 32]),
        versions: VERSIONS,
        nonce: [at as u8; 32],
        purpose: (at == 0).then_some(purpose),
    }
}

/// Both ends of a link that is up.
pub fn connected(ids: [HeadId; 2], purpose: Purpose) -> [Link; 2] {
    let (mut from_0, mut from_1) = (Vec::new(), Vec::new());
    let end = |at, send: &mut Vec<u8>| Link::new(options(ids, at, purpose), send);
    let mut ends = [end(0, &mut from_0), end(1, &mut from_1)];
    for _ in 0..2 {
        let (for_0, for_1) = (std::mem::take(&mut from_1), std::mem::take(&mut from_0));
        ends[0].receive(&for_0, &mut from_0).expect("they are partners");
        ends[1].receive(&for_1, &mut from_1).expect("they are partners");
    }
    assert!(ends.iter().all(Link::is_up));
    ends
}

const HEADS: [HeadId; 2] = [HeadId(1), HeadId(2)];

fn up(purpose: Purpose) -> Link {
    let [one, _] = connected(HEADS, purpose);
    one
}

/// Any bytes: before the hello, as a hello, over links that are up, and as a frame of them.
pub fn link(bytes: &[u8]) {
    let mut answer = Vec::new();
    let new = |answer: &mut Vec<u8>| Link::new(options(HEADS, 0, Purpose::Control), answer);
    let stranger = new(&mut answer).receive(bytes, &mut answer);
    assert_eq!(stranger.unwrap_or_default(), [], "nothing is believed before the proof");
    let mut hello = [0; HELLO_BYTES];
    let length = bytes.len().min(HELLO_BYTES);
    hello[..length].copy_from_slice(&bytes[..length]);
    hello[..8].copy_from_slice(b"TANGPAIR");
    let checksum = crc32c(&hello[..108]);
    hello[108..].copy_from_slice(&checksum.to_le_bytes());
    let mut link = new(&mut answer);
    let _refused_or_not = link.receive(&hello, &mut answer);
    assert!(!link.is_up(), "a hello alone proves nothing");
    Purpose::ALL.into_iter().for_each(|purpose| over_a_link(bytes, purpose));
}

fn over_a_link(bytes: &[u8], purpose: Purpose) {
    let mut answer = Vec::new();
    let _broken_or_not = up(purpose).receive(bytes, &mut answer);
    let Some((kind, content)) = bytes.split_first_chunk::<2>() else { return };
    let mut framed = Vec::new();
    Frame { kind: u16::from_le_bytes(*kind), content: content.to_vec() }.encode(&mut framed);
    let mut link = up(purpose);
    for event in link.receive(&framed, &mut answer).unwrap_or_default() {
        let mut again = Vec::new();
        match event {
            LinkEvent::Message(message) => link.send(&message, &mut again),
            LinkEvent::Frame { kind, content } => {
                again.extend_from_slice(&link.frame_header(kind, &[&content]));
                again.extend_from_slice(&content);
            }
            LinkEvent::Up { .. } => panic!("the link is up already"),
        }
        assert_eq!(again, framed, "what is understood is said in the same way");
    }
}
