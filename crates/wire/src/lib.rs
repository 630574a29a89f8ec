//! Bytes ↔ meaning, nothing else: the layouts of SCSI and iSCSI.
//!
//! `parse` turns bytes into meaning or a reject; `emit` is its inverse. Nothing here keeps state, allocates
//! beyond what it returns, or panics on bytes from outside.

pub mod iscsi;
pub mod scsi;
