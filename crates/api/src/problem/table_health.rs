//! The table's rows about the health of drives. See `table.rs`.

use super::ProblemCode;
use super::row::{DataSafety, Harm, ProblemRow};
use crate::Health;

const CELSIUS: (&str, &str) = ("celsius", "its temperature, in degrees Celsius");
const WARNING: (&str, &str) =
    ("celsius_warning", "from this temperature on it is too hot, in degrees Celsius");
const OWN: (&str, &str) =
    ("is_stated", "whether the drive states that threshold; otherwise it is the usual one of such drives");
const USED: (&str, &str) = ("used_percent", "part of its rated endurance that is used, in percent");
const RUNS_OUT: (&str, &str) = (
    "runs_out_ms",
    "when that is used up at the present rate, in milliseconds since 1970; null if it is not known",
);

const REPLACE: &str = "replace it when you can: `tangelo drive replace`";

pub(super) const HEALTH: &[ProblemRow] = &[
    ProblemRow {
        code: ProblemCode::HealthUnwatched,
        title: "Nobody watches the health of drives",
        health: Health::Healthy,
        harm: Harm::Other,
        data: DataSafety::Safe,
        meaning: "The program smartctl is not there, so wear, media errors and what drives say of themselves stay unknown. Errors of I/O are seen all the same.",
        action: "install Debian's package smartmontools, or name the program in [health] of the head's file; `smartctl = \"off\"` there ends this notice",
        facts: &[("program", "the program that was looked for")],
    },
    ProblemRow {
        code: ProblemCode::DriveHealthUnknown,
        title: "The health of a drive is not known",
        health: Health::Healthy,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "smartctl has got no answer from the drive, three times in a row. The drive serves I/O all the same.",
        action: "try it by hand (`smartctl --all DEVICE`); [health] in the head's file can name another device for it, or a type",
        facts: &[(
            "why",
            "`timed-out` after `seconds`, `not-permitted`, `not-understood` with `why` (words), or `still-running`: an earlier question hangs",
        )],
    },
    ProblemRow {
        code: ProblemCode::DriveWarm,
        title: "A drive is warm",
        health: Health::Healthy,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "A notice before it is too hot: it is within 5 degrees of its warning threshold. It ends 5 degrees below that.",
        action: "see that the air flows: fans, blanking plates, the room",
        facts: &[CELSIUS, WARNING, OWN],
    },
    ProblemRow {
        code: ProblemCode::DriveHot,
        title: "A drive is too hot",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive has reached its warning threshold. It becomes slow, ages faster, and shuts itself off if it gets hotter. It ends 5 degrees below the threshold.",
        action: "cool it: fans, blanking plates, the room; else stop a part of the load",
        facts: &[
            CELSIUS,
            WARNING,
            OWN,
            (
                "celsius_critical",
                "from this temperature on it may shut itself off, as it says; null if it does not say",
            ),
        ],
    },
    ProblemRow {
        code: ProblemCode::PoolOverheats,
        title: "A pool may lose drives to heat",
        health: Health::Degraded,
        harm: Harm::Exposed,
        data: DataSafety::Exposed,
        meaning: "More of the pool's drives are within 3 degrees of the temperature at which they shut themselves off than the pool can lose.",
        action: "cool the room and the head now, or stop the load",
        facts: &[
            ("drives", "number of drives that are close to shutting off"),
            ("survivable", "number of drives that the pool can lose now"),
        ],
    },
    ProblemRow {
        code: ProblemCode::DriveWears,
        title: "A drive is nearly worn",
        health: Health::Healthy,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "A notice to plan by: 80 % of its rated endurance is used, or it is used up within a year at the present rate.",
        action: "plan for its replacement",
        facts: &[USED, RUNS_OUT],
    },
    ProblemRow {
        code: ProblemCode::DriveWorn,
        title: "A drive is worn",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "95 % of its rated endurance is used, or it is used up within 90 days at the present rate. Most drives go on for a while, but nobody promises it.",
        action: REPLACE,
        facts: &[USED, RUNS_OUT],
    },
    ProblemRow {
        code: ProblemCode::DriveFailing,
        title: "A drive says that it fails",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive's own test of its state foretells a failure. It is reported until the drive has not said so for a day.",
        action: REPLACE,
        facts: &[(
            "faults",
            "what it says, each with a `fault`: `spare`, `reliability`, `read-only`, `memory-backup`, `persistent-memory`, `self-assessment`, or `attribute` with its `name`",
        )],
    },
    ProblemRow {
        code: ProblemCode::DriveMediaErrors,
        title: "A drive has new media errors",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive has counted errors of its medium within the last day. What hosts read is checked and rebuilt in any case.",
        action: "scrub its pool (`tangelo pool scrub`), and replace the drive if they go on",
        facts: &[
            ("new", "number of errors within the last day"),
            ("all", "number of errors in the drive's life, as it counts them"),
        ],
    },
    ProblemRow {
        code: ProblemCode::DriveTestFailed,
        title: "A self-test of a drive has failed",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The newest self-test that was not aborted has failed. It ends with a test that passes.",
        action: "replace it; `smartctl -t short DEVICE` tests it again",
        facts: &[("at_hours", "hours of power-on when the test ended; null if the drive does not say")],
    },
    ProblemRow {
        code: ProblemCode::DriveLinkSlow,
        title: "The PCIe link of a drive is slower than it can be",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The link has fewer lanes, or runs slower, than both the drive and its slot can.",
        action: "reseat the drive; look at the riser, the cable and the BIOS if that does not help",
        facts: &[
            ("width", "number of lanes"),
            ("width_max", "number of lanes that drive and slot can"),
            ("megatransfers", "of each lane, in 10^6 transfers per second"),
            ("megatransfers_max", "what drive and slot can"),
        ],
    },
];
