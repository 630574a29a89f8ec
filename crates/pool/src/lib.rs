//! The pool: drives joined into a checksummed, parity-protected log, and volumes mapped onto it.
//!
//! | file                            | what it does |
//! |---------------------------------|---|
//! | `lane`, `life`                  | one independent log of a pool on one shard: it owns the parts, which do not know it |
//! | `requests`                      | the requests to a lane (`request`): writing (`write`, `admit`), compare-and-write across lanes (`hold`, `hold_table`), references (`refer`), which blocks are mapped (`map_status`) or behind the end of a smaller volume (`shrink`), the catalog (`catalog`) |
//! | `reading`                       | reads blocks of a layer (`read`); reads, checks and rebuilds cells (`cells`); checks whole batches (`verify`) |
//! | `log`                           | queues entries (`queue`), builds batches (`batch`), places and commits them (`append`), writes them to the drives (`write_batch`), and applies committed entries to the map (`apply`) |
//! | `map`                           | layers and their pages in memory (`tree`), read from drives (`pages`), evicted (`ring`), counted anew (`recounted`); dirty pages that a checkpoint would have to write (`exposure`) |
//! | `layers`                        | one layer (`layer`), how layers are stacked (`stacks`), layers that belong to no volume (`names`); blocks whose content another layer decides (`references`); what the layers below a layer say (`bases`); their space (`usage`); emptying and merging layers that nobody needs (`dropping`, `merge`, `merger`) |
//! | `checkpoint`                    | the newest checkpoint, and whether another is due (`checkpointer`); writing the map, the table and the roots (`writer`); opening a lane from the checkpoint and the batches after it (`recovery`, `found`), after checking the checkpoint (`sanity`) |
//! | `space`                         | chunks and segments (`segments`, `fit`), columns that lack something although their drive is there (`lacking`); how the room is shared (`shares`, `promises`), and which writes wait for it (`waiting`) |
//! | `cleaning`                      | the state of cleaning (`cleaner`), choosing segments (`clean`), moving their blocks (`round`); how hosts and background work share room and time (`pacing`) |
//! | `integrity`                     | reading everything (`scrub`, `scrubber`); damage beyond repair (`loss`); comparing all counts with the map (`audit`), correcting them (`recount`) |
//! | `drives`                        | what a drive holds (`probe`, `labels`), and erasing the record of a twin (`twin_record`); making a pool, claiming one at a start (`create`); the drives of a pool (`membership`); when a drive is given up: for errors (`evidence`, `health`, `fault_response`), for being slow (`latency`), for hanging (`watch`); whether it failed or was pulled (`departure`); where a drive is full (`full`) |
//! | `geometry`                      | the five protections (`protection`), which cell of a batch holds what (`layout`), what a map entry names: a block in the log (`position`), or a block of another layer (`reference`) |
//! | `format`                        | the bytes on a drive: labels (`label`), roots (`root`), a checkpoint's table (`table`), headers of batches (`header`), pages of the map (`page`); reading and writing them (`codec`); what a pool uses beyond the oldest format (`features`) |
//! | `volume`                        | a volume over the lanes of a pool, as a block target; which blocks are mapped (`mapped`); copies by references (`copy`), and following them to other lanes (`elsewhere`) |
//! | `error`                         | why a request to a lane, or making or opening a pool, failed |
//! | `counters`, `stats`, `decision` | counters, statistics, and how often each rare decision was taken |
//! | `fuzz`                          | entry points for fuzzing: structures that are changed and sealed again (`sealed`, `table`), with unlikely numbers (`numbers`) |

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
pub use drives::departure::Departure;
pub use drives::evidence::Patience;
pub use drives::latency::{DriveLatency, DriveTotals};
pub use drives::membership::{Heads, Member, Membership, TooFewDrives};
pub use drives::probe::{BUSY_PATIENCE, Content, open_when_free, probe};
pub use drives::twin_record::{erase_lone_twin_record, erase_twin_record, has_twin_record};
pub use error::{Contradiction, LaneError, LanePart, PoolError};
pub use format::label::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, DriveState, Label, LabelDrive};
pub use format::{FORMAT_VERSION, FORMAT_VERSION_MIN, Features, LABEL_REGION_BYTES};
pub use geometry::position::{Position, SegmentId};
pub use geometry::protection::{Protection, Shape, UnknownProtection, WidthOutOfRange};
pub use geometry::reference::Reference;
pub use integrity::scrubber::ScrubStats;
pub use lane::{Lane, LaneHost, LaneOptions};
pub use layers::names::CATALOG_LAYER;
pub use layers::references::{BlockOwner, Elsewhere, OwnedRun, ReferencedContent};
pub use layers::usage::LayerSpace;
pub use requests::hold_table::HoldId;
pub use requests::request::{LaneOutput, LaneRequest, LaneResult};
pub use stats::{LaneStats, failures_survivable};
pub use volume::{CopyRange, LaneRef, PoolVolume, RemoteLane, Survey};
