//! Unit attentions that hosts must get: a volume has grown, or a registration was preempted.
//!
//! A host that had a session at that moment must get the unit attention before any command that it sends after the
//! change is executed.

use std::cell::RefCell;

use base::Nanos;
use task::Io;
use wire::scsi::Lun;

use super::session::HostSession;
use crate::counts::counted;

/// Code and qualifier.
pub type Code = (u8, u8);

pub const CAPACITY_CHANGED: Code = (0x2A, 0x09);
pub const REGISTRATIONS_PREEMPTED: Code = (0x2A, 0x05);

counted! {
    /// What was looked at.
    Seen: "attention: " {
        Told = "a host was told before its command was carried out",
    }
}

struct Notice {
    /// As commands name it.
    lun: u64,
    /// None: every host.
    host: Option<u16>,
    code: Code,
    /// It happened between these.
    began: Nanos,
    ended: Nanos,
}

/// See the module's words.
#[derive(Default)]
pub struct Notices(RefCell<Vec<Notice>>);

impl Notices {
    /// It has happened now, or since `began`.
    pub fn owe(&self, lun: u16, host: Option<u16>, code: Code, began: Nanos, io: &Io) {
        let lun = Lun::new(lun).expect("a small number").emit();
        self.0.borrow_mut().push(Notice { lun, host, code, began, ended: io.now() });
    }

    /// Sessions do not outlive the array.
    pub fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// A host's command, sent at that time, was carried out: what it should have been told before, if anything.
    pub fn missed(&self, host: u16, session: &HostSession, lun: u64, sent: Nanos) -> Option<Code> {
        let notices = self.0.borrow();
        let pending = notices.iter().filter(|notice| {
            notice.lun == lun
                && notice.host.is_none_or(|wanted| wanted == host)
                && notice.ended < sent
                && session.logged_in_at.get() < notice.began
        });
        for notice in pending {
            if !session.was_told(lun, notice.code, notice.began) {
                return Some(notice.code);
            }
            Seen::Told.seen();
        }
        None
    }
}
