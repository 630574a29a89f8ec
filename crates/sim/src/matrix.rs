//! The crash matrix: short scripts, and a power cut after every single drive operation in them.
//!
//! Each script first runs to its end, to count the operations. Then it runs again for every cut, from the same seed, so
//! the history up to the cut is the same. After the cut, the pool is started and everything is read. Then the work of
//! the script is completed, and the books are audited.

use base::Nanos;
use pool::{DriveState, Protection};

use crate::drive::DriveOptions;
use crate::scenarios::{Script, plain_plan};
use crate::seed::{Options, Order, Plan};
use crate::workload::{Checked, Failure, Stretch};

type Step = fn(&mut Script) -> Result<(), Failure>;

/// One script.
pub struct Case {
    pub name: &'static str,
    plan: fn(Protection) -> Plan,
    /// Not cut.
    before: Step,
    /// Cut after every operation.
    during: Step,
    /// After the cut and the next start.
    after: Step,
}

/// Every script.
pub const CASES: &[Case] = &[
    Case { name: "creation", plan: small, before: nothing, during: create, after: write_and_prove },
    Case { name: "write-overwrite-unmap", plan: small, before: some_data, during: change, after: prove },
    Case { name: "lone-unmap", plan: small, before: some_data, during: unmap_alone, after: prove },
    Case { name: "write-back", plan: write_back, before: some_data, during: mix, after: prove },
    Case { name: "write-during-flush", plan: write_back, before: some_data, during: flush, after: prove },
    Case { name: "checkpoint", plan: busy, before: some_data, during: write_often, after: prove },
    Case { name: "cleaning", plan: tiny, before: fill, during: overwrite, after: prove },
    Case { name: "lost-drive-rebuild", plan: small, before: much_data, during: lose, after: rebuild },
    Case { name: "drain", plan: small, before: much_data, during: drain, after: finish_drain },
    Case { name: "scrub-repair", plan: small, before: rotten_data, during: scrub, after: scrub_and_prove },
    Case { name: "snapshot-clone-rollback", plan: small, before: some_data, during: copy, after: prove },
    Case { name: "delete-merge", plan: small, before: copies, during: delete, after: delete_and_prove },
    Case {
        name: "copy-by-reference",
        plan: small,
        before: some_data,
        during: refer,
        after: forget_and_prove,
    },
    Case { name: "upgrade", plan: small, before: some_data, during: upgrade, after: finish_upgrade },
];

const SMALL_BLOCKS: u64 = 300;

fn small(protection: Protection) -> Plan {
    plain_plan(protection, 6, SMALL_BLOCKS)
}

fn busy(protection: Protection) -> Plan {
    Plan { checkpoint_interval: Nanos::from_millis(1), ..small(protection) }
}

fn write_back(protection: Protection) -> Plan {
    let mut plan = small(protection);
    plan.volumes[0].write_back = true;
    plan
}

/// So little room that overwriting soon needs cleaning.
fn tiny(protection: Protection) -> Plan {
    let mut plan = plain_plan(protection, 4, 600);
    let drives = (0..4).map(|index| DriveOptions::new(&format!("/sim/drive{index}"), 5 << 20));
    plan.drives = drives.collect();
    plan
}

fn nothing(_: &mut Script) -> Result<(), Failure> {
    Ok(())
}

fn create(script: &mut Script) -> Result<(), Failure> {
    script.start()?;
    script.write(0, 4)
}

fn write_and_prove(script: &mut Script) -> Result<(), Failure> {
    script.write(2, 4)?;
    prove(script)
}

fn some_data(script: &mut Script) -> Result<(), Failure> {
    script.start()?;
    script.write(0, 32)
}

fn change(script: &mut Script) -> Result<(), Failure> {
    for round in 0..6 {
        script.begin_write(round * 5, 7);
        script.begin_write(round * 5 + 3, 2);
        script.unmap(round * 4 + 1, 6)?;
        script.write(round * 4 + 2, 3)?;
    }
    script.unmap(0, 20)
}

/// Nothing that is durable lies beside the unmaps: reads, of which each operation is a cut, come next.
fn unmap_alone(script: &mut Script) -> Result<(), Failure> {
    for round in 0..8 {
        script.unmap(round * 3, 3)?;
        for block in 28..30 {
            script.read_from(1, block, 1)?;
        }
        script.write(30, 2)?;
    }
    Ok(())
}

/// What is durable by itself between what is not.
fn mix(script: &mut Script) -> Result<(), Failure> {
    let (write, compare) =
        (|durable| Checked::Write { durable }, |durable| Checked::CompareAndWrite { durable });
    for round in 0..5 {
        let block = round * 6;
        script.ask(write(false), block, 4)?;
        script.begin(compare(false), block + 4, 1);
        script.ask(compare(true), block + 1, 2)?;
        script.read_from(1, 31, 1)?;
        script.unmap(block + 3, 2)?;
        script.ask(write(true), block, 1)?;
        script.read_from(1, 31, 1)?;
        script.ask(write(false), block + 1, 2)?;
        script.ask(Checked::Flush, 0, 0)?;
        script.read_from(1, 31, 1)?;
    }
    Ok(())
}

/// What is committed while drives flush is not flushed; the next flush has to see to it.
fn flush(script: &mut Script) -> Result<(), Failure> {
    let write = Checked::Write { durable: false };
    for round in 0..5 {
        let block = round * 6;
        script.ask(write, block, 2)?;
        let flushed = script.begin(Checked::Flush, 0, 0);
        let written = [0, 2, 4].map(|more| script.begin(write, block + more, 2));
        script.until("a flush and writes", || flushed.get() && written.iter().all(|one| one.get()))?;
        script.ask(Checked::Flush, 0, 0)?;
        script.read_from(1, 31, 1)?;
        script.ask(Checked::Write { durable: true }, block + 1, 1)?;
        script.read_from(1, 31, 1)?;
    }
    Ok(())
}

fn write_often(script: &mut Script) -> Result<(), Failure> {
    for round in 0..8 {
        script.write(round * 30, 20)?;
        script.pass(Nanos::from_millis(3))?;
    }
    Ok(())
}

/// Something that stays in every segment, between what is overwritten again and again.
fn fill(script: &mut Script) -> Result<(), Failure> {
    script.start()?;
    for round in 0..110 {
        script.write(round, 1)?;
        script.write(400 + round * 13 % 80, 12)?;
    }
    Ok(())
}

fn overwrite(script: &mut Script) -> Result<(), Failure> {
    let cleaned = |script: &Script| -> u64 {
        script.bench.lanes().iter().map(|lane| lane.stats().counters.segments_cleaned).sum()
    };
    let before = cleaned(script);
    for round in 0..300 {
        script.write(110 + round % 190, 1)?;
        script.write(400 + round * 17 % 80, 12)?;
        if cleaned(script) > before + 2 {
            return Ok(());
        }
    }
    Err(Failure::Broken("nothing was cleaned".to_owned()))
}

fn much_data(script: &mut Script) -> Result<(), Failure> {
    script.start()?;
    script.write(0, 250)?;
    script.unmap(100, 20)
}

fn lose(script: &mut Script) -> Result<(), Failure> {
    let lost = script.drive(1);
    script.world().vanish(lost, None, false);
    script.write(120, 30)?;
    script.converge()
}

fn rebuild(script: &mut Script) -> Result<(), Failure> {
    script.write(60, 10)?;
    script.retire()?;
    prove(script)
}

fn drain(script: &mut Script) -> Result<(), Failure> {
    script.order(Order::Drain(2));
    script.write(10, 30)?;
    script.retire()
}

fn upgrade(script: &mut Script) -> Result<(), Failure> {
    script.order(Order::Upgrade);
    script.write(10, 30)?;
    is_upgraded(script)
}

fn is_upgraded(script: &mut Script) -> Result<(), Failure> {
    script.pass(Nanos::from_millis(100))?;
    let version = script.bench.membership().map(|membership| membership.version);
    match version == Some(pool::FORMAT_VERSION) {
        true => Ok(()),
        false => Err(Failure::Broken(format!("the pool has format {version:?} after its upgrade"))),
    }
}

/// An upgrade that was cut off is done again; the next start finds the newest format.
fn finish_upgrade(script: &mut Script) -> Result<(), Failure> {
    script.order(Order::Upgrade);
    is_upgraded(script)?;
    script.crash(true);
    script.start()?;
    is_upgraded(script)?;
    prove(script)
}

fn finish_drain(script: &mut Script) -> Result<(), Failure> {
    let state = script.bench.membership().map(|membership| membership.members[2].state);
    if state == Some(DriveState::Online) {
        script.order(Order::Drain(2));
        script.pass(Nanos::from_millis(100))?;
    }
    script.retire()?;
    prove(script)
}

fn rotten_data(script: &mut Script) -> Result<(), Failure> {
    much_data(script)?;
    let world = script.world();
    for block in 256..(24 << 20) / base::BLOCK_BYTES as u64 {
        world.rot(script.drive(0), block, block as usize * 977 % 32_768);
    }
    Ok(())
}

fn scrub(script: &mut Script) -> Result<(), Failure> {
    match script.scrub()? {
        true => script.converge(),
        false => Err(Failure::Broken("a rotten drive was found in order".to_owned())),
    }
}

fn scrub_and_prove(script: &mut Script) -> Result<(), Failure> {
    script.scrub()?;
    script.converge()?;
    prove(script)
}

fn copy(script: &mut Script) -> Result<(), Failure> {
    let snapshot = script.snapshot(1)?;
    script.begin_write(3, 5);
    let clone = script.clone_of(snapshot)?;
    script.write_to(clone, 10, 5)?;
    script.snapshot(clone)?;
    script.write(20, 10)?;
    script.roll_back(snapshot)?;
    script.write(2, 3)
}

/// Some that are merged upwards when they go, some downwards, and a clone.
fn copies(script: &mut Script) -> Result<(), Failure> {
    some_data(script)?;
    for round in 0..4 {
        let snapshot = script.snapshot(1)?;
        script.write(round * 5, 8 + round % 2 * 20)?;
        if round == 1 {
            let clone = script.clone_of(snapshot)?;
            script.write_to(clone, 40, 10)?;
        }
    }
    Ok(())
}

fn delete(script: &mut Script) -> Result<(), Failure> {
    for _ in 0..5 {
        let copies = script.administer("a look", |admin| async move { admin.copies() })?;
        // not in the order in which they were made
        let Some(copy) = copies.get(1).or(copies.first()) else { break };
        script.delete(copy.plan.volume)?;
        script.write(60, 2)?;
        script.converge()?;
    }
    Ok(())
}

fn delete_and_prove(script: &mut Script) -> Result<(), Failure> {
    delete(script)?;
    prove(script)
}

/// Ranges are copied, and both sides overwritten; what they were copied from is deleted.
fn refer(script: &mut Script) -> Result<(), Failure> {
    let range = |source, from, destination, to, blocks| Stretch { source, destination, from, to, blocks };
    script.copy_range(range(1, 0, 1, 100, 32))?;
    script.write(2, 10)?;
    script.write(110, 5)?;
    let snapshot = script.snapshot(1)?;
    let clone = script.clone_of(snapshot)?;
    script.copy_range(range(1, 95, clone, 10, 25))?;
    script.copy_range(range(snapshot, 0, 1, 200, 20))?;
    script.write_to(clone, 12, 3)?;
    script.delete(snapshot)?;
    script.forget()?;
    script.unmap(95, 40)?;
    script.delete(clone)?;
    script.write(200, 20)?;
    script.forget()?;
    script.converge()
}

fn forget_and_prove(script: &mut Script) -> Result<(), Failure> {
    script.write(0, 5)?;
    script.forget()?;
    prove(script)
}

fn prove(script: &mut Script) -> Result<(), Failure> {
    script.converge()?;
    script.audit()?;
    script.prove_redundancy()
}

/// Runs one case; with `cut`, so many drive operations into it the power goes. How many there were.
fn run_case(case: &Case, protection: Protection, seed: u64, cut: Option<u64>) -> Result<u64, Failure> {
    let mut script = Script::new(seed, (case.plan)(protection), Options::default());
    (case.before)(&mut script)?;
    let begun = script.world().drive_operations();
    script.cut_after(cut);
    let outcome = (case.during)(&mut script);
    let operations = script.world().drive_operations() - begun;
    if !script.was_cut() {
        outcome?;
        return Ok(operations);
    }
    script.cut_after(None);
    script.crash(true);
    script.start()?;
    script.verify()?;
    (case.after)(&mut script)?;
    Ok(operations)
}

/// What became of one case: under one protection, every `step`-th cut.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    pub cuts: u64,
    /// The cut, and what went wrong.
    pub failures: Vec<(u64, String)>,
}

/// Whether a case makes sense under a protection: what loses a drive needs one that can be lost.
fn fits(case: &Case, protection: Protection) -> bool {
    protection.parity() > 0 || !["lost-drive-rebuild", "scrub-repair"].contains(&case.name)
}

/// Cuts a case after every `step`-th operation, beginning with one that the seed names. `None`: it does not fit.
pub fn run(case: &Case, protection: Protection, seed: u64, step: u64) -> Option<Outcome> {
    if !fits(case, protection) {
        return None;
    }
    let mut outcome = Outcome::default();
    match run_case(case, protection, seed, None) {
        Ok(operations) => {
            for cut in (1 + seed % step..=operations).step_by(step as usize) {
                outcome.cuts += 1;
                if let Err(failure) = run_case(case, protection, seed, Some(cut)) {
                    outcome.failures.push((cut, failure.to_string()));
                }
            }
        }
        Err(failure) => outcome.failures.push((0, failure.to_string())),
    }
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_holds_where_it_is_cut_now_and_then() {
        for (index, case) in CASES.iter().enumerate() {
            let protection = Protection::ALL[1 + index % 4];
            let outcome = run(case, protection, index as u64, 97).expect("it fits");
            assert!(outcome.failures.is_empty(), "{} {protection}: {:?}", case.name, outcome.failures);
        }
    }
}
