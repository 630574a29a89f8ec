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
use wire::iscsi::TaskManagementFunction;
use wire::scsi::Lun;
use wire::scsi::cdb::FUA;
use wire::scsi::mode::{Control, PAGE_CONTROL, emit_page};

use super::reserve::Holders;
use super::session::{Ended, HostSession};
use crate::counts::counted;
use crate::oracle::SECTOR_BYTES;
use crate::workload::{Answer, Request, Subject};

/// Pause before a command is sent again that the array could not take yet.
const AGAIN: Nanos = Nanos::from_millis(2);
/// Longer than a unit may say that it is not ready, while the array answers.
const NOT_READY_TIME_MAX: Nanos = Nanos::from_secs(60);
const ABORT_AFTER_NS_MAX: u64 = 1_000_000;
/// Somebody else has aborted the command.
pub const TASK_ABORTED: u8 = 0x40;
/// WRITE SAME (16) without a data-out buffer, unmapping.
const UNMAP_NDOB: u8 = 0x09;

counted! {
    /// What hosts have seen of others' resets.
    Seen: "hosts: " {
        SentAgain = "TASK ABORTED, sent again",
        LeftAlone = "TASK ABORTED, not sent again",
        NotTold = "TASK ABORTED turned off",
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
    /// Whether hosts abort and reset.
    pub interferes: bool,
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
            if self.interferes {
                trouble(&self.io, &self.session, command.lun);
                abort_at = abort_after(&self.io);
            }
            let sent = self.io.now();
            match self.session.command(command.clone(), abort_at).await {
                Ended::Completed(completion) => {
                    let forbidden = |volume: u32| self.holders.forbid(volume, self.host, sent);
                    if completion.status == 0 && written.is_some_and(forbidden) {
                        return Answer::Failed("it was carried out under another's reservation".to_owned());
                    }
                    if completion.status == TASK_ABORTED && !self.interferes {
                        return Answer::Failed(
                            "aborted, though nobody resets but who may only read".to_owned(),
                        );
                    }
                    // what writes may have been carried out, and a second time would undo what others have written since
                    let again = written.is_none() && self.io.random_u64().is_multiple_of(2);
                    if completion.status == TASK_ABORTED && !again {
                        Seen::LeftAlone.seen();
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
                (volume, cdb_16(0x93, UNMAP_NDOB, sectors.start, count(sectors)), Vec::new(), 0)
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
fn trouble(io: &Io, session: &HostSession, lun: u64) {
    match io.random_u64() % 1000 {
        0..8 => session.manage(TaskManagementFunction::LogicalUnitReset, lun),
        8..11 => session.manage(TaskManagementFunction::AbortTaskSet, lun),
        _ => {}
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
        Box::pin(way.send(command, written, move |completion| answer(&request, completion)))
    }
}
