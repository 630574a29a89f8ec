//! How an owner comes to hold a shared drive.
//!
//! What always holds: a key that is preempted was just read, and is of no later term; the drive counts as held only after its own report
//! has said so.

use env::{DriveHandle, IoError, Reservation, ReservationAsk, ReservationHolder};
use task::Io;

use super::ClaimKey;

/// Somebody else may change something between a report and what follows from it. Each time is one more question.
const TRIES: u32 = 32;

/// Why an owner does not hold a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClaimError {
    /// An owner of a later term has it, or is about to.
    Lost,
    /// It is reserved with a key that is not of this array.
    Stranger { key: u64 },
    /// The drive has failed, or has no reservations.
    Drive(IoError),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Held,
    Ask(ReservationAsk),
    No(ClaimError),
}

/// What is to be done next to hold a drive whose report says this. The first row that matches counts.
///
/// | the report | then |
/// |---|---|
/// | has a key of this array and of a later term | lost |
/// | says that a key of something else holds it | a stranger's |
/// | lacks the own key | register |
/// | has another key of this array, of an earlier term | preempt that: it loses its registration, and the reservation if it holds it |
/// | names no holder | reserve |
/// | names the own key, *Write Exclusive* | held |
/// | names the own key, with another type | a stranger has changed it: as above |
fn plan(own: ClaimKey, found: &Reservation) -> Step {
    let key = own.number();
    let others = || found.keys.iter().copied().filter(|&other| other != key);
    if others().any(|other| own.is_later(other) == Some(true)) {
        return Step::No(ClaimError::Lost);
    }
    let holder = found.holder.map(|holder| holder.key);
    if let Some(stranger) = holder.filter(|&holder| own.is_later(holder).is_none()) {
        return Step::No(ClaimError::Stranger { key: stranger });
    }
    if !found.keys.contains(&key) {
        return Step::Ask(ReservationAsk::Register { key });
    }
    let earlier = || others().find(|&other| own.is_later(other).is_some());
    // who holds it comes first: from then on nobody else writes
    if let Some(other) = holder.filter(|&holder| holder != key).or_else(earlier) {
        return Step::Ask(ReservationAsk::Preempt { key, other });
    }
    match found.holder {
        None => Step::Ask(ReservationAsk::Reserve { key }),
        Some(ReservationHolder { is_write_exclusive: true, .. }) => Step::Held,
        Some(ReservationHolder { key, .. }) => Step::No(ClaimError::Stranger { key }),
    }
}

/// Makes this owner hold the drive. Nobody else's write takes effect on it after that.
pub(crate) async fn claim(io: &Io, drive: DriveHandle, own: ClaimKey) -> Result<(), ClaimError> {
    for _ in 0..TRIES {
        let found = io.drive_reservation(drive).await.map_err(ClaimError::Drive)?;
        match plan(own, &found) {
            Step::Held => return Ok(()),
            Step::No(error) => return Err(error),
            Step::Ask(ask) => match io.drive_reserve(drive, ask).await {
                // it is not any more as it was reported
                Ok(()) | Err(IoError::Reserved) => {}
                Err(error) => return Err(ClaimError::Drive(error)),
            },
        }
    }
    Err(ClaimError::Drive(IoError::TimedOut))
}

#[cfg(test)]
mod tests {
    use base::{ArrayId, HeadId};
    use pair::{LinkKey, Start, Term};

    use super::*;
    use crate::wire::Identity;

    fn key(me: u128, term: u64) -> ClaimKey {
        let (me, other) = (HeadId(me), HeadId(3 - me));
        let (array, key, start) = (ArrayId(7), LinkKey([0; 32]), Start(1));
        ClaimKey::new(&Identity { array, me, other, key, start }, Term(term))
    }

    fn report(keys: &[u64], holder: Option<u64>) -> Reservation {
        let holder = holder.map(|key| ReservationHolder { key, is_write_exclusive: true });
        Reservation { keys: keys.to_vec(), holder }
    }

    #[test]
    fn each_report_has_one_answer() {
        let own = key(1, 5);
        let (mine, older, mine_older, newer) =
            (own.number(), key(2, 4).number(), key(1, 3).number(), key(2, 6).number());
        let stranger = 0x5555;
        let preempt = |other| Step::Ask(ReservationAsk::Preempt { key: mine, other });
        let rows = [
            (report(&[], None), Step::Ask(ReservationAsk::Register { key: mine })),
            (report(&[older], Some(older)), Step::Ask(ReservationAsk::Register { key: mine })),
            (report(&[mine], None), Step::Ask(ReservationAsk::Reserve { key: mine })),
            (report(&[older, mine], Some(older)), preempt(older)),
            (report(&[mine_older, mine], Some(mine_older)), preempt(mine_older)),
            (report(&[older, mine_older, mine], Some(mine_older)), preempt(mine_older)),
            (report(&[older, mine], None), preempt(older)),
            (report(&[older, mine], Some(mine)), preempt(older)),
            (report(&[mine], Some(mine)), Step::Held),
            (report(&[stranger, mine], Some(mine)), Step::Held),
            (report(&[newer], None), Step::No(ClaimError::Lost)),
            (report(&[newer, mine], Some(mine)), Step::No(ClaimError::Lost)),
            (report(&[stranger], Some(stranger)), Step::No(ClaimError::Stranger { key: stranger })),
        ];
        for (found, expected) in rows {
            assert_eq!(plan(own, &found), expected, "{found:?}");
        }
        let holder = Some(ReservationHolder { key: mine, is_write_exclusive: false });
        let other_type = Reservation { keys: vec![mine], holder };
        assert_eq!(plan(own, &other_type), Step::No(ClaimError::Stranger { key: mine }));
    }
}
