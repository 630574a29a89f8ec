//! The crash matrix, several cases at a time.

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use pool::Protection;
use sim::matrix::{CASES, Case, Outcome, run as run_case};

use super::Arguments;

pub fn run(arguments: &Arguments) -> ExitCode {
    let (every, seed) = (arguments.get("every", 1).max(1), arguments.get("seed", 1));
    let wanted = |case: &&Case| arguments.case.as_ref().is_none_or(|name| case.name == name);
    let cells: Vec<(&Case, Protection)> = CASES
        .iter()
        .filter(wanted)
        .flat_map(|case| Protection::ALL.iter().map(move |&protection| (case, protection)))
        .collect();
    if cells.is_empty() {
        eprintln!(
            "sim: no such case; they are {}",
            CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ")
        );
        return ExitCode::from(2);
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let todo = Mutex::new(cells.into_iter());
    let sum = Mutex::new((0u64, 0u64));
    std::thread::scope(|scope| {
        for _ in 0..arguments.get("jobs", cores).max(1) {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().expect("no job panics").next();
                    let Some((case, protection)) = next else { return };
                    let began = Instant::now();
                    let Some(outcome) = run_case(case, protection, seed, every) else { continue };
                    print(case, protection, &outcome, began.elapsed().as_secs_f64());
                    let mut sum = sum.lock().expect("no job panics");
                    *sum = (sum.0 + outcome.cuts, sum.1 + outcome.failures.len() as u64);
                }
            });
        }
    });
    let (cuts, failed) = *sum.lock().expect("no job panics");
    println!("{cuts} cuts, {failed} failed");
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print(case: &Case, protection: Protection, outcome: &Outcome, seconds: f64) {
    let (cuts, failed) = (outcome.cuts, outcome.failures.len());
    println!(
        "{:<24} {:<10} {cuts:>6} cuts, {failed} failed, {seconds:.1} s",
        case.name,
        protection.to_string()
    );
    for (cut, why) in outcome.failures.iter().take(10) {
        println!("FAILED: {} {protection}, cut after operation {cut}: {why}", case.name);
    }
}
