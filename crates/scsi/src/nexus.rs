//! The state of a logical unit for one initiator: pending unit attentions and mode parameters.
//!
//! Mode parameters are kept per I_T nexus (SPC-4 §5.12 allows it). So a change by one initiator does not affect
//! another, and shards need not agree on mode parameters.

use std::sync::Arc;

use reservation::{AccessStates, NexusName, Notice, Registrant, Reservations, Standing};
use wire::scsi::mode::Control;
use wire::scsi::{SenseCode, SenseFormat};

use crate::commands::copy::Record;
use crate::table::ReservationClass;

/// A condition that an initiator is told of once, before its next command (SAM-5 §5.14). In the order in
/// which several are told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitAttention {
    /// 29h/00h: the nexus is new, or everything about it was reset.
    PowerOnOrReset,
    /// 29h/03h: a LOGICAL UNIT RESET or target reset by another initiator.
    BusDeviceReset,
    /// 29h/07h: an earlier session of this initiator was lost.
    NexusLoss,
    /// 2Ah/01h: somebody else changed the mode parameters.
    ModeParametersChanged,
    /// 2Ah/03h: a CLEAR took this nexus's registration.
    ReservationsPreempted,
    /// 2Ah/04h: a reservation that let this nexus in has ended.
    ReservationsReleased,
    /// 2Ah/05h: a PREEMPT took this nexus's registration.
    RegistrationsPreempted,
    /// 2Ah/06h: asymmetric access state changed.
    AluaStateChanged,
    /// 2Ah/09h: the volume was resized.
    CapacityChanged,
    /// 2Fh/00h: another initiator's CLEAR TASK SET or reset removed commands of this one.
    CommandsCleared,
    /// 38h/07h: a thin pool crossed a threshold.
    ThinProvisioningThreshold,
    /// 3Fh/03h: behind this LUN there is another volume than there was.
    InquiryDataChanged,
    /// 3Fh/0Eh: this initiator's set of LUNs changed.
    ReportedLunsChanged,
}

impl UnitAttention {
    pub const ALL: [UnitAttention; 13] = [
        UnitAttention::PowerOnOrReset,
        UnitAttention::BusDeviceReset,
        UnitAttention::NexusLoss,
        UnitAttention::ModeParametersChanged,
        UnitAttention::ReservationsPreempted,
        UnitAttention::ReservationsReleased,
        UnitAttention::RegistrationsPreempted,
        UnitAttention::AluaStateChanged,
        UnitAttention::CapacityChanged,
        UnitAttention::CommandsCleared,
        UnitAttention::ThinProvisioningThreshold,
        UnitAttention::InquiryDataChanged,
        UnitAttention::ReportedLunsChanged,
    ];

    pub fn code(self) -> SenseCode {
        match self {
            UnitAttention::PowerOnOrReset => SenseCode::PowerOnOrReset,
            UnitAttention::BusDeviceReset => SenseCode::BusDeviceReset,
            UnitAttention::NexusLoss => SenseCode::NexusLoss,
            UnitAttention::ModeParametersChanged => SenseCode::ModeParametersChanged,
            UnitAttention::ReservationsPreempted => SenseCode::ReservationsPreempted,
            UnitAttention::ReservationsReleased => SenseCode::ReservationsReleased,
            UnitAttention::RegistrationsPreempted => SenseCode::RegistrationsPreempted,
            UnitAttention::AluaStateChanged => SenseCode::AluaStateChanged,
            UnitAttention::CapacityChanged => SenseCode::CapacityChanged,
            UnitAttention::CommandsCleared => SenseCode::CommandsCleared,
            UnitAttention::ThinProvisioningThreshold => SenseCode::ThinProvisioningThreshold,
            UnitAttention::InquiryDataChanged => SenseCode::InquiryDataChanged,
            UnitAttention::ReportedLunsChanged => SenseCode::ReportedLunsChanged,
        }
    }

    fn mask(self) -> u16 {
        1 << self as u16
    }
}

impl From<Notice> for UnitAttention {
    fn from(notice: Notice) -> UnitAttention {
        match notice {
            Notice::ReservationsPreempted => UnitAttention::ReservationsPreempted,
            Notice::ReservationsReleased => UnitAttention::ReservationsReleased,
            Notice::RegistrationsPreempted => UnitAttention::RegistrationsPreempted,
        }
    }
}

/// One initiator's session to one logical unit (an I_T_L nexus); owned by the caller, one per session and LUN.
#[derive(Clone, Debug)]
pub struct Nexus {
    name: Registrant,
    /// Relative identifier of the target port.
    port: u16,
    /// The logical unit is mapped read-only to this initiator.
    pub read_only: bool,
    /// Pending unit attentions, one bit each: bounded by construction.
    pending: u16,
    /// The unit's reservations, and how this nexus stands to them.
    reservations: Arc<Reservations>,
    standing: Standing,
    /// How the target's port groups reach the unit.
    access: Arc<AccessStates>,
    /// Copies whose results may be asked for, oldest first; bounded by their limit.
    pub(crate) copies: Vec<Record>,
    /// What it has set of the control mode page.
    pub(crate) control: Control,
}

impl Nexus {
    /// A fresh nexus: [`UnitAttention::PowerOnOrReset`] is pending.
    pub fn new(name: NexusName, read_only: bool) -> Nexus {
        Nexus {
            port: name.port,
            name: Registrant::Nexus(name),
            read_only,
            reservations: Arc::default(),
            standing: Standing::Stranger,
            access: Arc::default(),
            copies: Vec::new(),
            pending: UnitAttention::PowerOnOrReset.mask(),
            control: Control::DEFAULT,
        }
    }

    /// Who this is, to reservations.
    pub fn name(&self) -> &Registrant {
        &self.name
    }

    /// Relative identifier of the target port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Takes over the unit's reservations as they are from now on.
    pub fn adopt(&mut self, reservations: Arc<Reservations>) {
        self.standing = reservations.standing(&self.name);
        self.reservations = reservations;
    }

    /// Takes over the access states as they are from now on.
    pub fn adopt_access(&mut self, access: Arc<AccessStates>) {
        self.access = access;
    }

    pub fn access(&self) -> &AccessStates {
        &self.access
    }

    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// Whether a command of this class conflicts with a reservation.
    pub(crate) fn conflicts(&self, class: ReservationClass) -> bool {
        self.reservations.conflicts(class.into(), &self.name, self.standing)
    }

    /// Whether this nexus may read, and write, as far as reservations go.
    pub(crate) fn may_read(&self) -> bool {
        !self.conflicts(ReservationClass::Read)
    }

    pub(crate) fn may_write(&self) -> bool {
        !self.conflicts(ReservationClass::Write)
    }

    /// Queues a condition; one that is pending already is not queued again.
    pub fn raise(&mut self, attention: UnitAttention) {
        self.pending |= attention.mask();
    }

    /// Forgets a condition that the initiator has learnt of elsewhere: REPORT LUNS to one logical unit clears
    /// [`UnitAttention::ReportedLunsChanged`] of all of the session's (SAM-5 §5.14.6).
    pub fn clear(&mut self, attention: UnitAttention) {
        self.pending &= !attention.mask();
    }

    /// Whether any condition is pending.
    pub fn has_attention(&self) -> bool {
        self.pending != 0
    }

    /// Back to defaults, as after a LOGICAL UNIT RESET, with that condition pending.
    pub fn reset(&mut self, attention: UnitAttention) {
        self.pending = attention.mask();
        self.control = Control::DEFAULT;
    }

    /// Whether commands that another nexus aborts end with TASK ABORTED (TAS). Otherwise they end without an answer, and
    /// a unit attention tells of it (SAM-5 §5.6.3).
    pub fn is_told_of_aborts(&self) -> bool {
        self.control.task_aborted_status
    }

    /// The next condition to tell, which is then no longer pending.
    pub(crate) fn take_attention(&mut self) -> Option<UnitAttention> {
        if self.pending == 0 {
            return None;
        }
        let next = UnitAttention::ALL[self.pending.trailing_zeros() as usize];
        self.clear(next);
        Some(next)
    }

    pub(crate) fn sense_format(&self) -> SenseFormat {
        if self.control.descriptor_sense { SenseFormat::Descriptor } else { SenseFormat::Fixed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(port: u16) -> NexusName {
        NexusName { initiator: "iqn.2026-01.example:a,i,0x000000000001".into(), port }
    }

    #[test]
    fn attentions_are_told_once_and_in_order() {
        let mut nexus = Nexus::new(name(1), false);
        nexus.raise(UnitAttention::ReportedLunsChanged);
        nexus.raise(UnitAttention::CapacityChanged);
        nexus.raise(UnitAttention::CapacityChanged);
        let told: Vec<_> = std::iter::from_fn(|| nexus.take_attention()).collect();
        let expected = [
            UnitAttention::PowerOnOrReset,
            UnitAttention::CapacityChanged,
            UnitAttention::ReportedLunsChanged,
        ];
        assert_eq!(told, expected);
        for attention in UnitAttention::ALL {
            nexus.raise(attention);
            assert_eq!(nexus.take_attention(), Some(attention));
        }
    }

    #[test]
    fn a_reset_restores_defaults() {
        let mut nexus = Nexus::new(name(3), true);
        nexus.control =
            Control { descriptor_sense: true, software_write_protect: true, task_aborted_status: false };
        nexus.reset(UnitAttention::BusDeviceReset);
        assert!(nexus.read_only && nexus.control == Control::DEFAULT && nexus.is_told_of_aborts());
        assert_eq!(nexus.take_attention(), Some(UnitAttention::BusDeviceReset));
        assert_eq!(nexus.take_attention(), None);
    }
}
