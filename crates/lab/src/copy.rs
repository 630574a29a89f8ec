//! Copies a file or a drive as backups and migrations do: reads and writes run at the same time.

use std::time::Instant;

use base::{AlignedBuffer, BLOCK_BYTES};
use env::{Completion, DriveHandle, Env, Event, Operation, Outcome, Token, Wait};

use crate::worker::{World, wait_for};

/// How a copy is made.
#[derive(Clone, Debug)]
pub struct Copy {
    pub from: String,
    pub to: String,
    pub block_bytes: usize,
    /// Pieces on their way at once.
    pub depth: usize,
}

fn open(env: &mut World, path: &str, writable: bool) -> Result<(DriveHandle, u64), String> {
    match wait_for(env, Operation::DriveOpen { path: path.to_owned(), writable })? {
        Outcome::DriveOpened(handle, info) => Ok((handle, info.size_bytes)),
        Outcome::Failed(error) => Err(format!("{path}: {error}")),
        outcome => Err(format!("{path}: {outcome:?}")),
    }
}

/// Copies all of one onto the beginning of the other, both as they are, and makes it durable; bytes and seconds.
pub fn copy(env: &mut World, copy: &Copy) -> Result<(u64, f64), String> {
    if copy.block_bytes == 0
        || !copy.block_bytes.is_multiple_of(BLOCK_BYTES)
        || !(1..=1024).contains(&copy.depth)
    {
        return Err("use blocks of 4 KiB or multiples, and a depth of 1 to 1024".to_owned());
    }
    let (source, size) = open(env, &copy.from, false)?;
    let (target, room) = open(env, &copy.to, true)?;
    if room < size {
        return Err(format!(
            "{} has {}, {} needs {}",
            copy.to,
            base::units::size(room),
            copy.from,
            base::units::size(size)
        ));
    }
    let began = Instant::now();
    // Where each piece begins; a slot reads, then writes, then reads the next.
    let mut offsets = vec![0u64; copy.depth];
    let (mut next, mut busy) = (0u64, 0usize);
    let mut idle: Vec<usize> = (0..copy.depth).collect();
    let mut events = Vec::new();
    while next < size || busy > 0 {
        while let Some(slot) = idle.pop_if(|_| next < size) {
            let length = (copy.block_bytes as u64).min(size - next) as usize;
            offsets[slot] = next;
            let buffer = AlignedBuffer::zeroed(length / BLOCK_BYTES);
            env.submit(
                Token(slot as u64),
                Operation::DriveRead { drive: source, offset_bytes: next, buffer },
            );
            next += length as u64;
            busy += 1;
        }
        env.poll(&mut events, Wait::Forever);
        for event in events.drain(..) {
            let Event::Completion(Completion { token, outcome }) = event else { continue };
            let slot = token.0 as usize;
            match outcome {
                Outcome::DriveRead(buffer, Ok(())) => {
                    let data = vec![buffer.into_bytes()];
                    let write = Operation::DriveWrite {
                        drive: target,
                        offset_bytes: offsets[slot],
                        data,
                        durable: false,
                    };
                    env.submit(token, write);
                }
                Outcome::Done => {
                    idle.push(slot);
                    busy -= 1;
                }
                Outcome::DriveRead(_, Err(error)) => return Err(format!("{}: {error}", copy.from)),
                Outcome::Failed(error) => return Err(format!("{}: {error}", copy.to)),
                outcome => return Err(format!("the environment answered something else: {outcome:?}")),
            }
        }
    }
    match wait_for(env, Operation::DriveFlush { drive: target })? {
        Outcome::Done => Ok((size, began.elapsed().as_secs_f64())),
        outcome => Err(format!("{}: {outcome:?}", copy.to)),
    }
}
