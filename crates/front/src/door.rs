//! What the sessions of one shard share, and the calls that are about sessions.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use api::PortalOptions;
use base::VolumeId;
use env::ListenerHandle;
use shard::{Answer, Context, FrontCall, Replica, Runners, Spaces, Stage};
use task::Semaphore;

use crate::admission::Guesses;
use crate::events::{SessionEnd, SessionListener};
use crate::register::Register;
use crate::scsi_command::Begun;
use crate::sessions::Sessions;
use crate::task_management::Aborted;
use crate::units::HostUnits;
use crate::{access, listener, reservations, task_management};

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
    register: Register,
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

    /// The names of all initiator ports that are logged in, on shard 0.
    pub(crate) fn initiator_ports(&self) -> Vec<String> {
        self.register.initiator_ports()
    }

    /// Takes over the array as it is now, after the shard's volumes have. Comes back when commands that have lost their LUN
    /// by it have ended.
    pub async fn follow(&self, replica: &Replica) {
        self.units.apply(replica, &self.context.units);
        for (portal, _) in self.listeners.borrow_mut().iter_mut() {
            if let Some(now) = replica.portal(portal.address) {
                *portal = now.clone();
            }
        }
        let refresh = |session: Rc<_>| {
            let commands = crate::session::Session::refresh(&session, replica, &self.units);
            (session, commands)
        };
        let lost: Aborted = self.sessions.all().into_iter().map(refresh).collect();
        task_management::wait_for(&lost).await;
    }

    /// Pools have been looked at.
    pub fn tell_spaces(&self, spaces: &Spaces) {
        for session in self.sessions.all() {
            session.tell_threshold(&spaces.crossed);
        }
    }

    /// Does the work of a call.
    pub async fn handle(self: Rc<Front>, call: FrontCall) -> Answer {
        match call {
            FrontCall::Listen(portals) => return Answer::Listening(listener::listen(&self, portals).await),
            FrontCall::Register(key, place, claim) => {
                return Answer::Registered(self.register.register(&self.context, key, place, claim).await);
            }
            FrontCall::RefusedLogins => return Answer::RefusedLogins(self.register.refused()),
            FrontCall::Reserve(ask) => return Answer::Reserved(reservations::carry_out(&self, ask).await),
            FrontCall::SetAccess(ask) => return Answer::Reserved(access::carry_out(&self, ask).await),
            FrontCall::Sessions => {
                let sessions = self.sessions.all();
                let status = sessions.iter().filter_map(|session| session.status(self.context.shard));
                return Answer::Sessions(status.collect());
            }
            FrontCall::Unlisten(addresses) => {
                listener::stop(&self, |address| addresses.contains(&address)).await;
            }
            FrontCall::Unregister(key, place) => self.register.unregister(&key, place),
            FrontCall::EndSession(place) => {
                if let Some(session) = self.sessions.get(place) {
                    session.drop_now(SessionEnd::Reinstated);
                    session.wait_for_all().await;
                }
            }
            FrontCall::EndSessionsOf(host) => task_management::end_sessions_of(&self, &host),
            FrontCall::Reservations(news) => {
                let aborted = reservations::adopt(&self, &news);
                task_management::wait_for(&aborted).await;
            }
            FrontCall::Access(news) => {
                let at_work = access::adopt(&self, &news);
                task_management::wait_for(&at_work).await;
            }
            FrontCall::Reset(reset) => {
                let aborted = task_management::apply(&self, &reset);
                task_management::wait_for(&aborted).await;
            }
            FrontCall::Quiesce => self.quiesce().await,
        }
        Answer::Done
    }

    /// Stops serving hosts: no listener, no session, no command at work.
    async fn quiesce(&self) {
        self.context.stage.set(Stage::Quiescing);
        listener::stop(self, |_| true).await;
        let sessions = self.sessions.all();
        sessions.iter().for_each(|session| session.close(SessionEnd::Stopping));
        for session in sessions {
            session.gone.pass().await;
        }
    }
}
