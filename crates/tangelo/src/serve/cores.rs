//! The cores that the shards run on, and whether this process may use them.

use control::config::{Config, Cores};
use rustix::thread::{CpuSet, sched_getaffinity};

use super::Failure;

/// How many shards, and the cores that they are pinned to: none if the system may choose.
pub fn of_shards(config: &Config) -> Result<(u16, Vec<usize>), Failure> {
    let (count, list) = match &config.cores {
        Cores::All => (std::thread::available_parallelism().map_or(1, |cores| cores.get()), Vec::new()),
        Cores::Count(count) => (*count, Vec::new()),
        Cores::List(list) => (list.len(), list.clone()),
    };
    let allowed = allowed()?;
    if let Some(core) = list.iter().find(|core| !allowed.contains(core)) {
        return Err(Failure(format!(
            "[cores] list: core {core} is not one that this process may run on; those are {}",
            ranges(&allowed)
        )));
    }
    if count > allowed.len() {
        tracing::warn!(
            "{count} shards share {} cores, so they wait for each other: [cores] count = {} is better",
            allowed.len(),
            allowed.len()
        );
    }
    Ok((count.clamp(1, base::limits::SHARDS_MAX) as u16, list))
}

/// The cores that this process may run on, in order.
fn allowed() -> Result<Vec<usize>, Failure> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Such as `0-3, 8`.
fn ranges(cores: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let text = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_are_not_there_are_refused_by_name() {
        let config = |list: &[usize]| Config { cores: Cores::List(list.to_vec()), ..Config::default() };
        let first = allowed().unwrap()[0];
        assert_eq!(of_shards(&config(&[first])).unwrap(), (1, vec![first]));
        let refused = of_shards(&config(&[first, 1023])).unwrap_err().0;
        assert!(
            refused.contains("core 1023 is not one that this process may run on; those are "),
            "{refused}"
        );
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
    }
}
