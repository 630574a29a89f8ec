//! LUN numbers that a host had and has no more. The host may still associate such a number with the old volume. So it
//! is not assigned to another volume by default as long as there is another number.
//!
//! What always holds: a freed number is not mapped, is listed once for each host, and belongs to an existing
//! host. The last [`FREED_LUNS_MAX`] are kept, oldest first.

use base::VolumeId;
use base::limits::{FREED_LUNS_MAX, LUN_MAX};

use crate::change::check_room;
use crate::error::CatalogError;
use crate::model::{Catalog, Mapping};

/// The highest number that every client can address: default numbers stay below as long as any is free.
const LUN_EVERYBODY_KNOWS_MAX: u16 = 255;

impl Catalog {
    /// What was mapped before a change and is not any more is freed, and what is mapped now is not free.
    pub(crate) fn note_freed(&mut self, before: &[Mapping]) {
        if self.mappings == before {
            return;
        }
        let is_free = |one: &&Mapping| {
            let host = one.host.as_str();
            self.lun(host, one.lun).is_none() && self.find_host(host).is_some()
        };
        // what was mapped was not free before
        let mut free: Vec<Mapping> = self.freed_luns.iter().chain(before).filter(is_free).cloned().collect();
        free.drain(..free.len().saturating_sub(FREED_LUNS_MAX));
        self.freed_luns = free;
    }

    /// The number that a volume gets where none is asked for: the one that it had; else the lowest that no volume of this
    /// host has or had; else the one that was freed first. Numbers up to 255 come before those above.
    pub(crate) fn default_lun(&self, host: &str, volume: VolumeId) -> Result<u16, CatalogError> {
        let freed = || self.freed_luns.iter().filter(|one| one.host.as_str() == host);
        if let Some(its_own) = freed().rev().find(|one| one.volume == volume) {
            return Ok(its_own.lun);
        }
        let taken: Vec<u16> = self.luns_of(host).map(|mapping| mapping.lun).collect();
        let mut known: Vec<u16> = freed().map(|one| one.lun).chain(taken.iter().copied()).collect();
        known.sort_unstable();
        let new = (0..=LUN_MAX).find(|lun| known.binary_search(lun).is_err());
        let oldest = |max: u16| freed().map(|one| one.lun).find(move |&lun| lun <= max);
        let low =
            new.filter(|&lun| lun <= LUN_EVERYBODY_KNOWS_MAX).or_else(|| oldest(LUN_EVERYBODY_KNOWS_MAX));
        low.or(new).or_else(|| oldest(LUN_MAX)).ok_or_else(|| no_lun(taken.len()))
    }

    /// Of a decoded catalog: what is wrong with its freed numbers.
    pub(crate) fn check_freed(&self) -> Result<(), String> {
        for (index, one) in self.freed_luns.iter().enumerate() {
            let (host, lun) = (one.host.as_str(), one.lun);
            let free = lun <= LUN_MAX && self.find_host(host).is_some() && self.lun(host, lun).is_none();
            let known = one.volume.0 < self.next_volume_id;
            if !free || !known || self.freed_luns[..index].iter().any(|other| is_same_lun(other, one)) {
                return Err(format!("LUN {lun} of host {host} cannot be free"));
            }
        }
        Ok(())
    }
}

fn is_same_lun(one: &Mapping, other: &Mapping) -> bool {
    (one.lun, &one.host) == (other.lun, &other.host)
}

fn no_lun(count: usize) -> CatalogError {
    check_room("mapping", count, usize::from(LUN_MAX) + 1).expect_err("every number is taken")
}
