//! The numbers by which hosts address volumes.

use base::limits::{LUN_MAX, NAMESPACE_MAX};

/// The number by which a host addresses a volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitNumber {
    /// SCSI: a logical unit number, 0 to [`LUN_MAX`].
    Lun(u16),
    /// NVMe: a namespace identifier, 1 to [`NAMESPACE_MAX`].
    Namespace(u32),
}

impl UnitNumber {
    pub fn is_possible(self) -> bool {
        match self {
            UnitNumber::Lun(lun) => lun <= LUN_MAX,
            UnitNumber::Namespace(namespace) => (1..=NAMESPACE_MAX).contains(&namespace),
        }
    }

    /// Whether both are LUNs, or both namespace identifiers.
    pub(crate) fn is_like(self, other: UnitNumber) -> bool {
        matches!(self, UnitNumber::Lun(_)) == matches!(other, UnitNumber::Lun(_))
    }

    /// All possible numbers of this kind, the lowest first.
    pub(crate) fn all(like: UnitNumber) -> Box<dyn Iterator<Item = UnitNumber>> {
        match like {
            UnitNumber::Lun(_) => Box::new((0..=LUN_MAX).map(UnitNumber::Lun)),
            UnitNumber::Namespace(_) => Box::new((1..=NAMESPACE_MAX).map(UnitNumber::Namespace)),
        }
    }
}

impl std::fmt::Display for UnitNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UnitNumber::Lun(lun) => write!(f, "LUN {lun}"),
            UnitNumber::Namespace(namespace) => write!(f, "namespace {namespace}"),
        }
    }
}
