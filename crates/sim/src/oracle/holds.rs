//! The content of a write's sectors: one version, or the result of a copy, which is known only in part.

use super::SECTORS_PER_BLOCK;

const SECTORS: usize = SECTORS_PER_BLOCK as usize;

/// Names a copy of a range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CopyId(pub u64);

/// See the module's words.
#[derive(Clone, Debug)]
pub enum Holds {
    /// The same in every sector; 0 is zeros.
    Version(u64),
    Copied(Box<Brought>),
}

/// One of these versions in each sector.
#[derive(Clone, Debug)]
pub struct Brought {
    /// The copy, as long as it is under way: it may bring something else yet.
    copy: Option<CopyId>,
    versions: [Vec<u64>; SECTORS],
}

impl Holds {
    pub fn copied(copy: CopyId) -> Holds {
        Holds::Copied(Box::new(Brought { copy: Some(copy), versions: Default::default() }))
    }

    /// The versions that a sector may have, as far as is known.
    pub fn versions(&self, sector: usize) -> &[u64] {
        match self {
            Holds::Version(version) => std::slice::from_ref(version),
            Holds::Copied(brought) => &brought.versions[sector],
        }
    }

    pub fn may_be(&self, sector: usize, version: u64) -> bool {
        self.versions(sector).contains(&version)
    }

    pub fn is(&self, sector: usize, version: u64) -> bool {
        self.under_way().is_none() && self.versions(sector) == [version]
    }

    pub fn is_copied(&self) -> bool {
        matches!(self, Holds::Copied(_))
    }

    /// The copy that may yet bring something else.
    pub fn under_way(&self) -> Option<CopyId> {
        match self {
            Holds::Version(_) => None,
            Holds::Copied(brought) => brought.copy,
        }
    }

    /// The copy may bring this, too.
    pub fn bring(&mut self, sector: usize, version: u64) {
        if let Holds::Copied(brought) = self
            && !brought.versions[sector].contains(&version)
        {
            brought.versions[sector].push(version);
        }
    }

    /// The copy brings nothing else any more.
    pub fn close(&mut self) {
        if let Holds::Copied(brought) = self {
            brought.copy = None;
        }
    }

    /// The copy, which is over, has brought this and nothing else. While it is under way, it may bring a sector twice: by
    /// reference, and then as data.
    pub fn settle(&mut self, sector: usize, version: u64) {
        if let Holds::Copied(brought) = self {
            brought.versions[sector] = vec![version];
        }
    }
}
