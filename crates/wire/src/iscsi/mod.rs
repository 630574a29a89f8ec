//! iSCSI (RFC 7143 §11): PDU headers, additional headers, text, digests.
//!
//! Each PDU has a layout (48 bytes, big-endian) and a meaning (a plain struct). `parse` returns the
//! meaning, or the reason with which a target rejects the PDU; `emit` is its inverse. The lengths of segments
//! belong to framing ([`Lengths`]), not to the meaning: the caller passes them to `emit`.
//!
//! ```text
//!   basic header 48 | additional headers 4·n | header digest 0/4 | data 0..2^24-1 | pad to 4 | data digest 0/4
//! ```

mod ahs;
mod command;
mod control;
mod data;
mod header;
mod login;
mod logout;
mod task;
mod text;
mod text_pdu;

pub use ahs::{AdditionalHeaders, additional_headers_bytes};
pub use command::{ScsiCommand, ScsiResponse, ServiceResponse, TaskAttribute};
pub use control::{AsyncEvent, AsyncMessage, NopIn, NopOut, Reject, Snack};
pub use data::{DataIn, DataInStatus, DataOut, R2t, Residual};
pub use header::{
    HEADER_BYTES, Header, Lengths, Numbers, Opcode, RESERVED_TAG, RejectReason, is_immediate, padding,
    task_tag,
};
pub use login::{LoginRequest, LoginResponse, LoginStage, LoginStatus};
pub use logout::{LogoutReason, LogoutRequest, LogoutResponse, LogoutResult};
pub use task::{TaskManagementFunction, TaskManagementRequest, TaskManagementResponse, TaskManagementResult};
pub use text::{KEY_BYTES_MAX, TextError, TextPairs, VALUE_BYTES_MAX, emit_pair};
pub use text_pdu::{TextRequest, TextResponse};
