//! Reasons for which a request is refused. A refused request changes nothing.

/// A peer's fault, or a state of the array. Each transport turns it into its own status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A reservation, or the key that was given, does not allow it.
    Conflict,
    /// The volume is not there any more.
    NoSuchUnit,
    /// It could not be made to survive a restart, as it must.
    NotKept,
    /// The access states of the volume are changing already.
    InTransition,
    /// More registrations than the array can keep.
    NoRoom,
    /// No port group would be left through which the volume is active.
    AccessWouldEnd,
    /// A release that names another type than the reservation has.
    OtherType,
    /// A registration for others, by a nexus that is registered already or that gives no key.
    NotForOthers,
    /// A preemption that names no key, where one is needed.
    NoVictim,
}
