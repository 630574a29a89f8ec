//! One example of each event, in the order of the codes: for the document and the tests.

use super::*;
use crate::{
    CommandErrorKind, CommandRefusal, DriveLoss, DriveTrouble, LostDrive, PoolOffline, PoolRoom, Problem,
    ProblemFacts, VolumeBacking, VolumeStep,
};

const NOVEMBER_MS: u64 = 1_795_694_400_000;

pub(super) fn examples() -> Vec<Event> {
    let all = of_people().into_iter().chain(of_the_array());
    let event = |(index, (subject, facts)): (usize, (Subject, EventFacts))| Event {
        sequence: index as u64 + 1,
        time_ms: NOVEMBER_MS,
        count: if matches!(facts, EventFacts::EventsHeldBack { .. }) { 1_200 } else { 1 },
        subject,
        facts,
    };
    all.enumerate().map(event).collect()
}

fn fast() -> Subject {
    Subject::pool("fast")
}

fn problem(facts: ProblemFacts) -> Box<Problem> {
    Box::new(Problem::new(fast(), facts))
}

fn of_people() -> Vec<(Subject, EventFacts)> {
    use EventFacts::*;
    let drives =
        || vec![LostDrive { drive: "/dev/sdb".to_owned(), bay: "3".to_owned(), how: DriveLoss::Missing }];
    let degraded = || problem(ProblemFacts::PoolDegraded { drives: drives(), repair: None, lost_bytes: 0 });
    let room = PoolRoom::default();
    let filling = problem(ProblemFacts::PoolFilling { full_percent: 82, room });
    let full = problem(ProblemFacts::PoolNearlyFull { full_percent: 91, room });
    let root = || Origin::Local { user: 0, name: Some("root".to_owned()), process: Some(812) };
    let remote = Origin::Remote { address: "10.0.0.9:51122".to_owned() };
    let message = "there is a volume called \"vm-01\" already";
    let create = VolumeStep::CreateVolume {
        volume: "vm-01".to_owned(),
        size_bytes: 100 << 30,
        backing: VolumeBacking::Pool("fast".to_owned()),
    };
    let cause = CommandRefusal { code: CommandErrorKind::AlreadyExists, detail: message.to_owned() };
    let host = || Subject::Host("pve1".to_owned());
    let initiator = || "iqn.1993-08.org.debian:01:abc".to_owned();
    let (peer, portal) = (|| "10.0.0.7:40112".to_owned(), || "10.0.0.1:3260".to_owned());
    let stranger = || Subject::Initiator("iqn.2001-04.com.example:guest".to_owned());
    let (alice, browser) = (|| Subject::User("alice".to_owned()), || "10.0.0.9:51122".to_owned());
    let address = || Subject::Address("10.0.0.66".to_owned());
    vec![
        (fast(), ProblemBegan { problem: degraded() }),
        (fast(), ProblemChanged { before: filling, problem: full }),
        (fast(), ProblemEnded { problem: degraded() }),
        (
            Subject::volume("vm-01"),
            ChangeMade {
                command: CommandKind::VolumeCreate,
                origin: root(),
                steps: vec![create.into()],
                hosts_affected: Vec::new(),
            },
        ),
        (
            Subject::volume("vm-01"),
            ChangeRefused { command: CommandKind::VolumeCreate, origin: remote, cause },
        ),
        (address(), ApiRefused {}),
        (alice(), SignedIn { address: browser() }),
        (address(), SignInRefused { user: Some("alice".to_owned()), why: SignInRefusal::NameOrPassword }),
        (alice(), SignedOut { address: browser() }),
        (host(), SessionBegan { initiator: initiator(), peer: peer(), portal: portal() }),
        (
            host(),
            SessionEnded {
                initiator: initiator(),
                peer: peer(),
                portal: portal(),
                end: SessionEnd::ConnectionLost,
            },
        ),
        (
            stranger(),
            LoginRefused {
                initiator: Some(stranger().name().to_owned()),
                peer: "10.0.0.66:40113".to_owned(),
                portal: portal(),
                refusal: LoginRefusal::UnknownInitiator,
            },
        ),
        (address(), AddressBlocked { portal: portal() }),
        (Subject::Array, EventsHeldBack { of: EventCode::LoginRefused }),
    ]
}

fn of_the_array() -> Vec<(Subject, EventFacts)> {
    use EventFacts::*;
    let version = || "0.1.0".to_owned();
    let pool = || "fast".to_owned();
    let drive = || Subject::drive("/dev/nvme2n1");
    let what = RepairKind::Rebuilding;
    vec![
        (Subject::Array, DaemonStarted { version: version() }),
        (Subject::Array, DaemonStopped { version: version() }),
        (fast(), PoolOpened { drives: 5, lost_drives: 1 }),
        (fast(), PoolClosed { why: PoolOffline::Stopping }),
        (fast(), PoolFailed { why: PoolOffline::TooManyFailed }),
        (drive(), DriveGivenUp { pool: pool(), trouble: DriveTrouble::Failed }),
        (drive(), DriveReturned { pool: pool() }),
        (drive(), DriveJoined { pool: pool() }),
        (drive(), DriveEmptying { pool: pool(), slow: true }),
        (drive(), DriveKept { pool: pool() }),
        (drive(), DriveLeft { pool: pool() }),
        (fast(), RepairBegan { what, bytes: 41 << 30 }),
        (fast(), RepairEnded { what, written_bytes: 41 << 30 }),
        (fast(), ScrubBegan {}),
        (fast(), ScrubEnded { complete: true, repaired: 3, unreadable: 0 }),
        (
            Subject::Schedule("nightly".to_owned()),
            SnapshotsTaken { volumes: vec!["vm-01".to_owned(), "vm-02".to_owned()], expired: 2 },
        ),
        (Subject::volume("old-vm"), VolumeExpired { pool: pool(), why: Expiry::Overdue }),
    ]
}
