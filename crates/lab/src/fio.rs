//! Runs fio as the client, if it is installed, to check our generator.

use std::process::Command;

use serde_json::Value;

use crate::job::{Job, Limit, Pattern, Skew};
use crate::target::Target;

/// What fio says about a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub version: String,
    pub iops: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// The words of fio's command line for a job.
fn words(target: &Target, job: &Job) -> Result<Vec<String>, String> {
    let Limit::Seconds(seconds) = job.limit else {
        return Err("fio is asked for jobs bounded by time only".to_owned());
    };
    let (engine, file) = match target {
        Target::Drives(paths) if paths.len() == 1 => ("io_uring", paths[0].clone()),
        Target::Drives(_) => {
            return Err(
                "fio and our generator spread requests over drives differently: name one drive".to_owned()
            );
        }
        Target::Iscsi(unit) => ("libiscsi", format!("iscsi://{}/{}/{}", unit.portal, unit.target, unit.lun)),
        Target::Echo(_) => return Err("fio does not speak to the echo floor".to_owned()),
    };
    if job.durable && engine == "libiscsi" {
        return Err("fio's libiscsi engine does not ask for durable writes".to_owned());
    }
    let random = if job.pattern == Pattern::Random { "rand" } else { "" };
    let workload = match job.read_percent {
        100 => format!("{random}read"),
        0 => format!("{random}write"),
        _ => format!("{random}rw"),
    };
    let jobs = u32::from(job.threads) * job.channels;
    let mut words = vec![
        "--name=job".to_owned(),
        "--output-format=json".to_owned(),
        "--direct=1".to_owned(),
        "--thread".to_owned(),
        "--group_reporting".to_owned(),
        "--time_based".to_owned(),
        // as ours: places may repeat, and no map of those visited is kept
        "--norandommap".to_owned(),
        "--randrepeat=0".to_owned(),
        format!("--ioengine={engine}"),
        // a colon separates files in fio's words
        format!("--filename={}", file.replace(':', "\\:")),
        format!("--rw={workload}"),
        format!("--rwmixread={}", job.read_percent),
        format!("--bs={}", job.block_bytes),
        format!("--iodepth={}", job.queue_depth),
        format!("--numjobs={jobs}"),
        format!("--runtime={}ms", (seconds * 1e3) as u64),
        format!("--ramp_time={}ms", (job.warm_up_seconds * 1e3) as u64),
    ];
    // as ours: all that have ended are taken in one turn, and those that follow are submitted together
    words.extend(
        ["--iodepth_batch=", "--iodepth_batch_complete_max="]
            .map(|word| format!("{word}{}", job.queue_depth)),
    );
    words.extend(job.span_bytes.map(|span| format!("--size={span}")));
    words.extend(job.durable.then(|| "--sync=dsync".to_owned()));
    words.extend(job.skew.map(|Skew { requests_percent, places_percent }| {
        let (other_requests, other_places) = (100 - requests_percent, 100 - places_percent);
        format!(
            "--random_distribution=zoned:{requests_percent}/{places_percent}:{other_requests}/{other_places}"
        )
    }));
    Ok(words)
}

/// Whether fio is there and has the engine; the reason where not.
pub fn is_usable(target: &Target) -> Result<(), String> {
    let engine = if matches!(target, Target::Iscsi(_)) { "libiscsi" } else { "io_uring" };
    let output = Command::new("fio").arg("--enghelp").output();
    let output =
        output.map_err(|error| format!("fio cannot be started: {error}; install the package fio"))?;
    let engines = String::from_utf8_lossy(&output.stdout).into_owned();
    if engines.split_whitespace().any(|word| word == engine) {
        Ok(())
    } else {
        Err(format!(
            "this fio has no engine {engine}; measure with our generator alone, or a fio that was built with it"
        ))
    }
}

/// Runs a job with fio.
pub fn run(target: &Target, job: &Job, cores: &[usize]) -> Result<Answer, String> {
    is_usable(target)?;
    let mut command = Command::new("fio");
    command.args(words(target, job)?);
    if !cores.is_empty() {
        let list: Vec<String> = cores.iter().map(ToString::to_string).collect();
        command.arg(format!("--cpus_allowed={}", list.join(",")));
    }
    let output = command.output().map_err(|error| format!("fio: {error}"))?;
    if !output.status.success() {
        return Err(format!("fio failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// Reads fio's JSON; there may be words of warning before it.
fn parse(text: &str) -> Result<Answer, String> {
    let start = text.find('{').ok_or("fio printed no JSON")?;
    let value: Value =
        serde_json::from_str(&text[start..]).map_err(|error| format!("fio's JSON: {error}"))?;
    let job = &value["jobs"][0];
    if let Some(error) = job["error"].as_i64().filter(|error| *error != 0) {
        return Err(format!("fio's job ended with error {error}"));
    }
    let directions = [&job["read"], &job["write"]];
    let iops = directions.iter().filter_map(|direction| direction["iops"].as_f64()).sum();
    let busiest =
        directions.into_iter().max_by_key(|direction| direction["total_ios"].as_u64()).expect("two");
    let at = |percent: &str| busiest["clat_ns"]["percentile"][percent].as_u64().unwrap_or(0);
    let version = value["fio version"].as_str().unwrap_or("fio").to_owned();
    if iops == 0.0 {
        return Err("fio did nothing".to_owned());
    }
    Ok(Answer { version, iops, p50_ns: at("50.000000"), p99_ns: at("99.000000") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_is_asked_for_the_same_job() {
        let job = Job {
            read_percent: 70,
            queue_depth: 16,
            channels: 12,
            skew: "90/10".parse().ok(),
            durable: true,
            ..Job::default()
        };
        let words =
            words(&Target::Drives(vec!["/dev/a:b".to_owned()]), &job).expect("a job for fio").join(" ");
        for word in [
            "--rw=randrw",
            "--rwmixread=70",
            "--iodepth=16",
            "--numjobs=12",
            "--bs=4096",
            "--filename=/dev/a\\:b",
            "--runtime=5000ms",
            "--random_distribution=zoned:90/10:10/90",
            "--sync=dsync",
            "--iodepth_batch=16",
            "--iodepth_batch_complete_max=16",
        ] {
            assert!(words.contains(word), "{word}: {words}");
        }
        let bounded = Job { limit: Limit::Bytes(1 << 20), ..job };
        assert!(super::words(&Target::Drives(vec!["/dev/a".to_owned()]), &bounded).is_err());
    }

    #[test]
    fn its_answer_is_read() {
        let text = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
            {"fio version": "fio-3.33", "jobs": [{"error": 0,
             "read": {"iops": 1000.5, "total_ios": 10, "clat_ns": {"percentile": {"50.000000": 7, "99.000000": 9}}},
             "write": {"iops": 2.0, "total_ios": 1, "clat_ns": {}}}]}"#;
        let answer = parse(text).expect("fio's JSON");
        assert_eq!(answer, Answer { version: "fio-3.33".to_owned(), iops: 1002.5, p50_ns: 7, p99_ns: 9 });
        for wrong in ["", "{", "{}", r#"{"jobs":[{"error":5}]}"#] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
