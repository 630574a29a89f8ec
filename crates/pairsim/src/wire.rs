//! What heads say to each other goes through the bytes of a link.

use base::HeadId;
use pair::link::fuzz::connected;
use pair::{Link, LinkEvent, Message, Purpose};

/// Two ends of a link that is up: that of head 0, and that of head 1.
#[derive(Debug)]
pub struct Wire {
    ends: [Link; 2],
}

impl Wire {
    pub fn new(ids: [HeadId; 2]) -> Wire {
        Wire { ends: connected(ids, Purpose::Control) }
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
