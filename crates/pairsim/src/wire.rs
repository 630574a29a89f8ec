//! What heads say to each other goes through the bytes of a link.

use base::{ArrayId, HeadId};
use pair::{Link, LinkEvent, LinkKey, LinkOptions, Message, Start, VERSIONS};

/// Two ends of a link that is up: that of head 0, and that of head 1.
#[derive(Debug)]
pub struct Wire {
    ends: [Link; 2],
}

impl Wire {
    pub fn new(ids: [HeadId; 2]) -> Wire {
        let options = |at: usize| LinkOptions {
            array: ArrayId(1),
            me: ids[at],
            start: Start(at as u128),
            other: ids[1 - at],
            key: LinkKey([1; 32]),
            versions: VERSIONS,
            nonce: [at as u8; 32],
            is_opener: at == 0,
        };
        let (mut from_0, mut from_1) = (Vec::new(), Vec::new());
        let mut ends = [Link::new(options(0), &mut from_0), Link::new(options(1), &mut from_1)];
        for _ in 0..2 {
            let (for_0, for_1) = (std::mem::take(&mut from_1), std::mem::take(&mut from_0));
            ends[0].receive(&for_0, &mut from_0).expect("they are partners");
            ends[1].receive(&for_1, &mut from_1).expect("they are partners");
        }
        assert!(ends.iter().all(Link::is_up));
        Wire { ends }
    }

    /// What arrives at the other head.
    pub fn carry(&mut self, from: usize, message: Message) -> Message {
        let mut bytes = Vec::new();
        self.ends[from].send(&message, &mut bytes);
        let got = self.ends[1 - from].receive(&bytes, &mut Vec::new()).expect("nothing was changed");
        match got[..] {
            [LinkEvent::Message(arrived)] => arrived,
            _ => panic!("one message was sent, and this arrived: {got:?}"),
        }
    }
}
