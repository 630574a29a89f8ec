//! The documented command list, made from the opcode table.

use std::fmt::Write as _;

use crate::rows::ROWS;
use crate::table::{AluaClass, AttentionRule, Availability, Direction, ReadOnlyRule, ReservationClass, Row};

/// docs/scsi-commands.md, in full. A test keeps the file equal to it; `UPDATE_DOCS=1 cargo test -p scsi`
/// writes it anew.
pub fn command_list() -> String {
    let mut out = String::from(INTRODUCTION);
    for row in ROWS {
        line(&mut out, row);
    }
    out.push_str(NOTES);
    out
}

const INTRODUCTION: &str = "\
# SCSI commands

Made from the opcode table in `crates/scsi/src/rows.rs`; `UPDATE_DOCS=1 cargo test -p scsi` writes it anew.
A command that is not in this list is refused with ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE, or with INVALID
FIELD IN CDB where it is the service action that does not exist.

- **CDB usage**: a one for every bit that is evaluated, as REPORT SUPPORTED OPERATION CODES tells it. Any other
  bit that is set is refused with INVALID FIELD IN CDB and a field pointer.
- **Reservations**: how the command fares under another initiator's reservation: *always* carried out; *allowed*: a
  conflict with RESERVE only; *read*: a conflict with exclusive access as well; *write*: a conflict with write
  exclusive as well; *decides itself*: the command is about reservations.
- **ALUA**: the asymmetric access states in which it is served.
- **Attention**: whether a pending unit attention is reported instead, or the command is carried out.
- **Read-only**: whether an initiator is served to which the volume is mapped read-only. What *writes*, and what changes
  what *others* may do (reservations, access states), is refused with DATA PROTECT, WRITE PROTECTED.

| Opcode | Command | Standard | CDB usage | Data | Reservations | ALUA | Attention | Read-only | Volumes |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

const NOTES: &str = "
Mode pages: 01h, 02h, 08h, 0Ah, 1Ch. D_SENSE, SWP and TAS of page 0Ah can be changed, by every initiator for itself;
saving is not supported. VPD pages: 00h, 80h, 83h, 86h, 87h, 88h, 8Fh, B0h, B1h, B2h.
Log pages: 00h, 0Ch (volumes of a pool), 0Dh, 2Fh.

Asymmetric access: an iSCSI portal group is a target port and a target port group. States are set for a volume by SET TARGET
PORT GROUPS and by the administrator (TPGS is 11b; `tangelo volume access`), told by 2Ah/06h to every nexus but the one
that asked, and kept over a restart. No group is marked as preferred: hosts follow the states alone. A command that its state does not serve is NOT READY: 04h/0Bh standby, 04h/0Ch unavailable, 04h/0Ah while the state changes, which
lasts until what came by that group has ended. The last active group cannot be taken away: HARDWARE ERROR, 67h/0Ah.

Task sets: every initiator has one of its own (TST is 001b), so that CLEAR TASK SET ends what that initiator has sent, as
ABORT TASK SET does. LOGICAL UNIT RESET, TARGET RESET and PREEMPT AND ABORT end others' commands, too. Those end with TASK
ABORTED (TAS is 1): hosts send them again at once. With TAS 0 they end without an answer, and a unit attention tells of it:
29h/03h after a reset, 2Fh/00h after PREEMPT AND ABORT. Either way nothing that was aborted changes the volume after its
initiator or the one that has aborted it is told. A reset by an initiator to which the volume is mapped read-only ends that
initiator's own commands and no others.

Limits: a session may have 128 commands under way, which is its command window, and 32 immediate ones; more of those are
rejected. The commands of all sessions that one core serves may hold 512 MiB of data, reads' until it is sent; one that
finds no room there is refused with TASK SET FULL, or with BUSY where its nexus has no other command under way, and
nothing of it is kept. ORWRITE ends with BUSY where others keep changing the same blocks.

Refused on purpose, as operation codes that do not exist:

- FORMAT UNIT: a volume has one block size for ever; delete it and make another one.
- SANITIZE: an append-only log on drives that remap their own blocks cannot promise that old content is gone from every
  drive; discard the volume, and sanitize the drives themselves when they leave.
- WRITE ATOMIC, and every other command of standards later than SPC-4 and SBC-3.
- ANCHOR of UNMAP and WRITE SAME, and RDPROTECT, WRPROTECT and VRPROTECT: INVALID FIELD IN CDB.
";

fn line(out: &mut String, row: &Row) {
    let action = row.service_action.map_or(String::new(), |action| format!("/{action:02X}h"));
    let usage: Vec<String> = row.usage.iter().map(|byte| format!("{byte:02X}")).collect();
    let direction = match row.direction {
        Direction::None => "",
        Direction::In => "in",
        Direction::Out => "out",
    };
    let reservation = match row.reservation {
        ReservationClass::Always => "always",
        ReservationClass::Own => "decides itself",
        ReservationClass::Allowed => "allowed",
        ReservationClass::Read => "read",
        ReservationClass::Write => "write",
        ReservationClass::WriteUnless { .. } => "write, or allowed by its flags",
    };
    let alua = match row.alua {
        AluaClass::Any => "all",
        AluaClass::ActiveOrStandby => "active, standby",
        AluaClass::Active => "active",
    };
    let attention = match row.attention {
        AttentionRule::Reports => "reported",
        AttentionRule::Passes => "carried out",
    };
    let read_only = match row.read_only {
        ReadOnlyRule::Harmless => "served",
        ReadOnlyRule::Own => "served, for itself",
        ReadOnlyRule::GivesUp => "served, gives up its own",
        ReadOnlyRule::Destination => "served, if what it writes to is not read-only",
        ReadOnlyRule::Writes => "refused: writes",
        ReadOnlyRule::Others => "refused: others",
    };
    let volumes = match row.availability {
        Availability::Always => "all",
        Availability::Thin => "thin",
    };
    writeln!(
        out,
        "| {:02X}h{action} | {} | {} | `{}` | {direction} | {reservation} | {alua} | {attention} | {read_only} | {volumes} |",
        row.opcode,
        row.name,
        row.reference,
        usage.join(" "),
    )
    .expect("a string takes whatever is written");
}
