//! How much memory the array may use.

use std::path::{Path, PathBuf};

use base::units::Size;
use control::config::Config;
use engine::Memory;

use super::Failure;

/// The part of the machine's memory that is taken where the file does not say.
const PART: u64 = 4;

/// What each of so many shards may use.
pub fn of_each_shard(config: &Config, shards: u16) -> Result<Memory, Failure> {
    let (least, most) = (Memory::SHARD_BYTES_MIN as u64 * u64::from(shards), available_bytes());
    if let Some(bytes) = config.memory_bytes.filter(|&bytes| bytes > most) {
        return Err(Failure(format!(
            "memory = \"{}\" is more than this machine, or the service's control group, has: {}",
            Size(bytes),
            Size(most)
        )));
    }
    let bytes = config.memory_bytes.unwrap_or_else(|| (most / PART).max(least));
    let memory = Memory::of_budget(bytes, shards).ok_or_else(|| {
        Failure(format!(
            "memory = \"{}\" is too little for {shards} shards: give {} at least, or fewer [cores]",
            Size(bytes),
            Size(least)
        ))
    })?;
    tracing::info!(
        "memory: {} for {shards} shards, of which {} for maps",
        Size(bytes),
        Size(memory.map_bytes as u64 * u64::from(shards))
    );
    Ok(memory)
}

/// The machine's memory, or what the service may use of it.
fn available_bytes() -> u64 {
    let system = rustix::system::sysinfo();
    let machine = system.totalram * u64::from(system.mem_unit.max(1));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limit_of(Path::new("/sys/fs/cgroup"), &groups).map_or(machine, |limit| limit.min(machine))
}

/// The smallest limit of the control group that `groups`, the content of `/proc/self/cgroup`, names, and of those
/// above it (cgroup v2).
fn limit_of(root: &Path, groups: &str) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let group: PathBuf = root.join(group);
    let limits = group.ancestors().take_while(|above| above.starts_with(root)).filter_map(|above| {
        let limit = std::fs::read_to_string(above.join("memory.max")).ok()?;
        limit.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("system.slice/tangelo.service");
        std::fs::create_dir_all(&group).unwrap();
        let groups = "0::/system.slice/tangelo.service\n";
        assert_eq!(limit_of(root.path(), groups), None);
        std::fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(limit_of(root.path(), groups), None);
        std::fs::write(root.path().join("system.slice/memory.max"), "1073741824\n").unwrap();
        assert_eq!(limit_of(root.path(), groups), Some(1 << 30));
        std::fs::write(group.join("memory.max"), "536870912\n").unwrap();
        assert_eq!(limit_of(root.path(), groups), Some(512 << 20));
        assert!(available_bytes() > 64 << 20);
    }

    #[test]
    fn too_little_is_refused() {
        let config = |bytes| Config { memory_bytes: Some(bytes), ..Config::default() };
        assert_eq!(
            of_each_shard(&config(1 << 30), 2).map_err(|error| error.0),
            Ok(Memory::of_budget(1 << 30, 2).unwrap())
        );
        let refused = of_each_shard(&config(200 << 20), 2).unwrap_err();
        assert_eq!(
            refused.0,
            "memory = \"200 MiB\" is too little for 2 shards: give 256 MiB at least, or fewer [cores]"
        );
        assert!(of_each_shard(&Config::default(), 16).is_ok());
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let config = Config { memory_bytes: Some(100 << 40), ..Config::default() };
        let refused = of_each_shard(&config, 2).unwrap_err().0;
        assert!(refused.starts_with("memory = \"100 TiB\" is more than this machine"), "{refused}");
    }
}
