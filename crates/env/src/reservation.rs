//! Persistent reservations of a drive, as a head of a pair uses them on drives that both heads see (SPC-4 §5.13; NVMe Base 2.0 §8.19).
//! Registrations and reservations survive a loss of the drive's power.

/// What a drive is asked about its reservation. A key is never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReservationAsk {
    /// → [`crate::Outcome::DriveReservation`]
    Report,
    /// Registers this host with the key, in place of one that it had. A reservation that it holds stays, with the new key. → [`crate::Outcome::Done`]
    Register { key: u64 },
    /// Reserves the drive for writes of this host alone, which has registered this key. [`crate::IoError::Reserved`]: another host holds it,
    /// or the key is not this host's any more. → [`crate::Outcome::Done`]
    Reserve { key: u64 },
    /// Takes the reservation from the host that has registered `other`, removes that registration, and aborts what that host has under way.
    /// [`crate::IoError::Reserved`]: nobody has registered that key any more, or this host not `key`. → [`crate::Outcome::Done`]
    Preempt { key: u64, other: u64 },
    /// Removes this host's registration, and with it the reservation that it holds. → [`crate::Outcome::Done`]
    Unregister { key: u64 },
}

/// Who has registered with a drive, and who holds it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reservation {
    /// The keys of all registrants.
    pub keys: Vec<u64>,
    pub holder: Option<ReservationHolder>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReservationHolder {
    pub key: u64,
    /// Only the holder may write, and everybody may read: *Write Exclusive*.
    pub is_write_exclusive: bool,
}
