//! A drive that is pulled is missing, whatever it answers before it is gone; one that is there and fails has failed.

mod common;

use api::{DriveState, PoolStatus};
use base::Nanos;
use common::pool_bench::bench;
use sim::FaultRates;

/// Linux answers operations on a pulled SAS drive with I/O errors at first; its size becomes 0 a moment later.
#[test]
fn a_pulled_drive_that_first_answers_with_errors_is_missing_and_comes_back() {
    for (seed, errors_for) in [(60, 50), (61, 300), (62, 700)] {
        let mut bench = bench(seed, "parity-1", 4, 4);
        let pulled = bench.drives[1];
        bench.lab.simulation.world.pull(pulled, Nanos::from_millis(errors_for), None, false);
        bench.write(80);
        let lost = |pool: &PoolStatus| pool.drives.iter().any(|drive| drive.state != DriveState::Online);
        let pool = bench.wait_for("without a drive", 30, lost);
        assert_eq!(pool.drives[1].state, DriveState::Missing, "errors for {errors_for} ms");
        bench.lab.simulation.world.return_drive(pulled);
        bench.wait_healthy(4, 1);
        bench.check_data();
    }
}

#[test]
fn a_drive_that_is_there_and_refuses_writes_has_failed() {
    let mut bench = bench(63, "parity-1", 4, 4);
    let rates = FaultRates { write_error: 1000, ..FaultRates::NONE };
    bench.lab.simulation.world.set_fault_rates(bench.drives[1], rates);
    bench.write(80);
    let lost = |pool: &PoolStatus| pool.drives.iter().any(|drive| drive.state != DriveState::Online);
    let pool = bench.wait_for("without a drive", 30, lost);
    assert_eq!(pool.drives[1].state, DriveState::Failed);
    bench.check_data();
}
