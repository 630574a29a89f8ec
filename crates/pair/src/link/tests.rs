//! Two ends of a link: what arrives, and who and what is refused.

use base::{ArrayId, HeadId, Nanos};

use super::*;
use crate::register::{Register, Term};

const ARRAY: ArrayId = ArrayId(7);
const A: HeadId = HeadId(1);
const B: HeadId = HeadId(2);

fn options(me: HeadId, other: HeadId) -> LinkOptions {
    LinkOptions {
        array: ARRAY,
        me,
        start: Start(me.0 * 1000),
        other,
        key: LinkKey([9; 32]),
        versions: VERSIONS,
        nonce: [me.0 as u8; 32],
        purpose: (me == A).then_some(Purpose::Control),
    }
}

/// Both ends, and what each makes of what the other one sends.
fn connect(a: LinkOptions, b: LinkOptions) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
    let (mut to_b, mut to_a) = (Vec::new(), Vec::new());
    let (mut a, mut b) = (Link::new(a, &mut to_b), Link::new(b, &mut to_a));
    let (mut of_a, mut of_b) = (Ok(Vec::new()), Ok(Vec::new()));
    for _ in 0..2 {
        let (for_a, for_b) = (std::mem::take(&mut to_a), std::mem::take(&mut to_b));
        of_a = of_a.and_then(|_| a.receive(&for_a, &mut to_b));
        of_b = of_b.and_then(|_| b.receive(&for_b, &mut to_a));
    }
    (of_a.map(|_| a), of_b.map(|_| b))
}

fn linked() -> (Link, Link) {
    linked_for(Purpose::Control)
}

fn linked_for(purpose: Purpose) -> (Link, Link) {
    let a = LinkOptions { purpose: Some(purpose), ..options(A, B) };
    let (a, b) = connect(a, options(B, A));
    let (a, b) = (a.expect("it is the partner"), b.expect("it is the partner"));
    assert!(a.is_up() && b.is_up());
    (a, b)
}

fn messages() -> [Message; 4] {
    let register = Register::first(A, B, Term(5)).joined();
    [
        Message::Heartbeat { register, sent: Nanos(77) },
        Message::HeartbeatAnswer { term: Term(5), sent: Nanos(77) },
        Message::Changed(register.taken_over(B)),
        Message::Look,
    ]
}

#[test]
fn messages_arrive_as_they_were_sent_in_pieces_of_any_size() {
    let (a, _) = linked();
    let mut bytes = Vec::new();
    messages().iter().for_each(|message| a.send(message, &mut bytes));
    for size in 1..=bytes.len() {
        let (_, mut b) = linked();
        let mut got = Vec::new();
        for piece in bytes.chunks(size) {
            got.extend(b.receive(piece, &mut Vec::new()).expect("it is whole"));
            assert!(b.received.len() < b.buffered_bytes_max());
        }
        assert_eq!(got, messages().map(LinkEvent::Message));
    }
}

#[test]
fn the_link_is_up_with_the_start_of_the_other_head_and_the_highest_common_version() {
    let newer = LinkOptions { versions: Versions { lowest: 1, highest: 4 }, ..options(A, B) };
    let older = LinkOptions { versions: Versions { lowest: 1, highest: 3 }, ..options(B, A) };
    let (mut to_b, mut to_a) = (Vec::new(), Vec::new());
    let (mut a, mut b) = (Link::new(newer, &mut to_b), Link::new(older, &mut to_a));
    assert_eq!(b.receive(&to_b, &mut to_a), Ok(vec![]));
    let up = |head: HeadId| {
        vec![LinkEvent::Up { start: Start(head.0 * 1000), version: 3, purpose: Purpose::Control }]
    };
    to_b.clear();
    assert_eq!(a.receive(&to_a, &mut to_b), Ok(up(B)));
    assert_eq!(b.receive(&to_b, &mut Vec::new()), Ok(up(A)));
}

#[test]
fn who_is_not_the_partner_is_refused_with_the_reason() {
    let refusal = |a: LinkOptions| connect(a, options(B, A)).1.expect_err("it is refused");
    let mine = || options(A, B);
    assert_eq!(
        refusal(LinkOptions { array: ArrayId(8), ..mine() }),
        LinkError::OtherArray { array: ArrayId(8) }
    );
    assert_eq!(
        refusal(LinkOptions { me: HeadId(3), ..mine() }),
        LinkError::NotThePartner { head: HeadId(3) }
    );
    assert_eq!(refusal(LinkOptions { me: B, ..mine() }), LinkError::Myself);
    assert_eq!(refusal(LinkOptions { key: LinkKey([8; 32]), ..mine() }), LinkError::WrongKey);
    let theirs = Versions { lowest: 2, highest: 3 };
    let wanted = LinkError::NoCommonVersion { ours: VERSIONS, theirs };
    assert_eq!(refusal(LinkOptions { versions: theirs, ..mine() }), wanted);
    assert_eq!(refusal(LinkOptions { purpose: None, ..mine() }), LinkError::OneEndOpens);
    let mut link = Link::new(mine(), &mut Vec::new());
    assert_eq!(link.receive(b"GET / HTTP/1.1\r\n", &mut Vec::new()), Err(LinkError::NotALink));
    assert_eq!(link.receive(b"TANGPAIR", &mut Vec::new()), Err(LinkError::NotALink), "it has ended");
}

#[test]
fn a_proof_of_an_earlier_connection_is_worth_nothing() {
    let (mut to_b, mut to_a) = (Vec::new(), Vec::new());
    let (mut a, b) = (Link::new(options(A, B), &mut to_b), Link::new(options(B, A), &mut to_a));
    drop(b);
    a.receive(&to_a, &mut to_b).expect("a hello");
    // everything that A has sent, again, to a new connection
    let other = LinkOptions { nonce: [99; 32], ..options(B, A) };
    let mut b = Link::new(other, &mut Vec::new());
    assert_eq!(b.receive(&to_b, &mut Vec::new()), Err(LinkError::WrongKey));
}

#[test]
fn a_flipped_bit_ends_the_connection_and_is_never_a_message() {
    let (a, _) = linked();
    for message in messages() {
        let mut bytes = Vec::new();
        a.send(&message, &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            let (_, mut b) = linked();
            let got = b.receive(&broken, &mut Vec::new());
            assert!(matches!(got, Err(LinkError::Checksum)), "bit {bit} of {message:?}: {got:?}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_although_its_checksum_is_right() {
    let (_, mut b) = linked();
    let mut send = |bytes: &[u8]| b.receive(bytes, &mut Vec::new());
    let mut long = vec![0; 16];
    long[..4].copy_from_slice(&257_u32.to_le_bytes());
    let checksum = base::crc32c(&long[..12]);
    long[12..].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(send(&long), Err(LinkError::TooLong { bytes: 257 }));
    let (a, _) = linked();
    let same = Register { partner: A, ..Register::first(A, B, Term(1)) };
    let mut bytes = Vec::new();
    a.send(&Message::Changed(same), &mut bytes);
    let (_, mut b) = linked();
    assert_eq!(b.receive(&bytes, &mut Vec::new()), Err(LinkError::Malformed { kind: 3 }));
}

#[test]
fn frames_for_drives_are_longer_than_messages_and_come_back_from_their_parts() {
    let (a, mut b) = linked_for(Purpose::Drives);
    let data = vec![7; DRIVES_BYTES_MAX - 3];
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&a.frame_header(9, &[b"abc", &data]));
    [b"abc", &data[..]].iter().for_each(|part| bytes.extend_from_slice(part));
    let mut got = Vec::new();
    for piece in bytes.chunks(100_000) {
        got.extend(b.receive(piece, &mut Vec::new()).expect("it is whole"));
        assert!(b.received.len() < b.buffered_bytes_max());
    }
    assert_eq!(got, [LinkEvent::Frame { kind: 9, content: [b"abc", &data[..]].concat() }]);
}

#[test]
fn a_purpose_of_a_later_version_is_refused_with_its_number() {
    let (mut to_b, mut to_a) = (Vec::new(), Vec::new());
    drop(Link::new(options(A, B), &mut to_b));
    to_b[12] = 7;
    let checksum = base::crc32c(&to_b[..108]);
    to_b[108..112].copy_from_slice(&checksum.to_le_bytes());
    let mut b = Link::new(options(B, A), &mut to_a);
    assert_eq!(b.receive(&to_b, &mut to_a), Err(LinkError::UnknownPurpose { number: 7 }));
}

#[test]
fn before_the_proof_no_more_is_kept_than_a_hello() {
    let mut stranger = Link::new(options(B, A), &mut Vec::new());
    assert_eq!(stranger.buffered_bytes_max(), HELLO_BYTES + PROOF_BYTES);
    assert_eq!(stranger.receive(b"TANG", &mut Vec::new()), Ok(vec![]));
}
