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

use crate::admission::LoginBackoff;
use crate::figures::Sums;
use crate::register::Register;
use crate::session::{LunNexus, RunningCommand, Session};
use crate::sessions::Sessions;
use crate::task_set::Place;
use crate::units::{HostUnit, HostUnits};

/// The front end of one shard.
pub struct Front {
    pub(crate) context: Rc<Context>,
    pub(crate) units: HostUnits,
    pub(crate) sessions: Sessions,
    /// What the sessions that have ended had done.
    pub(crate) sums: Sums,
    pub(crate) runners: Rc<Runners<Begun>>,
    /// The listeners, with the addresses that they are bound to.
    pub(crate) listeners: RefCell<Vec<(PortalOptions, ListenerHandle)>>,
    /// Sources of wrong secrets.
    pub(crate) backoff: LoginBackoff,
    /// Which initiators are logged in where; only shard 0's register counts.
    pub(crate) register: Register,
    /// Changes of reservations take turns, on shard 0.
    pub(crate) reservation_turn: Semaphore,
    /// Volumes whose access states are changing, on shard 0.
    pub(crate) changing_access: RefCell<BTreeSet<VolumeId>>,
}

impl Front {
    pub fn new(context: &Rc<Context>) -> Rc<Front> {
        Rc::new(Front {
            units: HostUnits::default(),
            sessions: Sessions::default(),
            sums: Sums::default(),
            runners: Rc::default(),
            listeners: RefCell::new(Vec::new()),
            backoff: LoginBackoff::default(),
            register: Register::new(&context.io),
            reservation_turn: Semaphore::new(&context.io, 1),
            changing_access: RefCell::default(),
            context: context.clone(),
        })
    }
}

/// A command that has to wait, and everything that belongs to it.
pub(crate) struct Job {
    pub(crate) front: Rc<Front>,
    pub(crate) session: Rc<Session>,
    pub(crate) running: Rc<RunningCommand>,
    pub(crate) lun: Rc<LunNexus>,
    pub(crate) place: Place,
}

/// A command that has begun in its logical unit, and its next step.
pub(crate) type Begun = (Job, (Rc<HostUnit>, Step));
