//! LUNs as a subject of the workload: requests become SCSI commands, statuses become answers.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

use base::Nanos;
use block::Payload;
use iscsi::initiator::{Completion, Request as Command};
use task::Io;
use wire::iscsi::{Residual, TaskManagementFunction};
use wire::scsi::Lun;
use wire::scsi::cdb::FUA;
use wire::scsi::mode::{Control, PAGE_CONTROL, emit_page};
use wire::scsi::provisioning::{UnmapRange, emit_unmap};

use super::notices::Code;
use super::reserve::Holders;
use super::session::{Ended, HostSession};
use super::tally::Tally;
use crate::counts::counted;
use crate::oracle::{SECTOR_BYTES, SECTORS_PER_BLOCK};
use crate::workload::{Answer, Request, Subject};

/// Pause before a command is sent again that the array could not take yet.
const AGAIN: Nanos = Nanos::from_millis(2);
/// Longer than a unit may say that it is not ready, while the array answers.
const NOT_READY_TIME_MAX: Nanos = Nanos::from_secs(60);
const ABORT_AFTER_NS_MAX: u64 = 1_000_000;
/// Somebody else has aborted the command.
pub const TASK_ABORTED: u8 = 0x40;
/// WRITE SAME (16), unmapping: with a block of zeros, and without a data-out buffer.
const WRITE_SAME: u8 = 0x93;
const UNMAP_BIT: u8 = 0x08;
const UNMAP_NDOB: u8 = 0x09;
const UNMAP: u8 = 0x42;
/// Commands that are answered without reporting unit attentions: INQUIRY, REPORT LUNS, REQUEST SENSE.
const TELL_NOTHING: [u8; 3] = [0x12, 0xA0, 0x03];
/// One of this many reads is sent once more beforehand, with a wrong expected length.
const AMISS: u64 = 30;
/// Sectors that a read expects too many or too few, at most.
const AMISS_MAX: u64 = 9;

counted! {
    /// What hosts have seen of others' resets.
    Seen: "hosts: " {
        SentAgain = "a read that was aborted, sent again",
        WroteAgain = "a write that was aborted, sent again",
        NotTold = "TASK ABORTED turned off",
        Unmapped = "UNMAP of several ranges",
        WroteZeros = "WRITE SAME of a block of zeros",
        Underflow = "more was expected than there was to read",
        Overflow = "less was expected than there was to read",
    }
}

/// See the module's words.
pub struct LunSubject {
    pub way: Way,
    /// LUN by the oracle's volume.
    pub luns: BTreeMap<u32, u16>,
}

/// How a host's commands get to the array.
#[derive(Clone)]
pub struct Way {
    pub io: Io,
    pub session: Rc<HostSession>,
    /// Which host this is, and who has reserved what.
    pub host: u16,
    pub holders: Rc<Holders>,
    /// Whether hosts abort and reset, and how often.
    pub interferes: Option<Rough>,
    /// Takes note of what the host does, where that is compared with the array's figures.
    pub tally: Option<Rc<Tally>>,
}

/// How rough hosts are with each other.
#[derive(Clone, Copy, Debug)]
pub struct Rough {
    /// The number of commands in a thousand that come with a LOGICAL UNIT RESET.
    pub resets_permille: u64,
    /// Reservations of each host in a round.
    pub reservations: u32,
    /// What goes wrong, if this is not 0: now and then a shard of the array gets no turn for so long at most.
    pub held_up_ns_max: u64,
}

impl Default for Rough {
    fn default() -> Rough {
        Rough { resets_permille: 8, reservations: 3, held_up_ns_max: 0 }
    }
}

impl Way {
    /// Sends a command, which writes to this volume if it is carried out, until `answer` finds an answer to the workload.
    pub async fn send(
        self,
        command: Command,
        written: Option<u32>,
        answer: impl Fn(&Completion) -> Option<Answer>,
    ) -> Answer {
        let mut not_ready_since = None;
        loop {
            let mut abort_at = None;
            if self.session.is_not_told.get() && self.io.random_u64().is_multiple_of(20) {
                self.turn_task_aborted_off(command.lun).await;
            }
            if let Some(rough) = self.interferes {
                trouble(&self.io, &self.session, command.lun, rough);
                abort_at = abort_after(&self.io);
            }
            let sent = self.io.now();
            self.tally.iter().for_each(|tally| tally.sent(self.host, &command));
            match self.session.command(command.clone(), abort_at).await {
                Ended::Completed(completion) => {
                    let well = completion.status == 0;
                    self.tally.iter().for_each(|tally| tally.ended(self.host, &command, well));
                    let forbidden = |volume: u32| self.holders.forbid(volume, self.host, sent);
                    if completion.status == 0 && written.is_some_and(forbidden) {
                        return Answer::Failed("it was carried out under another's reservation".to_owned());
                    }
                    if completion.status == 0
                        && let Some(code) = self.missed(&command, sent)
                    {
                        return Answer::Failed(format!("it was carried out, and nobody told of {code:x?}"));
                    }
                    if completion.status == TASK_ABORTED && self.interferes.is_none() {
                        return Answer::Failed(
                            "aborted, though nobody resets but who may only read".to_owned(),
                        );
                    }
                    // what writes may have been carried out: it is over, and whoever sends it again says so
                    let again = written.is_none() && self.io.random_u64().is_multiple_of(2);
                    if completion.status == TASK_ABORTED && !again {
                        return Answer::Aborted;
                    }
                    if let Some(answer) = answer(&completion) {
                        return answer;
                    }
                    if completion.status == TASK_ABORTED {
                        Seen::SentAgain.seen();
                    }
                    not_ready_since = is_not_ready(&completion).then(|| not_ready_since.unwrap_or(sent));
                    if not_ready_since.is_some_and(|since| sent - since > NOT_READY_TIME_MAX) {
                        return Answer::Failed(format!("not ready for {NOT_READY_TIME_MAX:?}"));
                    }
                }
                Ended::Aborted => return Answer::Aborted,
                Ended::Lost => return Answer::Lost,
            }
            self.io.sleep(AGAIN).await;
        }
    }

    /// What this host should have been told before a command of its was carried out.
    fn missed(&self, command: &Command, sent: Nanos) -> Option<Code> {
        if TELL_NOTHING.contains(&command.cdb[0]) {
            return None;
        }
        self.holders.notices.missed(self.host, &self.session, command.lun, sent)
    }

    /// MODE SELECT (6): TAS 0 until the next reset. It may be refused.
    async fn turn_task_aborted_off(&self, lun: u64) {
        let page =
            emit_page(PAGE_CONTROL, &Control { task_aborted_status: false, ..Control::DEFAULT }.body());
        let list = [&[0; 4][..], &page].concat();
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[4]) = (0x15, 0x10, list.len() as u8);
        let mut select = Command::new(lun, cdb);
        select.data_out = Payload::from(list);
        if matches!(self.session.command(select, None).await, Ended::Completed(done) if done.status == 0) {
            Seen::NotTold.seen();
        }
    }
}

/// A CDB of 16 bytes with a 64-bit LBA and a 32-bit length, as READ (16).
fn cdb_16(opcode: u8, flags: u8, first: u64, sectors: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (opcode, flags);
    cdb[2..10].copy_from_slice(&first.to_be_bytes());
    cdb[10..14].copy_from_slice(&sectors.to_be_bytes());
    cdb
}

fn compare_and_write(first: u64, sectors: u8, flags: u8) -> [u8; 16] {
    let mut cdb = cdb_16(0x89, flags, first, 0);
    cdb[13] = sectors;
    cdb
}

impl LunSubject {
    fn command(&self, request: &Request) -> Command {
        let sectors = |data: &[u8]| (data.len() / SECTOR_BYTES) as u32;
        let count = |range: &Range<u64>| (range.end - range.start) as u32;
        let flags = |durable: &bool| if *durable { FUA } else { 0 };
        let (volume, cdb, data_out, expected_in) = match request {
            Request::Read { volume, sectors } => {
                (volume, cdb_16(0x88, 0, sectors.start, count(sectors)), Vec::new(), count(sectors))
            }
            Request::Write { volume, first, data, durable } => {
                (volume, cdb_16(0x8A, flags(durable), *first, sectors(data)), data.clone(), 0)
            }
            Request::Zero { volume, sectors } => {
                let (cdb, data_out) = self.zero(sectors);
                (volume, cdb, data_out, 0)
            }
            Request::CompareAndWrite { volume, first, expected, data, durable } => {
                let cdb = compare_and_write(*first, sectors(data) as u8, flags(durable));
                (volume, cdb, [&expected[..], data].concat(), 0)
            }
            // SYNCHRONIZE CACHE (16) of everything
            Request::Flush { volume } => (volume, cdb_16(0x91, 0, 0, 0), Vec::new(), 0),
        };
        let lun = Lun::new(self.luns[volume]).expect("a small number").emit();
        let mut command = Command::new(lun, cdb);
        command.data_out = Payload::from(data_out);
        command.expected_in = expected_in * SECTOR_BYTES as u32;
        command
    }

    /// One of the commands that make a range zeros: CDB and data.
    fn zero(&self, sectors: &Range<u64>) -> ([u8; 16], Vec<u8>) {
        let count = (sectors.end - sectors.start) as u32;
        match self.way.io.random_u64() % 3 {
            0 => (cdb_16(WRITE_SAME, UNMAP_NDOB, sectors.start, count), Vec::new()),
            1 => {
                Seen::WroteZeros.seen();
                (cdb_16(WRITE_SAME, UNMAP_BIT, sectors.start, count), vec![0; SECTOR_BYTES])
            }
            _ => {
                let list = emit_unmap(&self.ranges(sectors));
                let mut cdb = [0; 16];
                cdb[0] = UNMAP;
                cdb[7..9].copy_from_slice(&(list.len() as u16).to_be_bytes());
                (cdb, list)
            }
        }
    }

    /// A range as several, which begin anywhere but within a block: last first, or first first.
    fn ranges(&self, sectors: &Range<u64>) -> Vec<UnmapRange> {
        let mut ranges = Vec::new();
        let mut at = sectors.start;
        while at < sectors.end {
            let more = SECTORS_PER_BLOCK * (1 + self.way.io.random_u64() % 8);
            let end = ((at + more) / SECTORS_PER_BLOCK * SECTORS_PER_BLOCK).min(sectors.end);
            ranges.push(UnmapRange { lba: at, blocks: (end - at) as u32 });
            at = end;
        }
        if ranges.len() > 1 {
            Seen::Unmapped.seen();
        }
        if self.way.io.random_u64().is_multiple_of(2) {
            ranges.reverse();
        }
        ranges.truncate(base::limits::UNMAP_DESCRIPTORS_MAX);
        ranges
    }
}

/// Has reads expect more or less than there is, and sees that they are told so.
async fn read_amiss(way: Way, command: Command) -> Answer {
    let drawn = way.io.random_u64();
    let amiss = (1 + (drawn >> 8) % AMISS_MAX) as u32 * SECTOR_BYTES as u32;
    let there = command.expected_in;
    let (expected_in, seen) = match drawn % 2 {
        0 if there > amiss => (there - amiss, Seen::Overflow),
        _ => (there + amiss, Seen::Underflow),
    };
    let right = Residual::new(u64::from(expected_in), u64::from(there));
    way.send(Command { expected_in, ..command }, None, move |completion| {
        let data = completion.data_in.len();
        match completion.status {
            0 if completion.residual == right && data == expected_in.min(there) as usize => {
                seen.seen();
                Some(Answer::Done)
            }
            0 => {
                let residual = completion.residual;
                Some(Answer::Failed(format!("{data} bytes with {residual:?}, which is not {right:?}")))
            }
            _ => Some(Answer::Aborted),
        }
    })
    .await
}

/// Sense key, code and qualifier.
pub fn sense(completion: &Completion) -> (u8, u8, u8) {
    let byte = |index: usize| completion.sense.get(index).copied().unwrap_or(0);
    (byte(2) & 0xF, byte(12), byte(13))
}

fn is_not_ready(completion: &Completion) -> bool {
    completion.status == 0x02 && sense(completion).0 == 0x2
}

/// What a status means to the workload; `None`: try again.
fn answer(request: &Request, completion: &Completion) -> Option<Answer> {
    let (key, code, qualifier) = sense(completion);
    match (completion.status, key) {
        (0x00, _) if completion.residual != Residual::None => {
            Some(Answer::Failed(format!("{:?} where nothing is left over", completion.residual)))
        }
        (0x00, _) => Some(match request {
            Request::Read { .. } => Answer::Data(completion.data_in.to_vec()),
            _ => Answer::Done,
        }),
        // it may have been carried out, and would not compare equal again
        (TASK_ABORTED, _) if matches!(request, Request::CompareAndWrite { .. }) => Some(Answer::Aborted),
        // busy, reservation conflict, task set full, task aborted; unit attention, not ready
        (0x08 | 0x18 | 0x28 | TASK_ABORTED, _) | (0x02, 0x6 | 0x2) => None,
        (0x02, 0xE) => Some(Answer::Miscompare),
        (0x02, 0x7) if (code, qualifier) == (0x27, 0x07) => Some(Answer::OutOfSpace),
        (0x02, 0xB) => Some(Answer::Lost),
        (status, _) => {
            Some(Answer::Failed(format!("status {status:#04x}, sense {key:#x}/{code:#04x}/{qualifier:#04x}")))
        }
    }
}

fn volume(request: &Request) -> u32 {
    match request {
        Request::Read { volume, .. }
        | Request::Write { volume, .. }
        | Request::Zero { volume, .. }
        | Request::CompareAndWrite { volume, .. }
        | Request::Flush { volume } => *volume,
    }
}

/// Now and then a host ends what is under way on a LUN: its own commands, or everybody's.
fn trouble(io: &Io, session: &HostSession, lun: u64, rough: Rough) {
    let drawn = io.random_u64() % 1000;
    if drawn < rough.resets_permille {
        session.manage(TaskManagementFunction::LogicalUnitReset, lun);
    } else if drawn >= 997 {
        session.manage(TaskManagementFunction::AbortTaskSet, lun);
    }
}

/// Some commands are aborted, after this time.
fn abort_after(io: &Io) -> Option<Nanos> {
    (io.random_u64() % 100 < 3).then(|| Nanos(io.random_u64() % ABORT_AFTER_NS_MAX))
}

impl Subject for LunSubject {
    fn execute(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer>>> {
        let (command, way) = (self.command(&request), self.way.clone());
        let written = (!matches!(request, Request::Read { .. })).then(|| volume(&request));
        Box::pin(async move {
            if written.is_none()
                && way.io.random_u64().is_multiple_of(AMISS)
                && let failed @ Answer::Failed(_) = read_amiss(way.clone(), command.clone()).await
            {
                return failed;
            }
            way.send(command, written, move |completion| answer(&request, completion)).await
        })
    }

    fn sends_again(&self) -> bool {
        let again = self.way.io.random_u64().is_multiple_of(2);
        if again {
            Seen::WroteAgain.seen();
        }
        again
    }
}
