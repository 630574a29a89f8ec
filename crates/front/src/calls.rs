//! Carries out the calls about this shard's sessions.

use std::rc::Rc;

use shard::{Answer, FrontCall, Replica, Spaces, Stage};

use crate::aborting::{Aborted, wait_for};
use crate::front::Front;
use crate::session::Session;
use crate::{access, listener, reservations, task_management};
use api::SessionEnd;

impl Front {
    /// Applies the new state of the array, after the shard's volumes have done so. Ends when the commands that have
    /// lost their LUN have ended.
    pub async fn follow(&self, replica: &Replica) {
        let volumes_gone = self.units.apply(replica, &self.context.units);
        for (portal, _) in self.listeners.borrow_mut().iter_mut() {
            if let Some(now) = replica.portal(portal.address) {
                *portal = now.clone();
            }
        }
        let refresh = |session: Rc<Session>| {
            let commands = session.refresh(replica, &self.units);
            (session, commands)
        };
        let lost: Aborted = self.sessions.all().into_iter().map(refresh).collect();
        wait_for(&lost).await;
        let volumes_gone: Vec<_> = volumes_gone.iter().filter_map(|figures| figures.get()).collect();
        self.sums.follow(replica, &volumes_gone);
    }

    /// Tells sessions the new space figures of pools.
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
            FrontCall::Figures => return Answer::Figures(Box::new(self.figures().await)),
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
                wait_for(&aborted).await;
            }
            FrontCall::Access(news) => {
                let at_work = access::adopt(&self, &news);
                wait_for(&at_work).await;
            }
            FrontCall::Reset(reset) => {
                let aborted = task_management::apply(&self, &reset);
                wait_for(&aborted).await;
            }
            FrontCall::Quiesce => self.quiesce().await,
        }
        Answer::Done
    }

    /// Stops serving hosts: afterwards there is no listener, no session and no running command.
    async fn quiesce(&self) {
        self.context.stage.set(Stage::Quiescing);
        listener::stop(self, |_| true).await;
        let sessions = self.sessions.all();
        sessions.iter().for_each(|session| session.close(SessionEnd::Stopping));
        for session in sessions {
            session.gone.pass().await;
        }
        self.context.report_held_back();
    }
}
