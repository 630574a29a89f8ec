//! Scripted histories.

use super::*;

/// A history driven by a script; the clock ticks with each step.
struct Script {
    history: History,
    clock: u64,
}

impl Script {
    fn new() -> Script {
        Script { history: History::default(), clock: 0 }
    }
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
    fn begin(&mut self, version: u64, mask: u8) -> &mut Self {
        let now = self.tick();
        self.history.begin(WriteId(version), version, mask, now);
        self
    }
    fn ack(&mut self, version: u64, stable: bool) -> &mut Self {
        let now = self.tick();
        self.history.acknowledged(WriteId(version), stable, now);
        self
    }
    fn fail(&mut self, version: u64) -> &mut Self {
        let now = self.tick();
        self.history.failed(WriteId(version), now);
        self
    }
    fn crash(&mut self, power_lost: bool, write_back: bool) -> &mut Self {
        let now = self.tick();
        self.history.crashed(power_lost, write_back, now);
        self
    }
    fn sees(&mut self, began: u64, seen: [u64; 8]) -> Result<(), Wrong> {
        let now = self.tick();
        let result = self.history.observe(&seen.map(Some), began, now).map_err(|(_, wrong)| wrong);
        self.history.prune(now, true);
        result
    }
    fn reads(&mut self, version: u64) -> Result<(), Wrong> {
        let began = self.tick();
        self.sees(began, [version; 8])
    }
    /// On a copy: would this be permitted?
    fn may_read(&self, version: u64) -> bool {
        let (history, clock) = (self.history.clone(), self.clock);
        Script { history, clock }.reads(version).is_ok()
    }
    fn permits(&self, versions: std::ops::Range<u64>) -> Vec<u64> {
        versions.filter(|&version| self.may_read(version)).collect()
    }
}

#[test]
fn an_acknowledged_write_replaces_what_was_over_before_it_began() {
    let mut script = Script::new();
    assert_eq!(script.permits(0..3), [0]);
    script.begin(1, !0);
    assert_eq!(script.permits(0..3), [0, 1], "in flight: either");
    script.ack(1, true);
    assert_eq!(script.permits(0..3), [1]);
    assert_eq!(script.reads(0), Err(Wrong::NotPermitted));
}

#[test]
fn overlapping_writes_take_effect_in_any_order_but_only_one() {
    let mut script = Script::new();
    script.begin(1, !0).begin(2, !0).ack(1, true).ack(2, true);
    assert_eq!(script.permits(0..4), [1, 2]);
    assert_eq!(script.reads(1), Ok(()));
    assert_eq!(script.permits(0..4), [1], "seen once, it is fixed");
}

#[test]
fn a_value_seen_in_flight_does_not_go_away_again() {
    let mut script = Script::new();
    script.begin(1, !0);
    assert_eq!(script.reads(1), Ok(()));
    assert_eq!(script.reads(0), Err(Wrong::NotPermitted));
    script.begin(2, !0);
    assert_eq!(script.reads(2), Ok(()));
    assert_eq!(script.reads(1), Err(Wrong::NotPermitted), "1 took effect before 2");
}

#[test]
fn a_read_that_began_earlier_may_see_the_older_value() {
    let mut script = Script::new();
    let began = script.tick();
    script.begin(1, !0).ack(1, true);
    assert_eq!(script.sees(began, [0; 8]), Ok(()));
    assert_eq!(script.reads(0), Err(Wrong::NotPermitted));
}

#[test]
fn after_a_crash_what_was_in_flight_is_there_or_not_and_stays_so() {
    for seen in [0, 1] {
        let mut script = Script::new();
        script.begin(1, !0).crash(false, false);
        assert_eq!(script.permits(0..3), [0, 1]);
        assert_eq!(script.reads(seen), Ok(()));
        assert_eq!(script.permits(0..3), [seen], "no flip-flop");
        script.crash(true, false);
        assert_eq!(script.permits(0..3), [seen], "nor after another crash");
    }
}

#[test]
fn a_write_that_failed_is_either_until_something_newer_is_acknowledged() {
    let mut script = Script::new();
    script.begin(1, !0).fail(1);
    assert_eq!(script.permits(0..3), [0, 1]);
    script.begin(2, !0).ack(2, true).crash(true, false);
    assert_eq!(script.permits(0..3), [2]);
}

#[test]
fn a_refused_write_never_happened() {
    let mut script = Script::new();
    script.begin(1, !0);
    assert!(script.history.refused(WriteId(1)));
    assert_eq!(script.permits(0..3), [0]);
    script.begin(2, !0);
    script.reads(2).unwrap();
    assert!(!script.history.refused(WriteId(2)), "it was seen: the refusal lied");
}

#[test]
fn write_back_falls_to_anything_since_the_last_flush_and_no_further() {
    let mut script = Script::new();
    for version in 1..=3 {
        script.begin(version, !0).ack(version, false);
    }
    script.history.flushed(WriteId(2));
    script.crash(false, true);
    assert_eq!(script.permits(0..5), [3], "kill -9 loses nothing acknowledged");
    script.crash(true, true);
    assert_eq!(script.permits(0..5), [2, 3], "power loss may go back to the flush");
    assert_eq!(script.reads(2), Ok(()));
    script.crash(true, true);
    assert_eq!(script.permits(0..5), [2], "what recovery settled on stays");
}

#[test]
fn write_through_never_falls_back() {
    let mut script = Script::new();
    script.begin(1, !0).ack(1, true).begin(2, !0).ack(2, true).crash(true, false);
    assert_eq!(script.permits(0..4), [2]);
}

#[test]
fn sectors_are_kept_apart_and_whole_blocks_do_not_tear() {
    let mut script = Script::new();
    script.begin(1, !0).ack(1, true).begin(2, 0b11).ack(2, true);
    let began = script.tick();
    assert_eq!(script.sees(began, [1; 8]), Err(Wrong::NotPermitted), "the small write is lost");
    assert_eq!(script.sees(began, [2, 2, 1, 1, 1, 1, 1, 1]), Ok(()));
    script.begin(3, !0).begin(4, !0);
    let began = script.tick();
    assert_eq!(script.sees(began, [3, 3, 3, 3, 4, 4, 4, 4]), Err(Wrong::Torn));
    assert_eq!(script.sees(began, [2, 2, 1, 1, 3, 3, 3, 3]), Err(Wrong::Torn), "half of write 3");
    assert_eq!(script.sees(began, [3; 8]), Ok(()));
}

#[test]
fn a_small_write_beside_a_whole_one_may_come_before_or_after() {
    let mut script = Script::new();
    script.begin(1, !0).begin(2, 0b1).ack(1, true).ack(2, true);
    let now = script.tick();
    for seen in [[1; 8], [2, 1, 1, 1, 1, 1, 1, 1]] {
        assert!(script.history.clone().observe(&seen.map(Some), now, now + 1).is_ok());
    }
    assert!(script.history.observe(&[2; 8].map(Some), now, now + 1).is_err());
}
