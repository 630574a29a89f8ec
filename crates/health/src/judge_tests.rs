//! One row for each threshold, its end, and what is in between.

use api::ProblemCode;

use super::*;
use crate::testing::reading;

const NOW: u64 = 1_000 * DAY_MS;

struct Drive(Judged, u64);

impl Drive {
    fn new() -> Drive {
        Drive(Judged::default(), NOW)
    }

    /// Observes ten minutes later.
    fn observe(&mut self, now: &Observation) -> Vec<ProblemCode> {
        self.1 += 600_000;
        self.0 = judge(&self.0, now, Some(Protocol::Nvme), self.1);
        self.codes()
    }

    fn codes(&self) -> Vec<ProblemCode> {
        self.0.problems().iter().map(ProblemFacts::code).collect()
    }

    fn read(&mut self, reading: Reading) -> Vec<ProblemCode> {
        self.observe(&Observation { reading: Some(reading), ..Observation::default() })
    }
}

fn at(celsius: i16) -> Reading {
    Reading { celsius: Some(celsius), celsius_warning: Some(70), celsius_critical: Some(80), ..reading() }
}

#[test]
fn heat_is_told_before_it_is_too_much_and_ends_with_a_margin() {
    use ProblemCode::{DriveHot, DriveWarm};
    let mut drive = Drive::new();
    let rows: &[(i16, &[ProblemCode])] = &[
        (64, &[]),
        (65, &[]), // one warm reading may be a spike
        (64, &[]),
        (66, &[]),
        (67, &[DriveWarm]),
        (61, &[DriveWarm]), // not 5 below yet
        (60, &[DriveWarm]),
        (61, &[DriveWarm]),
        (60, &[DriveWarm]),
        (59, &[]),
        (70, &[DriveHot]), // at once
        (66, &[DriveHot]),
        (65, &[DriveHot]),
        (65, &[DriveWarm]),
        (74, &[DriveHot]),
        (60, &[DriveHot]),
        (60, &[]),
    ];
    for (step, (celsius, expected)) in rows.iter().enumerate() {
        assert_eq!(drive.read(at(*celsius)), *expected, "step {step}: {celsius} °C");
    }
    // no temperature is no change
    drive.read(at(75));
    assert_eq!(drive.read(reading()), [DriveHot]);
}

#[test]
fn thresholds_are_those_of_the_drive_else_of_the_kernel_else_usual_ones() {
    let of = |reading: Reading, heat: Option<Heat>, protocol| {
        let now = Observation { reading: Some(reading), heat, ..Observation::default() };
        let judged = judge(&Judged::default(), &now, Some(protocol), NOW);
        let now = judged.temperature().expect("it has one");
        (now.warning, now.is_stated, now.critical)
    };
    let kernel = Some(Heat { celsius: 40, celsius_warning: Some(84), celsius_critical: Some(89) });
    let silent = || Reading { celsius: Some(40), ..reading() };
    assert_eq!(of(at(40), kernel, Protocol::Nvme), (70, true, Some(80)));
    assert_eq!(of(silent(), kernel, Protocol::Nvme), (84, true, Some(89)));
    for (protocol, usual) in [(Protocol::Nvme, 70), (Protocol::Ata, 65), (Protocol::Scsi, 60)] {
        assert_eq!(of(silent(), None, protocol), (usual, false, None));
    }
    // a warning at or behind the end makes no sense
    let odd = Reading { celsius_warning: Some(80), celsius_critical: Some(60), ..silent() };
    assert_eq!(of(odd, None, Protocol::Nvme), (55, false, Some(60)));
    // a look at the temperature alone keeps what the drive has stated
    let mut drive = Drive::new();
    drive.read(at(40));
    let heat = Some(Heat { celsius: 71, celsius_warning: None, celsius_critical: None });
    assert_eq!(drive.observe(&Observation { heat, ..Observation::default() }), [ProblemCode::DriveHot]);
}

#[test]
fn a_drive_is_near_its_end_until_it_is_well_away() {
    let mut drive = Drive::new();
    let near: Vec<bool> = [76, 77, 76, 73, 72, 73, 72, 72]
        .map(|celsius| {
            drive.read(at(celsius));
            drive.0.near_shutdown
        })
        .to_vec();
    assert_eq!(near, [false, true, true, true, true, true, true, false]);
    // one that states no end is never near it
    let mut drive = Drive::new();
    drive.read(Reading { celsius_critical: None, ..at(120) });
    assert!(!drive.0.near_shutdown);
}

#[test]
fn wear_is_told_by_its_share_or_by_its_date() {
    use ProblemCode::{DriveWears, DriveWorn};
    let of = |used: u16, days: Option<u64>, basis, is_wear_guessed| {
        let runs_out = days.map(|days| RunsOut { at_ms: NOW + 600_000 + days * DAY_MS, basis });
        let reading = Some(Reading { used_percent: Some(used), is_wear_guessed, ..reading() });
        Drive::new().observe(&Observation { reading, runs_out, ..Observation::default() })
    };
    assert_eq!(of(79, None, Basis::Percent, false), []);
    assert_eq!(of(80, None, Basis::Percent, false), [DriveWears]);
    assert_eq!(of(95, None, Basis::Percent, false), [DriveWorn]);
    assert_eq!(of(95, None, Basis::Percent, true), [DriveWears], "a guess is only a notice");
    assert_eq!(of(50, Some(366), Basis::Written, false), []);
    assert_eq!(of(50, Some(364), Basis::Written, false), [DriveWears]);
    assert_eq!(of(50, Some(89), Basis::Written, false), [DriveWorn]);
    assert_eq!(of(50, Some(89), Basis::WholeLife, false), [DriveWears]);
    // a date that moves a little ends nothing
    let mut drive = Drive::new();
    let mut moves = |days: u64| {
        let runs_out = Some(RunsOut { at_ms: drive.1 + 600_000 + days * DAY_MS, basis: Basis::Written });
        let reading = Some(Reading { used_percent: Some(50), ..reading() });
        drive.observe(&Observation { reading, runs_out, ..Observation::default() })
    };
    assert_eq!([moves(80), moves(100), moves(120)], [[DriveWorn], [DriveWorn], [DriveWears]]);
}

#[test]
fn what_a_drive_says_of_itself_ends_after_a_day() {
    let mut drive = Drive::new();
    let fails = Reading { says_failing: vec![DriveFault::Spare], ..reading() };
    assert_eq!(drive.read(fails), [ProblemCode::DriveFailing]);
    assert_eq!(drive.read(reading()), [ProblemCode::DriveFailing]);
    drive.1 += DAY_MS;
    assert_eq!(drive.read(reading()), []);
}

#[test]
fn only_new_media_errors_count() {
    let mut drive = Drive::new();
    let count = |media_errors| Reading { media_errors: Some(media_errors), ..reading() };
    assert_eq!(drive.read(count(14)), [], "the errors of its life are none of today");
    assert_eq!(drive.read(count(17)), [ProblemCode::DriveMediaErrors]);
    assert_eq!(drive.0.problems(), [ProblemFacts::DriveMediaErrors { new: 3, all: 17 }]);
    assert_eq!(drive.read(reading()), [ProblemCode::DriveMediaErrors]);
    drive.1 += DAY_MS;
    assert_eq!(drive.read(count(17)), []);
    assert_eq!(drive.read(count(2)), [], "counted otherwise");
    // errors from before a restart of the daemon
    let now =
        Observation { reading: Some(count(9)), earlier_media_errors: Some(4), ..Observation::default() };
    assert_eq!(Drive::new().observe(&now), [ProblemCode::DriveMediaErrors]);
    // a drive that makes errors all the time costs no memory
    let mut drive = Drive::new();
    (0..1000).for_each(|errors| drop(drive.read(count(errors))));
    assert!(drive.0.increases.len() <= INCREASES_MAX);
}

#[test]
fn a_failed_test_and_a_slow_link_end_when_they_are_good_again() {
    let mut drive = Drive::new();
    let tested = |has_passed| Reading {
        self_test: Some(DriveSelfTest { has_passed, at_hours: Some(7) }),
        ..reading()
    };
    assert_eq!(drive.read(tested(false)), [ProblemCode::DriveTestFailed]);
    assert_eq!(drive.read(tested(true)), []);
    let mut link = |width| {
        let link = DriveLink { width, width_max: 4, megatransfers: 8_000, megatransfers_max: 8_000 };
        drive.observe(&Observation { link: Some(link), ..Observation::default() })
    };
    assert_eq!(link(2), [], "it may just be trained");
    assert_eq!(link(2), [ProblemCode::DriveLinkSlow]);
    assert_eq!(link(4), []);
}

#[test]
fn clocks_that_are_set_back_end_nothing_early_and_keep_nothing_for_ever() {
    let mut drive = Drive::new();
    drive.read(Reading { media_errors: Some(1), ..reading() });
    let both = Reading { media_errors: Some(2), says_failing: vec![DriveFault::ReadOnly], ..reading() };
    assert_eq!(drive.read(both).len(), 2);
    drive.1 -= 500 * DAY_MS;
    assert_eq!(drive.read(reading()).len(), 2);
    drive.1 += DAY_MS;
    assert_eq!(drive.read(reading()), []);
}
