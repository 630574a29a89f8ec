//! The pool: drives joined into a checksummed, parity-protected log, and volumes mapped onto it.
//!
//! | file                            | what it does |
//! |---------------------------------|---|
//! | `lane`, `life`                  | one independent log of a pool on one shard: it owns the parts, which know nothing of it |
//! | `requests`                      | what a lane can be asked (`request`): writing (`write`, `admit`), compare-and-write across lanes (`hold`, `holds`), references (`refer`), which blocks are mapped (`map_status`) or behind the end of a smaller volume (`beyond`), the catalog (`catalog`) |
//! | `reading`                       | blocks of a layer (`read`); cells read, checked and rebuilt (`cells`); whole batches checked (`verify`) |
//! | `log`                           | entries that wait (`queue`), built into a batch (`batch`), placed and committed (`append`), written to the drives (`write_batch`), and what a commit changes in the map (`apply`) |
//! | `map`                           | layers and their pages in memory (`tree`), read from drives (`pages`), evicted (`ring`), counted anew (`recounted`); dirty pages that a checkpoint would have to write (`exposure`) |
//! | `layers`                        | one layer (`layer`), which stands on which (`stacks`), those with a meaning of their own (`names`); blocks that are what another layer says (`references`); what the layers below one say (`bases`); their space (`usage`); emptying and merging those that nobody needs (`dropping`, `merge`, `merger`) |
//! | `checkpoint`                    | what is known of the newest and whether another is due (`checkpointer`); writing the map, the table and the roots (`writer`); opening a lane from it and the batches after it (`recovery`, `found`), once it is believed (`sanity`) |
//! | `space`                         | chunks and segments (`segments`, `fit`), columns that lack something although their drive is there (`lacking`); how much of the room is whose (`shares`, `promises`), and who waits for it (`waiting`) |
//! | `cleaning`                      | what it is doing (`cleaner`), choosing segments (`clean`), moving their blocks (`round`); how hosts and background work leave each other room and time (`pacing`) |
//! | `integrity`                     | reading everything (`scrub`, `scrubber`); what is damaged beyond repair (`loss`); comparing all counts with the map (`audit`), correcting them (`recount`) |
//! | `drives`                        | what a drive holds (`probe`, `labels`); making a pool, claiming one at a start (`create`); the drives of a pool (`membership`); when one is given up: for errors (`evidence`, `health`, `care`), for being slow (`latency`), for hanging (`watch`); where one is full (`full`) |
//! | `geometry`                      | the five kinds of protection (`protection`), which cell of a batch holds what (`layout`), what a map entry names: a block in the log (`position`), or another layer's (`reference`) |
//! | `format`                        | the bytes on a drive |
//! | `volume`                        | a volume over the lanes of a pool, as a block target |
//! | `error`                         | why a request to a lane, or making or opening a pool, failed |
//! | `counters`, `stats`, `decision` | what is counted, told, and how often each rare decision was taken |
//! | `fuzz`                          | entry points for fuzzing |

mod checkpoint;
mod cleaning;
mod counters;
mod decision;
mod drives;
mod error;
mod format;
pub mod fuzz;
mod geometry;
mod integrity;
mod lane;
mod layers;
mod life;
mod log;
mod map;
mod reading;
mod requests;
mod space;
mod stats;
mod volume;

pub use counters::{DriveErrors, LaneCounters};
pub use decision::decisions;
pub use drives::create::{CreateOptions, PlannedPool, claim, create, wipe};
pub use drives::evidence::Patience;
pub use drives::latency::DriveLatency;
pub use drives::membership::{Member, Membership, TooFewDrives};
pub use drives::probe::{BUSY_PATIENCE, Content, open_when_free, probe};
pub use error::LaneError;
pub use error::PoolError;
pub use format::label::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, DriveState, Label, LabelDrive};
pub use format::{FORMAT_VERSION, LABEL_REGION_BYTES};
pub use geometry::position::{Position, SegmentId};
pub use geometry::protection::{Protection, Shape, UnknownProtection, WidthOutOfRange};
pub use geometry::reference::Reference;
pub use integrity::scrubber::ScrubStats;
pub use lane::{Lane, LaneHost, LaneOptions};
pub use layers::names::CATALOG_LAYER;
pub use layers::references::{Elsewhere, Known, Speaker, Spoken};
pub use layers::usage::LayerSpace;
pub use requests::holds::HoldId;
pub use requests::request::{LaneOutput, LaneRequest, LaneResult};
pub use stats::{LaneStats, failures_survivable};
pub use volume::{CopyRange, LaneRef, PoolVolume, RemoteLane, Survey};
