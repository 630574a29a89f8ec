//! What the manager knows, and how it informs the shards.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use api::{CommandError, PortalOptions};
use base::{ArrayId, LayerId, Nanos, PoolId};
use bytes::Bytes;
use catalog::Catalog;
use task::{Gate, Notify, Semaphore};

use shard::{Call, Context, Replica};

use crate::probed::Unanswered;
use crate::raw_device::Looks;
use crate::saving::Saving;
use crate::state::{Copying, Late, Portal, State, Tried};
use crate::{clock, order};

/// What shard 0 starts the array with.
pub struct StartParameters {
    /// Where to listen; every shard does. Port 0 takes a free one.
    pub portals: Vec<PortalOptions>,
    /// Paths of the drives to look at.
    pub drives: Vec<String>,
    /// Name of a new array, where neither the drives nor `state` know of one.
    pub array_name: String,
    /// What `save_state` was last given by an earlier run.
    pub state: Option<Bytes>,
    /// Keeps a copy of the catalog in the head's own state directory, for an array without a pool. Called on
    /// shard 0's thread before the reply to the command that changed it; must not block. Whoever keeps it
    /// passes that reply on when the copy is safe, and tells how it went: hosts' own changes wait for that.
    pub save_state: Box<dyn Fn(Bytes) -> Saving + Send>,
    /// Called once: when hosts are served, or with the reason why they never will be.
    pub started: StartedHook,
}

/// Told how the start went.
pub type StartedHook = Box<dyn FnOnce(Result<(), CommandError>) + Send>;

/// The array, as shard 0 manages it.
pub struct Manager {
    pub(crate) context: Rc<Context>,
    pub(crate) parameters: Parameters,
    pub(crate) started: RefCell<Option<StartedHook>>,
    /// Open when the start has ended, well or not.
    pub(crate) ready: Gate,
    /// Why the array cannot be managed.
    pub(crate) failure: RefCell<Option<CommandError>>,
    /// Schedules that could not do what they should.
    pub(crate) late: RefCell<Vec<Late>>,
    pub(crate) clock: clock::Clock,
    /// What the start could not write, and went on without.
    pub(crate) unsettled: RefCell<Vec<CommandError>>,
    /// What was found of pools when they were last tried.
    pub(crate) tried: RefCell<BTreeMap<PoolId, Tried>>,
    pub(crate) raw_looks: Looks,
    /// Files of drives that are not where they were, by path.
    pub(crate) removed_files: RefCell<BTreeSet<String>>,
    /// Layers of plans that could not be made durable.
    pub(crate) leftover: RefCell<Vec<(PoolId, LayerId)>>,
    /// Changes take turns.
    pub(crate) changes: Semaphore,
    /// The command whose turn it is.
    pub(crate) order: RefCell<Option<Rc<order::Order>>>,
    /// The catalog is stored by one at a time; nobody waits for a command meanwhile.
    pub(crate) storing: Semaphore,
    pub(crate) commands_waiting: Cell<usize>,
    /// When spares were last looked at.
    pub(crate) spares_seen: Cell<Option<Nanos>>,
    /// Held by the keeper for the length of a round.
    pub(crate) keeping: Semaphore,
    /// Something for the keeper to look at.
    pub(crate) wake_keeper: Notify,
    /// The end has begun.
    pub(crate) stopping: Cell<bool>,
    pub(crate) copying: RefCell<Copying>,
    /// Drives that are made to blink.
    pub(crate) locating: Cell<usize>,
    pub(crate) began: Cell<Nanos>,
    pub(crate) unanswered: Unanswered,
    pub(crate) state: RefCell<State>,
}

/// What the head was started with.
pub(crate) struct Parameters {
    pub(crate) portals: Vec<PortalOptions>,
    pub(crate) drives: RefCell<Vec<String>>,
    pub(crate) array_name: String,
    pub(crate) save_state: Box<dyn Fn(Bytes) -> Saving + Send>,
    pub(crate) state: RefCell<Option<Bytes>>,
}

impl Manager {
    pub fn new(context: &Rc<Context>, parameters: StartParameters) -> Manager {
        let name = "starting".parse().expect("a valid name");
        let io = &context.io;
        Manager {
            context: context.clone(),
            started: RefCell::new(Some(parameters.started)),
            ready: Gate::new(io, false),
            failure: RefCell::new(None),
            late: RefCell::new(Vec::new()),
            clock: clock::Clock::default(),
            unsettled: RefCell::new(Vec::new()),
            tried: RefCell::default(),
            raw_looks: Looks::default(),
            removed_files: RefCell::default(),
            leftover: RefCell::new(Vec::new()),
            changes: Semaphore::new(io, 1),
            order: RefCell::new(None),
            storing: Semaphore::new(io, 1),
            commands_waiting: Cell::new(0),
            spares_seen: Cell::new(None),
            keeping: Semaphore::new(io, 1),
            wake_keeper: Notify::new(io),
            stopping: Cell::new(false),
            copying: RefCell::default(),
            locating: Cell::new(0),
            began: Cell::new(Nanos::default()),
            unanswered: Unanswered::default(),
            state: RefCell::new(State {
                catalog: Catalog::new(ArrayId(0), name),
                portals: Vec::new(),
                raw: Vec::new(),
                hidden: BTreeSet::new(),
                drives: Vec::new(),
                pools: Vec::new(),
            }),
            parameters: Parameters {
                portals: parameters.portals,
                drives: RefCell::new(parameters.drives),
                array_name: parameters.array_name,
                save_state: parameters.save_state,
                state: RefCell::new(parameters.state),
            },
        }
    }

    /// The array as shards are to see it now.
    pub(crate) fn replica(&self) -> Arc<Replica> {
        let state = self.state.borrow();
        let raw = state.raw.iter().filter_map(|raw| {
            let (drive, info) = raw.drive.as_ref().ok()?;
            Some((raw.volume, *drive, info.clone()))
        });
        Arc::new(Replica {
            catalog: state.catalog.without_mappings(&state.hidden),
            portals: state.portals.iter().filter_map(Portal::bound).collect(),
            groups: state.groups(),
            raw: raw.collect(),
            pools: state.online().iter().map(|m| (m.pool, m.lanes, m.epoch)).collect(),
        })
    }

    /// Tells every shard how the array is now, and waits until each has taken it over.
    pub(crate) async fn broadcast(&self) {
        let replica = self.replica();
        self.context.ask_all(|| Call::Replicate(replica.clone())).await;
    }
}
