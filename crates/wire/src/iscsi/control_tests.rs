//! Golden bytes and round trips of [`super`].

use super::*;
use crate::iscsi::data::tests::any_numbers;
use proptest::prelude::*;

const NUMBERS: Numbers = Numbers { stat_sn: 2, exp_cmd_sn: 3, max_cmd_sn: 4 };

fn header(start: &[u8], places: &[(usize, u8)]) -> Header {
    let mut header = [0; 48];
    header[..start.len()].copy_from_slice(start);
    for &(place, value) in places {
        header[place] = value;
    }
    header
}

#[test]
fn golden_nops() {
    let out =
        NopOut { immediate: true, lun: 0, task_tag: RESERVED_TAG, target_tag: 9, cmd_sn: 3, exp_stat_sn: 4 };
    let mut expected = header(&[0x40, 0x80], &[(23, 9), (27, 3), (31, 4)]);
    expected[16..20].fill(0xff);
    assert_eq!(out.emit(Lengths::default()), expected);
    assert_eq!(NopOut::parse(&expected), Ok(out));
    expected[0] = 0; // an answer that counts as a command but names none
    assert_eq!(NopOut::parse(&expected), Err(RejectReason::InvalidPduField));

    let nop = NopIn { lun: 0, task_tag: 1, target_tag: RESERVED_TAG, numbers: NUMBERS };
    let mut expected = header(&[0x20, 0x80, 0, 0, 0, 0, 0, 5], &[(19, 1), (27, 2), (31, 3), (35, 4)]);
    expected[20..24].fill(0xff);
    assert_eq!(nop.emit(Lengths::data(5)), expected);
    assert_eq!(NopIn::parse(&expected), Ok(nop));
}

#[test]
fn golden_reject_and_async() {
    let reject = Reject { reason: RejectReason::ProtocolError, numbers: NUMBERS };
    let mut expected = header(&[0x3f, 0x80, 4, 0, 0, 0, 0, 48], &[(27, 2), (31, 3), (35, 4)]);
    expected[16..20].fill(0xff);
    assert_eq!(reject.emit(Lengths::data(48)), expected);
    assert_eq!(Reject::parse(&expected), Ok(reject));
    expected[2] = 1;
    assert_eq!(Reject::parse(&expected), Err(RejectReason::InvalidPduField));

    let event = AsyncEvent::ConnectionDropped {
        connection_id: 5,
        time_to_wait_seconds: 6,
        time_to_retain_seconds: 7,
    };
    let message = AsyncMessage { lun: 0, numbers: NUMBERS, event };
    let mut expected =
        header(&[0x32, 0x80], &[(27, 2), (31, 3), (35, 4), (36, 2), (39, 5), (41, 6), (43, 7)]);
    expected[16..20].fill(0xff);
    assert_eq!(message.emit(Lengths::default()), expected);
    assert_eq!(AsyncMessage::parse(&expected), Ok(message));
    expected[36] = 0xfe;
    assert_eq!(AsyncMessage::parse(&expected), Err(RejectReason::InvalidPduField));
}

#[test]
fn golden_snack() {
    let snack = Snack { kind: 1, lun: 0, task_tag: 1, target_tag: 2, exp_stat_sn: 3, begin: 4, run: 5 };
    let expected = header(&[0x10, 0x81], &[(19, 1), (23, 2), (31, 3), (43, 4), (47, 5)]);
    assert_eq!(snack.emit(), expected);
    assert_eq!(Snack::parse(&expected), Ok(snack));
}

fn any_event() -> impl Strategy<Value = AsyncEvent> {
    let two = any::<(u16, u16)>();
    prop_oneof![
        Just(AsyncEvent::Scsi),
        any::<u16>().prop_map(|within_seconds| AsyncEvent::LogoutRequested { within_seconds }),
        any::<u16>().prop_map(|within_seconds| AsyncEvent::NegotiationRequested { within_seconds }),
        two.prop_map(|(time_to_wait_seconds, time_to_retain_seconds)| AsyncEvent::SessionDropped {
            time_to_wait_seconds,
            time_to_retain_seconds
        }),
        any::<(u16, u16, u16)>().prop_map(|(connection_id, time_to_wait_seconds, time_to_retain_seconds)| {
            AsyncEvent::ConnectionDropped { connection_id, time_to_wait_seconds, time_to_retain_seconds }
        }),
    ]
}

proptest! {
    #[test]
    fn nops_come_back(immediate: bool, lun: u64, n in any::<[u32; 4]>(), numbers in any_numbers()) {
        let out = NopOut { immediate, lun, task_tag: n[0] & 0x7fff_ffff, target_tag: n[1], cmd_sn: n[2],
            exp_stat_sn: n[3] };
        prop_assert_eq!(NopOut::parse(&out.emit(Lengths::data(1))), Ok(out));
        let nop = NopIn { lun, task_tag: n[0], target_tag: n[1], numbers };
        prop_assert_eq!(NopIn::parse(&nop.emit(Lengths::data(1))), Ok(nop));
    }

    #[test]
    fn the_rest_comes_back(reason in 0usize..10, lun: u64, numbers in any_numbers(), event in any_event(),
        kind in 0u8..4, n in any::<[u32; 5]>())
    {
        let reject = Reject { reason: RejectReason::ALL[reason], numbers };
        prop_assert_eq!(Reject::parse(&reject.emit(Lengths::data(48))), Ok(reject));
        let message = AsyncMessage { lun, numbers, event };
        prop_assert_eq!(AsyncMessage::parse(&message.emit(Lengths::data(1))), Ok(message));
        let snack = Snack { kind, lun, task_tag: n[0], target_tag: n[1], exp_stat_sn: n[2], begin: n[3], run: n[4] };
        prop_assert_eq!(Snack::parse(&snack.emit()), Ok(snack));
    }
}
