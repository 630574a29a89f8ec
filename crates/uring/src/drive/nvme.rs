//! Persistent reservations by NVMe commands (NVM Express NVM Command Set 1.0 §3.2: Reservation Register, Report and Acquire), through
//! the kernel's passthrough.
//!
//! Linux gives no Host Identifier to a controller on PCIe, and without one a registration is refused: it is set before a registration.

use std::os::fd::RawFd;

use env::{IoError, Reservation, ReservationAsk, ReservationHolder};

/// `NVME_IOCTL_ID`, `NVME_IOCTL_ADMIN_CMD`, `NVME_IOCTL_IO_CMD` (`linux/nvme_ioctl.h`).
const GET_NAMESPACE: libc::Ioctl = 0x4E40;
const ADMIN_COMMAND: libc::Ioctl = 0xC048_4E41;
const IO_COMMAND: libc::Ioctl = 0xC048_4E43;
const TIME_MS: u32 = 10_000;

const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0A;
const HOST_IDENTIFIER: u32 = 0x81;
/// Of 128 bits.
const EXTENDED_IDENTIFIER: u32 = 1;
const REGISTER: u8 = 0x0D;
const REPORT: u8 = 0x0E;
const ACQUIRE: u8 = 0x11;
const WRITE_EXCLUSIVE: u8 = 1;
/// Ignore existing key.
const IGNORE_KEY: u32 = 1 << 3;
/// Change persist through power loss: on.
const PERSIST: u32 = 3 << 30;
/// Preempt and abort.
const PREEMPT: u32 = 2;
const UNREGISTER: u32 = 1;

const RESERVATION_CONFLICT: i32 = 0x83;
const INVALID_OPCODE: i32 = 0x01;
const INVALID_FIELD: i32 = 0x02;
/// Reports in the extended form: 64 bytes, and as many for each registrant.
const ENTRY_BYTES: usize = 64;
const REPORT_BYTES: usize = 4096;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dword2: u32,
    dword3: u32,
    metadata: u64,
    data: u64,
    metadata_length: u32,
    data_length: u32,
    dword10: u32,
    dword11: u32,
    dword12: u32,
    dword13: u32,
    dword14: u32,
    dword15: u32,
    time_ms: u32,
    result: u32,
}

/// The namespace that a block device is; `None`: it is none.
pub fn namespace(descriptor: RawFd) -> Option<u32> {
    // SAFETY: the request takes no memory; the hold keeps the descriptor open.
    let result = unsafe { libc::ioctl(descriptor, GET_NAMESPACE) };
    u32::try_from(result).ok().filter(|&namespace| namespace > 0)
}

pub fn carry_out(
    descriptor: RawFd,
    namespace: u32,
    ask: ReservationAsk,
) -> Result<Option<Reservation>, IoError> {
    let io = |command, data: &mut [u8]| send(descriptor, IO_COMMAND, command, data);
    let command =
        |opcode, dword10, dword11| Command { opcode, namespace, dword10, dword11, ..Command::default() };
    let Some((opcode, dword10, mut data)) = change(ask) else {
        let mut data = vec![0; REPORT_BYTES];
        io(command(REPORT, (REPORT_BYTES / 4 - 1) as u32, EXTENDED_IDENTIFIER), &mut data)?;
        return Ok(Some(parse_report(&data)));
    };
    if matches!(ask, ReservationAsk::Register { .. }) {
        give_identifier(descriptor)?;
    }
    io(command(opcode, dword10, 0), &mut data).map(|()| None)
}

/// A command that changes something: opcode, dword 10, data. `None` for a report.
fn change(ask: ReservationAsk) -> Option<(u8, u32, [u8; 16])> {
    let reserved = u32::from(WRITE_EXCLUSIVE) << 8;
    let (opcode, dword10, current, new) = match ask {
        ReservationAsk::Report => return None,
        // registering again replaces the key
        ReservationAsk::Register { key } => (REGISTER, 2 | IGNORE_KEY | PERSIST, 0, key),
        ReservationAsk::Reserve { key } => (ACQUIRE, reserved, key, 0),
        ReservationAsk::Preempt { key, other } => (ACQUIRE, PREEMPT | reserved, key, other),
        ReservationAsk::Unregister { key } => (REGISTER, UNREGISTER | PERSIST, key, 0),
    };
    let mut data = [0; 16];
    data[..8].copy_from_slice(&u64::to_le_bytes(current));
    data[8..].copy_from_slice(&u64::to_le_bytes(new));
    Some((opcode, dword10, data))
}

/// Gives the controller a Host Identifier, if it has none: the machine's own.
fn give_identifier(descriptor: RawFd) -> Result<(), IoError> {
    let feature = |opcode| Command {
        opcode,
        dword10: HOST_IDENTIFIER,
        dword11: EXTENDED_IDENTIFIER,
        ..Command::default()
    };
    let mut known = [0; 16];
    send(descriptor, ADMIN_COMMAND, feature(GET_FEATURES), &mut known)?;
    if known != [0; 16] {
        return Ok(());
    }
    let mut own = machine_id().ok_or(IoError::Unsupported)?;
    send(descriptor, ADMIN_COMMAND, feature(SET_FEATURES), &mut own)
}

/// `/etc/machine-id`, which is made when a machine is installed.
fn machine_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    Some(u128::from_str_radix(text.trim(), 16).ok().filter(|&id| id != 0)?.to_be_bytes())
}

fn send(
    descriptor: RawFd,
    request: libc::Ioctl,
    mut command: Command,
    data: &mut [u8],
) -> Result<(), IoError> {
    command.data = data.as_mut_ptr().addr() as u64;
    command.data_length = data.len() as u32;
    command.time_ms = TIME_MS;
    // SAFETY: the command has the layout that the kernel expects; the data lives across the call, with the length that the command
    // says; the hold keeps the descriptor open.
    let result = unsafe { libc::ioctl(descriptor, request, &raw mut command) };
    match result {
        0 => Ok(()),
        status if status > 0 => Err(status_error(status)),
        _ => match std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO) {
            libc::ENODEV | libc::ENXIO => Err(IoError::Gone),
            libc::EACCES | libc::EPERM => Err(IoError::PermissionDenied),
            libc::ENOTTY | libc::EOPNOTSUPP => Err(IoError::Unsupported),
            other => Err(IoError::Other(other)),
        },
    }
}

/// Status code type and status code (NVMe Base 2.0 §3.3.3.2).
fn status_error(status: i32) -> IoError {
    match status & 0x7FF {
        RESERVATION_CONFLICT => IoError::Reserved,
        INVALID_OPCODE | INVALID_FIELD => IoError::Unsupported,
        _ => IoError::Media,
    }
}

/// Generation (4), type (1), registrants (2), …; from byte 64 on for each of them: controller (2), status (1: bit 0 holds the reservation),
/// reserved (5), key (8), Host Identifier (16), reserved (32).
fn parse_report(data: &[u8]) -> Reservation {
    let Some((header, entries)) = data.split_at_checked(ENTRY_BYTES) else { return Reservation::default() };
    let count = usize::from(u16::from_le_bytes([header[5], header[6]]));
    let mut found = Reservation::default();
    for entry in entries.chunks_exact(ENTRY_BYTES).take(count) {
        let key = u64::from_le_bytes(std::array::from_fn(|byte| entry[8 + byte]));
        found.keys.push(key);
        if entry[2] & 1 != 0 {
            found.holder = Some(ReservationHolder { key, is_write_exclusive: header[4] == WRITE_EXCLUSIVE });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_layout_of_the_kernel() {
        assert_eq!(size_of::<Command>(), 72);
        assert_eq!(std::mem::offset_of!(Command, dword10), 40);
    }

    #[test]
    fn commands_are_those_of_the_standard() {
        let (opcode, dword10, data) = change(ReservationAsk::Preempt { key: 1, other: 2 }).unwrap();
        assert_eq!((opcode, dword10), (0x11, 0x102));
        assert_eq!(data, [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        let (opcode, dword10, _) = change(ReservationAsk::Register { key: 1 }).unwrap();
        assert_eq!((opcode, dword10), (0x0D, 0xC000_000A));
        let (_, dword10, _) = change(ReservationAsk::Reserve { key: 1 }).unwrap();
        assert_eq!(dword10, 0x100);
    }

    #[test]
    fn a_report_names_who_holds_the_namespace() {
        let mut data = vec![0; 3 * ENTRY_BYTES];
        (data[4], data[5]) = (1, 2);
        data[ENTRY_BYTES + 8] = 7;
        data[2 * ENTRY_BYTES + 2] = 1;
        data[2 * ENTRY_BYTES + 8] = 9;
        let found = parse_report(&data);
        assert_eq!(found.keys, [7, 9]);
        assert_eq!(found.holder, Some(ReservationHolder { key: 9, is_write_exclusive: true }));
        // more registrants than it has room for, and nothing at all
        data[6] = 0xFF;
        assert_eq!(parse_report(&data).keys, [7, 9]);
        assert_eq!(parse_report(&[]), Reservation::default());
    }

    #[test]
    fn a_conflict_is_told_from_a_failure() {
        assert_eq!(status_error(0x83), IoError::Reserved);
        assert_eq!(status_error(0x4083), IoError::Reserved, "with the bits of the queue entry");
        assert_eq!(status_error(1), IoError::Unsupported);
        assert_eq!(status_error(0x281), IoError::Media);
    }
}
