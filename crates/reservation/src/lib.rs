//! Reservations and access states of one volume, as values that do not depend on a transport. Reservations say who is
//! registered, who holds the volume, and what others may not do meanwhile (SPC-4 §5.13; RESERVE and RELEASE: SPC-2
//! §5.5). [`AccessStates`] say in which state each port group reaches the volume.
//!
//! A pure value, the same for every session, shard and transport. Hosts are named by [`Registrant`]s: a SCSI nexus, or an
//! NVMe host. So hosts of both kinds can register for the same volume. One owner applies requests one at a time
//! ([`Reservations::apply`]) and passes the new value to every session. So a command is checked with the state of its
//! session alone. Refusals and notices are values; each transport translates them into its own codes.
//!
//! What always holds: a holder is registered; an all-registrants reservation has no single holder and ends
//! with the last registration; nobody is registered twice; keys are not zero; RESERVE and registrations never
//! exist at the same time.

mod access;
mod apply;
mod preempt;
mod refusal;
mod registrant;
mod request;
#[cfg(test)]
mod tests;

pub use access::{AccessState, AccessStates, Cause, Transition};
pub use apply::{Applied, Notice};
pub use refusal::Refusal;
pub use registrant::{NexusName, Registrant};
pub use request::{Names, ReservationRequest, Specified};

/// The type of a persistent reservation. SCSI and NVMe have the same six (SPC-4 table 199; NVM Express Base 2.0 figure 431).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ReservationType {
    WriteExclusive,
    ExclusiveAccess,
    WriteExclusiveRegistrantsOnly,
    ExclusiveAccessRegistrantsOnly,
    WriteExclusiveAllRegistrants,
    ExclusiveAccessAllRegistrants,
}

impl ReservationType {
    pub const ALL: [ReservationType; 6] = [
        ReservationType::WriteExclusive,
        ReservationType::ExclusiveAccess,
        ReservationType::WriteExclusiveRegistrantsOnly,
        ReservationType::ExclusiveAccessRegistrantsOnly,
        ReservationType::WriteExclusiveAllRegistrants,
        ReservationType::ExclusiveAccessAllRegistrants,
    ];

    /// The number that the catalog stores. It is the code of SPC-4 table 199.
    pub const fn number(self) -> u8 {
        match self {
            ReservationType::WriteExclusive => 1,
            ReservationType::ExclusiveAccess => 3,
            ReservationType::WriteExclusiveRegistrantsOnly => 5,
            ReservationType::ExclusiveAccessRegistrantsOnly => 6,
            ReservationType::WriteExclusiveAllRegistrants => 7,
            ReservationType::ExclusiveAccessAllRegistrants => 8,
        }
    }

    /// The inverse of [`ReservationType::number`].
    pub fn from_number(number: u8) -> Option<ReservationType> {
        ReservationType::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// A registered host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    pub registrant: Registrant,
    /// Never 0.
    pub key: u64,
}

/// A persistent reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    pub kind: ReservationType,
    /// Nobody in particular, where every registered nexus holds it.
    pub holder: Option<Registrant>,
}

/// See the module's words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reservations {
    /// PRGENERATION: counts changes of registrations since the last restart.
    generation: u32,
    /// APTPL: registrations and reservation survive a restart.
    persist: bool,
    /// In order of registration.
    registrations: Vec<Registration>,
    held: Option<Held>,
    /// Who has reserved the unit by RESERVE (6) or (10).
    reserved: Option<Registrant>,
}

/// How a nexus stands to the reservations of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    Holder,
    Registered,
    Stranger,
}

/// The effect of a command on a volume, as far as reservations are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Never refused because of a reservation.
    Exempt,
    /// Refused by RESERVE alone, not by a persistent reservation.
    Tolerated,
    Read,
    Write,
}

/// Who may do what in spite of a reservation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rule {
    kind: ReservationType,
    /// Reading is the members' alone, too.
    excludes_reads: bool,
    /// Every registered nexus is a member; otherwise the holder alone.
    registrants: bool,
    /// Every registered nexus holds it.
    all_hold: bool,
}

/// SPC-4 table 199, from which the columns of tables 66 and SBC-3 table 13 follow.
const RULES: [Rule; 6] = {
    use ReservationType::*;
    const fn rule(kind: ReservationType, excludes_reads: bool, registrants: bool, all_hold: bool) -> Rule {
        Rule { kind, excludes_reads, registrants, all_hold }
    }
    [
        rule(WriteExclusive, false, false, false),
        rule(ExclusiveAccess, true, false, false),
        rule(WriteExclusiveRegistrantsOnly, false, true, false),
        rule(ExclusiveAccessRegistrantsOnly, true, true, false),
        rule(WriteExclusiveAllRegistrants, false, true, true),
        rule(ExclusiveAccessAllRegistrants, true, true, true),
    ]
};

fn rule(kind: ReservationType) -> Rule {
    *RULES.iter().find(|rule| rule.kind == kind).expect("every type has a rule")
}

pub fn all_hold(kind: ReservationType) -> bool {
    rule(kind).all_hold
}

impl Reservations {
    /// The reservations after a restart (APTPL).
    ///
    /// `None` where it breaks what always holds.
    pub fn kept(registrations: Vec<Registration>, held: Option<Held>) -> Option<Reservations> {
        let kept = Reservations { persist: true, registrations, held, ..Reservations::default() };
        kept.is_sound().then_some(kept)
    }

    /// The part that must survive a restart: registrations and reservation; `None` if there is none.
    pub fn to_keep(&self) -> Option<(&[Registration], Option<&Held>)> {
        (self.persist && !self.registrations.is_empty()).then_some((&self.registrations, self.held.as_ref()))
    }

    fn is_sound(&self) -> bool {
        let holder_is_registered = self.held.as_ref().is_none_or(|held| match &held.holder {
            Some(holder) => !all_hold(held.kind) && self.key_of(holder).is_some(),
            None => all_hold(held.kind) && !self.registrations.is_empty(),
        });
        let unique = |(index, one): (usize, &Registration)| {
            one.key != 0
                && !self.registrations[..index].iter().any(|other| other.registrant == one.registrant)
        };
        let apart = self.reserved.is_none() || self.registrations.is_empty();
        holder_is_registered && apart && self.registrations.iter().enumerate().all(unique)
    }

    /// PRGENERATION.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// APTPL.
    pub fn persists(&self) -> bool {
        self.persist
    }

    pub fn registrations(&self) -> &[Registration] {
        &self.registrations
    }

    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// Who has reserved the unit by RESERVE (6) or (10).
    pub fn reserved_by(&self) -> Option<&Registrant> {
        self.reserved.as_ref()
    }

    pub fn key_of(&self, nexus: &Registrant) -> Option<u64> {
        self.registrations.iter().find(|one| one.registrant == *nexus).map(|one| one.key)
    }

    fn is_holder(&self, nexus: &Registrant) -> bool {
        match &self.held {
            Some(Held { holder: Some(holder), .. }) => holder == nexus,
            Some(Held { holder: None, .. }) => self.key_of(nexus).is_some(),
            None => false,
        }
    }

    /// The key that READ RESERVATION returns: 0 if every registered nexus holds the reservation.
    pub fn held_key(&self) -> Option<(u64, ReservationType)> {
        let held = self.held.as_ref()?;
        let key =
            held.holder.as_ref().map_or(0, |holder| self.key_of(holder).expect("a holder is registered"));
        Some((key, held.kind))
    }

    pub fn standing(&self, nexus: &Registrant) -> Standing {
        if self.is_holder(nexus) {
            Standing::Holder
        } else if self.key_of(nexus).is_some() {
            Standing::Registered
        } else {
            Standing::Stranger
        }
    }

    /// Whether a command that does this conflicts with the reservations, for a nexus of this name and standing.
    pub fn conflicts(&self, what: Use, nexus: &Registrant, standing: Standing) -> bool {
        if let Some(reserved) = &self.reserved {
            return what != Use::Exempt && reserved != nexus;
        }
        let Some(held) = &self.held else { return false };
        let rule = rule(held.kind);
        let is_member = match standing {
            Standing::Holder => true,
            Standing::Registered => rule.registrants,
            Standing::Stranger => false,
        };
        match what {
            Use::Exempt | Use::Tolerated => false,
            Use::Read => rule.excludes_reads && !is_member,
            Use::Write => !is_member,
        }
    }
}
