//! Tests of [`super`]: every rule against its definition.

use super::*;
use proptest::prelude::*;

fn say(name: &str, value: &str) -> (Answer, Parameters) {
    say_in(SessionKind::Normal, name, value)
}

fn say_in(kind: SessionKind, name: &str, value: &str) -> (Answer, Parameters) {
    let mut agreed = Parameters::DEFAULT;
    let answer = answer(find(name).unwrap(), value, kind, Parameters::TARGET, &mut agreed);
    (answer, agreed)
}

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Nothing => String::new(),
        Answer::Word(word) => (*word).to_string(),
        Answer::Number(number) => number.to_string(),
    }
}

#[test]
fn names_are_unique() {
    for (index, key) in KEYS.iter().enumerate() {
        assert!(KEYS[index + 1..].iter().all(|other| other.name != key.name), "{}", key.name);
    }
}

/// RFC 7143 §13 and §12.1.3, and what §13.25 has made obsolete.
#[test]
fn every_key_of_the_standard_is_known() {
    let standard = "AuthMethod HeaderDigest DataDigest MaxConnections SendTargets TargetName InitiatorName TargetAlias \
        InitiatorAlias TargetAddress TargetPortalGroupTag InitialR2T ImmediateData MaxRecvDataSegmentLength \
        MaxBurstLength FirstBurstLength DefaultTime2Wait DefaultTime2Retain MaxOutstandingR2T DataPDUInOrder \
        DataSequenceInOrder ErrorRecoveryLevel SessionType TaskReporting iSCSIProtocolLevel CHAP_A CHAP_I CHAP_C \
        CHAP_N CHAP_R IFMarker OFMarker IFMarkInt OFMarkInt";
    let mut names: Vec<&str> = standard.split_whitespace().collect();
    let mut known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    names.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, names);
    assert!(find("X-com.example.speed").is_none(), "private keys are not understood, and so answered");
}

#[test]
fn answers() {
    let table = [
        ("HeaderDigest", "CRC32C,None", "CRC32C"),
        ("HeaderDigest", "None,CRC32C", "None"),
        ("DataDigest", "X-sha,CRC32C", "CRC32C"),
        ("DataDigest", "X-sha", "Reject"),
        ("MaxConnections", "8", "1"),
        ("MaxConnections", "0", "Reject"),
        ("MaxConnections", "65536", "Reject"),
        ("InitialR2T", "No", "No"),
        ("InitialR2T", "Yes", "Yes"),
        ("InitialR2T", "yes", "Reject"),
        ("ImmediateData", "Yes", "Yes"),
        ("ImmediateData", "No", "No"),
        ("MaxRecvDataSegmentLength", "65536", ""),
        ("MaxRecvDataSegmentLength", "511", "Reject"),
        ("MaxRecvDataSegmentLength", "16777216", "Reject"),
        ("MaxBurstLength", "16776192", "1048576"),
        ("MaxBurstLength", "512", "512"),
        ("MaxBurstLength", "0x400", "1024"),
        ("MaxBurstLength", "511", "Reject"),
        ("MaxBurstLength", "+1024", "Reject"),
        ("FirstBurstLength", "262144", "262144"),
        ("FirstBurstLength", "16776192", "262144"),
        ("FirstBurstLength", "65536", "65536"),
        ("DefaultTime2Wait", "2", "2"),
        ("DefaultTime2Wait", "3601", "Reject"),
        ("DefaultTime2Retain", "20", "0"),
        ("MaxOutstandingR2T", "1", "1"),
        ("MaxOutstandingR2T", "65535", "8"),
        ("DataPDUInOrder", "No", "Yes"),
        ("DataSequenceInOrder", "No", "Yes"),
        ("ErrorRecoveryLevel", "2", "0"),
        ("ErrorRecoveryLevel", "3", "Reject"),
        ("TaskReporting", "FastAbort,ResponseFence,RFC3720", "ResponseFence"),
        ("TaskReporting", "FastAbort", "Reject"),
        ("iSCSIProtocolLevel", "2", "1"),
        ("IFMarker", "Yes", "No"),
        ("OFMarkInt", "1~2048", "Irrelevant"),
        ("TargetAlias", "mine", "Reject"),
        ("MaxBurstLength", "Irrelevant", ""),
        ("MaxBurstLength", "", "Reject"),
        ("MaxBurstLength", "99999999999999999999", "Reject"),
    ];
    for (name, offer, expected) in table {
        assert_eq!(text(&say(name, offer).0), expected, "{name}={offer}");
    }
}

#[test]
fn results_are_noted_and_rejected_values_leave_the_default() {
    assert!(say("HeaderDigest", "CRC32C").1.header_digest);
    assert!(!say("InitialR2T", "No").1.initial_r2t);
    assert_eq!(say("MaxRecvDataSegmentLength", "262144").1.send_segment_bytes, 262_144);
    assert_eq!(say("MaxBurstLength", "1000000000").1, Parameters::DEFAULT);
}

#[test]
fn what_concerns_commands_is_irrelevant_to_discovery() {
    for key in KEYS.iter().filter(|key| key.normal_only) {
        assert_eq!(say_in(SessionKind::Discovery, key.name, "Yes").0, Answer::Word("Irrelevant"));
    }
    assert_eq!(text(&say_in(SessionKind::Discovery, "HeaderDigest", "CRC32C").0), "CRC32C");
}

pub(crate) fn any_parameters() -> impl Strategy<Value = Parameters> {
    let segment = || prop_oneof![512u32..5000, Just(8192u32), 512u32..262_145];
    (any::<[bool; 4]>(), segment(), segment(), segment(), segment(), 1u32..10, 0u32..20).prop_map(
        |(
            [header_digest, data_digest, initial_r2t, immediate_data],
            send,
            receive,
            max,
            first,
            r2ts,
            wait,
        )| {
            Parameters {
                header_digest,
                data_digest,
                initial_r2t,
                immediate_data,
                send_segment_bytes: send,
                receive_segment_bytes: receive,
                max_burst_bytes: max,
                first_burst_bytes: first.min(max),
                max_outstanding_r2t: r2ts,
                time_to_wait_seconds: wait,
                ..Parameters::DEFAULT
            }
        },
    )
}

proptest! {
    /// Two ends that follow the table come to the same result, and the initiator accepts every answer.
    #[test]
    fn both_ends_agree(wanted in any_parameters(), ours in any_parameters()) {
        let (mut target, mut initiator) = (Parameters::DEFAULT, Parameters::DEFAULT);
        for (name, value) in offers(wanted, SessionKind::Normal) {
            let key = find(name).unwrap();
            let answer = answer(key, &value, SessionKind::Normal, ours, &mut target);
            if answer != Answer::Nothing {
                prop_assert!(accept(key, &text(&answer), wanted, &mut initiator), "{}={}", name, text(&answer));
            }
        }
        prop_assert_eq!(target.send_segment_bytes, wanted.receive_segment_bytes);
        target.send_segment_bytes = initiator.send_segment_bytes;
        prop_assert_eq!(target, initiator);
        prop_assert!(target.first_burst_bytes <= target.max_burst_bytes);
        prop_assert_eq!(target.max_burst_bytes, wanted.max_burst_bytes.min(ours.max_burst_bytes));
        prop_assert_eq!(target.initial_r2t, wanted.initial_r2t || ours.initial_r2t);
        prop_assert_eq!(target.immediate_data, wanted.immediate_data && ours.immediate_data);
        prop_assert_eq!(target.time_to_wait_seconds, wanted.time_to_wait_seconds.max(ours.time_to_wait_seconds));
    }

    #[test]
    fn any_value_is_answered(index in 0usize..KEYS.len(), value in "\\PC{0,40}") {
        let _ = say(KEYS[index].name, &value);
    }
}
