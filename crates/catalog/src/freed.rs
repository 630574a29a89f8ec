//! LUNs and namespace identifiers that a host had and has no more. The host may still associate such a number with the old volume. So it
//! is not assigned to another volume by default as long as there is another number.
//!
//! What always holds: a freed number is not mapped, is listed once for each host, and belongs to an existing
//! host. The last [`FREED_LUNS_MAX`] are kept, oldest first.

use base::VolumeId;
use base::limits::FREED_LUNS_MAX;

use crate::error::{CatalogError, check_room};
use crate::mapping::Mapping;
use crate::model::Catalog;
use crate::number::UnitNumber;

/// The highest LUN that every client can address: default numbers stay below as long as any is free.
const LUN_EVERYBODY_KNOWS_MAX: u16 = 255;

impl Catalog {
    /// What was mapped before a change and is not any more is freed, and what is mapped now is not free.
    pub(crate) fn note_freed(&mut self, before: &[Mapping]) {
        if self.mappings == before {
            return;
        }
        let is_free = |one: &&Mapping| {
            let host = one.host.as_str();
            self.mapping_at(host, one.number).is_none() && self.find_host(host).is_some()
        };
        // what was mapped was not free before
        let mut free: Vec<Mapping> = self.freed_luns.iter().chain(before).filter(is_free).cloned().collect();
        free.drain(..free.len().saturating_sub(FREED_LUNS_MAX));
        self.freed_luns = free;
    }

    /// The number that a volume gets where none is asked for: the one that it had; else the lowest that no volume of this
    /// host has or had; else the one that was freed first. LUNs up to 255 come before those above.
    pub(crate) fn default_number(
        &self,
        host: &str,
        volume: VolumeId,
        like: UnitNumber,
    ) -> Result<UnitNumber, CatalogError> {
        let of_host = |one: &&Mapping| one.host.as_str() == host && one.number.is_like(like);
        let freed = || self.freed_luns.iter().filter(of_host);
        if let Some(its_own) = freed().rev().find(|one| one.volume == volume) {
            return Ok(its_own.number);
        }
        let taken = self.mappings_of_host(host).map(|mapping| mapping.number);
        let taken: Vec<UnitNumber> = taken.filter(|number| number.is_like(like)).collect();
        let mut known: Vec<UnitNumber> = freed().map(|one| one.number).chain(taken.iter().copied()).collect();
        known.sort_unstable();
        let new = UnitNumber::all(like).find(|number| known.binary_search(number).is_err());
        let low = match like {
            UnitNumber::Lun(_) => UnitNumber::Lun(LUN_EVERYBODY_KNOWS_MAX),
            UnitNumber::Namespace(_) => UnitNumber::Namespace(u32::MAX),
        };
        let freed_low = freed().map(|one| one.number).find(|&number| number <= low);
        let oldest = freed().map(|one| one.number).next();
        let number = new.filter(|&number| number <= low).or(freed_low).or(new).or(oldest);
        number.ok_or_else(|| {
            let full = check_room("mapping", taken.len(), UnitNumber::all(like).count());
            full.expect_err("every number is taken")
        })
    }

    /// Of a decoded catalog: what is wrong with its freed numbers.
    pub(crate) fn check_freed(&self) -> Result<(), String> {
        for (index, one) in self.freed_luns.iter().enumerate() {
            let (host, number) = (one.host.as_str(), one.number);
            let is_free = self.find_host(host).is_some() && self.mapping_at(host, number).is_none();
            let is_known = one.volume.0 < self.next_volume_id;
            let twice = self.freed_luns[..index]
                .iter()
                .any(|other| (other.number, &other.host) == (number, &one.host));
            if !number.is_possible() || !is_free || !is_known || twice {
                return Err(format!("{number} of host {host} cannot be free"));
            }
        }
        Ok(())
    }
}
