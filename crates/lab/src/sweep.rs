//! Sweeps: one parameter changes at a time and all others stay, to show the effect of a setting.

use std::str::FromStr;

use crate::job::Job;
use crate::result::Results;
use crate::{table, units};

/// `depth=1,2,4`: a parameter and the values that it takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vary {
    parameter: Parameter,
    values: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parameter {
    Depth,
    Block,
    Connections,
    Threads,
    Reads,
    Span,
}

const PARAMETERS: [(&str, Parameter); 6] = [
    ("depth", Parameter::Depth),
    ("block", Parameter::Block),
    ("connections", Parameter::Connections),
    ("threads", Parameter::Threads),
    ("reads", Parameter::Reads),
    ("span", Parameter::Span),
];

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Vary, String> {
        let known = || PARAMETERS.map(|(name, _)| name).join(", ");
        let (name, values) = text.split_once('=').ok_or("use NAME=VALUE,VALUE...")?;
        let parameter = PARAMETERS.iter().find(|(known, _)| *known == name);
        let (_, parameter) =
            parameter.ok_or_else(|| format!("\"{name}\" is no parameter: use {}", known()))?;
        let values = values.split(',').map(units::parse_bytes).collect::<Result<Vec<u64>, String>>()?;
        Ok(Vary { parameter: *parameter, values })
    }
}

impl Vary {
    pub fn name(&self) -> &'static str {
        let named = PARAMETERS.iter().find(|(_, parameter)| *parameter == self.parameter);
        named.expect("every parameter has a name").0
    }

    /// The base job with each of the values in turn.
    pub fn jobs(&self, base: &Job) -> Result<Vec<(String, Job)>, String> {
        self.values.iter().map(|&value| self.apply(base, value)).collect()
    }

    fn apply(&self, base: &Job, value: u64) -> Result<(String, Job), String> {
        let too_much = |_| format!("{}={value} is too much", self.name());
        let small = u32::try_from(value).map_err(too_much);
        let mut job = base.clone();
        let shown = match self.parameter {
            Parameter::Block | Parameter::Span => base::units::size(value),
            _ => value.to_string(),
        };
        match self.parameter {
            Parameter::Depth => job.queue_depth = small?,
            Parameter::Block => job.block_bytes = small?,
            Parameter::Connections => job.channels = small?,
            Parameter::Threads => job.threads = u16::try_from(value).map_err(too_much)?,
            Parameter::Reads => job.read_percent = u8::try_from(value).map_err(too_much)?,
            Parameter::Span => job.span_bytes = Some(value),
        }
        job.check()?;
        Ok((shown, job))
    }
}

/// A table for each parameter: rate against the base's, latency, and what held it back.
pub fn report(varied: &[Vary], base: &Job, results: &Results) -> Result<String, String> {
    let mut text = String::new();
    for target in results.targets() {
        let usual = results.median(target, base).map(|run| run.iops);
        text.push_str(&format!("{target}: {}\n\n", base.title()));
        for vary in varied {
            let mut rows = vec![
                [vary.name(), "IOPS", "MiB/s", "x base", "p50", "p99", "p99.9", "limit"]
                    .map(str::to_owned)
                    .to_vec(),
            ];
            for (value, job) in vary.jobs(base)? {
                let Some(run) = results.median(target, &job) else { continue };
                let ratio = usual.map_or_else(|| "-".to_owned(), |usual| format!("{:.2}", run.iops / usual));
                let mut row = vec![value, units::count(run.iops), units::short(run.mib_s), ratio];
                row.extend([run.all.p50_ns, run.all.p99_ns, run.all.p999_ns].map(units::time));
                row.push(run.bottleneck.name.name().to_owned());
                rows.push(row);
            }
            text.push_str(&table::render(&rows));
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_parameter_changes_and_nothing_else() {
        let vary: Vary = "block=512,4k,1M".parse().expect("a parameter");
        let base = Job { queue_depth: 7, ..Job::default() };
        let jobs = vary.jobs(&base).expect("they make sense");
        assert_eq!(
            jobs.iter().map(|(shown, _)| shown.as_str()).collect::<Vec<_>>(),
            ["512 B", "4 KiB", "1 MiB"]
        );
        assert!(jobs.iter().all(|(_, job)| Job { block_bytes: base.block_bytes, ..job.clone() } == base));
        for text in ["colour=1", "depth", "depth=x", "depth=0", "reads=101", "threads=99999"] {
            let refused = text.parse::<Vary>().and_then(|vary| vary.jobs(&base).map(drop));
            assert!(refused.is_err(), "{text}");
        }
    }
}
