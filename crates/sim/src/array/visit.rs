//! A host that connects to the array: it logs in, and passes its LUNs to the workload.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use iscsi::initiator::InitiatorParams;
use task::Io;

use super::extended_copy::{Copies, CopyHost};
use super::heads::Seen;
use super::lun::{LunSubject, Rough, Way};
use super::reserve::{Holders, Locksmith};
use super::session::HostSession;
use super::set_up::initiator_name;
use super::tally::Tally;
use crate::workload::{Opening, Shared, Subject, VolumePlan};

/// The target's name, when hosts can log in.
pub type Ready = Rc<RefCell<Option<Result<String, String>>>>;

/// What a host brings along.
pub struct Visit {
    pub portal: SocketAddr,
    /// Some hosts come by this one, if there is one.
    pub forwarded: Option<SocketAddr>,
    pub host: u16,
    pub volumes: Rc<Vec<VolumePlan>>,
    pub logins: Rc<Cell<u64>>,
    pub shared: Rc<Shared>,
    pub holders: Rc<Holders>,
    /// Whether hosts abort, reset and reserve.
    pub interferes: Option<Rough>,
    pub ranges: Option<Copies>,
    /// The file systems under drives run full.
    pub runs_full: bool,
    pub tally: Option<Rc<Tally>>,
}

/// Waits until the array is set up.
pub async fn set_up(io: &Io, ready: &Ready) -> Result<String, String> {
    loop {
        if let Some(ready) = &*ready.borrow() {
            return ready.clone();
        }
        io.sleep(Nanos::from_micros(100)).await;
    }
}

/// Waits until the array is set up, logs in, and hands the LUNs to the workload.
pub async fn open_session(io: Io, visit: Visit, ready: Ready, place: Opening) {
    let Visit { portal, host, volumes, logins, shared, holders, interferes, ranges, runs_full, .. } = visit;
    let (forwarded, tally) = (visit.forwarded, visit.tally);
    let target = match set_up(&io, &ready).await {
        Ok(target) => target,
        Err(why) => {
            *place.borrow_mut() = Some(Err(why));
            return;
        }
    };
    let params = InitiatorParams::new(&initiator_name(host), Some(&target));
    let forwarded = forwarded.filter(|_| io.random_u64().is_multiple_of(3));
    let session = HostSession::new(&io, forwarded.unwrap_or(portal), params);
    // some want no TASK ABORTED; the others trust that each of their commands is answered
    session.is_not_told.set(interferes.is_some() && io.random_u64().is_multiple_of(3));
    io.spawn(session.clone().run());
    while session.logins.get() == 0 {
        io.sleep(Nanos::from_micros(100)).await;
    }
    if forwarded.is_some() {
        Seen::Forwarded.seen();
    }
    logins.set(logins.get() + 1);
    let luns: BTreeMap<u32, u16> =
        volumes.iter().map(|volume| (volume.volume, volume.volume as u16)).collect();
    if let Some(rough) = interferes {
        let locksmith = Locksmith {
            io: io.clone(),
            session: session.clone(),
            shared: shared.clone(),
            holders: holders.clone(),
            host,
            luns: luns.clone(),
            times: rough.reservations,
        };
        io.spawn(locksmith.run());
    }
    let way = Way { io: io.clone(), session, host, holders, interferes, tally };
    if let Some(ranges) = ranges {
        let (way, luns) = (way.clone(), luns.clone());
        let may_be_refused = interferes.is_some() || runs_full;
        let host = CopyHost { shared, way, luns, volumes, may_be_refused, refused: Cell::new(0) };
        io.spawn(host.run(io.clone(), ranges));
    }
    let subject: Rc<dyn Subject> = Rc::new(LunSubject { way, luns });
    *place.borrow_mut() = Some(Ok(subject));
}
