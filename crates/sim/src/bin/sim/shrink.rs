//! Shrinks a failing seed: leaves out rounds, requests, clients, volumes, lanes and troubles that the failure does not
//! need.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use sim::seed::Trouble;

/// An attempt that runs longer than this has not failed in the way that is looked for.
const ATTEMPT: Duration = Duration::from_secs(120);

/// What is left out so far.
#[derive(Clone, Default)]
struct Trimmed {
    numbers: Vec<(&'static str, u64)>,
    one_lane: bool,
    without: Vec<Trouble>,
}

impl Trimmed {
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, value) in &self.numbers {
            words.extend([format!("--{name}"), value.to_string()]);
        }
        words.extend(self.one_lane.then(|| "--one-lane".to_owned()));
        if !self.without.is_empty() {
            let names: Vec<String> = self.without.iter().map(|trouble| trouble.name()).collect();
            words.extend(["--without".to_owned(), names.join(",")]);
        }
        words
    }

    /// What the seed complains about, if it still does.
    fn complaint(&self, seed: u64) -> std::io::Result<Option<String>> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(seed.to_string())
            .args(self.words())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let began = Instant::now();
        while child.try_wait()?.is_none() {
            if began.elapsed() > ATTEMPT {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).trim().replace('\n', " | ");
        Ok((!output.status.success()).then_some(said))
    }
}

pub fn shrink(seed: u64) -> ExitCode {
    match shrunk(seed) {
        Ok(Some((trimmed, complaint))) => {
            println!("shrunk: sim {seed} {}", trimmed.words().join(" "));
            println!("{complaint}");
            ExitCode::SUCCESS
        }
        Ok(None) => {
            println!("seed {seed} does not fail");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("sim: {why}");
            ExitCode::FAILURE
        }
    }
}

fn shrunk(seed: u64) -> std::io::Result<Option<(Trimmed, String)>> {
    let mut best = Trimmed::default();
    let Some(mut complaint) = best.complaint(seed)? else { return Ok(None) };
    let numbers: [(&'static str, &[u64]); 4] = [
        ("rounds", &[0, 1, 2, 3]),
        ("requests", &[1, 3, 10, 20, 40]),
        ("depth", &[1, 2, 4]),
        ("volumes", &[1, 2]),
    ];
    for (name, values) in numbers {
        for &value in values {
            let mut attempt = best.clone();
            attempt.numbers.push((name, value));
            if let Some(still) = attempt.complaint(seed)? {
                (best, complaint) = (attempt, still);
                break;
            }
        }
    }
    let lanes = Trimmed { one_lane: true, ..best.clone() };
    if let Some(still) = lanes.complaint(seed)? {
        (best, complaint) = (lanes, still);
    }
    for trouble in Trouble::ALL {
        let mut attempt = best.clone();
        attempt.without.push(trouble);
        if let Some(still) = attempt.complaint(seed)? {
            (best, complaint) = (attempt, still);
        }
    }
    Ok(Some((best, complaint)))
}
