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
A command that is not in this list is refused with ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE. If only its service action
is unknown, the additional sense code is INVALID FIELD IN CDB.

- **CDB usage**: a one for every bit that is evaluated, as in REPORT SUPPORTED OPERATION CODES. If any other
  bit is set, the command is refused with INVALID FIELD IN CDB and a field pointer.
- **Reservations**: which reservations of another initiator the command conflicts with. *always*: none. *allowed*: RESERVE
  only. *read*: also exclusive access. *write*: also write exclusive. *decides itself*: the command is about
  reservations and has its own rules.
- **ALUA**: the asymmetric access states in which the command is served.
- **Attention**: whether a pending unit attention is reported instead, or the command is carried out.
- **Read-only**: whether the command is served for an initiator to which the volume is mapped read-only. A command that
  *writes*, or that changes what *others* may do (reservations, access states), is refused with DATA PROTECT, WRITE PROTECTED.

| Opcode | Command | Standard | CDB usage | Data | Reservations | ALUA | Attention | Read-only | Volumes |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

const NOTES: &str = "
Mode pages: 01h, 02h, 08h, 0Ah, 1Ch. Each initiator can change D_SENSE, SWP and TAS of page 0Ah for itself.
Saving is not supported. VPD pages: 00h, 80h, 83h, 86h, 87h, 88h, 8Fh, B0h, B1h, B2h.
Log pages: 00h, 0Ch (volumes of a pool), 0Dh, 2Fh.

Asymmetric access: an iSCSI portal group is a target port and a target port group. Each volume has its own states. SET TARGET
PORT GROUPS and the administrator set them (TPGS is 11b; `tangelo volume access`). Every nexus except the one that asked gets unit
attention 2Ah/06h. The states survive a restart. No group is marked as preferred: hosts follow the states alone. A command that is
not served in the current state ends with NOT READY: 04h/0Bh in standby, 04h/0Ch in unavailable, 04h/0Ah while the state changes. A change
lasts until the commands that came by that group have ended. The last active group cannot be made inactive: HARDWARE ERROR, 67h/0Ah.

Task sets: each initiator has its own (TST is 001b). So CLEAR TASK SET ends only the commands of the initiator that sent it, as
ABORT TASK SET does. LOGICAL UNIT RESET, TARGET RESET and PREEMPT AND ABORT also end commands of other initiators. These end with TASK
ABORTED (TAS is 1), and hosts send them again at once. With TAS 0 they end without an answer, and a unit attention reports this:
29h/03h after a reset, 2Fh/00h after PREEMPT AND ABORT. In both cases, an aborted command changes nothing on the volume after its
initiator, or the initiator that aborted it, has been informed. A reset by an initiator to which the volume is mapped read-only ends only
that initiator's own commands.

Limits: a session can have 128 commands outstanding (its command window), and 32 immediate commands; further immediate commands are
rejected. The commands of all sessions that one core serves share a budget for data, 66 MiB to 512 MiB by `memory` in
`docs/configuration.md`; data of a read counts until it is sent. A
command that does not fit is refused with TASK SET FULL, or with BUSY if its nexus has no other command outstanding, and
none of its data is kept. ORWRITE ends with BUSY if others keep changing the same blocks.

Refused on purpose, like unknown operation codes:

- FORMAT UNIT: the block size of a volume never changes. Delete the volume and create another one.
- SANITIZE: the log is append-only, and drives remap their own blocks. So the array cannot promise that old content is gone from every
  drive. Discard the volume, and sanitize the drives themselves when they leave.
- WRITE ATOMIC, and every other command of standards later than SPC-4 and SBC-3.

ANCHOR of UNMAP and WRITE SAME, and RDPROTECT, WRPROTECT and VRPROTECT, are refused with INVALID FIELD IN CDB.
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
