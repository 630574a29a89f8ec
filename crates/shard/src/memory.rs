//! The array's memory: one budget, divided among the shards, for commands' data and the maps of pools.

use base::limits::{COMMAND_BYTES, COMMANDS_PER_SESSION_MAX, WRITE_BYTES_PER_SESSION_MAX};

/// Minimum for the data of commands on a shard: what eight sessions may hold at once.
const DATA_BYTES_MIN: usize =
    8 * (WRITE_BYTES_PER_SESSION_MAX + COMMAND_BYTES * COMMANDS_PER_SESSION_MAX as usize);
/// Beyond this, memory is more useful for maps.
const DATA_BYTES_MAX: usize = 512 << 20;

/// How much one shard may keep in memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// For the data of all commands on the shard. A command that does not fit is refused; its initiator repeats it.
    pub data_bytes: usize,
    /// For the maps of all its lanes, divided evenly.
    pub map_bytes: usize,
}

impl Memory {
    /// The minimum for each shard.
    pub const SHARD_BYTES_MIN: usize = 128 << 20;

    /// The share of one shard in the array's budget; `None` if it would be too small.
    pub fn of_budget(bytes: u64, shards: u16) -> Option<Memory> {
        let share = usize::try_from(bytes / u64::from(shards)).unwrap_or(usize::MAX);
        let data_bytes = (share / 4).clamp(DATA_BYTES_MIN, DATA_BYTES_MAX);
        (share >= Memory::SHARD_BYTES_MIN).then(|| Memory { data_bytes, map_bytes: share - data_bytes })
    }
}

/// For a machine of a few GiB.
impl Default for Memory {
    fn default() -> Memory {
        Memory { data_bytes: DATA_BYTES_MAX, map_bytes: 256 << 20 }
    }
}

const _: () = assert!(2 * DATA_BYTES_MIN <= Memory::SHARD_BYTES_MIN + (16 << 20));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_dealt_out_as_a_whole() {
        for (bytes, shards) in [(256 << 20, 2), (6 << 30, 2), (1 << 40, 16), (128 << 20, 1)] {
            let memory = Memory::of_budget(bytes, shards).expect("enough");
            assert_eq!((memory.data_bytes + memory.map_bytes) as u64, bytes / u64::from(shards));
            assert!(memory.data_bytes >= DATA_BYTES_MIN && memory.map_bytes >= 48 << 20, "{memory:?}");
        }
        assert_eq!(Memory::of_budget((128 << 20) - 1, 1), None);
        assert_eq!(Memory::of_budget(1 << 30, 16), None);
    }
}
