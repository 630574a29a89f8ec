//! Hosts that are all in each other's way.

use pool::Protection;

use super::Scenario;
use super::script::plain_plan;
use crate::array::run_contended_array;

pub const COMPARES_ARE_ONE_STEP: Scenario = Scenario {
    name: "compares-are-one-step",
    property: "COMPARE AND WRITE over borders of lanes is one step to all other commands, whichever shards they came by: of \
               those that expect the same content, one succeeds",
    run: |seed, mut options| {
        for n in 0..RUNS {
            // two borders of map pages
            let plan = plain_plan(Protection::ALL[(seed + n) as usize % 5], 5, 600);
            run_contended_array(seed * 100 + n, plan, options.trace.take())?;
        }
        Ok(())
    },
};

/// Whether two meet is a matter of luck.
const RUNS: u64 = 5;
