//! The rows of the opcode table, by opcode and service action. A command exists only if it has a row here.

use crate::commands::{
    access, compare, control, copy, inquiry, lba_status, log, mode, or_write, port_groups, report, reserve,
    unmap, verify, write_same,
};
use crate::row::{reserve_in, reserve_out, row};
use crate::table::AluaClass::{self, ActiveOrStandby};
use crate::table::AttentionRule::Passes;
use crate::table::Availability::Thin;
use crate::table::Direction::{In, Out};
use crate::table::ReadOnlyRule::{Destination, GivesUp, Others, Own};
use crate::table::ReservationClass;
use crate::table::Row;

// Byte 1 of reads and writes: DPO, FUA and the obsolete FUA_NV. RDPROTECT and WRPROTECT must be zero.
const DPO_FUA: u8 = 0x1A;
// Byte 1 of VERIFY: DPO and both bits of BYTCHK; of WRITE AND VERIFY: one bit.
const DPO_BYTCHK: u8 = 0x16;
const DPO_BYTCHK_1: u8 = 0x12;
const GROUP: u8 = 0x1F;
const ALL: u8 = 0xFF;

pub(crate) static ROWS: &[Row] = &[
    row(0x00, "TEST UNIT READY", "SPC-4 §6.47", &[0x00, 0, 0, 0, 0, 0], control::test_unit_ready),
    row(0x03, "REQUEST SENSE", "SPC-4 §6.39", &[0x03, 0x01, 0, 0, ALL, 0], control::request_sense)
        .data(In)
        .reserved(ReservationClass::Always)
        .alua(AluaClass::Any)
        .attention(Passes),
    row(0x08, "READ (6)", "SBC-2 §5.5", &[0x08, 0x1F, ALL, ALL, ALL, 0], access::read).reads(),
    row(0x0A, "WRITE (6)", "SBC-2 §5.24", &[0x0A, 0x1F, ALL, ALL, ALL, 0], access::write).writes(),
    row(0x12, "INQUIRY", "SPC-4 §6.6", &[0x12, 0x01, ALL, ALL, ALL, 0], inquiry::inquiry)
        .data(In)
        .reserved(ReservationClass::Always)
        .alua(AluaClass::Any)
        .attention(Passes),
    row(0x15, "MODE SELECT (6)", "SPC-4 §6.11", &[0x15, 0x11, 0, 0, ALL, 0], mode::select_6)
        .data(Out)
        .reserved(ReservationClass::Write)
        .alua(ActiveOrStandby)
        .read_only(Own),
    row(0x16, "RESERVE (6)", "SPC-2 §7.21", &[0x16, 0, 0, 0, 0, 0], reserve::reserve)
        .reserved(ReservationClass::Own)
        .read_only(Others),
    row(0x17, "RELEASE (6)", "SPC-2 §7.19", &[0x17, 0, 0, 0, 0, 0], reserve::release)
        .reserved(ReservationClass::Own)
        .read_only(GivesUp),
    row(0x1A, "MODE SENSE (6)", "SPC-4 §6.13", &[0x1A, 0x08, ALL, ALL, ALL, 0], mode::sense_6)
        .data(In)
        .reserved(ReservationClass::Write)
        .alua(ActiveOrStandby),
    row(0x1B, "START STOP UNIT", "SBC-3 §5.25", &[0x1B, 0x01, 0, 0x0F, 0xF7, 0], control::start_stop)
        .reserved(ReservationClass::WriteUnless { byte: 4, mask: 0xF1, value: 0x01 }),
    row(0x1D, "SEND DIAGNOSTIC", "SPC-4 §6.42", &[0x1D, 0x04, 0, 0, 0, 0], control::send_diagnostic)
        .reserved(ReservationClass::Write)
        .alua(ActiveOrStandby),
    row(
        0x1E,
        "PREVENT ALLOW MEDIUM REMOVAL",
        "SBC-3 §5.10",
        &[0x1E, 0, 0, 0, 0x01, 0],
        control::prevent_allow,
    )
    .reserved(ReservationClass::WriteUnless { byte: 4, mask: 0x01, value: 0x00 }),
    row(
        0x25,
        "READ CAPACITY (10)",
        "SBC-3 §5.15",
        &[0x25, 0, ALL, ALL, ALL, ALL, 0, 0, 0x01, 0],
        control::read_capacity_10,
    )
    .data(In)
    .reserved(ReservationClass::Always),
    row(
        0x28,
        "READ (10)",
        "SBC-3 §5.11",
        &[0x28, DPO_FUA, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        access::read,
    )
    .reads(),
    row(
        0x2A,
        "WRITE (10)",
        "SBC-3 §5.33",
        &[0x2A, DPO_FUA, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        access::write,
    )
    .writes(),
    row(
        0x2E,
        "WRITE AND VERIFY (10)",
        "SBC-3 §5.37",
        &[0x2E, DPO_BYTCHK_1, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        verify::write_and_verify,
    )
    .writes(),
    row(
        0x2F,
        "VERIFY (10)",
        "SBC-3 §5.29",
        &[0x2F, DPO_BYTCHK, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        verify::verify,
    )
    .reads()
    .data(Out),
    row(
        0x34,
        "PRE-FETCH (10)",
        "SBC-3 §5.8",
        &[0x34, 0x02, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        control::prefetch,
    )
    .reserved(ReservationClass::Read),
    row(
        0x35,
        "SYNCHRONIZE CACHE (10)",
        "SBC-3 §5.26",
        &[0x35, 0x06, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        control::synchronize_cache,
    )
    .reserved(ReservationClass::Write),
    row(
        0x37,
        "READ DEFECT DATA (10)",
        "SBC-3 §5.17",
        &[0x37, 0, 0x1F, 0, 0, 0, 0, ALL, ALL, 0],
        control::read_defect_data,
    )
    .data(In),
    row(
        0x41,
        "WRITE SAME (10)",
        "SBC-3 §5.43",
        &[0x41, 0x08, ALL, ALL, ALL, ALL, GROUP, ALL, ALL, 0],
        write_same::write_same,
    )
    .writes(),
    row(0x42, "UNMAP", "SBC-3 §5.28", &[0x42, 0, 0, 0, 0, 0, GROUP, ALL, ALL, 0], unmap::unmap)
        .writes()
        .only(Thin),
    row(0x4D, "LOG SENSE", "SPC-4 §6.8", &[0x4D, 0x01, ALL, ALL, 0, ALL, ALL, ALL, ALL, 0], log::log_sense)
        .data(In)
        .reserved(ReservationClass::Always)
        .alua(ActiveOrStandby),
    row(0x55, "MODE SELECT (10)", "SPC-4 §6.12", &[0x55, 0x11, 0, 0, 0, 0, 0, ALL, ALL, 0], mode::select_10)
        .data(Out)
        .reserved(ReservationClass::Write)
        .alua(ActiveOrStandby)
        .read_only(Own),
    row(0x56, "RESERVE (10)", "SPC-2 §7.20", &[0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0], reserve::reserve)
        .reserved(ReservationClass::Own)
        .read_only(Others),
    row(0x57, "RELEASE (10)", "SPC-2 §7.18", &[0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0], reserve::release)
        .reserved(ReservationClass::Own)
        .read_only(GivesUp),
    row(
        0x5A,
        "MODE SENSE (10)",
        "SPC-4 §6.14",
        &[0x5A, 0x18, ALL, ALL, 0, 0, 0, ALL, ALL, 0],
        mode::sense_10,
    )
    .data(In)
    .reserved(ReservationClass::Write)
    .alua(ActiveOrStandby),
    reserve_in(0x00, "PERSISTENT RESERVE IN: READ KEYS", "SPC-4 §6.15.2", reserve::read_keys),
    reserve_in(0x01, "PERSISTENT RESERVE IN: READ RESERVATION", "SPC-4 §6.15.3", reserve::read_reservation),
    reserve_in(
        0x02,
        "PERSISTENT RESERVE IN: REPORT CAPABILITIES",
        "SPC-4 §6.15.4",
        reserve::report_capabilities,
    ),
    reserve_in(0x03, "PERSISTENT RESERVE IN: READ FULL STATUS", "SPC-4 §6.15.5", reserve::read_full_status),
    reserve_out(0x00, "PERSISTENT RESERVE OUT: REGISTER"),
    reserve_out(0x01, "PERSISTENT RESERVE OUT: RESERVE"),
    reserve_out(0x02, "PERSISTENT RESERVE OUT: RELEASE").read_only(GivesUp),
    reserve_out(0x03, "PERSISTENT RESERVE OUT: CLEAR"),
    reserve_out(0x04, "PERSISTENT RESERVE OUT: PREEMPT"),
    reserve_out(0x05, "PERSISTENT RESERVE OUT: PREEMPT AND ABORT"),
    reserve_out(0x06, "PERSISTENT RESERVE OUT: REGISTER AND IGNORE EXISTING KEY"),
    reserve_out(0x07, "PERSISTENT RESERVE OUT: REGISTER AND MOVE"),
    row(
        0x83,
        "EXTENDED COPY (LID1)",
        "SPC-4 §6.4",
        &[0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        copy::extended_copy,
    )
    .service_action(0x00)
    .data(Out)
    .reserved(ReservationClass::Write)
    .read_only(Destination),
    row(
        0x84,
        "RECEIVE COPY RESULTS: COPY STATUS (LID1)",
        "SPC-4 §6.18.2",
        &[0x84, 0, ALL, 0, 0, 0, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        copy::copy_status,
    )
    .service_action(0x00)
    .data(In)
    .reserved(ReservationClass::Write),
    row(
        0x84,
        "RECEIVE COPY RESULTS: OPERATING PARAMETERS",
        "SPC-4 §6.18.4",
        &[0x84, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        copy::operating_parameters,
    )
    .service_action(0x03)
    .data(In)
    .reserved(ReservationClass::Write),
    row(
        0x84,
        "RECEIVE COPY RESULTS: FAILED SEGMENT DETAILS (LID1)",
        "SPC-4 §6.18.5",
        &[0x84, 0x04, ALL, 0, 0, 0, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        copy::failed_segment,
    )
    .service_action(0x04)
    .data(In)
    .reserved(ReservationClass::Write),
    row(
        0x88,
        "READ (16)",
        "SBC-3 §5.13",
        &[0x88, DPO_FUA, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        access::read,
    )
    .reads(),
    row(
        0x89,
        "COMPARE AND WRITE",
        "SBC-3 §5.2",
        &[0x89, DPO_FUA, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, 0, 0, 0, ALL, GROUP, 0],
        compare::compare_and_write,
    )
    .writes(),
    row(
        0x8A,
        "WRITE (16)",
        "SBC-3 §5.35",
        &[0x8A, DPO_FUA, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        access::write,
    )
    .writes(),
    row(
        0x8B,
        "ORWRITE (16)",
        "SBC-3 §5.7",
        &[0x8B, DPO_FUA, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        or_write::or_write,
    )
    .writes(),
    row(
        0x8E,
        "WRITE AND VERIFY (16)",
        "SBC-3 §5.39",
        &[0x8E, DPO_BYTCHK_1, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        verify::write_and_verify,
    )
    .writes(),
    row(
        0x8F,
        "VERIFY (16)",
        "SBC-3 §5.31",
        &[0x8F, DPO_BYTCHK, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        verify::verify,
    )
    .reads()
    .data(Out),
    row(
        0x90,
        "PRE-FETCH (16)",
        "SBC-3 §5.9",
        &[0x90, 0x02, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        control::prefetch,
    )
    .reserved(ReservationClass::Read),
    row(
        0x91,
        "SYNCHRONIZE CACHE (16)",
        "SBC-3 §5.27",
        &[0x91, 0x06, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        control::synchronize_cache,
    )
    .reserved(ReservationClass::Write),
    row(
        0x93,
        "WRITE SAME (16)",
        "SBC-3 §5.44",
        &[0x93, 0x09, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        write_same::write_same,
    )
    .writes(),
    row(
        0x9E,
        "READ CAPACITY (16)",
        "SBC-3 §5.16",
        &[0x9E, 0x10, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, 0x01, 0],
        control::read_capacity_16,
    )
    .service_action(0x10)
    .data(In)
    .reserved(ReservationClass::Always),
    row(
        0x9E,
        "GET LBA STATUS",
        "SBC-3 §5.4",
        &[0x9E, 0x12, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, 0, 0],
        lba_status::get_lba_status,
    )
    .service_action(0x12)
    .reads(),
    row(
        0xA0,
        "REPORT LUNS",
        "SPC-4 §6.33",
        &[0xA0, 0, ALL, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        report::report_luns,
    )
    .data(In)
    .reserved(ReservationClass::Always)
    .alua(AluaClass::Any)
    .attention(Passes),
    row(
        0xA3,
        "REPORT TARGET PORT GROUPS",
        "SPC-4 §6.37",
        &[0xA3, 0x2A, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        port_groups::report,
    )
    .service_action(0x0A)
    .data(In)
    .reserved(ReservationClass::Always)
    .alua(AluaClass::Any),
    row(
        0xA3,
        "REPORT SUPPORTED OPERATION CODES",
        "SPC-4 §6.35",
        &[0xA3, 0x0C, 0x87, ALL, ALL, ALL, ALL, ALL, ALL, ALL, 0, 0],
        report::supported_operation_codes,
    )
    .service_action(0x0C)
    .data(In)
    .reserved(ReservationClass::Write)
    .alua(ActiveOrStandby),
    row(
        0xA3,
        "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
        "SPC-4 §6.36",
        &[0xA3, 0x0D, 0x80, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        report::supported_task_management_functions,
    )
    .service_action(0x0D)
    .data(In)
    .reserved(ReservationClass::Write)
    .alua(ActiveOrStandby),
    row(
        0xA3,
        "REPORT TIMESTAMP",
        "SPC-4 §6.38",
        &[0xA3, 0x0F, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        report::timestamp,
    )
    .service_action(0x0F)
    .data(In)
    .reserved(ReservationClass::Always)
    .alua(AluaClass::Any),
    row(
        0xA4,
        "SET TARGET PORT GROUPS",
        "SPC-4 §6.45",
        &[0xA4, 0x0A, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        port_groups::set,
    )
    .service_action(0x0A)
    .data(Out)
    .reserved(ReservationClass::Write)
    .alua(AluaClass::Any)
    .read_only(Others),
    row(
        0xA8,
        "READ (12)",
        "SBC-3 §5.12",
        &[0xA8, DPO_FUA, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        access::read,
    )
    .reads(),
    row(
        0xAA,
        "WRITE (12)",
        "SBC-3 §5.34",
        &[0xAA, DPO_FUA, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        access::write,
    )
    .writes(),
    row(
        0xAE,
        "WRITE AND VERIFY (12)",
        "SBC-3 §5.38",
        &[0xAE, DPO_BYTCHK_1, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        verify::write_and_verify,
    )
    .writes(),
    row(
        0xAF,
        "VERIFY (12)",
        "SBC-3 §5.30",
        &[0xAF, DPO_BYTCHK, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, GROUP, 0],
        verify::verify,
    )
    .reads()
    .data(Out),
    row(
        0xB7,
        "READ DEFECT DATA (12)",
        "SBC-3 §5.18",
        &[0xB7, 0x1F, 0, 0, 0, 0, ALL, ALL, ALL, ALL, 0, 0],
        control::read_defect_data,
    )
    .data(In),
];
