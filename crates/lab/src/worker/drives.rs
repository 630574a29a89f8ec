//! Drives of this machine, used side by side: direct I/O of whole 4 KiB blocks.

use std::sync::{Condvar, Mutex};

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{DriveHandle, DriveInfo, DriveKind, Env, Operation, Outcome, Token};

use super::stream::Ended;
use super::world::{World, wait_for};
use crate::job::Job;
use crate::place::{Noise, Request};

/// Consecutive bytes on one drive before the next drive's turn, for small requests.
const STRIP_BYTES: u64 = 1 << 20;

type Handles = Vec<(DriveHandle, DriveInfo)>;

/// The drives of a run: whoever comes first opens them, for all threads.
#[derive(Default)]
pub struct Opened {
    drives: Mutex<Option<Result<Handles, String>>>,
    opened: Condvar,
}

impl Opened {
    fn get(&self, env: &mut World, paths: &[String], writable: bool) -> Result<Handles, String> {
        let mut drives = self.drives.lock().expect("nobody panics with it");
        // The first thread opens: drive handles are valid on all of them.
        if env.shard().0 == 0 && drives.is_none() {
            *drives = Some(open(env, paths, writable));
            self.opened.notify_all();
        }
        while drives.is_none() {
            drives = self.opened.wait(drives).expect("nobody panics with it");
        }
        drives.clone().expect("they have been opened")
    }
}

fn open(env: &mut World, paths: &[String], writable: bool) -> Result<Handles, String> {
    let mut drives = Vec::new();
    for path in paths {
        match wait_for(env, Operation::DriveOpen { path: path.clone(), writable })? {
            Outcome::DriveOpened(handle, info) => drives.push((handle, info)),
            Outcome::Failed(error) => return Err(format!("{path}: {error}")),
            outcome => return Err(format!("{path}: {outcome:?}")),
        }
    }
    Ok(drives)
}

pub struct DriveSet {
    drives: Handles,
    strip_bytes: u64,
    index: u32,
    durable: bool,
    buffers: Vec<Option<AlignedBuffer>>,
}

impl DriveSet {
    pub fn open(
        env: &mut World,
        opened: &Opened,
        paths: &[String],
        index: u32,
        job: &Job,
    ) -> Result<DriveSet, String> {
        let (block_bytes, depth) = (job.block_bytes, job.queue_depth);
        if !(block_bytes as usize).is_multiple_of(BLOCK_BYTES) {
            return Err(format!(
                "drives are measured in blocks of 4 KiB or multiples, not {block_bytes} bytes"
            ));
        }
        let drives = opened.get(env, paths, job.read_percent < 100)?;
        let blocks = block_bytes as usize / BLOCK_BYTES;
        let buffers = (0..depth).map(|_| Some(AlignedBuffer::zeroed(blocks))).collect();
        let strip_bytes = STRIP_BYTES.max(u64::from(block_bytes));
        Ok(DriveSet { drives, strip_bytes, index, durable: job.durable, buffers })
    }

    /// As many whole strips as the smallest drive has, times the drives. One drive is used to its end.
    pub fn size_bytes(&self) -> u64 {
        let smallest = self.drives.iter().map(|(_, info)| info.size_bytes).min().unwrap_or(0);
        match self.drives.len() {
            1 => smallest,
            count => smallest / self.strip_bytes * self.strip_bytes * count as u64,
        }
    }

    fn locate(&self, offset_bytes: u64) -> (DriveHandle, u64) {
        let count = self.drives.len() as u64;
        if count == 1 {
            return (self.drives[0].0, offset_bytes);
        }
        let (strip, within) = (offset_bytes / self.strip_bytes, offset_bytes % self.strip_bytes);
        (self.drives[(strip % count) as usize].0, strip / count * self.strip_bytes + within)
    }

    pub fn begin(&mut self, env: &mut World, slot: u32, request: Request, noise: &mut Noise) {
        let token = Token(u64::from(self.index) << 32 | u64::from(slot));
        let (drive, offset_bytes) = self.locate(request.offset_bytes);
        let operation = if request.write {
            let data = vec![noise.next(request.length_bytes)];
            Operation::DriveWrite { drive, offset_bytes, data, durable: self.durable }
        } else {
            let buffer = self.buffers[slot as usize].take().expect("a slot has its buffer");
            Operation::DriveRead { drive, offset_bytes, buffer }
        };
        env.submit(token, operation);
    }

    pub fn on_completion(
        &mut self,
        slot: u32,
        outcome: Outcome,
        ended: &mut Vec<Ended>,
    ) -> Result<(), String> {
        match outcome {
            Outcome::Done => {}
            Outcome::DriveRead(buffer, Ok(())) => self.buffers[slot as usize] = Some(buffer),
            Outcome::DriveRead(_, Err(error)) | Outcome::Failed(error) => {
                return Err(format!("a drive: {error}"));
            }
            outcome => return Err(format!("the environment answered something else: {outcome:?}")),
        }
        ended.push(Ended { slot, met: None });
        Ok(())
    }

    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![("size_bytes".to_owned(), self.size_bytes().to_string())];
        for (_, info) in &self.drives {
            let kind = match info.kind {
                DriveKind::File => "file",
                DriveKind::BlockDevice => "block device",
                DriveKind::Simulated => "simulated",
            };
            let text = format!("{kind} {} {} {} bytes", info.model, info.serial, info.size_bytes);
            facts.push((
                format!("drive.{}", info.path),
                text.split_whitespace().collect::<Vec<_>>().join(" "),
            ));
        }
        facts
    }
}
