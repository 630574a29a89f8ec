//! Hot spares: drives that join a pool automatically when it has lost a drive.

use base::limits::{DRIVES_MAX, SPARE_PATH_BYTES_MAX, SPARES_MAX};
use base::{DriveId, HashSet};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;

/// A pool's spares, and what has become of those that were needed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spares {
    /// Absolute paths of drives that hold nothing, not even a label, until they join.
    pub free: Vec<String>,
    /// Members that the pool has lost, for each of which a spare is to join.
    #[serde(rename = "owed", with = "crate::fields::drives", skip_serializing_if = "Vec::is_empty")]
    pub awaiting: Vec<DriveId>,
    /// Those that have joined, until the pool has got over the loss.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<Joined>,
}

/// A spare that has become a member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joined {
    /// As it was a spare.
    pub path: String,
    /// The member in whose place it joined.
    #[serde(with = "crate::fields::hexadecimal")]
    pub instead_of: DriveId,
}

impl Spares {
    pub fn is_empty(&self) -> bool {
        *self == Spares::default()
    }

    /// What always holds.
    pub(crate) fn check(&self) -> Result<(), CatalogError> {
        if self.free.len() > SPARES_MAX {
            return Err(CatalogError::TooMany { kind: "spare", max: SPARES_MAX });
        }
        let mut seen = HashSet::default();
        for path in &self.free {
            if !path.starts_with('/') || path.contains('\0') || path.len() > SPARE_PATH_BYTES_MAX {
                return Err(CatalogError::RawPath { path: path.clone() });
            }
            if !seen.insert(path) {
                return Err(CatalogError::SpareTwice { path: path.clone() });
            }
        }
        match self.awaiting.len().max(self.joined.len()) <= DRIVES_MAX {
            true => Ok(()),
            false => Err(CatalogError::TooMany { kind: "lost drive", max: DRIVES_MAX }),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{ArrayId, PoolId};

    use super::*;
    use crate::{Catalog, Change};

    #[test]
    fn a_pools_spares_are_kept() {
        let empty = Catalog::new(ArrayId(7), "tangelo".parse().unwrap());
        let attach = Change::AttachPool { id: PoolId(9), name: "fast".parse().unwrap() };
        let set = |spares: Spares| Change::SetSpares { pool: "fast".into(), spares };
        let free = |paths: &[&str]| paths.iter().copied().map(str::to_owned).collect::<Vec<_>>();
        let joined = vec![Joined { path: "/dev/sdi".into(), instead_of: DriveId(5) }];
        let spares = Spares { free: free(&["/dev/sdh"]), awaiting: vec![DriveId(7)], joined };
        let catalog = empty.apply(&attach).unwrap().apply(&set(spares.clone())).unwrap();
        assert_eq!(Catalog::decode(&catalog.encode()).unwrap().pools()[0].spares, spares);
        for (wrong, code) in [
            (free(&["/dev/sdh"; 2]), "bad_path"),
            (free(&["sdh"]), "bad_path"),
            ((0..=SPARES_MAX).map(|n| format!("/dev/{n}")).collect(), "limit"),
        ] {
            let wrong = Spares { free: wrong, ..Spares::default() };
            assert_eq!(catalog.apply(&set(wrong)).unwrap_err().code(), code);
        }
    }
}
