//! Pure values that every room uses: ids, units, limits, checksums, buffers, histograms, deterministic maps.
//!
//! Nothing here does I/O, reads a clock or draws randomness. The generator of `prng` gives what its seed says.

pub mod buffer;
pub mod calendar;
pub mod checksum;
pub mod hex;
pub mod histogram;
pub mod id;
pub mod limits;
pub mod map;
pub mod prng;
pub mod secret;
pub mod table;
pub mod text;
pub mod time;
pub mod units;

pub use buffer::{AlignedBuffer, aligned_zeros};
pub use checksum::{Crc32c, block_checksum, crc32c};
pub use histogram::LatencyHistogram;
pub use id::{ArrayId, DriveId, Epoch, HeadId, LayerId, PoolId, Sequence, ShardId, VolumeId};
pub use map::{HashMap, HashSet};
pub use time::Nanos;
pub use units::{BLOCK_BYTES, Lba, SECTOR_BYTES};
