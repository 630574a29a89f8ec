//! Persistent reservations by SCSI commands: PERSISTENT RESERVE IN and OUT (SPC-4 §6.15, §6.16), through `SG_IO`.

use std::os::fd::RawFd;

use env::{IoError, Reservation, ReservationAsk, ReservationHolder};

/// `SG_IO` and its interface (`scsi/sg.h`).
const SG_IO: libc::Ioctl = 0x2285;
const INTERFACE: i32 = 'S' as i32;
const TO_DEVICE: i32 = -2;
const FROM_DEVICE: i32 = -3;
/// A takeover does not wait longer for a drive.
const TIME_MS: u32 = 10_000;
/// A drive may say first that something else has happened: after a reset, or to somebody who was preempted.
const TRIES: u32 = 8;

const RESERVE_IN: u8 = 0x5E;
const RESERVE_OUT: u8 = 0x5F;
const READ_KEYS: u8 = 0;
const READ_RESERVATION: u8 = 1;
const WRITE_EXCLUSIVE: u8 = 1;
/// Activate persist through power loss.
const APTPL: u8 = 1;

const GOOD: u8 = 0x00;
const CHECK_CONDITION: u8 = 0x02;
const BUSY: u8 = 0x08;
const RESERVATION_CONFLICT: u8 = 0x18;
const TASK_SET_FULL: u8 = 0x28;
const ILLEGAL_REQUEST: u8 = 5;
const UNIT_ATTENTION: u8 = 6;

/// `struct sg_io_hdr`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    cdb_length: u8,
    sense_length_max: u8,
    pieces: u16,
    length: u32,
    data: *mut u8,
    cdb: *const u8,
    sense: *mut u8,
    time_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message: u8,
    sense_length: u8,
    host_status: u16,
    driver_status: u16,
    residual: i32,
    duration_ms: u32,
    info: u32,
}

/// What the drive has answered.
struct Answer {
    status: u8,
    sense_key: u8,
}

pub fn carry_out(descriptor: RawFd, ask: ReservationAsk) -> Result<Option<Reservation>, IoError> {
    let Some((cdb, mut parameters)) = out(ask) else {
        let keys = read(descriptor, READ_KEYS)?;
        let holder = read(descriptor, READ_RESERVATION)?;
        return Ok(Some(Reservation { keys: parse_keys(&keys), holder: parse_holder(&holder) }));
    };
    run(descriptor, cdb, TO_DEVICE, &mut parameters).map(|()| None)
}

/// Data of PERSISTENT RESERVE IN, as long as the drive has it.
fn read(descriptor: RawFd, action: u8) -> Result<Vec<u8>, IoError> {
    let mut data = vec![0; 8 << 10];
    run(descriptor, reserve_in(action, data.len() as u16), FROM_DEVICE, &mut data)?;
    Ok(data)
}

fn reserve_in(action: u8, length: u16) -> [u8; 10] {
    let [high, low] = length.to_be_bytes();
    [RESERVE_IN, action, 0, 0, 0, 0, 0, high, low, 0]
}

/// The command that changes something, and its parameter list; `None` for a report.
fn out(ask: ReservationAsk) -> Option<([u8; 10], [u8; 24])> {
    let (action, key, other, flags) = match ask {
        ReservationAsk::Report => return None,
        // register and ignore existing key
        ReservationAsk::Register { key } => (6, 0, key, APTPL),
        ReservationAsk::Reserve { key } => (1, key, 0, 0),
        // preempt and abort
        ReservationAsk::Preempt { key, other } => (5, key, other, 0),
        ReservationAsk::Unregister { key } => (0, key, 0, APTPL),
    };
    let mut parameters = [0; 24];
    parameters[..8].copy_from_slice(&u64::to_be_bytes(key));
    parameters[8..16].copy_from_slice(&u64::to_be_bytes(other));
    parameters[20] = flags;
    Some(([RESERVE_OUT, action, WRITE_EXCLUSIVE, 0, 0, 0, 0, 0, 24, 0], parameters))
}

fn run(descriptor: RawFd, cdb: [u8; 10], direction: i32, data: &mut [u8]) -> Result<(), IoError> {
    for _ in 0..TRIES {
        match send(descriptor, &cdb, direction, data)? {
            Answer { status: GOOD, .. } => return Ok(()),
            Answer { status: RESERVATION_CONFLICT, .. } => return Err(IoError::Reserved),
            Answer { status: CHECK_CONDITION, sense_key: UNIT_ATTENTION }
            | Answer { status: BUSY | TASK_SET_FULL, .. } => {}
            Answer { status: CHECK_CONDITION, sense_key: ILLEGAL_REQUEST } => {
                return Err(IoError::Unsupported);
            }
            Answer { .. } => return Err(IoError::Media),
        }
    }
    Err(IoError::TimedOut)
}

fn send(descriptor: RawFd, cdb: &[u8; 10], direction: i32, data: &mut [u8]) -> Result<Answer, IoError> {
    let mut sense = [0; 64];
    let mut header = Header {
        interface: INTERFACE,
        direction,
        cdb_length: cdb.len() as u8,
        sense_length_max: sense.len() as u8,
        pieces: 0,
        length: data.len() as u32,
        data: data.as_mut_ptr(),
        cdb: cdb.as_ptr(),
        sense: sense.as_mut_ptr(),
        time_ms: TIME_MS,
        flags: 0,
        pack_id: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message: 0,
        sense_length: 0,
        host_status: 0,
        driver_status: 0,
        residual: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the header has the layout that the kernel expects; all that it points to lives across the call, with the lengths that
    // it says; the hold keeps the descriptor open.
    let result = unsafe { libc::ioctl(descriptor, SG_IO, &raw mut header) };
    if result < 0 {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        return Err(match errno {
            // no SCSI device, or one that passes no commands on
            libc::ENOTTY | libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM => IoError::Unsupported,
            libc::ENODEV | libc::ENXIO => IoError::Gone,
            other => IoError::Other(other),
        });
    }
    if header.host_status != 0 {
        // the command has not reached the drive, or its answer was lost
        return Err(IoError::Gone);
    }
    Ok(Answer { status: header.status, sense_key: sense_key(&sense) })
}

/// SPC-4 §4.5: fixed and descriptor format.
fn sense_key(sense: &[u8; 64]) -> u8 {
    match sense[0] & 0x7F {
        0x70 | 0x71 => sense[2] & 0xF,
        0x72 | 0x73 => sense[1] & 0xF,
        _ => 0,
    }
}

fn number<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|byte| data.get(at + byte).copied().unwrap_or(0))
}

/// READ KEYS: generation (4), length (4), keys (8 each).
fn parse_keys(data: &[u8]) -> Vec<u64> {
    let end = (8 + u32::from_be_bytes(number(data, 4)) as usize).min(data.len());
    let keys = data.get(8..end).unwrap_or_default().chunks_exact(8);
    keys.map(|key| u64::from_be_bytes(number(key, 0))).collect()
}

/// READ RESERVATION: generation (4), length (4: 0 or 16), key (8), obsolete (4), reserved, scope and type.
fn parse_holder(data: &[u8]) -> Option<ReservationHolder> {
    let length = u32::from_be_bytes(number(data, 4));
    (length >= 16).then(|| ReservationHolder {
        key: u64::from_be_bytes(number(data, 8)),
        is_write_exclusive: data.get(21).is_some_and(|&kind| kind & 0xF == WRITE_EXCLUSIVE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_layout_of_the_kernel() {
        assert_eq!(size_of::<Header>(), 88);
        assert_eq!(std::mem::offset_of!(Header, status), 64);
        assert_eq!(std::mem::offset_of!(Header, host_status), 68);
    }

    #[test]
    fn commands_are_those_of_the_standard() {
        let (cdb, parameters) = out(ReservationAsk::Preempt { key: 0x0102, other: 0x0304 }).unwrap();
        assert_eq!(cdb, [0x5F, 5, 1, 0, 0, 0, 0, 0, 24, 0]);
        assert_eq!(parameters[..16], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4]);
        let (cdb, parameters) = out(ReservationAsk::Register { key: 9 }).unwrap();
        assert_eq!((cdb[1], parameters[7], parameters[15], parameters[20]), (6, 0, 9, 1));
        assert_eq!(reserve_in(READ_KEYS, 0x2000), [0x5E, 0, 0, 0, 0, 0, 0, 0x20, 0, 0]);
    }

    #[test]
    fn answers_are_read_and_nonsense_is_no_reason_to_panic() {
        let mut keys = vec![0, 0, 0, 7, 0, 0, 0, 16];
        keys.extend(5u64.to_be_bytes());
        keys.extend(6u64.to_be_bytes());
        keys.extend([9; 40]);
        assert_eq!(parse_keys(&keys), [5, 6]);
        assert_eq!(parse_keys(&[0, 0, 0, 7, 0xFF, 0xFF, 0xFF, 0xFF, 1]), []);
        let mut held = vec![0, 0, 0, 7, 0, 0, 0, 16];
        held.extend(5u64.to_be_bytes());
        held.extend([0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(parse_holder(&held), Some(ReservationHolder { key: 5, is_write_exclusive: true }));
        held[21] = 5;
        assert_eq!(parse_holder(&held), Some(ReservationHolder { key: 5, is_write_exclusive: false }));
        assert_eq!(parse_holder(&[0; 8]), None);
        assert_eq!(parse_holder(&[]), None);
    }
}
