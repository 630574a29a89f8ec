//! COMPARE AND WRITE over borders of lanes is one step to all other commands, whichever shards they came by: of those that
//! expect the same content, one succeeds.

use pool::Protection;
use sim::array::run_contended_array;
use sim::scenarios::plain_plan;

#[test]
fn compare_and_writes_across_lanes_are_one_step() {
    for seed in 1..=15u64 {
        let protection = Protection::ALL[(seed % 5) as usize];
        // two borders of map pages
        let plan = plain_plan(protection, 5, 600);
        let result = run_contended_array(seed, plan, None);
        assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
    }
}
