//! What the storm's sessions write and read, and what each end of a command means for the ledgers.
//!
//! Each LUN holds 64 blocks for each session, whose only writer it is, then blocks that all write, then blocks that all
//! exchange by COMPARE AND WRITE.

use std::collections::BTreeMap;

use iscsi::initiator::{Completion, Request};
use wire::scsi::Lun;

use super::content::{BLOCK, Own, Place, content};
use super::tally::Shared;

pub const LUNS: u16 = 4;
/// Blocks of a session in each LUN.
const OWN_BLOCKS: u64 = 64;
/// Where the common blocks begin: beyond any session's own.
const COMMON_FIRST: u64 = 1 << 16;
/// Around a border of the array's map pages, which several cores share.
const COMMON_BLOCKS: u64 = 16;
const EXCHANGED_FIRST: u64 = COMMON_FIRST + 256 - EXCHANGED_BLOCKS / 2;
const EXCHANGED_BLOCKS: u64 = 8;
/// Largest request, in blocks.
const BLOCKS_MAX: u64 = 12;
/// A volume's size, in bytes.
pub const VOLUME_BYTES: u64 = (COMMON_FIRST + 512) * BLOCK as u64;

/// A generator of numbers; the seed decides all.
pub struct Prng(u64);

impl Prng {
    pub fn new(seed: u64) -> Prng {
        Prng(seed | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Read,
    /// At this version.
    Write(u64),
    /// A read of a common block that began then.
    CommonRead(u64),
    CommonWrite(u64),
    /// From this version to that.
    Exchange(u64, u64),
}

/// A command, by the blocks that it concerns, in order.
#[derive(Clone, Debug)]
pub struct Operation {
    pub places: Vec<Place>,
    pub work: Work,
}

impl Operation {
    pub fn lun(&self) -> u16 {
        self.places[0].lun
    }

    pub fn compares(&self) -> bool {
        matches!(self.work, Work::Exchange(..))
    }
}

pub fn lun_field(lun: u16) -> u64 {
    Lun::new(lun).expect("a small number").emit()
}

/// The blocks of which this session is the only writer.
pub fn own_blocks(session: usize) -> Vec<Place> {
    let first = session as u64 * OWN_BLOCKS;
    assert!(first + OWN_BLOCKS <= COMMON_FIRST, "too many sessions");
    (0..LUNS).flat_map(|lun| (first..first + OWN_BLOCKS).map(move |block| Place { lun, block })).collect()
}

/// The blocks that all write, and those that all exchange.
pub fn common_blocks() -> impl Iterator<Item = Place> {
    (0..LUNS).flat_map(|lun| {
        let plain = COMMON_FIRST..COMMON_FIRST + COMMON_BLOCKS;
        let exchanged = EXCHANGED_FIRST..EXCHANGED_FIRST + EXCHANGED_BLOCKS;
        plain.chain(exchanged).map(move |block| Place { lun, block })
    })
}

/// The next thing to do; `None` where what was drawn is busy.
pub fn draw(
    shared: &Shared,
    own: &mut BTreeMap<Place, Own>,
    prng: &mut Prng,
    next_version: u64,
) -> Option<Operation> {
    let lun = prng.below(u64::from(LUNS)) as u16;
    match prng.below(10) {
        0..7 => {
            let first = own.keys().next()?.block;
            let at = prng.below(OWN_BLOCKS);
            let count = (1 + prng.below(BLOCKS_MAX)).min(OWN_BLOCKS - at);
            let places: Vec<Place> =
                (first + at..first + at + count).map(|block| Place { lun, block }).collect();
            if places.iter().any(|place| own[place].busy) {
                return None;
            }
            places.iter().for_each(|place| own.get_mut(place).expect("one's own").busy = true);
            let work = if prng.below(3) == 0 { Work::Read } else { Work::Write(next_version) };
            Some(Operation { places, work })
        }
        7..9 => {
            let place = Place { lun, block: COMMON_FIRST + prng.below(COMMON_BLOCKS) };
            let mut common = shared.common(place);
            let work = if prng.below(2) == 0 {
                Work::CommonRead(common.begin_read())
            } else {
                common.begin_write(next_version);
                Work::CommonWrite(next_version)
            };
            Some(Operation { places: vec![place], work })
        }
        _ => {
            let place = Place { lun, block: EXCHANGED_FIRST + prng.below(EXCHANGED_BLOCKS) };
            let known = shared.last_seen(place);
            let mut common = shared.common(place);
            let work = match known {
                Some(known) if prng.below(3) > 0 => {
                    common.begin_write(next_version);
                    Work::Exchange(known, next_version)
                }
                _ => Work::CommonRead(common.begin_read()),
            };
            Some(Operation { places: vec![place], work })
        }
    }
}

pub fn request(operation: &Operation) -> Request {
    let (place, blocks) = (operation.places[0], operation.places.len());
    match operation.work {
        Work::Read | Work::CommonRead(_) => transfer(place, blocks, None),
        Work::Write(version) | Work::CommonWrite(version) => {
            transfer(place, blocks, Some(&vec![version; blocks][..]))
        }
        Work::Exchange(before, after) => {
            let mut request = transfer(place, 1, Some(&[after][..]));
            let sectors = (BLOCK / 512) as u8;
            let lba = (place.block * u64::from(sectors)).to_be_bytes();
            request.cdb = [0; 16];
            request.cdb[0] = 0x89;
            request.cdb[2..10].copy_from_slice(&lba);
            request.cdb[13] = sectors;
            let both = [content(place, before), content(place, after)].concat();
            request.data_out = both.into();
            request
        }
    }
}

/// READ (10) or, with versions, WRITE (10) of whole blocks.
fn transfer(place: Place, blocks: usize, data: Option<&[u64]>) -> Request {
    let sectors = (BLOCK / 512) as u64;
    let (lba, count) = ((place.block * sectors) as u32, (blocks as u64 * sectors) as u16);
    let (l, c) = (lba.to_be_bytes(), count.to_be_bytes());
    let opcode = if data.is_some() { 0x2A } else { 0x28 };
    let mut cdb = [0; 16];
    cdb[..10].copy_from_slice(&[opcode, 0, l[0], l[1], l[2], l[3], 0, c[0], c[1], 0]);
    let mut request = Request::new(lun_field(place.lun), cdb);
    match data {
        Some(versions) => {
            let of = |(index, &version): (usize, &u64)| {
                content(Place { block: place.block + index as u64, ..place }, version)
            };
            request.data_out = versions.iter().enumerate().flat_map(of).collect::<Vec<u8>>().into();
        }
        None => request.expected_in = (blocks * BLOCK) as u32,
    }
    request
}

fn release(own: &mut BTreeMap<Place, Own>, operation: &Operation) {
    for place in &operation.places {
        if let Some(own) = own.get_mut(place) {
            own.busy = false;
        }
    }
}

/// The command was carried out.
pub fn good(
    shared: &Shared,
    own: &mut BTreeMap<Place, Own>,
    operation: Operation,
    completion: &Completion,
) -> Result<(), String> {
    release(own, &operation);
    let place = operation.places[0];
    let data = completion.data_in.to_vec();
    match operation.work {
        Work::Read => {
            if data.len() != operation.places.len() * BLOCK {
                return Err(format!("{operation:?}: {} bytes came", data.len()));
            }
            for (place, bytes) in operation.places.iter().zip(data.chunks(BLOCK)) {
                own.get_mut(place).expect("one's own").seen(*place, bytes)?;
                shared.tally.checked.add(1);
            }
        }
        Work::Write(version) => {
            operation.places.iter().for_each(|place| own.get_mut(place).expect("one's own").written(version));
            shared.tally.written.add(operation.places.len() as u64);
        }
        Work::CommonRead(began) => {
            let seen = shared.common(place).end_read(place, began, &data)?;
            shared.saw(place, seen);
            shared.tally.checked.add(1);
        }
        Work::CommonWrite(version) => {
            shared.common(place).end_write(version, true);
            shared.tally.written.add(1);
        }
        Work::Exchange(before, after) => {
            let mut common = shared.common(place);
            common.replace(place, before)?;
            common.end_write(after, true);
            drop(common);
            shared.saw(place, after);
            shared.tally.exchanged.add(1);
        }
    }
    Ok(())
}

/// The command was refused, and has changed nothing.
pub fn refused(shared: &Shared, own: &mut BTreeMap<Place, Own>, operation: Operation) {
    release(own, &operation);
    let place = operation.places[0];
    match operation.work {
        Work::Read | Work::Write(_) => {}
        Work::CommonRead(began) => shared.common(place).drop_read(began),
        Work::CommonWrite(version) | Work::Exchange(_, version) => {
            shared.common(place).refuse_write(version);
            shared.forget(place);
        }
    }
}

/// The command is over, and may have been carried out, each block by itself.
pub fn unanswered(shared: &Shared, own: &mut BTreeMap<Place, Own>, operation: Operation) {
    release(own, &operation);
    let place = operation.places[0];
    match operation.work {
        Work::Read => {}
        Work::Write(version) => {
            operation.places.iter().for_each(|place| own.get_mut(place).expect("one's own").aborted(version));
        }
        Work::CommonRead(began) => shared.common(place).drop_read(began),
        Work::CommonWrite(version) | Work::Exchange(_, version) => {
            shared.common(place).end_write(version, false);
            shared.forget(place);
        }
    }
}
