//! Copies of ranges: a sector may hold what was written to another one, of another volume.
//!
//! Bytes say for which sector of which volume they were written. Where a copy has brought them elsewhere, they have a
//! version of their own there, the same whenever the same bytes are brought there again.

use base::HashMap;

use super::content::{SECTOR_BYTES, SECTORS_PER_BLOCK, Sector, fill, identify};
use super::history::WriteId;
use super::{Oracle, masks};

/// What was written, and for which sector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Content {
    family: u32,
    sector: u64,
    version: u64,
}

/// Which contents copies have brought elsewhere.
#[derive(Default)]
pub(super) struct Copied {
    versions: HashMap<Content, u64>,
    contents: HashMap<u64, Content>,
}

/// A copy that has begun.
#[derive(Clone, Debug)]
pub struct CopyTicket {
    destination: u32,
    parts: Vec<(u64, WriteId)>,
}

impl Copied {
    pub fn identify(&self, family: u32, sector: u64, bytes: &[u8]) -> Sector {
        match identify(family, sector, bytes) {
            Sector::Misplaced { volume, sector, version } => {
                let known = self.versions.get(&Content { family: volume, sector, version });
                known.map_or(Sector::Misplaced { volume, sector, version }, |&known| Sector::Version(known))
            }
            said => said,
        }
    }

    fn content(&self, family: u32, sector: u64, version: u64) -> Content {
        self.contents.get(&version).copied().unwrap_or(Content { family, sector, version })
    }
}

impl Oracle {
    /// What a sector of a volume says that was read.
    pub fn identify(&self, volume: u32, sector: u64, bytes: &[u8]) -> Sector {
        self.copied.identify(self.family(volume), sector, bytes)
    }

    /// Bytes of the sectors of a range of a volume, at one version each.
    pub fn compose(&self, volume: u32, first: u64, versions: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; versions.len() * SECTOR_BYTES];
        let family = self.family(volume);
        for ((&version, sector), out) in
            versions.iter().zip(first..).zip(bytes.chunks_exact_mut(SECTOR_BYTES))
        {
            let content = self.copied.content(family, sector, version);
            fill(content.family, content.sector, content.version, out);
        }
        bytes
    }

    /// Sectors of one volume, which hold these versions, are copied to another, or elsewhere in the same one; whole
    /// blocks. No write is under way to either. `None` where the source may yet hold something else.
    pub fn begin_copy(
        &mut self,
        (source, from): (u32, u64),
        (destination, to): (u32, u64),
        versions: &[u64],
    ) -> Option<CopyTicket> {
        let now = self.tick();
        let nobody = WriteId(u64::MAX);
        let of = &self.volumes[&source];
        let is_certain = |(sector, &version): (u64, &u64)| {
            let index = (sector % SECTORS_PER_BLOCK) as usize;
            let history = of.blocks.get(&(sector / SECTORS_PER_BLOCK));
            history.map_or(version == 0, |history| history.is_certain(index, version, now, now, nobody))
        };
        if !(from..).zip(versions).all(is_certain) {
            return None;
        }
        let (family, own) = (of.family, self.family(destination));
        let mut brought = Vec::new();
        for (index, &version) in (0u64..).zip(versions) {
            let content = self.copied.content(family, from + index, version);
            brought.push(if version == 0 || (content.family, content.sector) == (own, to + index) {
                content.version
            } else {
                self.ids += 1;
                let known = *self.copied.versions.entry(content).or_insert(self.ids);
                self.copied.contents.insert(known, content);
                known
            });
        }
        let sectors = to..to + versions.len() as u64;
        let volume = self.volumes.get_mut(&destination).expect("a volume that exists");
        // what had been replaced may be there again
        volume.replaced.retain(|(sector, _)| !sectors.contains(sector));
        let mut parts = Vec::new();
        for (block, _) in masks(&sectors) {
            let at = (block * SECTORS_PER_BLOCK - to) as usize;
            let versions = &brought[at..at + SECTORS_PER_BLOCK as usize];
            for (first, &version) in versions.iter().enumerate() {
                if versions[..first].contains(&version) {
                    continue;
                }
                let is_it = |&(_, other): &(usize, &u64)| *other == version;
                let mask =
                    versions.iter().enumerate().filter(is_it).fold(0, |mask, (index, _)| mask | 1 << index);
                self.ids += 1;
                let id = WriteId(self.ids);
                volume.blocks.entry(block).or_default().begin(id, version, mask, now);
                parts.push((block, id));
            }
        }
        Some(CopyTicket { destination, parts })
    }

    /// The copy was acknowledged.
    pub fn end_copy(&mut self, ticket: CopyTicket) {
        let now = self.tick();
        let oldest = self.oldest_read();
        let Some(volume) = self.volumes.get_mut(&ticket.destination) else { return };
        let stable = !volume.write_back;
        for (block, id) in ticket.parts {
            if let Some(history) = volume.blocks.get_mut(&block) {
                history.acknowledged(id, stable, now);
                history.prune(oldest, volume.write_back);
            }
            if !stable {
                volume.unstable.push((now, id, block..block + 1));
            }
        }
    }

    /// The copy failed: each block is copied or not.
    pub fn fail_copy(&mut self, ticket: &CopyTicket) {
        let now = self.tick();
        let Some(volume) = self.volumes.get_mut(&ticket.destination) else { return };
        for (block, id) in &ticket.parts {
            if let Some(history) = volume.blocks.get_mut(block) {
                history.failed(*id, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Violation, ViolationKind};
    use super::*;

    fn read(oracle: &mut Oracle, volume: u32, first: u64, data: &[u8]) -> Result<(), Violation> {
        let ticket = oracle.begin_read(volume, first..first + (data.len() / SECTOR_BYTES) as u64);
        oracle.end_read(&ticket, data)
    }

    /// Two volumes, of which the first has a block of one version.
    fn oracle() -> (Oracle, u64) {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        oracle.add_volume(2, false);
        let write = oracle.begin_write(1, 8..16);
        let version = write.version;
        oracle.end_write(write, false);
        (oracle, version)
    }

    #[test]
    fn what_was_copied_is_known_where_it_is_now() {
        let (mut oracle, version) = oracle();
        let data = oracle.compose(1, 8, &[version; 8]);
        assert!(matches!(
            read(&mut oracle, 2, 16, &data).map_err(|violation| violation.kind),
            Err(ViolationKind::Misplaced { volume: 1, .. })
        ));
        let ticket = oracle.begin_copy((1, 8), (2, 16), &[version; 8]).expect("certain");
        assert_eq!(read(&mut oracle, 2, 16, &[0; 8 * SECTOR_BYTES]), Ok(()), "not yet");
        oracle.end_copy(ticket);
        assert!(read(&mut oracle, 2, 16, &[0; 8 * SECTOR_BYTES]).is_err(), "overwritten");
        assert_eq!(read(&mut oracle, 2, 16, &data), Ok(()));
        assert!(read(&mut oracle, 2, 8, &data).is_err(), "but nowhere else");
        let Sector::Version(there) = oracle.identify(2, 16, &data[..SECTOR_BYTES]) else { panic!("known") };
        assert_eq!(oracle.compose(2, 16, &[there]), data[..SECTOR_BYTES]);
        // and back to where it came from
        let versions: Vec<u64> = (16..24)
            .zip(data.chunks_exact(SECTOR_BYTES))
            .map(|(sector, bytes)| {
                let Sector::Version(version) = oracle.identify(2, sector, bytes) else { panic!("known") };
                version
            })
            .collect();
        let ticket = oracle.begin_copy((2, 16), (1, 8), &versions).expect("certain");
        oracle.end_copy(ticket);
        assert_eq!(read(&mut oracle, 1, 8, &data), Ok(()));
    }

    #[test]
    fn what_is_not_certain_is_not_copied() {
        let (mut oracle, version) = oracle();
        let write = oracle.begin_write(1, 8..16);
        oracle.fail_write(&write);
        assert!(oracle.begin_copy((1, 8), (2, 16), &[version; 8]).is_none());
        assert!(oracle.begin_copy((1, 16), (2, 16), &[0; 8]).is_some());
    }
}
