//! What the sessions of one shard share.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use api::PortalOptions;
use base::VolumeId;
use env::ListenerHandle;
use scsi::Step;
use shard::{Context, Runners};
use task::Semaphore;

use crate::admission::Guesses;
use crate::events::SessionListener;
use crate::register::Register;
use crate::session::{LunNexus, RunningCommand, Session};
use crate::sessions::Sessions;
use crate::task_set::Place;
use crate::units::{HostUnit, HostUnits};

/// One shard's front door.
pub struct Front {
    pub(crate) context: Rc<Context>,
    pub(crate) units: HostUnits,
    pub(crate) sessions: Sessions,
    pub(crate) runners: Rc<Runners<Begun>>,
    /// What is listened on, by the address that was had.
    pub(crate) listeners: RefCell<Vec<(PortalOptions, ListenerHandle)>>,
    /// Where wrong secrets came from.
    pub(crate) guesses: Guesses,
    /// Who is logged in where; shard 0's counts.
    pub(crate) register: Register,
    /// Changes of reservations take turns, on shard 0.
    pub(crate) reservation_turn: Semaphore,
    /// Volumes whose access states are changing, on shard 0.
    pub(crate) changing_access: RefCell<BTreeSet<VolumeId>>,
    /// Told of what happens at the front door.
    pub(crate) listener: RefCell<Option<SessionListener>>,
}

impl Front {
    pub fn new(context: &Rc<Context>) -> Rc<Front> {
        Rc::new(Front {
            units: HostUnits::default(),
            sessions: Sessions::default(),
            runners: Rc::default(),
            listeners: RefCell::new(Vec::new()),
            guesses: Guesses::default(),
            register: Register::new(&context.io),
            reservation_turn: Semaphore::new(&context.io, 1),
            changing_access: RefCell::default(),
            listener: RefCell::default(),
            context: context.clone(),
        })
    }

    /// From now on, has somebody be told what happens here.
    pub fn tell_sessions(&self, listener: SessionListener) {
        *self.listener.borrow_mut() = Some(listener);
    }
}

/// A command that has to wait, and all that it belongs to.
pub(crate) struct Job {
    pub(crate) front: Rc<Front>,
    pub(crate) session: Rc<Session>,
    pub(crate) running: Rc<RunningCommand>,
    pub(crate) lun: Rc<LunNexus>,
    pub(crate) place: Place,
}

/// A command that has begun in its logical unit, and what is to be done next.
pub(crate) type Begun = (Job, (Rc<HostUnit>, Step));
