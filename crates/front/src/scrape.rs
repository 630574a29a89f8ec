//! Sums up what this shard's sessions have done, in bounded turns: hosts' commands are served in between.

use std::rc::Rc;

use api::{Load, ShardMetrics};
use shard::FrontFigures;

use crate::front::Front;
use crate::session::Session;

/// Sessions or volumes that are added up in one turn.
const AT_ONCE: usize = 32;

impl Front {
    /// What all sessions have done, with those that have ended. A session that ends meanwhile counts once: the sums of those
    /// that have ended and the list of the others are of one moment.
    pub(crate) async fn figures(&self) -> FrontFigures {
        let (mut figures, sessions) = self.sums_and_sessions();
        let volumes = self.units.figures();
        for (index, (volume, traffic)) in volumes.iter().enumerate() {
            if let Some(traffic) = traffic.get() {
                figures.volumes.insert(*volume, Load { traffic, in_flight: 0 });
            }
            self.rest(index).await;
        }
        for (index, session) in sessions.iter().enumerate() {
            self.add_session(&mut figures, session);
            self.rest(index).await;
        }
        figures
    }

    /// Ends the turn after every few steps.
    async fn rest(&self, step: usize) {
        if step % AT_ONCE == AT_ONCE - 1 {
            self.context.io.next_turn().await;
        }
    }

    fn sums_and_sessions(&self) -> (FrontFigures, Vec<Rc<Session>>) {
        let sums = &self.sums;
        let budget = &self.context.budget;
        let other_volumes = Load { traffic: *sums.other_volumes.borrow(), in_flight: 0 };
        let figures = FrontFigures {
            volumes: Default::default(),
            other_volumes,
            hosts: sums.hosts.borrow().clone(),
            other_hosts: sums.other_hosts.borrow().clone(),
            portals: sums.portals.borrow().clone(),
            other_portals: sums.other_portals.borrow().clone(),
            shard: ShardMetrics {
                shard: self.context.shard.0,
                sessions: sums.shard.borrow().clone(),
                data_bytes: budget.used_bytes() as u64,
                data_bytes_max: budget.bytes_max() as u64,
            },
        };
        (figures, self.sessions.all())
    }

    fn add_session(&self, figures: &mut FrontFigures, session: &Session) {
        let login = session.login.borrow();
        let Some(login) = login.as_ref().filter(|login| login.is_normal()) else { return };
        let replica = self.context.replica.borrow().clone();
        let (portal, traffic) = (session.portal.borrow().address, session.figures.get().unwrap_or_default());
        let running = session.at_work(|_| true);
        let load = Load { traffic, in_flight: running.len() as u64 };
        let host = match replica.catalog.find_host(&login.host) {
            Some(_) => figures.hosts.entry(login.host.clone()).or_default(),
            None => &mut figures.other_hosts,
        };
        let portal = match replica.portal(portal) {
            Some(_) => figures.portals.entry(portal).or_default(),
            None => &mut figures.other_portals,
        };
        for sum in [host, portal, &mut figures.shard.sessions] {
            sum.load.merge(&load);
            sum.sessions += 1;
        }
        for command in running {
            match figures.volumes.get_mut(&command.volume) {
                Some(load) => load.in_flight += 1,
                None if replica.catalog.volume(command.volume).is_some() => {
                    figures.volumes.entry(command.volume).or_default().in_flight += 1;
                }
                None => figures.other_volumes.in_flight += 1,
            }
        }
    }
}
