//! Heads: the servers of the array, and the portals through which hosts reach them.
//!
//! What always holds: ids are unique and in order. A portal group belongs to one head, because its number is also that of
//! a target port, by which hosts tell ports apart.

use std::net::SocketAddr;

use base::HeadId;
use base::limits::{HEADS_MAX, PORTAL_GROUPS_MAX, PORTALS_MAX};
use serde::{Deserialize, Serialize};

use crate::error::CatalogError;
use crate::model::Catalog;
use crate::name::Name;

/// A server that serves the array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    #[serde(with = "crate::fields::hexadecimal")]
    pub id: HeadId,
    pub name: Name,
    /// Where it listens, as its file says.
    pub portals: Vec<HeadPortal>,
}

/// A portal of a head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadPortal {
    pub address: SocketAddr,
    /// The portal group, 1 to [`PORTAL_GROUPS_MAX`].
    pub group: u16,
}

impl Catalog {
    pub fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The term of ownership in which the catalog was changed last.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Makes this head the only one, unless the array has two; and notes the term in which it serves, if that is a later one. No change
    /// of its own: it is stored with the next one.
    pub fn set_served_by(&mut self, head: Head, term: u64) {
        self.term = self.term.max(term);
        if self.heads.len() <= 1 {
            self.heads = vec![head];
        }
    }

    pub(crate) fn begin_term(&mut self, term: u64) -> Result<(), CatalogError> {
        if term <= self.term {
            return Err(CatalogError::OldTerm { term, now: self.term });
        }
        self.term = term;
        Ok(())
    }

    /// Of a decoded catalog: what is wrong with its heads.
    pub(crate) fn check_heads(&self) -> Result<(), String> {
        if self.heads.len() > HEADS_MAX || !self.heads.is_sorted_by(|a, b| a.id < b.id) {
            return Err("impossible heads".to_owned());
        }
        for (index, head) in self.heads.iter().enumerate() {
            let is_group = |portal: &HeadPortal| (1..=PORTAL_GROUPS_MAX).contains(&portal.group);
            if head.portals.len() > PORTALS_MAX || !head.portals.iter().all(is_group) {
                return Err(format!("head {} has impossible portals", head.id));
            }
            let others = self.heads[..index].iter().flat_map(|other| &other.portals);
            if others.into_iter().any(|other| head.portals.iter().any(|portal| portal.group == other.group)) {
                return Err(format!("a portal group of head {} belongs to another one", head.id));
            }
        }
        Ok(())
    }
}
