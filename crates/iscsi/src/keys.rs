//! The table of keys (RFC 7143 §13, §12), and how each value is negotiated.
//!
//! Both ends use it: a target answers offers; an initiator makes them and checks the answers. Keys that
//! are declared and not negotiated (names, authentication) are in the table, too, so that it is complete.
//! The code for logins handles those itself.

use base::limits;

use crate::api::SessionKind;

/// What two ends have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    pub header_digest: bool,
    pub data_digest: bool,
    pub initial_r2t: bool,
    pub immediate_data: bool,
    /// MaxRecvDataSegmentLength of the other end.
    pub send_segment_bytes: u32,
    /// MaxRecvDataSegmentLength of this end.
    pub receive_segment_bytes: u32,
    pub max_burst_bytes: u32,
    pub first_burst_bytes: u32,
    pub max_outstanding_r2t: u32,
    pub max_connections: u32,
    pub error_recovery_level: u32,
    pub time_to_wait_seconds: u32,
    pub time_to_retain_seconds: u32,
    pub data_pdu_in_order: bool,
    pub data_sequence_in_order: bool,
    pub protocol_level: u32,
}

impl Parameters {
    /// What holds where nothing is said (RFC 7143 §13).
    pub const DEFAULT: Parameters = Parameters {
        header_digest: false,
        data_digest: false,
        initial_r2t: true,
        immediate_data: true,
        send_segment_bytes: 8192,
        receive_segment_bytes: 8192,
        max_burst_bytes: 262_144,
        first_burst_bytes: 65_536,
        max_outstanding_r2t: 1,
        max_connections: 1,
        error_recovery_level: 0,
        time_to_wait_seconds: 2,
        time_to_retain_seconds: 20,
        data_pdu_in_order: true,
        data_sequence_in_order: true,
        protocol_level: 1,
    };

    /// What our target agrees to at most.
    pub const TARGET: Parameters = Parameters {
        header_digest: true,
        data_digest: true,
        initial_r2t: false,
        immediate_data: true,
        send_segment_bytes: SEGMENT_MAX,
        receive_segment_bytes: limits::RECEIVE_SEGMENT_BYTES_MAX as u32,
        max_burst_bytes: limits::BURST_BYTES_MAX as u32,
        first_burst_bytes: limits::FIRST_BURST_BYTES_MAX as u32,
        max_outstanding_r2t: limits::OUTSTANDING_R2TS_MAX,
        max_connections: 1,
        error_recovery_level: 0,
        time_to_wait_seconds: 0,
        time_to_retain_seconds: 0,
        data_pdu_in_order: true,
        data_sequence_in_order: true,
        protocol_level: 1,
    };
}

impl Parameters {
    /// FirstBurstLength does not exceed MaxBurstLength, whether or not either was said (RFC 7143 §13.14).
    pub fn within_burst(self) -> Parameters {
        Parameters { first_burst_bytes: self.first_burst_bytes.min(self.max_burst_bytes), ..self }
    }
}

type Number = fn(&mut Parameters) -> &mut u32;
type Switch = fn(&mut Parameters) -> &mut bool;

/// How a key's value comes about.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// A list of digests by preference; the answer is the first that both know.
    Digest(Switch),
    /// Another list; all that we may choose from.
    Choice(&'static [&'static str]),
    /// Yes if either end says Yes.
    Or(Switch),
    /// Yes if both ends say Yes.
    And(Switch),
    Least {
        low: u32,
        high: u32,
        number: Number,
    },
    Greatest {
        low: u32,
        high: u32,
        number: Number,
    },
    /// Each end states its own; no answer.
    Segment,
    /// Of an older version of the standard: answered so that it is off.
    Obsolete(&'static str),
    /// Stated or asked by an initiator while it logs in.
    Login,
    /// Asked by an initiator in full feature phase.
    Text,
    /// Stated by a target only.
    Target,
}

pub(crate) struct Key {
    pub name: &'static str,
    pub rule: Rule,
    /// Without meaning in a discovery session.
    pub normal_only: bool,
}

const SEGMENT_MIN: u32 = 512;
const SEGMENT_MAX: u32 = (1 << 24) - 1;

const fn key(name: &'static str, rule: Rule) -> Key {
    Key { name, rule, normal_only: false }
}

const fn normal(name: &'static str, rule: Rule) -> Key {
    Key { name, rule, normal_only: true }
}

const fn least(low: u32, high: u32, number: Number) -> Rule {
    Rule::Least { low, high, number }
}

/// The key on which the answer to FirstBurstLength depends.
pub(crate) const MAX_BURST_LENGTH: &str = "MaxBurstLength";

/// Every key we know.
pub(crate) const KEYS: &[Key] = &[
    key("HeaderDigest", Rule::Digest(|p| &mut p.header_digest)),
    key("DataDigest", Rule::Digest(|p| &mut p.data_digest)),
    normal("MaxConnections", least(1, 65_535, |p| &mut p.max_connections)),
    key("SendTargets", Rule::Text),
    key("TargetName", Rule::Login),
    key("InitiatorName", Rule::Login),
    key("TargetAlias", Rule::Target),
    key("InitiatorAlias", Rule::Login),
    key("TargetAddress", Rule::Target),
    key("TargetPortalGroupTag", Rule::Target),
    normal("InitialR2T", Rule::Or(|p| &mut p.initial_r2t)),
    normal("ImmediateData", Rule::And(|p| &mut p.immediate_data)),
    key("MaxRecvDataSegmentLength", Rule::Segment),
    normal(MAX_BURST_LENGTH, least(SEGMENT_MIN, SEGMENT_MAX, |p| &mut p.max_burst_bytes)),
    normal("FirstBurstLength", least(SEGMENT_MIN, SEGMENT_MAX, |p| &mut p.first_burst_bytes)),
    key("DefaultTime2Wait", Rule::Greatest { low: 0, high: 3600, number: |p| &mut p.time_to_wait_seconds }),
    key("DefaultTime2Retain", least(0, 3600, |p| &mut p.time_to_retain_seconds)),
    normal("MaxOutstandingR2T", least(1, 65_535, |p| &mut p.max_outstanding_r2t)),
    normal("DataPDUInOrder", Rule::Or(|p| &mut p.data_pdu_in_order)),
    normal("DataSequenceInOrder", Rule::Or(|p| &mut p.data_sequence_in_order)),
    key("ErrorRecoveryLevel", least(0, 2, |p| &mut p.error_recovery_level)),
    key("SessionType", Rule::Login),
    normal("TaskReporting", Rule::Choice(&["RFC3720", "ResponseFence"])),
    key("iSCSIProtocolLevel", least(0, 31, |p| &mut p.protocol_level)),
    key("AuthMethod", Rule::Login),
    key("CHAP_A", Rule::Login),
    key("CHAP_I", Rule::Login),
    key("CHAP_C", Rule::Login),
    key("CHAP_N", Rule::Login),
    key("CHAP_R", Rule::Login),
    key("IFMarker", Rule::Obsolete("No")),
    key("OFMarker", Rule::Obsolete("No")),
    key("IFMarkInt", Rule::Obsolete(IRRELEVANT)),
    key("OFMarkInt", Rule::Obsolete(IRRELEVANT)),
];

pub(crate) const NOT_UNDERSTOOD: &str = "NotUnderstood";
pub(crate) const IRRELEVANT: &str = "Irrelevant";
pub(crate) const REJECT: &str = "Reject";

pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// A numerical value (RFC 7143 §6.1): decimal, or hexadecimal after `0x`.
pub(crate) fn parse_number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None; // a sign
    }
    u32::from_str_radix(digits, radix).ok()
}

fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

fn switch_text(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

/// What to say to an offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Nothing,
    Word(&'static str),
    Number(u32),
}

impl From<&'static str> for Answer {
    fn from(word: &'static str) -> Answer {
        Answer::Word(word)
    }
}

/// Answers an offer of one key, and records the result in `agreed`. `ours` are our limits. FirstBurstLength must not exceed
/// MaxBurstLength, so MaxBurstLength is answered first.
/// [`Rule::Login`], [`Rule::Text`] and [`Rule::Target`] keys are the caller's.
pub(crate) fn answer(
    key: &Key,
    value: &str,
    kind: SessionKind,
    mut ours: Parameters,
    agreed: &mut Parameters,
) -> Answer {
    if [NOT_UNDERSTOOD, IRRELEVANT, REJECT].contains(&value) {
        return Answer::Nothing; // an answer to something that we have stated, not an offer
    }
    if key.normal_only && kind == SessionKind::Discovery {
        return IRRELEVANT.into();
    }
    ours.first_burst_bytes = ours.first_burst_bytes.min(agreed.max_burst_bytes);
    match key.rule {
        Rule::Digest(switch) => {
            let known = |word: &str| match word {
                "CRC32C" => (*switch(&mut ours)).then_some(true),
                "None" => Some(false),
                _ => None,
            };
            let Some(on) = value.split(',').find_map(known) else { return REJECT.into() };
            *switch(agreed) = on;
            (if on { "CRC32C" } else { "None" }).into()
        }
        Rule::Choice(words) => value
            .split(',')
            .find_map(|word| words.iter().find(|&&known| known == word))
            .map_or(REJECT.into(), |&word| word.into()),
        Rule::Or(switch) | Rule::And(switch) => {
            let Some(theirs) = parse_switch(value) else { return REJECT.into() };
            let ours = *switch(&mut ours);
            let result = if matches!(key.rule, Rule::Or(_)) { ours || theirs } else { ours && theirs };
            *switch(agreed) = result;
            switch_text(result).into()
        }
        Rule::Least { low, high, number } | Rule::Greatest { low, high, number } => {
            let in_range = |n: &u32| (low..=high).contains(n);
            let Some(theirs) = parse_number(value).filter(in_range) else { return REJECT.into() };
            let ours = *number(&mut ours);
            let result =
                if matches!(key.rule, Rule::Least { .. }) { ours.min(theirs) } else { ours.max(theirs) };
            *number(agreed) = result;
            Answer::Number(result)
        }
        Rule::Segment => match parse_segment(value) {
            Some(bytes) => {
                agreed.send_segment_bytes = bytes;
                Answer::Nothing
            }
            None => REJECT.into(),
        },
        Rule::Obsolete(word) => word.into(),
        Rule::Login | Rule::Text | Rule::Target => REJECT.into(),
    }
}

fn parse_segment(value: &str) -> Option<u32> {
    parse_number(value).filter(|bytes| (SEGMENT_MIN..=SEGMENT_MAX).contains(bytes))
}

/// What an initiator that wants `ours` offers, key by key.
pub(crate) fn offers(mut ours: Parameters, kind: SessionKind) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for key in KEYS.iter().filter(|key| !key.normal_only || kind == SessionKind::Normal) {
        let value = match key.rule {
            Rule::Digest(switch) if *switch(&mut ours) => "CRC32C,None".to_string(),
            Rule::Digest(_) => "None".to_string(),
            Rule::Or(switch) | Rule::And(switch) => switch_text(*switch(&mut ours)).to_string(),
            Rule::Least { number, .. } | Rule::Greatest { number, .. } => number(&mut ours).to_string(),
            Rule::Segment => ours.receive_segment_bytes.to_string(),
            Rule::Choice(_) | Rule::Obsolete(_) | Rule::Login | Rule::Text | Rule::Target => continue,
        };
        out.push((key.name, value));
    }
    out
}

/// Notes a target's answer to [`offers`]. False: the answer is not one that the offer allows.
pub(crate) fn accept(key: &Key, value: &str, mut offered: Parameters, agreed: &mut Parameters) -> bool {
    if [NOT_UNDERSTOOD, IRRELEVANT, REJECT].contains(&value) {
        return true; // the default holds
    }
    match key.rule {
        Rule::Digest(switch) => {
            *switch(agreed) = value == "CRC32C";
            value == "None" || (value == "CRC32C" && *switch(&mut offered))
        }
        Rule::Or(switch) | Rule::And(switch) => {
            let Some(result) = parse_switch(value) else { return false };
            *switch(agreed) = result;
            let offered = *switch(&mut offered);
            if matches!(key.rule, Rule::Or(_)) { result || !offered } else { !result || offered }
        }
        Rule::Least { low, high, number } | Rule::Greatest { low, high, number } => {
            let Some(result) = parse_number(value) else { return false };
            *number(agreed) = result;
            let offered = *number(&mut offered);
            let range =
                if matches!(key.rule, Rule::Least { .. }) { low..=high.min(offered) } else { offered..=high };
            range.contains(&result)
        }
        Rule::Segment => parse_segment(value).map(|bytes| agreed.send_segment_bytes = bytes).is_some(),
        Rule::Choice(_) | Rule::Obsolete(_) | Rule::Login | Rule::Text | Rule::Target => true,
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
