//! How a load generator handles answers that are no errors, and those that are.

use std::sync::Arc;

use iscsi::CommandResponse;
use wire::scsi::cdb::FUA;
use wire::scsi::{SenseCode, SenseKey, Status};

use super::scripted::{READ, READ_CAPACITY, WRITE, check_condition, serve, status};
use crate::job::{Job, Limit, Pattern};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::result::Run;
use crate::run;
use crate::target::Target;

const BLOCKS: usize = 2048;

fn threshold() -> CommandResponse {
    check_condition(SenseKey::UnitAttention, SenseCode::ThinProvisioningThreshold)
}

fn run(
    job: Job,
    script: impl Fn(u64, &[u8; 16]) -> Option<CommandResponse> + Send + Sync + 'static,
) -> Result<Run, String> {
    let target = Target::Iscsi(serve(BLOCKS, Arc::new(script)));
    let plan = Plan { name: "it".into(), target, job, round: 1, cores: vec![], target_process: None };
    run::run(&plan, &mut Progress::silent())
}

/// 64 requests of 4 KiB.
fn job(read_percent: u8) -> Job {
    Job {
        pattern: Pattern::Sequential,
        read_percent,
        queue_depth: 4,
        limit: Limit::Bytes(64 * 4096),
        ..Job::default()
    }
}

#[test]
fn what_is_no_error_is_counted_and_the_command_sent_again() {
    for read_percent in [0, 100] {
        let run = run(job(read_percent), |number, cdb| match (number, cdb[0]) {
            // before the load: what every session is told first
            (0, READ_CAPACITY) => Some(check_condition(SenseKey::UnitAttention, SenseCode::PowerOnOrReset)),
            (5, _) => Some(threshold()),
            (9..=11, _) => Some(status(Status::Busy)),
            (20, _) => Some(status(Status::TaskSetFull)),
            _ => None,
        });
        let run = run.expect("nothing of it is an error");
        assert_eq!(run.all.operations, 64, "each once, however often it was sent");
        let threshold = "UNIT ATTENTION 38h/07h THIN PROVISIONING SOFT THRESHOLD REACHED".to_owned();
        let expected = [("BUSY".to_owned(), 3), ("TASK SET FULL".to_owned(), 1), (threshold, 1)];
        assert_eq!(run.retried.clone().into_iter().collect::<Vec<_>>(), expected);
        assert!(run.all.max_ns > 1_000_000, "the pauses are a part of a request's time");
    }
}

#[test]
fn an_error_ends_the_run_and_tells_its_name() {
    let space = check_condition(SenseKey::DataProtect, SenseCode::SpaceAllocationFailedWriteProtect);
    let ends = run(job(0), move |_, cdb| (cdb[0] == WRITE).then(|| space.clone()));
    let why = ends.expect_err("there is no room");
    assert!(why.contains("sense key 7h, 27h/07h"), "{why}");
    let why = run(job(100), |_, cdb| (cdb[0] == READ).then(threshold)).expect_err("it never stops");
    assert!(why.contains("was sent 129 times"), "{why}");
}

#[test]
fn a_run_bounded_by_time_ends_in_time_though_the_target_is_busy() {
    let job = Job { limit: Limit::Seconds(0.2), warm_up_seconds: 0.0, ..job(0) };
    let began = std::time::Instant::now();
    let run = run(job, |number, cdb| (number > 50 && cdb[0] == WRITE).then(|| status(Status::Busy)));
    let run = run.expect("it ends");
    assert!(began.elapsed().as_secs() < 10, "patience with a busy target is not asked for at the end");
    assert!(run.retried["BUSY"] < 200, "with pauses: {:?}", run.retried);
}

#[test]
fn durable_writes_say_so_and_nothing_else_does() {
    for durable in [false, true] {
        let job = Job { durable, ..job(50) };
        let refused = run(job, move |_, cdb| {
            let asks = cdb[1] & FUA != 0;
            let right = match cdb[0] {
                WRITE => asks == durable,
                READ => !asks,
                _ => true,
            };
            (!right).then(|| check_condition(SenseKey::IllegalRequest, SenseCode::InvalidFieldInCdb))
        });
        assert_eq!(refused.expect("all are as they must be").all.operations, 64);
    }
}
