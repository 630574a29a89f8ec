//! What the pool says of itself must be so.

use super::proof::redundant;
use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::fault::FaultRates;

pub const CLAIMS_NO_MORE_THAN_IT_SURVIVES: Scenario = Scenario {
    name: "claims-no-more-than-it-survives",
    property: "while a block lacks what a drive refused to take, as many drives as are said to be survived may go, and no more are said",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(redundant(seed), 6, 300), options);
        script.start()?;
        script.write(0, 200)?;
        let before = counted("write: a column lost, its drive borne with");
        let refusing = script.drive(0);
        script.world().set_fault_rates(refusing, FaultRates { write_error: 1000, ..FaultRates::NONE });
        let written = script.begin_write(20, 7 + seed % 20);
        script.until("a column to be refused", || {
            counted("write: a column lost, its drive borne with") > before
        })?;
        script.world().set_fault_rates(refusing, FaultRates::NONE);
        script.until("a write", || written.get())?;
        // nothing has been repaired yet; the drive that refused is the last to be pulled
        script.pull_claimed();
        script.verify()
    },
};
