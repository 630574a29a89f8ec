//! The pool: drives joined into a checksummed, parity-protected log, and volumes mapped onto it.
//!
//! | file            | what it is                                                        |
//! |-----------------|-------------------------------------------------------------------|
//! | `protection`    | the five protections, as one code: W columns, P of them parity    |
//! | `layout`        | which cell of a batch holds what                                  |
//! | `position`      | where a block lives                                               |
//! | `format/`       | everything on a drive, as bytes                                   |
//! | `probe`, `create`, `membership` | whose a drive is; making, claiming a pool; its drives |
//! | `lane`          | one independent log on one shard                                  |
//! | `request`       | what a lane can be asked                                          |
//! | `write`, `read` | the paths of a write and a read                                   |
//! | `log`, `batch`, `append`, `apply` | waiting, building, writing and committing batches |
//! | `cells`, `verify` | reading from drives, verifying, rebuilding; whole batches       |
//! | `evidence`, `latency` | when a drive is taken out: for its errors, for being slow         |
//! | `segments`, `fit`, `space` | chunks and segments; who may use what is left                 |
//! | `map`, `exposure`, `pages` | layers and their pages, in memory and on their way there          |
//! | `references`    | blocks that are what another layer says                           |
//! | `bases`         | what the layers below one say, together                           |
//! | `checkpoint`, `recovery`, `clean`, `round`, `dropping`, `merge` | the multi-step works |
//! | `volume`        | a volume over the lanes of a pool, as a block target; `volume/`: references, copies |
//! | `evidence`      | when a drive is taken out                                         |
//! | `scrub`, `pace` | reading everything; how fast repairs go                           |
//! | `loss`          | what is damaged beyond repair                                     |
//! | `audit`         | whether the books are right                                       |
//! | `recount`       | counts that are doubted are compared with the map                 |
//! | `catalog`       | the array's description, kept in lane 0                         |
//! | `beyond`        | what is mapped behind the end of a volume that gets smaller       |
//! | `stats`, `decision`, `usage` | what is counted, how often each rare decision was taken; what a layer holds |

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
