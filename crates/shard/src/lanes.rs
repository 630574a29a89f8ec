//! The lanes of pools that live on this shard, and the way for requests to lanes on other shards.
//!
//! Lane `n` of a pool lives on shard `n % shards`. A lane reports a failed drive to shard 0. Shard 0 records the
//! failure on the pool's other drives and tells every lane before it answers the report.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::{LayerId, PoolId, ShardId};
use catalog::Catalog;
use pool::{
    CATALOG_LAYER, Lane, LaneError, LaneHost, LaneOptions, LaneRef, LaneRequest, LaneResult, LaneStats,
    LayerSpace, Membership, PoolError, RemoteLane,
};
use task::{Io, OneshotReceiver, join_all};

use crate::mail::Mail;
use crate::news::DriveUse;
use crate::patience;

/// The pool's id for a layer of the catalog: the pool reserves the first ids for itself.
pub fn pool_layer(layer: LayerId) -> LayerId {
    LayerId(layer.0.checked_add(CATALOG_LAYER.0).expect("the catalog bounds its layers"))
}

/// The shard on which a lane lives.
pub fn home(lane: u16, shards: u16) -> ShardId {
    ShardId(lane % shards)
}

/// Columns that the most exposed of the live blocks that can be written anew has lost.
pub fn worst_exposed(stats: &LaneStats) -> usize {
    stats.exposed_blocks.iter().rposition(|&blocks| blocks > 0).unwrap_or(0)
}

/// The open lanes of one shard.
pub struct Lanes {
    /// Memory for the maps of all these lanes, in bytes.
    map_bytes: usize,
    /// Lanes that are open or being opened: each gets a share of the memory.
    parts: Cell<usize>,
    open: RefCell<BTreeMap<(PoolId, u16), Rc<Lane>>>,
    /// The newest membership of each pool that this shard knows.
    memberships: RefCell<BTreeMap<PoolId, Membership>>,
}

impl Lanes {
    pub fn new(map_bytes: usize) -> Lanes {
        let (open, memberships) = (RefCell::default(), RefCell::default());
        Lanes { map_bytes, parts: Cell::new(0), open, memberships }
    }

    /// Divides the memory for maps among this many lanes from now on. Returns the share of one lane.
    fn deal_memory(&self, parts: usize) -> usize {
        self.parts.set(parts);
        let part = self.map_bytes / parts.max(1);
        self.open.borrow().values().for_each(|lane| lane.set_map_budget(part));
        part
    }

    pub fn get(&self, pool: PoolId, lane: u16) -> Option<Rc<Lane>> {
        self.open.borrow().get(&(pool, lane)).cloned()
    }

    fn of_pool(&self, pool: PoolId) -> Vec<Rc<Lane>> {
        self.open.borrow().range((pool, 0)..=(pool, u16::MAX)).map(|(_, lane)| lane.clone()).collect()
    }

    /// Recovers and opens a lane of a claimed pool.
    pub async fn open(
        &self,
        io: &Io,
        membership: Membership,
        lane: u16,
        host: Rc<dyn LaneHost>,
    ) -> Result<(), PoolError> {
        let pool = membership.pool;
        self.adopt(&membership);
        let map_budget_bytes = self.deal_memory(self.parts.get() + 1);
        let options = LaneOptions { map_budget_bytes, ..LaneOptions::default() };
        let opened = Lane::open(io, membership, lane, host, options).await;
        let opened = opened.inspect_err(|_| {
            self.deal_memory(self.parts.get() - 1);
        })?;
        // drives may have failed while the lane was being opened
        let newest = self.memberships.borrow().get(&pool).cloned();
        opened.set_membership(newest.expect("adopted above"));
        let replaced = self.open.borrow_mut().insert((pool, lane), opened);
        assert!(replaced.is_none(), "a lane is opened once");
        // other lanes may have been opened meanwhile
        self.deal_memory(self.parts.get());
        Ok(())
    }

    /// Adopts the members of a pool. A membership older than the known one is ignored.
    pub fn adopt(&self, membership: &Membership) {
        let age = |membership: &Membership| (membership.epoch, membership.generation);
        let mut memberships = self.memberships.borrow_mut();
        if memberships.get(&membership.pool).is_some_and(|known| age(known) > age(membership)) {
            return;
        }
        memberships.insert(membership.pool, membership.clone());
        for lane in self.of_pool(membership.pool) {
            lane.set_membership(membership.clone());
        }
    }

    /// Carries out a request of another shard.
    pub async fn execute(&self, pool: PoolId, lane: u16, request: LaneRequest) -> LaneResult {
        match self.get(pool, lane) {
            Some(lane) => lane.execute(request).await,
            None => Err(LaneError::Unavailable),
        }
    }

    /// Writes a last checkpoint of every lane of the pool, and closes them.
    pub async fn close(&self, pool: PoolId) {
        let lanes = self.of_pool(pool);
        let results = join_all(lanes.iter().map(|lane| lane.close()).collect::<Vec<_>>()).await;
        // without its last checkpoint a lane has more to replay at the next start, and loses nothing
        drop(results);
        self.open.borrow_mut().retain(|(other, _), _| *other != pool);
        self.deal_memory(self.parts.get() - lanes.len());
        self.memberships.borrow_mut().remove(&pool);
    }

    pub fn stats(&self) -> Vec<(PoolId, LaneStats)> {
        let mut all: Vec<(PoolId, LaneStats)> = Vec::new();
        for ((pool, _), lane) in &*self.open.borrow() {
            let mut stats = lane.stats();
            if all.last().is_none_or(|(before, _)| before != pool) {
                stats.drives_in_flight = lane.drives_in_flight();
            }
            all.push((*pool, stats));
        }
        all
    }

    /// How each lane of the pool uses a drive.
    pub fn drive_use(&self, pool: PoolId, drive: u8, instead: Option<u32>) -> Vec<DriveUse> {
        let of_lane = |lane: Rc<Lane>| {
            let (stored_blocks, possible_blocks) = lane.space_without(drive, instead);
            let stats = lane.stats();
            DriveUse {
                segments: lane.segments_on_drive(drive),
                stored_blocks,
                possible_blocks,
                worst_exposed: stats.lost_columns_max,
                needed: stats.needs(drive),
            }
        };
        self.of_pool(pool).into_iter().map(of_lane).collect()
    }

    /// Begins to scrub the pool's lanes, or stops the scrub.
    pub fn scrub(&self, pool: PoolId, begin: bool) {
        for lane in self.of_pool(pool) {
            if begin { lane.start_scrub() } else { lane.stop_scrub() }
        }
    }

    /// Applies the settings of pools from the catalog.
    pub fn tune(&self, catalog: &Catalog) {
        for ((pool, _), lane) in &*self.open.borrow() {
            let settings = catalog.pool(*pool).map(|entry| entry.settings).unwrap_or_default();
            let (share, patience) = patience::effective(&settings);
            lane.tune(share, patience);
        }
    }

    /// For each lane of the pool: its layers, and what each holds.
    pub fn layers(&self, pool: PoolId) -> Vec<(LayerId, LayerSpace)> {
        self.of_pool(pool).into_iter().flat_map(|lane| lane.layer_spaces()).collect()
    }

    /// Blocks that only these layers keep in the pool.
    pub fn kept_by(&self, pool: PoolId, layers: &[LayerId]) -> u64 {
        self.of_pool(pool).iter().map(|lane| lane.blocks_kept_by(layers)).sum()
    }

    /// All lanes of a pool, as a volume uses them from this shard; `None` if a lane that should be here is not.
    pub fn references(
        &self,
        mail: &Rc<Mail>,
        place: (ShardId, u16),
        pool: PoolId,
        lanes: u16,
    ) -> Option<Vec<LaneRef>> {
        let (shard, shards) = place;
        let reference = |lane: u16| match home(lane, shards) {
            home if home == shard => self.get(pool, lane).map(LaneRef::Local),
            home => {
                let remote = Remote { mail: mail.clone(), home, pool };
                Some(LaneRef::Remote(lane, Rc::new(remote)))
            }
        };
        (0..lanes).map(reference).collect()
    }
}

/// The way to a pool's lanes on another shard.
struct Remote {
    mail: Rc<Mail>,
    home: ShardId,
    pool: PoolId,
}

impl RemoteLane for Remote {
    fn call(&self, lane: u16, request: LaneRequest) -> OneshotReceiver<LaneResult> {
        self.mail.call_lane(self.home, (self.pool, lane), request)
    }
}
