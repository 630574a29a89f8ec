//! The table of problems: one row for each code, in the order of [`ProblemCode`]. Here are the rows about everything but
//! pools and drives.

use super::ProblemCode;
use super::row::{DataSafety, Harm, ProblemRow};
use super::table_drives::DRIVES;
use super::table_health::HEALTH;
use super::table_pools::POOLS;
use crate::Health;

const TABLE: [&[ProblemRow]; 4] = [ARRAY, POOLS, DRIVES, HEALTH];

const _: () =
    assert!(TABLE[0].len() + TABLE[1].len() + TABLE[2].len() + TABLE[3].len() == ProblemCode::ALL.len());

impl ProblemCode {
    /// Whether it follows from what drives say of themselves.
    pub fn is_of_drive_health(self) -> bool {
        HEALTH.iter().any(|row| row.code == self)
    }

    pub fn row(self) -> &'static ProblemRow {
        let mut index = self as usize;
        for part in TABLE {
            match index.checked_sub(part.len()) {
                None => return &part[index],
                Some(rest) => index = rest,
            }
        }
        unreachable!("the table has a row for each code");
    }
}

const CAUSE: (&str, &str) =
    ("cause", "why, with its facts; for a refusal its code, and its message as `detail`");

const ARRAY: &[ProblemRow] = &[
    ProblemRow {
        code: ProblemCode::ArrayFailed,
        title: "The array could not start",
        health: Health::Offline,
        harm: Harm::Array,
        data: DataSafety::Unreachable,
        meaning: "The start has failed. Nothing is served, and commands are refused.",
        action: "put right what the cause names, then restart",
        facts: &[CAUSE],
    },
    ProblemRow {
        code: ProblemCode::ArrayStarting,
        title: "The array is starting",
        health: Health::Offline,
        harm: Harm::Array,
        data: DataSafety::Unreachable,
        meaning: "Pools are being opened. Hosts are served when this is done.",
        action: "wait",
        facts: &[],
    },
    ProblemRow {
        code: ProblemCode::ArrayStopping,
        title: "The array is stopping",
        health: Health::Offline,
        harm: Harm::Array,
        data: DataSafety::Unreachable,
        meaning: "An orderly stop is under way. Hosts are not served any more.",
        action: "",
        facts: &[],
    },
    ProblemRow {
        code: ProblemCode::StartIncomplete,
        title: "Something could not be put in order at the start",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The array serves its hosts, but a step of its start has failed. A reload tries it again.",
        action: "see what else `tangelo status` says of the pool; then reload (`systemctl reload tangelo`)",
        facts: &[(
            "cause",
            "the `pool`, `what` it did not take (`catalog` or `layer`), and its `error`: `out-of-space`, `unreadable`, `no-such-layer`, `frozen`, `elsewhere`, `miscompare` or `unavailable`",
        )],
    },
    ProblemRow {
        code: ProblemCode::EventsNotKept,
        title: "Events are not kept",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The journal of events in the head's state directory cannot be written. Events are shown from memory, and are forgotten at the next start. It is tried again with each event, and every half minute.",
        action: "make room for the file, or repair its file system",
        facts: &[("path", "the file that cannot be written"), ("error", "the error")],
    },
    ProblemRow {
        code: ProblemCode::AlertsNotDelivered,
        title: "Alerts do not arrive",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "A channel of [alerts] has delivered nothing for five minutes, although there was something to tell. It is tried again, in the end every quarter of an hour, and tells then what there is to tell. The other channels tell this problem.",
        action: "put right what the error names; `tangelo alert test` tries it again",
        facts: &[
            ("error", "why the last attempt has failed, in words"),
            ("failing_since_ms", "when the first attempt failed, in milliseconds since 1970"),
            (
                "untold",
                "number of problems whose beginning or end the channel was not told; 0 for the heartbeat",
            ),
        ],
    },
    ProblemRow {
        code: ProblemCode::ProblemsLeftOut,
        title: "There are more problems than are told",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The head has found so many problems of one kind of thing, such as its drives, that only the worst of them are told. Of those that are left out, nothing worse is known than of those that are told.",
        action: "see to those that are told; the others follow",
        facts: &[("left_out", "number of problems that are not told")],
    },
    ProblemRow {
        code: ProblemCode::PairMaintenance,
        title: "There is maintenance of the pair",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "An administrator works on the network, the witness or a head. Until that ends, the other head does not take over, a stop hands nothing over, and no head is fenced.",
        action: "end it when the work is done: `tangelo pair maintenance off`, on either head",
        facts: &[("since_ms", "when it began, in milliseconds since 1970")],
    },
    ProblemRow {
        code: ProblemCode::FenceUnusable,
        title: "The fence agent cannot be used",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The agent that this head's file names does not work, or says something else of the other head than is known. After a takeover, a head that hangs would not be reset. No data is at stake: the register and the lease keep it from answering.",
        action: "correct [fence] in the head's file, then `systemctl reload tangelo`; `tangelo pair fence test` tries it",
        facts: &[("agent", "the agent"), ("detail", "what is wrong with it, in words")],
    },
    ProblemRow {
        code: ProblemCode::HeadNotFenced,
        title: "The other head could not be fenced",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "This head has taken over, and the fence agent could not reset the other one. It is reported until that is heard again. No data is at stake: the register and the lease keep it from answering.",
        action: "look at the other head, and reset it by hand if it hangs",
        facts: &[("agent", "the agent"), ("detail", "why it has failed, in words")],
    },
    ProblemRow {
        code: ProblemCode::PortalNotListening,
        title: "A portal does not listen",
        health: Health::Degraded,
        harm: Harm::Portal,
        data: DataSafety::Safe,
        meaning: "Hosts cannot log in at this address. The head tries every second to listen there.",
        action: "nothing, if the address is to come or to be freed: it is tried again every second; else correct [listen] in the head's file and have it read again (`systemctl reload tangelo`)",
        facts: &[("error", "why the head cannot listen at the address")],
    },
    ProblemRow {
        code: ProblemCode::LoginsRefused,
        title: "Logins are refused",
        health: Health::Degraded,
        harm: Harm::Portal,
        data: DataSafety::Safe,
        meaning: "A limit of sessions is reached. It is reported until some minutes after the last refusal.",
        action: "`tangelo status -o json` lists its sessions; have the host log out of those that it does not need",
        facts: &[
            ("initiator", "the name of the initiator"),
            ("logins", "number of logins that were refused lately"),
            ("limit", "`host`, `address` (the network address of the host) or `core` (a core of the head)"),
            ("sessions_max", "the limit: number of sessions"),
        ],
    },
    ProblemRow {
        code: ProblemCode::ClockDoubted,
        title: "The clock is doubted",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The wall clock has jumped, or did not fit at the start. Until it has run steadily for a day, schedules delete no snapshots.",
        action: "set the clock (`timedatectl`) if it is wrong; if it is right, there is nothing to do",
        facts: &[
            ("says_ms", "what the clock said, in milliseconds since 1970"),
            ("expected_ms", "what it should have said, in milliseconds since 1970"),
            ("at_start", "whether it did not fit at the start; otherwise it has jumped since"),
        ],
    },
    ProblemRow {
        code: ProblemCode::SnapshotsFromFuture,
        title: "Snapshots have dates in the future",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The clock was wrong when these snapshots were taken, or it is wrong now.",
        action: "set the clock (`timedatectl`) if it is wrong now; else go by the order of the snapshots, and delete those when they are not needed",
        facts: &[
            ("snapshots", "number of such snapshots"),
            ("latest", "the one with the latest date, as volume@snapshot"),
            ("latest_ms", "its date, in milliseconds since 1970"),
        ],
    },
    ProblemRow {
        code: ProblemCode::ScheduleFailed,
        title: "A schedule fails",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The snapshots that are due could not be taken. The schedule tries again every minute.",
        action: "put right what the cause names; it is tried again every minute",
        facts: &[CAUSE],
    },
    ProblemRow {
        code: ProblemCode::ScheduleIncomplete,
        title: "A schedule has left out a volume",
        health: Health::Degraded,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The pool of a volume was offline when snapshots were due. It is reported until the next run of the schedule.",
        action: "nothing: the next ones are taken when they are due",
        facts: &[("volume", "the first volume that was left out")],
    },
    ProblemRow {
        code: ProblemCode::VolumeDeviceUnusable,
        title: "The device of a raw volume cannot be used",
        health: Health::Offline,
        harm: Harm::Raw,
        data: DataSafety::Unreachable,
        meaning: "The volume is offline until its device is there again, with at least its size and the same serial number.",
        action: "bring the device back as it was: it is looked for every few seconds, and taken by itself",
        facts: &[(
            "trouble",
            "`error` with its name, `smaller` with `has_bytes` (bytes), or `another` device",
        )],
    },
    ProblemRow {
        code: ProblemCode::VolumeDeviceSmaller,
        title: "The device of a raw volume became smaller",
        health: Health::Degraded,
        harm: Harm::Raw,
        data: DataSafety::Lost,
        meaning: "Hosts get medium errors behind the new end of the device.",
        action: "give the device its size back, which is noticed by itself; until then hosts get medium errors behind its end, and after a restart it is not taken",
        facts: &[
            ("left_bytes", "size of the device now, in bytes"),
            ("volume_bytes", "size of the volume, in bytes"),
        ],
    },
];
