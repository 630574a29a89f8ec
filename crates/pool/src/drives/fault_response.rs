//! What a lane does with a drive that returns errors: it keeps the drive below the error threshold, and otherwise has
//! it taken out, unless the drive may hold the only copy of some data.

use base::Nanos;
use env::IoError;

use crate::decision::Decision;
use crate::drives::departure::Departure;
use crate::drives::evidence::Fault;
use crate::drives::latency::Access;
use crate::lane::Lane;
use crate::space::segments::{Segment, Segments};

impl Lane {
    /// Records how long a read or write of so many bytes of a drive took.
    pub(crate) fn note_latency(&self, drive: u8, access: Access, bytes: usize, began: Nanos) {
        let (now, patience) = (self.io.now(), self.options.get().patience);
        self.health.note_latency(drive, (access, bytes), now.saturating_sub(began), now, &patience);
    }

    /// Reports a drive that does not answer; `true` when its absence is recorded and service can continue.
    pub(crate) async fn report_failed_drive(&self, drive: u8, error: IoError) -> bool {
        self.report_departure(drive, Departure::Failed(error)).await
    }

    /// Reports a drive that has reached an error threshold; `true` when it is recorded that it is out, or it is kept
    /// because others have gone meanwhile, and service can continue.
    pub(crate) async fn report_condemned_drive(&self, drive: u8) -> bool {
        self.report_departure(drive, Departure::TooManyErrors).await
    }

    async fn report_departure(&self, drive: u8, departure: Departure) -> bool {
        let known = !self.membership.borrow().members[usize::from(drive)].state.is_readable();
        known || self.host.drive_failed(drive, departure).await.unwrap_or(false)
    }

    /// Whether a drive stays in service after this fault.
    pub(crate) fn tolerates_fault(&self, drive: u8, fault: Fault) -> bool {
        let enough = self.health.note_fault(drive, fault, self.io.now(), &self.options.get().patience);
        let spare = self.membership.borrow().can_spare_one() && !(enough && self.is_needed(drive, fault));
        if enough && spare {
            self.health.forget_faults(drive);
            match fault {
                Fault::Write => Decision::CondemnedWrites.taken(),
                Fault::Read => Decision::CondemnedReads.taken(),
                Fault::Checksum => Decision::CondemnedChecksums.taken(),
            }
        } else if enough {
            Decision::LastDriveKept.taken();
        }
        !(enough && spare)
    }

    /// Whether some data of this lane may be readable only as long as this drive is there. Data that the drive itself
    /// lacks is no reason to keep it. If it is unknown which column lacks data, it may be another drive's. After a
    /// failed write it is this drive's own, and readers of the drive will find the missing data elsewhere.
    fn is_needed(&self, drive: u8, fault: Fault) -> bool {
        needs(&self.segments.borrow(), drive, fault != Fault::Write)
    }

    /// Recent faults of each drive, by kind.
    pub(crate) fn recent_faults(&self) -> Vec<[u32; 3]> {
        let patience = self.options.get().patience;
        self.health.recent_faults(self.io.now(), patience.window)
    }
}

fn needs(segments: &Segments, drive: u8, unknown_counts: bool) -> bool {
    segments.iter().any(|(_, segment)| segment_needs(segments, segment, drive, unknown_counts))
}

fn segment_needs(segments: &Segments, segment: &Segment, drive: u8, unknown_counts: bool) -> bool {
    let mut columns = segment.columns.columns.iter().flatten();
    let unknown = unknown_counts && segment.lacking.is_unknown();
    segment.live > 0
        && columns.any(|column| column.drive == drive)
        && (unknown || segments.useless_beside(segment, Some(drive)) >= segment.columns.shape().parity())
}

/// Records which drives a segment needs. If there is parity and every column is sound, it needs none; most segments are
/// like this.
pub(crate) fn note_needed(segments: &Segments, segment: &Segment, needed: &mut [bool]) {
    if segment.lacking.is_nothing() && segments.lost_columns(segment) < segment.columns.shape().parity() {
        return;
    }
    for column in segment.columns.columns.iter().flatten() {
        let drive = usize::from(column.drive);
        needed[drive] = needed[drive] || segment_needs(segments, segment, column.drive, true);
    }
}
