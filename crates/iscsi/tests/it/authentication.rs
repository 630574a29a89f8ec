//! CHAP: which logins succeed, which fail, and that secrets are never disclosed.

use iscsi::initiator::{Event, Fault, InitiatorParams};
use iscsi::{Chap, CloseReason};
use wire::iscsi::LoginStatus;

use crate::harness::{CHAP_HOST, HOST, MUTUAL_HOST, Pair, Raw, TARGET, chap, lines};

fn params(host: &str, own: Option<Chap>, mutual: Option<Chap>, algorithms: &str) -> InitiatorParams {
    InitiatorParams {
        chap: own,
        mutual,
        chap_algorithms: algorithms.to_string(),
        ..InitiatorParams::new(host, Some(TARGET))
    }
}

fn outcome(params: InitiatorParams) -> (Option<Fault>, Option<CloseReason>) {
    let mut pair = Pair::after_login(params);
    let fault = match pair.events.remove(0) {
        Event::LoggedIn { .. } => None,
        Event::Failed(fault) => Some(fault),
        other => panic!("{other:?}"),
    };
    (fault, pair.closed)
}

const REFUSED: (Option<Fault>, Option<CloseReason>) = (
    Some(Fault::LoginRefused(LoginStatus::AuthenticationFailed)),
    Some(CloseReason::LoginRefused { class: 2, detail: 1 }),
);

#[test]
fn who_gets_in() {
    let own = || Some(chap("host", "twelve chars"));
    let array = || Some(chap("array", "other secret"));
    let table = [
        (params(HOST, None, None, ""), (None, None)),
        (params(CHAP_HOST, own(), None, "5"), (None, None)),
        (params(CHAP_HOST, own(), None, "7"), (None, None)),
        (params(CHAP_HOST, own(), None, "8"), (None, None)),
        (params(CHAP_HOST, own(), None, "9,6,5"), (None, None)),
        (params(MUTUAL_HOST, own(), array(), "5"), (None, None)),
        (params(MUTUAL_HOST, own(), array(), "7"), (None, None)),
        (params(MUTUAL_HOST, own(), array(), "8,7,5"), (None, None)),
        (params(MUTUAL_HOST, own(), None, "7,5"), (None, None)), // it need not ask for proof
        (params(CHAP_HOST, None, None, ""), REFUSED),
        (params(CHAP_HOST, Some(chap("host", "wrong secret")), None, "5"), REFUSED),
        (params(CHAP_HOST, Some(chap("host", "")), None, "5"), REFUSED),
        (params(CHAP_HOST, Some(chap("guest", "twelve chars")), None, "7"), REFUSED),
        (params(CHAP_HOST, own(), None, "6,9"), REFUSED),
        (params(CHAP_HOST, own(), array(), "5"), REFUSED), // we have nothing to prove ourselves with
        (
            params(MUTUAL_HOST, own(), Some(chap("array", "wrong secret")), "5"),
            (Some(Fault::TargetNotAuthentic), None),
        ),
        (
            params(MUTUAL_HOST, own(), Some(chap("imposter", "other secret")), "7"),
            (Some(Fault::TargetNotAuthentic), None),
        ),
    ];
    for (params, expected) in table {
        let what = format!("{params:?}");
        assert_eq!(outcome(params), expected, "{what}");
    }
}

fn names() -> String {
    format!("InitiatorName={MUTUAL_HOST}\nTargetName={TARGET}")
}

/// A raw client that has been challenged; the target's CHAP_A, CHAP_I, CHAP_C.
fn challenged(algorithm: &str) -> (Raw, Vec<String>) {
    let mut raw = Raw::new();
    let answers = raw.login(0x00, &format!("{}\nAuthMethod=CHAP,None", names()));
    assert!(lines(&answers[0].1).ends_with("AuthMethod=CHAP"));
    let answers = raw.login(0x00, &format!("CHAP_A={algorithm}"));
    let text = lines(&answers[0].1);
    let values = text.lines().map(|line| line.split_once('=').unwrap().1.to_string()).collect();
    (raw, values)
}

#[test]
fn a_stage_cannot_be_skipped() {
    for (flags, text) in [
        (0x87, names()),                                 // straight to the operational stage
        (0x81, names()),                                 // on without a word
        (0x83, names()),                                 // all the way without a word
        (0x87, format!("{}\nAuthMethod=CHAP", names())), // begun in the wrong stage
        (0x81, format!("{}\nAuthMethod=None", names())),
    ] {
        let answers = Raw::new().login(flags, &text);
        assert_eq!(answers[0].0[36..38], [2, 1], "{flags:#x} {text}");
    }
    // In the middle of the exchange: the wish to go on is not granted, and then the answer is due.
    let mut raw = Raw::new();
    let answers = raw.login(0x81, &format!("{}\nAuthMethod=CHAP", names()));
    assert_eq!((answers[0].0[1], &answers[0].0[36..38]), (0x00, &[0, 0][..]));
    let answers = raw.login(0x81, "CHAP_A=5");
    assert_eq!((answers[0].0[1], &answers[0].0[36..38]), (0x00, &[0, 0][..]));
    assert_eq!(raw.login(0x83, "")[0].0[36..38], [2, 7]);
}

#[test]
fn our_own_challenge_is_not_answered() {
    let (mut raw, values) = challenged("5");
    let [_, identifier, challenge] = &values[..] else { panic!("{values:?}") };
    let response = md5(identifier, "twelve chars", challenge);
    let text = format!("CHAP_N=host\nCHAP_R={response}\nCHAP_I={identifier}\nCHAP_C={challenge}");
    let answers = raw.login(0x81, &text);
    assert_eq!((&answers[0].0[36..38], answers[0].1.len()), (&[2, 1][..], 0), "nothing is proved");
}

#[test]
fn nothing_is_proved_to_who_has_not_proved_itself() {
    let (mut raw, _) = challenged("5");
    let text = "CHAP_N=host\nCHAP_R=0x00112233445566778899aabbccddeeff\nCHAP_I=1\nCHAP_C=0x0102";
    let answers = raw.login(0x81, text);
    assert_eq!((&answers[0].0[36..38], answers[0].1.len()), (&[2, 1][..], 0));
}

#[test]
fn malformed_answers() {
    for (answer, detail) in [
        ("CHAP_N=host", 7),
        ("CHAP_R=0x00", 7),
        ("CHAP_N=host\nCHAP_R=twelve", 1),
        ("CHAP_N=host\nCHAP_R=0x", 1),
        ("CHAP_N=host\nCHAP_R=0b!!!!", 1),
        ("CHAP_N=host\nCHAP_R={right}\nCHAP_I=1", 7),
        ("CHAP_N=host\nCHAP_R={right}\nCHAP_C=0x01", 7),
        ("CHAP_N=host\nCHAP_R={right}\nCHAP_I=256\nCHAP_C=0x01", 1),
        ("CHAP_N=host\nCHAP_R={right}\nCHAP_I=1\nCHAP_C=0x", 1),
        ("CHAP_N=host\nCHAP_R={right}\nCHAP_I=1\nCHAP_C={long}", 1),
    ] {
        let (mut raw, values) = challenged("5");
        let right = md5(&values[1], "twelve chars", &values[2]);
        let long = format!("0x{}", "11".repeat(1025));
        let text = answer.replace("{right}", &right).replace("{long}", &long);
        assert_eq!(raw.login(0x81, &text)[0].0[36..38], [2, detail], "{answer}");
    }
}

/// Challenges and responses in hexadecimal and in base64 mean the same.
#[test]
fn base64_is_understood() {
    let (mut raw, values) = challenged("5");
    let right = from_hex(&md5(&values[1], "twelve chars", &values[2]));
    let text = format!("CHAP_N=host\nCHAP_R=0b{}\nCHAP_I=5\nCHAP_C=0bAQID", base64(&right));
    let answers = raw.login(0x81, &text);
    assert_eq!((answers[0].0[1], &answers[0].0[36..38]), (0x81, &[0, 0][..]));
    let expected = md5("5", "other secret", "0x010203");
    assert_eq!(lines(&answers[0].1), format!("CHAP_N=array\nCHAP_R={expected}"));
}

#[test]
fn challenges_are_as_long_as_the_hash() {
    let (_, values) = challenged("7,5");
    assert_eq!((values[0].as_str(), values[2].len()), ("7", 2 + 64));
    let (_, values) = challenged("5");
    assert_eq!((values[0].as_str(), values[2].len()), ("5", 2 + 32));
}

fn md5(identifier: &str, secret: &str, challenge: &str) -> String {
    use md5::{Digest, Md5};
    let mut digest = Md5::new();
    digest.update([identifier.parse::<u8>().unwrap()]);
    digest.update(secret);
    digest.update(from_hex(challenge));
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}")
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix("0x").unwrap();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().chain(&[0; 2]).take(3).fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place)) as usize & 63] as char;
            out.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    out
}
