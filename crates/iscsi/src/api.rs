//! The messages between a [`crate::Connection`] and the engine.
//!
//! Pure values. A [`TaskTag`] is ours, not the initiator's. It is never reused within a connection while
//! an answer for it may still come. So a late answer to an aborted task is recognised and dropped.

use std::fmt;
use std::net::SocketAddr;

use block::Payload;
use bytes::Bytes;

/// Names one command or task management request of one connection, until it is answered or forgotten.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskTag(pub u32);

/// What the connection asks of the engine.
#[derive(Debug)]
pub enum Effect {
    /// The initiator is known and authenticated and every key is settled. The last login response is held
    /// back until [`crate::Connection::complete_login`] or [`crate::Connection::refuse_login`], so that an
    /// older session of the same identity can be dropped first (session reinstatement, RFC 7143 §6.3.5).
    /// Discovery sessions ask too.
    LoggedIn(SessionIdentity),
    /// Carry this out and answer with [`crate::Connection::respond`].
    Command(Command),
    /// Carry this out and answer with [`crate::Connection::respond_task_management`].
    TaskManagement(TaskManagement),
    /// The connection is over: send what [`crate::Connection::take_output`] still gives, close the socket,
    /// abort what is running for it. The last effect.
    Close(CloseReason),
}

/// Discovery sessions see names only; normal sessions carry commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionKind {
    Discovery,
    Normal,
}

/// Who has logged in. A session is named by initiator, ISID and target portal group (RFC 7143 §4.4.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionIdentity {
    /// In lower case.
    pub initiator_name: String,
    pub initiator_alias: Option<String>,
    pub isid: [u8; 6],
    /// None in a discovery session that named no target.
    pub target_name: Option<String>,
    pub portal_group_tag: u16,
    pub kind: SessionKind,
}

/// SAM-5 §8.6: how a command is ordered among the others of its task set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskAttribute {
    Untagged,
    Simple,
    Ordered,
    HeadOfQueue,
    Aca,
}

/// A SCSI command with all of its data (RFC 7143 §11.3).
#[derive(Debug)]
pub struct Command {
    pub task: TaskTag,
    /// The 8-byte LUN field, big-endian, as received.
    pub lun: u64,
    pub cdb: [u8; 16],
    /// What follows the first 16 bytes of a longer CDB; usually empty.
    pub cdb_extra: Bytes,
    pub attribute: TaskAttribute,
    /// Everything the initiator sent for this command: immediate, unsolicited and solicited, in order.
    /// At most `base::limits::TRANSFER_BYTES_MAX`; the surplus of a larger `expected_out` is not asked for.
    pub data_out: Payload,
    /// Bytes the initiator expects to receive.
    pub expected_in: usize,
    /// Bytes the initiator expects to send.
    pub expected_out: usize,
}

/// The answer to a [`Command`]. The connection works out residuals and splits the data.
#[derive(Clone, Debug, Default)]
pub struct CommandResponse {
    /// SCSI status code (SAM-5 §5.3.1), 0 is GOOD.
    pub status: u8,
    /// Sense data in the wire's form, without the length field; at most 252 bytes are sent.
    pub sense: Option<Bytes>,
    /// All data that the CDB asks for, even where the initiator expects less (the surplus is cut off and
    /// reported as overflow).
    pub data_in: Payload,
    /// How many bytes the CDB asks the initiator to send, where that may differ from what it announced
    /// (over- and underflow of writes, RFC 7143 §11.4.5.1). None: exactly the announced length.
    pub data_out_wanted: Option<u64>,
}

/// RFC 7143 §11.5.1, RFC 7144 §5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskManagementFunction {
    AbortTask,
    AbortTaskSet,
    ClearAca,
    ClearTaskSet,
    LogicalUnitReset,
    TargetWarmReset,
    TargetColdReset,
}

/// A task management request that the connection could not answer alone. Commands that were still
/// collecting data when it came are given up by the connection itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskManagement {
    pub task: TaskTag,
    pub function: TaskManagementFunction,
    /// The 8-byte LUN field; zero for target resets.
    pub lun: u64,
    /// The command to abort; always there for `AbortTask`, and a command that the engine holds.
    pub referenced: Option<TaskTag>,
}

/// RFC 7143 §11.6.1. On `Complete` of an aborting function the connection forgets the commands concerned
/// (of this session): answers that come for them later are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskManagementResponse {
    Complete,
    TaskDoesNotExist,
    LunDoesNotExist,
    NotSupported,
    AuthorizationFailed,
    Rejected,
}

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The initiator logged out.
    LoggedOut,
    /// Login was refused with this status class and detail (RFC 7143 §11.13.5).
    LoginRefused {
        class: u8,
        detail: u8,
    },
    /// Login took longer than `base::limits::LOGIN_NS_MAX`.
    LoginTimedOut,
    /// A NOP-In went unanswered.
    Unresponsive,
    /// The initiator broke the protocol in a way that leaves no common state.
    ProtocolError,
    HeaderDigestError,
    DataDigestError,
    /// The engine asked for it: session reinstated, target reset, host removed, shutdown.
    Requested,
}

/// What was wrong with a login; more than the initiator is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginFault {
    /// No host has an initiator of this name.
    UnknownInitiator,
    /// It wants a target of another name.
    UnknownTarget,
    /// The host must prove itself, and does not offer to.
    ChapNotOffered,
    /// The name or the secret that it gave is not the host's.
    WrongSecret,
    /// It asked for a proof that this host has no secret for.
    NoMutualSecret,
    /// Anything else, with the status that it is told (RFC 7143 §11.13.5).
    Other { class: u8, detail: u8 },
}

/// A shared secret; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Credentials of one direction of CHAP (RFC 1994).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chap {
    pub user: String,
    pub secret: Secret,
}

/// What is known of an initiator that may log in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostAccess {
    /// What the initiator must prove; None: no authentication.
    pub chap: Option<Chap>,
    /// What we prove when the initiator asks (mutual CHAP).
    pub mutual: Option<Chap>,
}

/// Answers from this shard's replica of the catalog.
pub trait Directory {
    /// The iSCSI name of this array, in lower case.
    fn target_name(&self) -> &str;
    /// Shown to people by some initiators; may be empty.
    fn target_alias(&self) -> &str {
        ""
    }
    /// `initiator_name` is in lower case. None: the initiator is unknown.
    fn find_host(&self, initiator_name: &str) -> Option<HostAccess>;
    /// Every portal that is listened on and that this initiator may use, and its portal group tag. An unspecified address
    /// (0.0.0.0, ::) is shown as the one that the asking connection came in by, where that is of its family.
    fn portals(&self, initiator_name: &str) -> Vec<(SocketAddr, u16)>;
}
