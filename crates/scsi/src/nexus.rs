//! What a logical unit remembers of one initiator: pending unit attentions and mode parameters.

/// A condition that an initiator is told of once, before its next command (SAM-5 §5.14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum UnitAttention {
    /// 29h/00h: the nexus is new, or everything about it was reset.
    PowerOnOrReset,
    /// 29h/07h: an earlier session of this initiator was lost.
    NexusLoss,
    /// 29h/03h: a LOGICAL UNIT RESET or target reset by another initiator.
    BusDeviceReset,
    /// 2Ah/01h: somebody else changed the mode parameters.
    ModeParametersChanged,
    /// 2Ah/06h: asymmetric access state changed.
    AluaStateChanged,
    /// 2Ah/09h: the volume was resized.
    CapacityChanged,
    /// 3Fh/0Eh: this initiator's set of LUNs changed.
    ReportedLunsChanged,
    /// 38h/07h: a thin pool crossed a threshold.
    ThinProvisioningThreshold,
    /// 2Fh/00h: another initiator's CLEAR TASK SET or reset removed commands of this one.
    CommandsCleared,
}

/// One initiator's session to one logical unit (an I_T_L nexus); owned by the caller, one per session and LUN.
#[derive(Clone, Debug)]
pub struct Nexus {
    /// The target port through which the session came.
    pub relative_port: u16,
    /// The logical unit is mapped read-only to this initiator.
    pub read_only: bool,
}

impl Nexus {
    /// A fresh nexus: [`UnitAttention::PowerOnOrReset`] is pending.
    pub fn new(relative_port: u16, read_only: bool) -> Nexus {
        let _ = (relative_port, read_only);
        todo!()
    }

    /// Queues a condition; one that is pending already is not queued again.
    pub fn raise(&mut self, attention: UnitAttention) {
        let _ = attention;
        todo!()
    }

    /// Back to defaults, as after a LOGICAL UNIT RESET, with that condition pending.
    pub fn reset(&mut self, attention: UnitAttention) {
        let _ = attention;
        todo!()
    }
}
