//! The table of events: one row for each code, in the order of [`EventCode`]. Here are the rows about problems, changes
//! and sessions.

use super::row::EventRow;
use super::table_array::ARRAY;
use super::{EventCode, EventSeverity};

const TABLE: (&[EventRow], &[EventRow]) = (PEOPLE, ARRAY);

const _: () = assert!(TABLE.0.len() + TABLE.1.len() == EventCode::ALL.len());

impl EventCode {
    pub fn row(self) -> &'static EventRow {
        let index = self as usize;
        match index.checked_sub(TABLE.0.len()) {
            None => &TABLE.0[index],
            Some(rest) => &TABLE.1[rest],
        }
    }
}

const PROBLEM: (&str, &str) = ("problem", "the problem, as `docs/problems.md` describes it");
const COMMAND: (&str, &str) = ("command", "the kind of the command, such as `volume-create`");
const ORIGIN: (&str, &str) = (
    "origin",
    "who asked: `local` with `user`, `name` and `process`, `user` with `user` and `address`, `token` with `token` and `address`, `remote` with `address`, or `daemon`",
);
const ADDRESS: (&str, &str) = ("address", "where the user's browser is: address and port");
const INITIATOR: (&str, &str) = ("initiator", "the iSCSI name of the initiator");
const PEER: (&str, &str) = ("peer", "the address and port of the initiator");
const PORTAL: (&str, &str) = ("portal", "the address and port of the array");

const PEOPLE: &[EventRow] = &[
    EventRow {
        code: EventCode::ProblemBegan,
        severity: None,
        meaning: "A problem has begun. The severity is that of the problem: a notice is `info`, `degraded` is `warning`, `offline` is `error`.",
        facts: &[PROBLEM],
    },
    EventRow {
        code: EventCode::ProblemChanged,
        severity: None,
        meaning: "A problem has given way to another one of the same subject that does the same kind of harm, or its drives or its reason have changed. The severity is that of the new problem.",
        facts: &[("before", "the problem that has ended"), PROBLEM],
    },
    EventRow {
        code: EventCode::ProblemEnded,
        severity: Some(EventSeverity::Info),
        meaning: "A problem has ended. The facts are the last that were known of it.",
        facts: &[PROBLEM],
    },
    EventRow {
        code: EventCode::ChangeMade,
        severity: Some(EventSeverity::Info),
        meaning: "Somebody has changed something by a command. Dry runs are not recorded.",
        facts: &[
            COMMAND,
            ORIGIN,
            (
                "steps",
                "what was changed: each step has its `code`, its facts beside that, and its words (`text`)",
            ),
            ("hosts_affected", "names of the hosts that gained or lost something by it"),
        ],
    },
    EventRow {
        code: EventCode::ChangeRefused,
        severity: Some(EventSeverity::Info),
        meaning: "A command that would have changed something was not carried out.",
        facts: &[COMMAND, ORIGIN, ("cause", "the refusal: its code, and its message as `detail`")],
    },
    EventRow {
        code: EventCode::ApiRefused,
        severity: Some(EventSeverity::Warning),
        meaning: "A client of the API over TCP or TLS had no token and no session, or a wrong one, or one that has ended.",
        facts: &[],
    },
    EventRow {
        code: EventCode::SignedIn,
        severity: Some(EventSeverity::Info),
        meaning: "A user has signed in with the password.",
        facts: &[ADDRESS],
    },
    EventRow {
        code: EventCode::SignInRefused,
        severity: Some(EventSeverity::Warning),
        meaning: "Somebody tried to sign in and was not let in. Of each address, this is recorded once a minute, with a count.",
        facts: &[
            (
                "user",
                "the name that was tried; null where there is no such user, because it might be a password",
            ),
            ("why", "`name-or-password`, `disabled`, `expired` or `too-many`"),
        ],
    },
    EventRow {
        code: EventCode::SignedOut,
        severity: Some(EventSeverity::Info),
        meaning: "A user has signed out. A session that has ended by its time is not recorded.",
        facts: &[ADDRESS],
    },
    EventRow {
        code: EventCode::SessionBegan,
        severity: Some(EventSeverity::Info),
        meaning: "An initiator has logged in. Discovery sessions are not recorded.",
        facts: &[INITIATOR, PEER, PORTAL],
    },
    EventRow {
        code: EventCode::SessionEnded,
        severity: None,
        meaning: "A session has ended. The severity is `info` if the host or the array ended it in order, else `warning`.",
        facts: &[INITIATOR, PEER, PORTAL, ("end", "why it ended, such as `logged-out` or `connection-lost`")],
    },
    EventRow {
        code: EventCode::LoginRefused,
        severity: Some(EventSeverity::Warning),
        meaning: "An initiator tried to log in and was refused.",
        facts: &[
            (
                "initiator",
                "the iSCSI name as the peer gave it, which is not verified; null where it gave none",
            ),
            PEER,
            PORTAL,
            ("refusal", "why, such as `unknown-initiator` or `wrong-secret`"),
        ],
    },
    EventRow {
        code: EventCode::AddressBlocked,
        severity: Some(EventSeverity::Warning),
        meaning: "A connection was closed before its login was read, because too many wrong CHAP secrets came from its address. Who waits a minute is heard again.",
        facts: &[PORTAL],
    },
    EventRow {
        code: EventCode::EventsHeldBack,
        severity: Some(EventSeverity::Warning),
        meaning: "More different events happened at once than can be told one by one. `count` says how many of this code were only counted.",
        facts: &[("of", "the code of these events")],
    },
];
