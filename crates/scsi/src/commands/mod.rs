//! The commands, one concept for each file. A handler gets a CDB whose length, reserved bits, unit attentions,
//! access state and write protection have been checked, and plans the block requests.

pub(crate) mod access;
pub(crate) mod compare;
pub(crate) mod control;
pub(crate) mod copy;
pub(crate) mod inquiry;
pub(crate) mod lba_status;
pub(crate) mod log;
pub(crate) mod mode;
pub(crate) mod or_write;
pub(crate) mod port_groups;
pub(crate) mod report;
pub(crate) mod reserve;
mod reserve_out;
pub(crate) mod unmap;
pub(crate) mod verify;
pub(crate) mod write_same;
