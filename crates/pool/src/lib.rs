//! The pool: drives joined into a checksummed, parity-protected log, and volumes mapped onto it.
//!
//! | file                | what it does |
//! |---------------------|---|
//! | `lane`              | one independent log on one shard: its parts, its state, its end |
//! | `requests`          | what a lane can be asked (`request`): writing (`write`, `admit`), compare-and-write across lanes (`hold`), which blocks are mapped (`mapped`), blocks behind the end of a smaller volume (`beyond`), the array's catalog (`catalog`) |
//! | `reading`           | blocks of a layer (`read`); reading, checking and rebuilding cells (`cells`); checking whole batches (`verify`) |
//! | `log`               | entries that wait (`queue`); building a batch of them (`batch`); the task that places and commits batches (`append`); writing one to the drives (`write_batch`); changing the map when one is committed (`apply`) |
//! | `map`               | layers and their pages in memory (`tree`), read from drives (`pages`), evicted (`ring`); dirty pages that a checkpoint would have to write (`exposure`) |
//! | `layers`            | which layer stands on which, and their names (`stacks`); blocks that are what another layer says (`references`); what the layers below one say, worked out once (`bases`); space of layers (`usage`); emptying a dropped layer (`dropping`), merging it with the one that stands on it (`merge`) |
//! | `checkpoint`        | writing the map, the table and the roots (`checkpointer`); opening a lane from them and the batches after them (`recovery`, `found`); checks of a root and a table before they are believed (`sanity`) |
//! | `space`             | chunks and segments (`segments`, `fit`), columns that lack something although their drive is there (`lacking`); who may use the free segments (`shares`) |
//! | `cleaning`          | choosing segments (`clean`), moving their blocks (`round`), what it is doing (`cleaner`), and how hosts and it leave each other room and time (`pacing`) |
//! | `integrity`         | reading everything (`scrub`); what is damaged beyond repair (`loss`); comparing all counts with the map (`audit`), correcting them (`recount`) |
//! | `drives`            | what a drive holds (`probe`); making a pool, claiming one at a start (`create`); the drives of a pool (`membership`); when one is given up: for errors (`evidence`), for being slow (`latency`), for hanging (`watch`) |
//! | `geometry`          | the five kinds of protection (`protection`), which cell of a batch holds what (`layout`), the address of a block in the log (`position`) |
//! | `format`            | the bytes on a drive |
//! | `volume`            | a volume over the lanes of a pool, as a block target |
//! | `stats`, `decision` | counters; how often each rare decision was taken |
//! | `fuzz`              | entry points for fuzzing |

mod checkpoint;
mod cleaning;
mod decision;
mod drives;
mod format;
pub mod fuzz;
mod geometry;
mod integrity;
mod lane;
mod layers;
mod log;
mod map;
mod reading;
mod requests;
mod space;
mod stats;
mod volume;

pub use decision::decisions;
pub use drives::create::{CreateOptions, PlannedPool, PoolError, claim, create, wipe};
pub use drives::evidence::Patience;
pub use drives::latency::DriveLatency;
pub use drives::membership::{Member, Membership, TooFewDrives};
pub use drives::probe::{BUSY_PATIENCE, Content, open_when_free, probe};
pub use format::label::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, DriveState, Label, LabelDrive};
pub use format::{FORMAT_VERSION, LABEL_REGION_BYTES};
pub use geometry::position::{Position, SegmentId};
pub use geometry::protection::{Protection, Shape, UnknownProtection, WidthOutOfRange};
pub use integrity::scrub::ScrubStats;
pub use lane::{CATALOG_LAYER, Lane, LaneError, LaneHost, LaneOptions};
pub use layers::references::{Elsewhere, Known, Reference, Speaker, Spoken};
pub use layers::usage::LayerSpace;
pub use requests::hold::HoldId;
pub use requests::request::{LaneOutput, LaneRequest, LaneResult};
pub use stats::{DriveErrors, LaneCounters, LaneStats, failures_survivable};
pub use volume::{CopyRange, LaneRef, PoolVolume, RemoteLane, Survey};
