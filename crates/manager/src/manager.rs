//! What the manager knows, and how it informs the shards.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use api::{CommandError, DriveHealth, JournalTrouble, PortalOptions, StartFailure, StoreFailure, TransferId};
use base::{ArrayId, HeadId, LayerId, Nanos, PoolId};
use bytes::Bytes;
use catalog::{Catalog, Head, HeadPortal, NameError};
use pool::Heads;
use task::{Gate, Notify, Semaphore};

use shard::{Call, Context, Replica};

use crate::event_ring::Events;
use crate::head_problems::HeadProblems;
use crate::known_problems::KnownProblems;
use crate::paired::PairedArray;
use crate::probed::UnansweredProbes;
use crate::raw_device::Looks;
use crate::saving::Saving;
use crate::state::{Copying, FailedSchedule, OpenAttempt, Portal, RunningTransfer, State};
use crate::{clock, order};

/// The parameters with which shard 0 starts the array.
pub struct StartParameters {
    /// The portals, on which every shard listens. Port 0 means a free port.
    pub portals: Vec<PortalOptions>,
    /// Paths of the drives to look at.
    pub drives: Vec<String>,
    /// Which head this is.
    pub head: HeadId,
    /// The term of ownership in which it serves; 0 if the array has one head.
    pub term: u64,
    /// Name of this head, and of a new array, if neither the drives nor `state` contain one.
    pub array_name: String,
    /// Of a head of a pair.
    pub pair: Option<PairedArray>,
    /// This head is alone, and was one of a pair: its drives may have records of twins, which are erased before it writes to them.
    pub was_paired: bool,
    /// The last bytes that an earlier run passed to `save_state`.
    pub state: Option<Bytes>,
    /// Keeps a copy of the catalog in the head's own state directory, for an array without a pool. Called on shard 0's
    /// thread before the reply to the command that changed it; must not block. The receiver forwards this reply when
    /// the copy is durable, and reports the result: changes by hosts wait for it.
    pub save_state: Box<dyn Fn(Bytes) -> Saving + Send>,
    /// The number of the newest event of earlier runs; 0 if there is none.
    pub newest_event: u64,
    /// Called once: when hosts are served, or with the reason why they never will be.
    pub started: StartedHook,
}

/// Receives the result of the start.
pub type StartedHook = Box<dyn FnOnce(Result<(), CommandError>) + Send>;

/// The manager of the array, on shard 0.
pub struct Manager {
    pub(crate) context: Rc<Context>,
    pub(crate) parameters: Parameters,
    pub(crate) started: RefCell<Option<StartedHook>>,
    /// Open when the start has ended, successfully or not.
    pub(crate) ready: Gate,
    /// The start has found no pool of the array yet.
    pub(crate) waits_for_pools: Cell<bool>,
    /// Why the array cannot be managed.
    pub(crate) failure: RefCell<Option<StartFailure>>,
    /// Schedules that could not do their work.
    pub(crate) late: RefCell<Vec<FailedSchedule>>,
    pub(crate) clock: clock::Clock,
    /// Errors of writes that failed at the start, which continued without them.
    pub(crate) unsettled: RefCell<Vec<StoreFailure>>,
    /// What was found of pools when they were last tried.
    pub(crate) tried: RefCell<BTreeMap<PoolId, OpenAttempt>>,
    pub(crate) raw_looks: Looks,
    /// Files of drives that are no longer at their paths.
    pub(crate) removed_files: RefCell<BTreeSet<String>>,
    /// Layers of plans that could not be made durable.
    pub(crate) leftover: RefCell<Vec<(PoolId, LayerId)>>,
    /// The change lock.
    pub(crate) changes: Semaphore,
    /// The command that holds the change lock.
    pub(crate) order: RefCell<Option<Rc<order::Order>>>,
    /// The lock for storing the catalog; nobody who holds it waits for a command.
    pub(crate) storing: Semaphore,
    pub(crate) commands_waiting: Cell<usize>,
    /// When spares were last looked at.
    pub(crate) spares_seen: Cell<Option<Nanos>>,
    /// Held by the keeper during a round.
    pub(crate) keeping: Semaphore,
    /// There is work for the keeper.
    pub(crate) wake_keeper: Notify,
    /// The shutdown has begun.
    pub(crate) stopping: Cell<bool>,
    pub(crate) copying: RefCell<Copying>,
    pub(crate) transfers: RefCell<BTreeMap<TransferId, RunningTransfer>>,
    /// The number of the newest transfer.
    pub(crate) last_transfer: Cell<u64>,
    /// Number of drives that blink.
    pub(crate) locating: Cell<usize>,
    pub(crate) began: Cell<Nanos>,
    pub(crate) unanswered: UnansweredProbes,
    pub(crate) events: Events,
    pub(crate) watch: KnownProblems,
    /// Why the control plane cannot keep events.
    pub(crate) journal_trouble: RefCell<Option<JournalTrouble>>,
    pub(crate) head_problems: HeadProblems,
    /// What the head knows of the health of drives, by their paths.
    pub(crate) drive_health: RefCell<BTreeMap<String, DriveHealth>>,
    pub(crate) state: RefCell<State>,
}

/// The parameters of the head.
pub(crate) struct Parameters {
    pub(crate) head: HeadId,
    pub(crate) term: u64,
    pub(crate) portals: Vec<PortalOptions>,
    pub(crate) drives: RefCell<Vec<String>>,
    pub(crate) array_name: String,
    pub(crate) pair: Option<PairedArray>,
    pub(crate) was_paired: bool,
    pub(crate) save_state: Box<dyn Fn(Bytes) -> Saving + Send>,
    pub(crate) state: RefCell<Option<Bytes>>,
}

impl Parameters {
    pub(crate) fn heads(&self) -> Heads {
        match self.pair {
            Some(_) => Heads::Two,
            None if self.was_paired => Heads::OneOfFormerTwo,
            None => Heads::One,
        }
    }
}

impl Manager {
    pub fn new(context: &Rc<Context>, parameters: StartParameters) -> Manager {
        let name = "starting".parse().expect("a valid name");
        let io = &context.io;
        Manager {
            context: context.clone(),
            started: RefCell::new(Some(parameters.started)),
            ready: Gate::new(io, false),
            waits_for_pools: Cell::new(false),
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
            transfers: RefCell::default(),
            last_transfer: Cell::new(0),
            locating: Cell::new(0),
            began: Cell::new(Nanos::default()),
            unanswered: UnansweredProbes::default(),
            events: Events::new(io, parameters.newest_event),
            watch: KnownProblems::new(io),
            journal_trouble: RefCell::default(),
            head_problems: HeadProblems::default(),
            drive_health: RefCell::default(),
            state: RefCell::new(State {
                catalog: Catalog::new(ArrayId(0), name),
                portals: Vec::new(),
                raw: Vec::new(),
                hidden: BTreeSet::new(),
                drives: Vec::new(),
                pools: Vec::new(),
            }),
            parameters: Parameters {
                term: parameters.term,
                head: parameters.head,
                portals: parameters.portals,
                drives: RefCell::new(parameters.drives),
                array_name: parameters.array_name,
                pair: parameters.pair,
                was_paired: parameters.was_paired,
                save_state: parameters.save_state,
                state: RefCell::new(parameters.state),
            },
        }
    }

    /// Records in the catalog that this head serves the array, on these portals. Every change from now on is made to this
    /// catalog, by administrators and by hosts, so what is stored next names the head.
    pub(crate) fn record_head(&self, portals: &[PortalOptions]) -> Result<(), NameError> {
        let portal = |options: &PortalOptions| HeadPortal { address: options.address, group: options.group };
        let portals = portals.iter().filter(|portal| !portal.forwarded).map(portal).collect();
        let head = Head { id: self.parameters.head, name: self.parameters.array_name.parse()?, portals };
        self.state.borrow_mut().catalog.set_served_by(head, self.parameters.term);
        Ok(())
    }

    /// The present state of the array for shards.
    pub(crate) fn replica(&self) -> Arc<Replica> {
        let transfers = self.transfers_now();
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
            transfers,
        })
    }

    /// Announces the present state to every shard, and waits until each has adopted it.
    pub(crate) async fn broadcast(&self) {
        let replica = self.replica();
        self.context.ask_all(|| Call::Replicate(replica.clone())).await;
    }
}
