//! Drives that were opened, and drives that have not answered yet.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use env::{DriveHandle, DriveInfo};
use pool::Content;

/// An opened drive, and its content.
pub(crate) struct Probed {
    pub(crate) handle: DriveHandle,
    pub(crate) info: DriveInfo,
    pub(crate) content: Content,
}

/// The drives without their contents, as a pool needs them.
pub(crate) fn without_contents(drives: Vec<Probed>) -> Vec<(DriveHandle, DriveInfo)> {
    drives.into_iter().map(|drive| (drive.handle, drive.info)).collect()
}

/// Drives that have not answered in time, and may still do so.
#[derive(Clone, Default)]
pub(crate) struct UnansweredProbes(pub(crate) Rc<RefCell<BTreeSet<String>>>);
