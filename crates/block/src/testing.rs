//! A drive in a `Vec<u8>` under an executor, for this crate's tests. The test chooses the order in which operations
//! complete; an operation takes effect when it completes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use base::{BLOCK_BYTES, Lba, Nanos, SECTOR_BYTES};
use env::{Completion, DriveHandle, DriveInfo, DriveKind, IoError, Operation, Outcome, Token};
use proptest::prelude::*;
use task::Executor;

use crate::{
    BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry, Memory, Payload, Raw,
};

pub(crate) const DRIVE: DriveHandle = DriveHandle(7);

#[derive(Default)]
pub(crate) struct Bench {
    pub(crate) executor: Executor,
    pub(crate) drive: Vec<u8>,
    /// Where the drive has ended: a write may end there inside a 4 KiB block.
    ends: BTreeSet<usize>,
    /// 4 KiB blocks that cannot be read.
    pub(crate) bad: BTreeSet<u64>,
    /// Offset, length, durable.
    pub(crate) writes: Vec<(u64, usize, bool)>,
    pub(crate) discards: Vec<(u64, u64)>,
    pub(crate) flushes: usize,
    in_flight: Vec<(Token, Operation)>,
}

impl Bench {
    pub(crate) fn new(blocks: usize) -> Bench {
        Bench { drive: vec![0; blocks * BLOCK_BYTES], ..Bench::default() }
    }

    /// The drive ends elsewhere from now on.
    pub(crate) fn set_end(&mut self, bytes: usize) {
        self.drive.resize(bytes, 0);
        self.ends.insert(bytes);
    }

    pub(crate) fn info(&self) -> DriveInfo {
        DriveInfo {
            path: "test".into(),
            kind: DriveKind::Simulated,
            size_bytes: (self.drive.len() - self.drive.len() % BLOCK_BYTES) as u64,
            end_bytes: self.drive.len() as u64,
            volatile_cache: true,
            model: String::new(),
            serial: String::new(),
            bay: String::new(),
            identity: env::DriveIdentity::Device(0),
        }
    }

    pub(crate) fn raw(&self, block_bytes: u32, write_back: bool) -> Rc<Raw> {
        let info = self.info();
        let blocks = Raw::blocks_of(&info, block_bytes);
        let geometry = Geometry { block_bytes, blocks, thin: false, write_back };
        Rc::new(Raw::new(self.executor.io(), DRIVE, &info, geometry))
    }

    /// Runs until nothing is left to do. `pick(n)` chooses which of n operations completes next.
    pub(crate) fn run(&mut self, mut pick: impl FnMut(usize) -> usize) {
        loop {
            self.executor.run_ready();
            self.in_flight.extend(self.executor.take_operations());
            if !self.in_flight.is_empty() {
                let index = pick(self.in_flight.len()) % self.in_flight.len();
                let (token, operation) = self.in_flight.remove(index);
                let outcome = self.apply(operation);
                self.executor.on_completion(Completion { token, outcome });
            } else if let Some(deadline) = self.executor.next_deadline() {
                self.executor.set_now(deadline);
            } else {
                break;
            }
        }
        assert_eq!(self.executor.live(), 0, "a request never ends");
    }

    /// Executes requests side by side, in the order of completion that `pick` says.
    pub(crate) fn execute_all<T: BlockTarget + 'static>(
        &mut self,
        target: &Rc<T>,
        requests: Vec<BlockRequest>,
        pick: impl FnMut(usize) -> usize,
    ) -> Vec<BlockResult> {
        let results = Rc::new(RefCell::new(vec![Err(BlockError::Unsupported); requests.len()]));
        for (index, request) in requests.into_iter().enumerate() {
            let (target, results) = (target.clone(), results.clone());
            self.executor.io().spawn(async move {
                let result = target.execute(request).await;
                results.borrow_mut()[index] = result;
            });
        }
        self.run(pick);
        results.take()
    }

    pub(crate) fn execute<T: BlockTarget + 'static>(
        &mut self,
        target: &Rc<T>,
        request: BlockRequest,
    ) -> BlockResult {
        self.execute_all(target, vec![request], |_| 0).remove(0)
    }

    fn apply(&mut self, operation: Operation) -> Outcome {
        match operation {
            Operation::DriveRead { drive, offset_bytes, mut buffer } => {
                assert_eq!((drive, offset_bytes % BLOCK_BYTES as u64), (DRIVE, 0));
                let start = offset_bytes as usize;
                let end = start + buffer.len();
                assert!(end <= self.drive.len().next_multiple_of(BLOCK_BYTES), "behind the end");
                let there = end.min(self.drive.len());
                buffer[..there - start].copy_from_slice(&self.drive[start..there]);
                buffer[there - start..].fill(0xEE);
                let mut blocks = start / BLOCK_BYTES..end / BLOCK_BYTES;
                let bad = blocks.any(|block| self.bad.contains(&(block as u64)));
                Outcome::DriveRead(buffer, if bad { Err(IoError::Media) } else { Ok(()) })
            }
            Operation::DriveWrite { drive, offset_bytes, data, durable } => {
                assert_eq!((drive, offset_bytes % BLOCK_BYTES as u64), (DRIVE, 0));
                let mut at = offset_bytes as usize;
                for piece in &data {
                    let whole = piece.len().is_multiple_of(BLOCK_BYTES);
                    assert!(whole || self.ends.contains(&(at + piece.len())), "not at the end");
                    assert!((piece.as_ptr() as usize).is_multiple_of(BLOCK_BYTES), "unaligned memory");
                    self.drive[at..at + piece.len()].copy_from_slice(piece);
                    at += piece.len();
                }
                self.writes.push((offset_bytes, at - offset_bytes as usize, durable));
                Outcome::Done
            }
            Operation::DriveFlush { .. } => {
                self.flushes += 1;
                Outcome::Done
            }
            Operation::DriveDiscard { offset_bytes, length_bytes, .. } => {
                self.discards.push((offset_bytes, length_bytes));
                Outcome::Done
            }
            other => panic!("a target has no business with {other:?}"),
        }
    }
}

pub(crate) fn data_of(result: BlockResult) -> Vec<u8> {
    match result {
        Ok(BlockOutput::Data(data)) => data.to_vec(),
        other => panic!("no data: {other:?}"),
    }
}

/// Requests as small numbers, to be shrunk well.
#[derive(Clone, Copy, Debug)]
enum Act {
    Read,
    Write {
        durable: bool,
    },
    Zero,
    /// Expects what is there, or what cannot be.
    Compare {
        right: bool,
    },
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Read),
        4 => any::<bool>().prop_map(|durable| Act::Write { durable }),
        1 => Just(Act::Zero),
        1 => any::<bool>().prop_map(|right| Act::Compare { right }),
    ]
}

/// Every logical block that a write fills says which write it was, and where.
fn pattern(write: u32, lba: u64, blocks: u64, block_bytes: usize) -> Vec<u8> {
    let block = |lba: u64| [u64::from(write).to_le_bytes(), lba.to_le_bytes()].concat();
    (lba..lba + blocks).flat_map(|lba| block(lba).repeat(block_bytes / 16)).collect()
}

fn request_of(act: Act, lba: u64, blocks: u64, write: u32, now: &[u8], block_bytes: usize) -> BlockRequest {
    let data = || Payload::from(pattern(write, lba, blocks, block_bytes));
    match act {
        Act::Read => BlockRequest::Read { lba: Lba(lba), blocks: blocks as u32 },
        Act::Write { durable } => BlockRequest::Write { lba: Lba(lba), data: data(), durable },
        Act::Zero => BlockRequest::WriteZeroes { lba: Lba(lba), blocks },
        Act::Compare { right } => {
            let range = lba as usize * block_bytes..(lba + blocks) as usize * block_bytes;
            let mut expected = now[range].to_vec();
            expected[0] ^= u8::from(!right) << 7;
            BlockRequest::CompareAndWrite {
                lba: Lba(lba),
                expected: Box::new(expected.into()),
                data: data(),
                durable: true,
            }
        }
    }
}

const SECTORS: u64 = 64;

type Round = Vec<(Act, u64, u64)>;

fn any_rounds() -> impl Strategy<Value = Vec<Round>> {
    let one = (any_act(), 0..SECTORS, 1..20u64);
    proptest::collection::vec(proptest::collection::vec(one, 1..12), 1..6)
}

/// Runs rounds of concurrent requests. After each round, every logical block must be whole. It must hold the data of one of the
/// round's writes to it or, only if none succeeded, its old data.
fn check_rounds<T: BlockTarget + 'static>(
    bench: &mut Bench,
    target: &Rc<T>,
    rounds: Vec<Round>,
    mut picks: Vec<usize>,
) {
    let geometry = target.geometry();
    let block_bytes = geometry.block_bytes as usize;
    let mut now = vec![0u8; geometry.size_bytes() as usize];
    let mut write = 0;
    let mut pick = move |n: usize| picks.pop().map_or(0, |value| value % n);
    for round in rounds {
        let mut requests = Vec::new();
        for (act, lba, blocks) in round {
            let lba = lba % geometry.blocks;
            let blocks = blocks.min(geometry.blocks - lba);
            write += 1;
            requests.push(request_of(act, lba, blocks, write, &now, block_bytes));
        }
        let results = bench.execute_all(target, requests.clone(), &mut pick);
        // what each logical block may hold, and whether it must have changed
        let mut may: Vec<Vec<Vec<u8>>> = now.chunks(block_bytes).map(|block| vec![block.to_vec()]).collect();
        let mut changed = vec![false; may.len()];
        for (request, result) in requests.iter().zip(&results) {
            let (lba, blocks) = request.extent(geometry.block_bytes).expect("all have a range");
            let new = match request {
                BlockRequest::Write { data, .. } | BlockRequest::CompareAndWrite { data, .. } => {
                    data.to_vec()
                }
                BlockRequest::WriteZeroes { .. } => vec![0; blocks as usize * block_bytes],
                _ => continue,
            };
            if matches!(result, Err(BlockError::Miscompare { .. })) {
                continue;
            }
            assert!(result.is_ok(), "{request:?}: {result:?}");
            for (index, block) in new.chunks(block_bytes).enumerate() {
                may[lba.0 as usize + index].push(block.to_vec());
                changed[lba.0 as usize + index] = true;
            }
        }
        for (request, result) in requests.iter().zip(results) {
            if let BlockRequest::Read { lba, .. } = request {
                for (index, block) in data_of(result).chunks(block_bytes).enumerate() {
                    assert!(may[lba.0 as usize + index].iter().any(|value| value == block), "{request:?}");
                }
            }
        }
        let all = BlockRequest::Read { lba: Lba(0), blocks: geometry.blocks as u32 };
        now = data_of(bench.execute(target, all));
        for (lba, block) in now.chunks(block_bytes).enumerate() {
            let allowed = if changed[lba] { &may[lba][1..] } else { &may[lba][..1] };
            assert!(allowed.iter().any(|value| value == block), "logical block {lba} is lost or torn");
        }
    }
}

proptest! {
    #[test]
    fn raw_keeps_every_write_beside_others(rounds in any_rounds(), large: bool, write_back: bool,
                                           tail in 0usize..8, picks in proptest::collection::vec(0usize..64, 0..200)) {
        let mut bench = Bench::new(SECTORS as usize / 8);
        bench.set_end(bench.drive.len() - tail * SECTOR_BYTES);
        let raw = bench.raw(if large { 4096 } else { 512 }, write_back);
        check_rounds(&mut bench, &raw, rounds, picks);
    }

    #[test]
    fn memory_keeps_every_write(rounds in any_rounds(), large: bool) {
        let block_bytes = if large { 4096 } else { 512 };
        let geometry = Geometry { block_bytes, blocks: SECTORS - 3, thin: true, write_back: false };
        let memory = Rc::new(Memory::new(geometry));
        check_rounds(&mut Bench::default(), &memory, rounds, vec![]);
    }

    #[test]
    fn memory_frees_and_tells(acts in proptest::collection::vec((0..3u8, 0..SECTORS, 1..SECTORS), 1..40)) {
        let geometry = Geometry { block_bytes: 512, blocks: SECTORS, thin: true, write_back: false };
        let memory = Memory::new(geometry);
        let mut model = vec![0u8; 512 * SECTORS as usize];
        for (act, lba, blocks) in acts {
            let blocks = blocks.min(SECTORS - lba);
            let bytes = lba as usize * 512..(lba + blocks) as usize * 512;
            match act {
                0 => {
                    model[bytes.clone()].fill(1);
                    let data = Payload::from(model[bytes].to_vec());
                    memory.answer(&BlockRequest::Write { lba: Lba(lba), data, durable: false }).unwrap();
                }
                1 => {
                    model[bytes].fill(0);
                    memory.answer(&BlockRequest::Unmap { lba: Lba(lba), blocks }).unwrap();
                }
                _ => {
                    let status = memory.answer(&BlockRequest::MapStatus { lba: Lba(lba), blocks });
                    let Ok(BlockOutput::MapStatus { mapped, blocks: told }) = status else { panic!("{status:?}") };
                    prop_assert!((1..=blocks).contains(&told));
                    let unmapped_is_zero = &model[bytes.start..bytes.start + told as usize * 512];
                    prop_assert!(mapped || unmapped_is_zero.iter().all(|&byte| byte == 0));
                }
            }
            prop_assert_eq!(data_of(memory.answer(&BlockRequest::Read { lba: Lba(0), blocks: SECTORS as u32 })), &model[..]);
        }
        memory.answer(&BlockRequest::Unmap { lba: Lba(0), blocks: SECTORS }).unwrap();
        prop_assert_eq!(memory.mapped_bytes(), 0);
    }
}

#[test]
fn compare_and_write_is_a_lock_that_one_of_many_takes() {
    let mut bench = Bench::new(4);
    let raw = bench.raw(512, false);
    const TASKS: u64 = 20;
    for _ in 0..TASKS {
        let raw = raw.clone();
        bench.executor.io().spawn(async move {
            loop {
                let have = data_of(raw.execute(BlockRequest::Read { lba: Lba(9), blocks: 1 }).await);
                let mut next = have.clone();
                let count = u64::from_le_bytes(have[..8].try_into().unwrap());
                next[..8].copy_from_slice(&(count + 1).to_le_bytes());
                let (expected, data) = (Box::new(have.into()), next.into());
                let request = BlockRequest::CompareAndWrite { lba: Lba(9), expected, data, durable: false };
                match raw.execute(request).await {
                    Ok(_) => break,
                    Err(BlockError::Miscompare { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    let mut turn = 0usize;
    bench.run(|n| {
        turn = turn.wrapping_mul(31).wrapping_add(7);
        turn % n
    });
    assert_eq!(u64::from_le_bytes(bench.drive[9 * 512..9 * 512 + 8].try_into().unwrap()), TASKS);
}

#[test]
fn a_medium_error_names_the_first_bad_block() {
    let mut bench = Bench::new(8);
    bench.bad.extend([3, 5]);
    let raw = bench.raw(512, false);
    let read = |lba, blocks| BlockRequest::Read { lba: Lba(lba), blocks };
    let medium = |lba| Err::<Vec<u8>, _>(BlockError::Medium { lba: Lba(lba) });
    let told = |result: BlockResult| result.map(|output| data_of(Ok(output)));
    assert_eq!(told(bench.execute(&raw, read(0, 64))), medium(24));
    assert_eq!(told(bench.execute(&raw, read(26, 30))), medium(26), "a block of the request");
    assert_eq!(told(bench.execute(&raw, read(32, 30))), medium(40));
    assert_eq!(told(bench.execute(&raw, read(32, 8))), Ok(vec![0; 4096]));
    // a write of part of it cannot keep the rest; a whole one can
    let write = |lba, blocks: usize| {
        let data = vec![1; blocks * 512].into();
        BlockRequest::Write { lba: Lba(lba), data, durable: false }
    };
    assert_eq!(bench.execute(&raw, write(25, 4)).unwrap_err(), BlockError::Medium { lba: Lba(25) });
    assert!(bench.writes.is_empty());
    assert!(bench.execute(&raw, write(24, 8)).is_ok());
}

#[test]
fn what_is_behind_the_end_of_a_drive_that_got_smaller_is_a_medium_error() {
    let mut bench = Bench::new(4);
    let before = bench.raw(512, false);
    bench.set_end(2 * BLOCK_BYTES + 3 * SECTOR_BYTES);
    let raw = Rc::new(before.resized(&bench.info(), before.geometry()));
    assert_eq!(raw.geometry().blocks, 32, "what hosts were told stays");
    let read = |lba, blocks| BlockRequest::Read { lba: Lba(lba), blocks };
    assert_eq!(data_of(bench.execute(&raw, read(16, 3))), [0; 3 * SECTOR_BYTES]);
    let error = |lba| BlockError::Medium { lba: Lba(lba) };
    assert_eq!(bench.execute(&raw, read(10, 12)).unwrap_err(), error(19));
    assert_eq!(bench.execute(&raw, read(25, 1)).unwrap_err(), error(25));
    let write = |lba| BlockRequest::Write { lba: Lba(lba), data: vec![1; 1024].into(), durable: false };
    assert_eq!(bench.execute(&raw, write(18)).unwrap_err(), error(19));
    let zero = BlockRequest::WriteZeroes { lba: Lba(16), blocks: 16 };
    assert_eq!(bench.execute(&raw, zero).unwrap_err(), error(19));
    assert!(bench.writes.is_empty(), "nothing is done in part");
    bench.execute(&raw, write(17)).unwrap();
    assert_eq!(bench.drive[17 * SECTOR_BYTES..], [1; 1024]);
}

/// A request that began before the drive grew and one after it change different sectors of one 4 KiB block.
#[test]
fn requests_from_before_and_after_growth_take_turns() {
    let mut bench = Bench::new(2);
    bench.set_end(BLOCK_BYTES + 3 * SECTOR_BYTES);
    let small = bench.raw(512, false);
    let io = bench.executor.io().clone();
    let write = |lba, byte| BlockRequest::Write {
        lba: Lba(lba),
        data: vec![byte; SECTOR_BYTES].into(),
        durable: false,
    };
    let first = small.clone();
    io.spawn(async move { drop(first.execute(write(9, 1)).await.expect("written")) });
    bench.executor.run_ready();
    bench.set_end(2 * BLOCK_BYTES);
    let geometry = Geometry { blocks: 16, ..small.geometry() };
    let large = Rc::new(small.resized(&bench.info(), geometry));
    let second = large.clone();
    io.spawn(async move { drop(second.execute(write(12, 2)).await.expect("written")) });
    // what began last ends first, where it may
    bench.run(|n| n - 1);
    assert_eq!([bench.drive[9 * SECTOR_BYTES], bench.drive[12 * SECTOR_BYTES]], [1, 2]);
}

#[test]
fn durability_flush_and_discard_reach_the_drive() {
    let mut bench = Bench::new(8);
    let write = |durable| BlockRequest::Write { lba: Lba(8), data: vec![1; 4096].into(), durable };
    let (through, back) = (bench.raw(512, false), bench.raw(512, true));
    bench.execute(&through, write(false)).unwrap();
    bench.execute(&back, write(false)).unwrap();
    bench.execute(&back, write(true)).unwrap();
    assert_eq!(bench.writes, [(4096, 4096, true), (4096, 4096, false), (4096, 4096, true)]);
    bench.execute(&back, BlockRequest::Flush).unwrap();
    assert_eq!(bench.flushes, 1);
    bench.execute(&back, BlockRequest::Unmap { lba: Lba(9), blocks: 30 }).unwrap();
    bench.execute(&back, BlockRequest::Unmap { lba: Lba(9), blocks: 6 }).unwrap();
    assert_eq!(bench.discards, [(8192, 8192)], "whole 4 KiB blocks only");
}

#[test]
fn filters_fail_and_delay_as_told() {
    use crate::{Delay, Fault, RequestKind, ScriptedFault};
    let mut bench = Bench::default();
    let geometry = Geometry { block_bytes: 512, blocks: 100, thin: true, write_back: false };
    let below = Fault::new(Memory::new(geometry));
    let fault =
        |kind, times| ScriptedFault { kind, lba: Lba(10), blocks: 5, error: BlockError::OutOfSpace, times };
    below.inject(fault(Some(RequestKind::Write), Some(2)));
    let target = Rc::new(Delay::new(bench.executor.io(), below, Nanos::from_micros(50)));
    let zero = |lba, blocks| BlockRequest::WriteZeroes { lba: Lba(lba), blocks };
    let read = BlockRequest::Read { lba: Lba(10), blocks: 1 };
    assert!(bench.execute(&target, zero(5, 5)).is_ok());
    assert_eq!(bench.executor.io().now(), Nanos::from_micros(50));
    assert!(bench.execute(&target, zero(15, 5)).is_ok());
    assert!(bench.execute(&target, read.clone()).is_ok());
    assert_eq!(bench.execute(&target, zero(14, 5)).unwrap_err(), BlockError::OutOfSpace);
    assert_eq!(bench.execute(&target, zero(0, 11)).unwrap_err(), BlockError::OutOfSpace);
    assert!(bench.execute(&target, zero(10, 5)).is_ok(), "it was to fail twice");
    target.set_delay(Nanos(0));
    let before = bench.executor.io().now();
    target.below().inject(fault(None, None));
    assert!(
        bench.execute(&target, read.clone()).is_err() && bench.execute(&target, BlockRequest::Flush).is_err()
    );
    target.below().heal();
    assert!(bench.execute(&target, read).is_ok());
    assert_eq!(bench.executor.io().now(), before);
}
