//! The value of the register, and the changes that heads make of it.
//!
//! What always holds: each change adds one to the revision; the owner is one of the two heads and is always in sync; a
//! term begins with each new owner, and when an owner starts again.

use std::fmt;

use base::HeadId;
use serde::{Deserialize, Serialize};

/// Counts the changes of the register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Revision(pub u64);

/// The time of one owner. Every message and every write to a drive carries it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Term(pub u64);

/// An administrator works on the network, the witness or a head: no head takes over by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Maintenance {
    /// When it began: milliseconds since 1970, by the clock of the head that was told; not 0.
    pub since_ms: u64,
}

/// What the register holds. Two heads that write the same revision write different values, because the writer is part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Register {
    pub revision: Revision,
    pub term: Term,
    pub owner: HeadId,
    pub partner: HeadId,
    /// The partner holds everything that is acknowledged, so it may take over.
    pub in_sync: bool,
    /// As long as it lasts, the partner does not take over.
    pub maintenance: Option<Maintenance>,
    pub written_by: HeadId,
}

/// The register as it is stored: JSON, so that an administrator can read it with `etcdctl`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    revision: u64,
    term: u64,
    owner: String,
    partner: String,
    in_sync: bool,
    /// In version 2 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maintenance_since_ms: Option<u64>,
    written_by: String,
}

/// The version of the stored form.
const VERSION: u32 = 1;

/// That of a register with maintenance: a program that does not know it must not take over, so it is to know nothing of the register.
const VERSION_OF_MAINTENANCE: u32 = 2;

/// Longest stored form, in bytes.
pub const STORED_MAX: usize = 1024;

/// Why the content of the register cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RegisterError {
    TooLong {
        bytes: usize,
    },
    NotJson {
        why: String,
    },
    /// Written by a later program.
    Version {
        version: u32,
    },
    NotAHead {
        field: &'static str,
    },
    /// The two heads are one.
    OneHead,
    /// The version says whether there is maintenance, and the value says otherwise.
    Contradiction,
}

impl Register {
    /// The first value: a head that was alone gets a partner, which holds nothing yet.
    pub fn first(owner: HeadId, partner: HeadId, term: Term) -> Register {
        let (revision, in_sync, maintenance) = (Revision(1), false, None);
        Register { revision, term, owner, partner, in_sync, maintenance, written_by: owner }
    }

    /// The other head of the pair; `None` if `head` is none of them.
    pub fn other(&self, head: HeadId) -> Option<HeadId> {
        if head == self.owner { Some(self.partner) } else { (head == self.partner).then_some(self.owner) }
    }

    /// Whether this head has everything that is acknowledged.
    pub fn is_in_sync(&self, head: HeadId) -> bool {
        head == self.owner || (head == self.partner && self.in_sync)
    }

    fn next(&self, by: HeadId) -> Register {
        Register { revision: Revision(self.revision.0 + 1), written_by: by, ..*self }
    }

    /// The partner becomes the owner, alone.
    pub fn taken_over(&self, by: HeadId) -> Register {
        assert!(self.is_in_sync(by) && by == self.partner, "only a partner in sync may take over");
        assert!(self.maintenance.is_none(), "nobody takes over during maintenance");
        let next = self.next(by);
        Register {
            term: Term(self.term.0 + 1),
            owner: self.partner,
            partner: self.owner,
            in_sync: false,
            ..next
        }
    }

    /// The owner starts again, alone.
    pub fn restarted(&self) -> Register {
        Register { term: Term(self.term.0 + 1), in_sync: false, ..self.next(self.owner) }
    }

    /// The owner goes on alone.
    pub fn left(&self) -> Register {
        Register { in_sync: false, ..self.next(self.owner) }
    }

    /// The partner is in sync again.
    pub fn joined(&self) -> Register {
        Register { in_sync: true, ..self.next(self.owner) }
    }

    /// Another head takes the place of the partner, which is gone. It holds nothing yet.
    pub fn replaced(&self, partner: HeadId) -> Register {
        assert!(!self.in_sync, "a partner in sync could take over meanwhile");
        Register { partner, ..self.next(self.owner) }
    }

    /// The owner goes on alone, and its partner is not part of the array any more: another id, which no head has, is in its place.
    /// It may have been in sync: this is one change.
    pub fn forgotten(&self, nobody: HeadId) -> Register {
        assert!(nobody != self.partner && nobody != self.owner, "an id that no head has");
        Register { partner: nobody, in_sync: false, ..self.next(self.owner) }
    }

    /// The owner makes its partner the owner. Both stay in sync.
    pub fn handed_over(&self) -> Register {
        assert!(self.in_sync, "an array is handed over to a partner in sync");
        let next = self.next(self.owner);
        Register { term: Term(self.term.0 + 1), owner: self.partner, partner: self.owner, ..next }
    }

    /// The owner has acknowledged nothing since it took over, and cannot serve. The other head, which has everything, is the owner again,
    /// alone.
    pub fn given_back(&self) -> Register {
        let next = self.next(self.owner);
        let term = Term(self.term.0 + 1);
        Register { term, owner: self.partner, partner: self.owner, in_sync: false, ..next }
    }

    /// Maintenance begins or ends. Either head may write this: it changes nothing else.
    pub fn with_maintenance(&self, maintenance: Option<Maintenance>, by: HeadId) -> Register {
        assert!(
            maintenance.is_none_or(|maintenance| maintenance.since_ms > 0),
            "a clock that was never set says 1"
        );
        Register { maintenance, ..self.next(by) }
    }

    /// Another value than this, which changes nothing but the revision: a change that may still be on its way cannot win after it.
    pub fn confirmed(&self) -> Register {
        self.next(self.owner)
    }

    pub fn encode(&self) -> Vec<u8> {
        let stored = Stored {
            version: if self.maintenance.is_some() { VERSION_OF_MAINTENANCE } else { VERSION },
            revision: self.revision.0,
            term: self.term.0,
            owner: self.owner.to_string(),
            partner: self.partner.to_string(),
            in_sync: self.in_sync,
            maintenance_since_ms: self.maintenance.map(|maintenance| maintenance.since_ms),
            written_by: self.written_by.to_string(),
        };
        serde_json::to_vec(&stored).expect("plain values have a JSON form")
    }

    pub fn decode(bytes: &[u8]) -> Result<Register, RegisterError> {
        if bytes.len() > STORED_MAX {
            return Err(RegisterError::TooLong { bytes: bytes.len() });
        }
        let not_json = |error: serde_json::Error| RegisterError::NotJson { why: error.to_string() };
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(not_json)?;
        // the version first: a later one may have other fields
        let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if ![VERSION, VERSION_OF_MAINTENANCE].map(u64::from).contains(&version) {
            return Err(RegisterError::Version { version: version.try_into().unwrap_or(u32::MAX) });
        }
        let stored: Stored = serde_json::from_value(value).map_err(not_json)?;
        let head = |text: &str, field| text.parse().map_err(|_| RegisterError::NotAHead { field });
        let register = Register {
            revision: Revision(stored.revision),
            term: Term(stored.term),
            owner: head(&stored.owner, "owner")?,
            partner: head(&stored.partner, "partner")?,
            in_sync: stored.in_sync,
            maintenance: stored.maintenance_since_ms.map(|since_ms| Maintenance { since_ms }),
            written_by: head(&stored.written_by, "written_by")?,
        };
        if register.owner == register.partner {
            return Err(RegisterError::OneHead);
        }
        // what a program that knows no maintenance would read in another way
        if register.maintenance.is_some() != (stored.version == VERSION_OF_MAINTENANCE)
            || register.maintenance == Some(Maintenance { since_ms: 0 })
        {
            return Err(RegisterError::Contradiction);
        }
        Ok(register)
    }
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::TooLong { bytes } => {
                write!(f, "the register has {bytes} bytes; at most {STORED_MAX} are expected")
            }
            RegisterError::NotJson { why } => write!(f, "the register is not what a head writes: {why}"),
            RegisterError::Version { version } => {
                write!(
                    f,
                    "the register has version {version}, this program knows {VERSION_OF_MAINTENANCE}; update this head"
                )
            }
            RegisterError::NotAHead { field } => {
                write!(f, "field {field} of the register is not the id of a head")
            }
            RegisterError::Contradiction => {
                write!(f, "the register does not agree with its version about maintenance")
            }
            RegisterError::OneHead => write!(f, "owner and partner in the register are the same head"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: HeadId = HeadId(10);
    const B: HeadId = HeadId(11);

    #[test]
    fn each_change_has_the_next_revision_and_says_who_made_it() {
        let first = Register::first(A, B, Term(3));
        let joined = first.joined();
        let taken = joined.taken_over(B);
        let handed = joined.handed_over();
        assert_eq!(
            (joined.revision, joined.term, joined.in_sync, joined.written_by),
            (Revision(2), Term(3), true, A)
        );
        assert_eq!(
            (taken.owner, taken.partner, taken.term, taken.in_sync, taken.written_by),
            (B, A, Term(4), false, B)
        );
        assert_eq!(
            (handed.owner, handed.partner, handed.term, handed.in_sync, handed.written_by),
            (B, A, Term(4), true, A)
        );
        assert_eq!((joined.left().in_sync, joined.left().term), (false, Term(3)));
        assert_eq!((joined.restarted().in_sync, joined.restarted().term), (false, Term(4)));
        assert_eq!(joined.confirmed(), Register { revision: Revision(3), ..joined });
        let other = HeadId(12);
        let replaced = joined.left().replaced(other);
        assert_eq!((replaced.owner, replaced.partner, replaced.term), (A, other, Term(3)));
        assert!(!replaced.in_sync && replaced.other(B).is_none());
        let forgotten = joined.forgotten(other);
        assert_eq!((forgotten.owner, forgotten.partner, forgotten.term), (A, other, Term(3)));
        assert_eq!((forgotten.revision, forgotten.is_in_sync(B)), (Revision(3), false));
    }

    #[test]
    #[should_panic(expected = "only a partner in sync")]
    fn a_partner_out_of_sync_does_not_take_over() {
        Register::first(A, B, Term(1)).taken_over(B);
    }

    #[test]
    fn what_is_stored_is_read_again() {
        let value = Register::first(A, B, Term(3)).joined();
        assert_eq!(Register::decode(&value.encode()), Ok(value));
        let text = String::from_utf8(value.encode()).expect("JSON is text");
        assert_eq!(
            text,
            "{\"version\":1,\"revision\":2,\"term\":3,\"owner\":\"0000000000000000000000000000000a\",\
             \"partner\":\"0000000000000000000000000000000b\",\"in_sync\":true,\
             \"written_by\":\"0000000000000000000000000000000a\"}"
        );
    }

    #[test]
    fn maintenance_lasts_through_changes_and_has_a_version_of_its_own() {
        let plain = Register::first(A, B, Term(3)).joined();
        let since = Some(Maintenance { since_ms: 77 });
        let kept = plain.with_maintenance(since, B);
        assert_eq!((kept.revision, kept.written_by, kept.in_sync), (Revision(3), B, true));
        assert_eq!(Register { maintenance: None, ..kept }, Register { written_by: B, ..plain.confirmed() });
        for after in
            [kept.left(), kept.left().joined(), kept.restarted(), kept.handed_over(), kept.given_back()]
        {
            assert_eq!(after.maintenance, since);
        }
        let text = String::from_utf8(kept.encode()).expect("JSON is text");
        assert!(
            text.starts_with("{\"version\":2,") && text.contains("\"maintenance_since_ms\":77"),
            "{text}"
        );
        assert_eq!(Register::decode(text.as_bytes()), Ok(kept));
        // an earlier program reads version 1 only, and knows no such field
        let ended = kept.with_maintenance(None, A);
        assert!(!String::from_utf8(ended.encode()).expect("JSON is text").contains("maintenance"));
        for wrong in [text.replace(":2,", ":1,"), text.replace("\"maintenance_since_ms\":77,", "")] {
            assert_eq!(Register::decode(wrong.as_bytes()), Err(RegisterError::Contradiction), "{wrong}");
        }
    }

    #[test]
    #[should_panic(expected = "nobody takes over during maintenance")]
    fn nobody_takes_over_during_maintenance() {
        let since = Some(Maintenance { since_ms: 1 });
        Register::first(A, B, Term(1)).joined().with_maintenance(since, A).taken_over(B);
    }

    #[test]
    fn what_no_head_writes_is_refused_with_its_reason() {
        let text = String::from_utf8(Register::first(A, B, Term(3)).encode()).expect("JSON is text");
        let decode = |text: String| Register::decode(text.as_bytes());
        assert!(matches!(decode("{".to_owned()), Err(RegisterError::NotJson { .. })));
        assert_eq!(
            decode(text.replace("\"version\":1", "\"version\":3")),
            Err(RegisterError::Version { version: 3 })
        );
        assert!(matches!(decode(text.replace("in_sync", "insync")), Err(RegisterError::NotJson { .. })));
        assert_eq!(
            decode(text.replace("000a\",\"partner", "00zz\",\"partner")),
            Err(RegisterError::NotAHead { field: "owner" })
        );
        assert_eq!(decode(text.replace("000b\"", "000a\"")), Err(RegisterError::OneHead));
        assert_eq!(decode(" ".repeat(2000)), Err(RegisterError::TooLong { bytes: 2000 }));
    }
}
