//! Events of logins, refusals and ends of sessions: they report exactly what happened, with the reason.

mod common;

use api::Command;
use api::{EventFacts, LoginRefusal, NewChap, NewHost, SessionEnd, Subject};
use base::Nanos;
use common::host::Host;
use common::{Lab, portal};
use iscsi::initiator::InitiatorParams;
use iscsi::{Chap, Secret};
use wire::iscsi::TaskManagementFunction;

use Change::{Ended, LoggedIn, Refused};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const GUARDED: &str = "iqn.2001-04.com.example:guarded";
const STRANGER: &str = "iqn.2001-04.com.example:stranger";

/// What a session's event tells.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Change {
    LoggedIn,
    Ended(SessionEnd),
    Refused(LoginRefusal),
}

/// The initiator, the host if it is known, and what happened.
type Told = (Option<String>, Option<String>, Change);

fn array(seed: u64) -> Lab {
    let mut lab = Lab::new(seed, 2, &[]);
    lab.create_memory_volume("a", 1 << 20);
    lab.create_host("alpha", ALPHA);
    lab.map("a", "alpha", 0, false);
    let chap = |user: &str, secret: &str| Some(NewChap { user: user.into(), secret: secret.into() });
    let host = NewHost {
        name: "guarded".into(),
        initiators: vec![GUARDED.into()],
        chap: chap("user", "a long enough secret"),
        mutual_chap: None,
    };
    lab.change(Command::HostCreate { host, dry_run: false });
    lab
}

/// The events since the last call: initiator, host, event.
fn told(lab: &mut Lab) -> Vec<Told> {
    lab.pass(Nanos::from_secs(3));
    let session = |event: api::Event| {
        let (initiator, change) = match event.facts {
            EventFacts::SessionBegan { initiator, .. } => (Some(initiator), LoggedIn),
            EventFacts::SessionEnded { initiator, end, .. } => (Some(initiator), Ended(end)),
            EventFacts::LoginRefused { initiator, refusal, .. } => (initiator, Refused(refusal)),
            _ => return None,
        };
        let host = match event.subject {
            Subject::Host(host) => Some(host),
            _ => None,
        };
        assert_eq!(event.count, 1, "each is told");
        Some((initiator, host, change))
    };
    lab.events().into_iter().filter_map(session).collect()
}

fn of(initiator: &str, host: &str, change: Change) -> Told {
    (Some(initiator.to_owned()), (!host.is_empty()).then(|| host.to_owned()), change)
}

#[test]
fn ends_of_sessions_are_told_with_their_reasons() {
    let mut lab = array(1);
    let session = Host::log_in(&mut lab, 1, ALPHA, 1);
    assert_eq!(told(&mut lab), [of(ALPHA, "alpha", LoggedIn)]);
    session.log_out(&mut lab);
    assert_eq!(told(&mut lab), [of(ALPHA, "alpha", Ended(SessionEnd::LoggedOut))]);

    let _first = Host::log_in(&mut lab, 1, ALPHA, 1);
    let second = Host::log_in(&mut lab, 0, ALPHA, 1);
    let reinstated =
        [LoggedIn, Ended(SessionEnd::Reinstated), LoggedIn].map(|change| of(ALPHA, "alpha", change));
    let mut found = told(&mut lab);
    found.sort_by_key(|(_, _, change)| *change == LoggedIn);
    let mut expected = reinstated.to_vec();
    expected.sort_by_key(|(_, _, change)| *change == LoggedIn);
    assert_eq!(found, expected);

    second.hang();
    lab.pass(Nanos::from_secs(40));
    assert_eq!(told(&mut lab), [of(ALPHA, "alpha", Ended(SessionEnd::Unresponsive))]);

    let session = Host::log_in(&mut lab, 0, ALPHA, 1);
    session.kill(&mut lab);
    let session = Host::log_in(&mut lab, 0, ALPHA, 2);
    session.manage(&mut lab, TaskManagementFunction::TargetColdReset, 0, None);
    session.wait_closed(&mut lab);
    let changes: Vec<_> = told(&mut lab).into_iter().map(|(_, _, change)| change).collect();
    assert_eq!(
        changes,
        [LoggedIn, Ended(SessionEnd::ConnectionLost), LoggedIn, Ended(SessionEnd::TargetReset)]
    );

    let _session = Host::log_in(&mut lab, 0, ALPHA, 1);
    lab.change(Command::HostDelete { name: "alpha".into(), unmap: true, dry_run: false });
    let changes: Vec<_> = told(&mut lab).into_iter().map(|(_, _, change)| change).collect();
    assert_eq!(changes, [LoggedIn, Ended(SessionEnd::AccessTakenAway)]);
}

#[test]
fn refusals_are_told_with_their_reasons() {
    let mut lab = array(2);
    let target = lab.status().target_name;
    Host::try_log_in(&mut lab, 0, STRANGER, 1);
    assert_eq!(told(&mut lab), [of(STRANGER, "", Refused(LoginRefusal::UnknownInitiator))]);

    let guarded = |lab: &mut Lab, target: &str, chap: Option<(&str, &str)>, mutual: bool| {
        let mut params = InitiatorParams::new(GUARDED, Some(target));
        let credentials =
            |user: &str, secret: &str| Chap { user: user.into(), secret: Secret(secret.as_bytes().to_vec()) };
        params.chap = chap.map(|(user, secret)| credentials(user, secret));
        params.mutual = mutual.then(|| credentials("array", "another long secret"));
        Host::start(lab, portal(1), params);
        told(lab)
    };
    let right = Some(("user", "a long enough secret"));
    for (target, chap, mutual, expected) in [
        ("iqn.2001-04.com.example:elsewhere", right, false, Refused(LoginRefusal::UnknownTarget)),
        (&target, None, false, Refused(LoginRefusal::ChapNotOffered)),
        (&target, Some(("user", "a wrong guess here")), false, Refused(LoginRefusal::WrongSecret)),
        (&target, Some(("somebody", "a long enough secret")), false, Refused(LoginRefusal::WrongSecret)),
        (&target, right, true, Refused(LoginRefusal::NoMutualSecret)),
    ] {
        assert_eq!(guarded(&mut lab, target, chap, mutual), [of(GUARDED, "", expected)]);
        // repetitions within a minute are counted
        lab.pass(Nanos::from_secs(61));
    }
    assert_eq!(guarded(&mut lab, &target, right, false), [of(GUARDED, "guarded", LoggedIn)]);
}
