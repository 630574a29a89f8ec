//! The pool: drives joined into a checksummed, parity-protected log, and volumes mapped onto it.
//!
//! | file                      | what it does                                                          |
//! |---------------------------|-----------------------------------------------------------------------|
//! | `protection`, `layout`    | the five kinds of protection; which cell of a batch holds what        |
//! | `position`                | the address of a block in the log                                     |
//! | `format`                  | the bytes on a drive                                                  |
//! | `probe`                   | what a drive holds                                                    |
//! | `create`                  | making a pool, claiming one at a start                                |
//! | `membership`              | the drives of a pool                                                  |
//! | `lane`, `request`         | one independent log on one shard, and its requests                    |
//! | `write`, `read`           | requests that write and read blocks                                   |
//! | `hold`                    | compare-and-write across lanes                                        |
//! | `log`, `batch`            | entries that wait; building a batch of them                           |
//! | `append`, `write_batch`   | the task that writes batches; writing one to the drives               |
//! | `apply`                   | changing the map when a batch is committed                            |
//! | `cells`, `verify`         | reading, checking and rebuilding cells; checking whole batches        |
//! | `evidence`, `latency`, `watch` | when a drive is given up: for errors, for being slow, for hanging |
//! | `lacking`                 | columns that lack something although their drive is there             |
//! | `segments`, `fit`, `space` | chunks and segments; who may use the free ones                       |
//! | `map`, `pages`, `ring`    | layers and their pages: in memory, read from drives, evicted          |
//! | `layers`                  | which layer stands on which, and their names                          |
//! | `exposure`                | dirty pages that a checkpoint would have to write                     |
//! | `references`              | blocks that are what another layer says                               |
//! | `bases`                   | what the layers below one say, worked out once                        |
//! | `map_status`, `beyond`    | which blocks are mapped; blocks behind the end of a smaller volume    |
//! | `checkpoint`              | writing the map, the table and the roots                              |
//! | `recovery`, `found`       | opening a lane: the newest checkpoint and the batches after it        |
//! | `sanity`                  | checks of a root and a table before they are believed                 |
//! | `clean`, `round`, `brake` | cleaning: choosing segments, moving their blocks, slowing hosts down  |
//! | `pace`                    | the share of time that repairs get                                    |
//! | `dropping`, `merge`       | emptying a dropped layer, merging it with the one that stands on it   |
//! | `scrub`, `loss`           | reading everything; what is damaged beyond repair                     |
//! | `audit`, `recount`        | comparing all counts with the map; correcting them                    |
//! | `usage`, `stats`, `decision` | space of layers; counters; how often each rare decision was taken  |
//! | `volume`                  | a volume over the lanes of a pool, as a block target                  |
//! | `catalog`                 | the array's catalog, stored in lane 0                                 |
//! | `fuzz`                    | entry points for fuzzing                                              |

mod append;
mod apply;
mod audit;
mod bases;
mod batch;
mod beyond;
mod brake;
mod catalog;
mod cells;
mod checkpoint;
mod clean;
mod create;
mod decision;
mod dropping;
mod evidence;
mod exposure;
mod fit;
mod format;
mod found;
pub mod fuzz;
mod hold;
mod lacking;
mod lane;
mod latency;
mod layers;
mod layout;
mod log;
mod loss;
mod map;
mod map_status;
mod membership;
mod merge;
mod pace;
mod pages;
mod position;
mod probe;
mod protection;
mod read;
mod recount;
mod recovery;
mod references;
mod request;
mod ring;
mod round;
mod sanity;
mod scrub;
mod segments;
mod space;
mod stats;
mod usage;
mod verify;
mod volume;
mod watch;
mod write;
mod write_batch;

pub use create::{CreateOptions, PlannedPool, PoolError, claim, create, wipe};
pub use decision::decisions;
pub use evidence::Patience;
pub use format::label::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, DriveState, Label, LabelDrive};
pub use format::{FORMAT_VERSION, LABEL_REGION_BYTES};
pub use hold::HoldId;
pub use lane::{CATALOG_LAYER, Lane, LaneError, LaneHost, LaneOptions};
pub use latency::DriveLatency;
pub use membership::{Member, Membership, TooFewDrives};
pub use position::{Position, SegmentId};
pub use probe::{BUSY_PATIENCE, Content, open_when_free, probe};
pub use protection::{Protection, Shape, UnknownProtection, WidthOutOfRange};
pub use references::{Elsewhere, Known, Reference, Speaker, Spoken};
pub use request::{LaneOutput, LaneRequest, LaneResult};
pub use scrub::ScrubStats;
pub use stats::{DriveErrors, LaneCounters, LaneStats, failures_survivable};
pub use usage::LayerSpace;
pub use volume::{CopyRange, LaneRef, PoolVolume, RemoteLane, Survey};
