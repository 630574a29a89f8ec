//! Mappings: which volumes a host has, and by which numbers it addresses them.
//!
//! What always holds: a number of a host is one volume; a volume has at most one LUN and one namespace identifier for each host.

use base::VolumeId;
use base::limits::MAPPINGS_MAX;
use serde::{Deserialize, Serialize};

use crate::error::{CatalogError, check_room};
use crate::model::Catalog;
use crate::name::Name;
use crate::number::UnitNumber;

/// A number that is asked for; none: the one that the volume had, or the lowest that no volume of the host has or had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WantedNumber {
    Lun(Option<u32>),
    Namespace(Option<u32>),
}

/// A volume as a host addresses it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Mapping {
    pub host: Name,
    pub number: UnitNumber,
    pub volume: VolumeId,
    pub read_only: bool,
}

/// A mapping as JSON: with `lun`, or with `namespace` (from schema 12 on).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    host: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lun: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<u32>,
    #[serde(with = "crate::fields::volume")]
    volume: VolumeId,
    read_only: bool,
}

impl From<Mapping> for Stored {
    fn from(mapping: Mapping) -> Stored {
        let (lun, namespace) = match mapping.number {
            UnitNumber::Lun(lun) => (Some(lun), None),
            UnitNumber::Namespace(namespace) => (None, Some(namespace)),
        };
        let Mapping { host, volume, read_only, .. } = mapping;
        Stored { host, lun, namespace, volume, read_only }
    }
}

impl TryFrom<Stored> for Mapping {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Mapping, &'static str> {
        let number = match (stored.lun, stored.namespace) {
            (Some(lun), None) => UnitNumber::Lun(lun),
            (None, Some(namespace)) => UnitNumber::Namespace(namespace),
            _ => return Err("a mapping has a LUN or a namespace identifier"),
        };
        let Stored { host, volume, read_only, .. } = stored;
        Ok(Mapping { host, number, volume, read_only })
    }
}

impl Mapping {
    fn lun(&self) -> Option<(u16, &Mapping)> {
        match self.number {
            UnitNumber::Lun(lun) => Some((lun, self)),
            UnitNumber::Namespace(_) => None,
        }
    }
}

impl WantedNumber {
    /// The kind of number, and the number if one is asked for.
    fn check(self) -> Result<(UnitNumber, Option<UnitNumber>), CatalogError> {
        match self {
            WantedNumber::Lun(None) => Ok((UnitNumber::Lun(0), None)),
            WantedNumber::Namespace(None) => Ok((UnitNumber::Namespace(0), None)),
            WantedNumber::Lun(Some(lun)) => {
                let number = u16::try_from(lun).ok().map(UnitNumber::Lun);
                let number = number.filter(|number| number.is_possible());
                let number = number.ok_or(CatalogError::LunRange { lun })?;
                Ok((number, Some(number)))
            }
            WantedNumber::Namespace(Some(namespace)) => {
                let number = UnitNumber::Namespace(namespace);
                match number.is_possible() {
                    true => Ok((number, Some(number))),
                    false => Err(CatalogError::NamespaceRange { namespace }),
                }
            }
        }
    }
}

impl Catalog {
    /// A host's mappings: its LUNs in order, then its namespaces.
    pub fn mappings_of_host<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Mapping> + 'a {
        let start = self.mappings.partition_point(|mapping| mapping.host.as_str() < host);
        self.mappings[start..].iter().take_while(move |mapping| mapping.host.as_str() == host)
    }

    /// A host's LUNs in order.
    pub fn luns_of<'a>(&'a self, host: &'a str) -> impl Iterator<Item = (u16, &'a Mapping)> + 'a {
        self.mappings_of_host(host).filter_map(Mapping::lun)
    }

    /// All LUNs, in order of hosts.
    pub fn luns(&self) -> impl Iterator<Item = (u16, &Mapping)> + '_ {
        self.mappings.iter().filter_map(Mapping::lun)
    }

    /// What a host sees at a number.
    pub fn mapping_at(&self, host: &str, number: UnitNumber) -> Option<&Mapping> {
        let key = |mapping: &Mapping| (mapping.host.as_str().cmp(host)).then(mapping.number.cmp(&number));
        self.mappings.binary_search_by(key).ok().map(|index| &self.mappings[index])
    }

    /// What a host sees at a LUN.
    pub fn lun(&self, host: &str, lun: u16) -> Option<&Mapping> {
        self.mapping_at(host, UnitNumber::Lun(lun))
    }

    /// Every mapping of a volume, in order of hosts.
    pub fn mappings_of(&self, volume: VolumeId) -> impl Iterator<Item = &Mapping> + '_ {
        self.mappings.iter().filter(move |mapping| mapping.volume == volume)
    }

    pub(crate) fn map(
        &mut self,
        volume: &str,
        host: &str,
        wanted: WantedNumber,
        read_only: bool,
    ) -> Result<(), CatalogError> {
        let volume = &self.volumes[self.volume_index(volume)?];
        let host = self.hosts[self.host_index(host)?].name.clone();
        check_room("mapping", self.mappings.len(), MAPPINGS_MAX)?;
        let (like, wanted) = wanted.check()?;
        let is_old = |mapping: &&Mapping| mapping.volume == volume.id && mapping.number.is_like(like);
        let old = self.mappings_of_host(host.as_str()).find(is_old).map(|old| old.number);
        if let Some(number) = old {
            return Err(CatalogError::AlreadyMapped { volume: volume.name.clone(), host, number });
        }
        let number = match wanted {
            Some(number) => number,
            None => self.default_number(host.as_str(), volume.id, like)?,
        };
        let volume = volume.id;
        let taken = self.mapping_at(host.as_str(), number).and_then(|mapping| self.volume(mapping.volume));
        if let Some(other) = taken.map(|other| other.name.clone()) {
            return Err(CatalogError::LunInUse { host, number, volume: other });
        }
        self.insert_mapping(Mapping { host, number, volume, read_only });
        Ok(())
    }

    pub(crate) fn insert_mapping(&mut self, mapping: Mapping) {
        let key = |mapping: &Mapping| (mapping.host.clone(), mapping.number);
        let place = self.mappings.partition_point(|other| key(other) < key(&mapping));
        self.mappings.insert(place, mapping);
    }

    /// Removes every mapping of the volume to the host.
    pub(crate) fn unmap(&mut self, volume: &str, host: &str) -> Result<(), CatalogError> {
        let volume = &self.volumes[self.volume_index(volume)?];
        let host = &self.hosts[self.host_index(host)?];
        let count = self.mappings.len();
        self.mappings.retain(|mapping| mapping.host != host.name || mapping.volume != volume.id);
        if self.mappings.len() == count {
            return Err(CatalogError::NotMapped { volume: volume.name.clone(), host: host.name.clone() });
        }
        Ok(())
    }

    /// Of a decoded catalog: what is wrong with its mappings.
    pub(crate) fn check_mappings(&self) -> Result<(), String> {
        let is_ordered = self.mappings.is_sorted_by(|a, b| (&a.host, a.number) < (&b.host, b.number));
        if !is_ordered {
            return Err("mappings out of order".to_owned());
        }
        let mut seen = base::HashSet::default();
        for mapping in &self.mappings {
            let is_lun = matches!(mapping.number, UnitNumber::Lun(_));
            if !seen.insert((&mapping.host, mapping.volume, is_lun)) {
                return Err("a volume is mapped twice to one host".to_owned());
            }
            if self.find_host(mapping.host.as_str()).is_none() || self.volume(mapping.volume).is_none() {
                return Err("a mapping of nothing".to_owned());
            }
            if !mapping.number.is_possible() {
                return Err(format!("{} is not possible", mapping.number));
            }
        }
        self.check_freed()
    }
}
