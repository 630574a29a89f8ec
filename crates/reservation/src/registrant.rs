//! Who registers and reserves: a host, named as its transport identifies it.

use std::sync::Arc;

/// A host as reservations know it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Registrant {
    /// SCSI: one I_T nexus (SPC-4 §5.13.1).
    Nexus(NexusName),
    /// NVMe: the host with this Host Identifier, through any of its controllers (NVM Express Base 2.0 §8.19).
    NvmeHost([u8; 16]),
}

/// An I_T nexus: an initiator port and a target port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NexusName {
    /// Name of the initiator port, as its transport gives it: for iSCSI `<initiator name>,i,0x<ISID>`, in lower case.
    pub initiator: Arc<str>,
    /// Relative target port identifier.
    pub port: u16,
}

impl Registrant {
    pub fn nexus(initiator: impl Into<Arc<str>>, port: u16) -> Registrant {
        Registrant::Nexus(NexusName { initiator: initiator.into(), port })
    }

    pub fn as_nexus(&self) -> Option<&NexusName> {
        match self {
            Registrant::Nexus(name) => Some(name),
            Registrant::NvmeHost(_) => None,
        }
    }

    /// The same initiator at each of these target ports, or as it is if none are given. An NVMe host is one registrant
    /// at all ports.
    pub(crate) fn at_ports(&self, ports: Option<&[u16]>) -> Vec<Registrant> {
        match (self, ports) {
            (Registrant::Nexus(name), Some(ports)) => {
                ports.iter().map(|&port| Registrant::nexus(name.initiator.clone(), port)).collect()
            }
            _ => vec![self.clone()],
        }
    }
}
