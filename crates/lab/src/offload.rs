//! Copy offload, as hypervisors use it: EXTENDED COPY (SPC-4 §6.4, list identifier length 1) from one logical unit to
//! another. One copy is aligned to the array's blocks. One is shifted by one logical block, so the data must be copied.

use std::time::Instant;

use bytes::Bytes;
use iscsi::initiator::Request;
use wire::scsi::copy::{CopySegment, CopyTarget, emit_copy};

use crate::target::Unit;
use crate::worker::{Retried, Session, World, retry};
use crate::{table, units};

/// Two logical units of one target, and how much of the first is copied to the second.
#[derive(Clone, Debug)]
pub struct Offload {
    pub from: Unit,
    pub to: Unit,
    pub bytes: u64,
    /// Of each command; ESXi asks for 4 MiB where nobody tells it otherwise.
    pub command_bytes: u64,
}

/// Seconds of both ways.
#[derive(Clone, Debug)]
pub struct Offloaded {
    pub bytes: u64,
    pub aligned_seconds: f64,
    pub shifted_seconds: f64,
    pub retried: Retried,
}

const INQUIRY: u8 = 0x12;
const DEVICE_IDENTIFICATION: u8 = 0x83;
const EXTENDED_COPY: u8 = 0x83;
const LIST_ID_NOT_USED: u8 = 3;

/// Copies it all twice, one command after the other.
pub fn offload(env: &mut World, offload: &Offload) -> Result<Offloaded, String> {
    let Offload { from, to, .. } = offload;
    if (from.portal, &from.target) != (to.portal, &to.target) || from.lun == to.lun {
        return Err("use two LUNs of one target at one portal".to_owned());
    }
    let mut session = Session::open(env, from, 0)?;
    let mut other = Session::open(env, to, 1)?;
    let block_bytes = u64::from(session.block_bytes);
    if other.block_bytes != session.block_bytes {
        return Err("the units have logical blocks of different sizes".to_owned());
    }
    let targets = [descriptor(env, &mut session)?, descriptor(env, &mut other)?];
    let room = session.blocks.min(other.blocks) - 1;
    let blocks = (offload.bytes / block_bytes).min(room);
    let per_command = offload.command_bytes / block_bytes;
    if !(1..=u64::from(u16::MAX)).contains(&per_command) || blocks == 0 {
        return Err(format!("a command copies 1 to {} logical blocks of {block_bytes} bytes", u16::MAX));
    }
    let mut seconds = |shift: u64| {
        let began = Instant::now();
        let mut at = 0;
        while at < blocks {
            let count = per_command.min(blocks - at);
            let segment = CopySegment {
                counts_destination: true,
                source: 0,
                destination: 1,
                blocks: count as u16,
                source_lba: at,
                destination_lba: at + shift,
            };
            copy(env, &mut session, &emit_copy(0, LIST_ID_NOT_USED, &targets, &[segment]))?;
            at += count;
        }
        Ok::<f64, String>(began.elapsed().as_secs_f64())
    };
    let (aligned_seconds, shifted_seconds) = (seconds(0)?, seconds(1)?);
    let retried = std::mem::take(&mut session.retried);
    other.close(env);
    session.close(env);
    Ok(Offloaded { bytes: blocks * block_bytes, aligned_seconds, shifted_seconds, retried })
}

/// A unit's descriptor by its NAA (VPD page 83h).
fn descriptor(env: &mut World, session: &mut Session) -> Result<[u8; 32], String> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[4]) = (INQUIRY, 1, DEVICE_IDENTIFICATION, 255);
    let mut request = Request::new(session.lun, cdb);
    request.expected_in = 255;
    let page = session.carry_out(env, &request)?;
    let mut rest = page.get(4..).unwrap_or(&[]);
    while let [_, kind, _, length, ..] = *rest {
        let body = rest.get(4..4 + usize::from(length)).ok_or("a damaged identification page")?;
        if let (3, Ok(naa)) = (kind & 0xF, <[u8; 16]>::try_from(body)) {
            return Ok(CopyTarget { unit_id_type: 0, null: false, naa: Some(naa) }.emit(session.block_bytes));
        }
        rest = &rest[4 + body.len()..];
    }
    Err("the unit has no NAA of 16 bytes".to_owned())
}

fn copy(env: &mut World, session: &mut Session, list: &[u8]) -> Result<(), String> {
    let mut cdb = [0; 16];
    cdb[0] = EXTENDED_COPY;
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    let mut request = Request::new(session.lun, cdb);
    request.data_out.push(Bytes::copy_from_slice(list));
    session.carry_out(env, &request).map(drop)
}

/// Both ways beside each other.
pub fn report(offloaded: &Offloaded) -> String {
    let Offloaded { bytes, aligned_seconds, shifted_seconds, .. } = *offloaded;
    let row = |what: &str, seconds: f64| {
        let rate = format!("{:.0} MiB/s", bytes as f64 / f64::from(1 << 20) / seconds);
        vec![what.to_owned(), base::units::size(bytes), format!("{} s", units::short(seconds)), rate]
    };
    let rows = [
        ["EXTENDED COPY", "copied", "in", "rate"].map(str::to_owned).to_vec(),
        row("aligned", aligned_seconds),
        row("shifted by a block", shifted_seconds),
    ];
    let ratio = shifted_seconds / aligned_seconds;
    let told = retry::told(&offloaded.retried);
    format!("{}aligned copies are {ratio:.1} x as fast\n{told}", table::render(&rows))
}
