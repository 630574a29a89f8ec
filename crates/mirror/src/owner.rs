//! The owner's side: every write goes to the own drive and, as long as the partner counts, to its twin.
//!
//! ```text
//!   write ─► its regions are marked on the own drive ─► own drive ──┬─► done
//!                                                  └─► partner ─────┘   (if the partner counts)
//!   alone: what is written is lacking; copying sends lacking pieces; when none is left, the partner is covered
//! ```
//!
//! What always holds: where the two copies may differ, the record on the own drive has a mark; a write that is done is on both
//! drives, or the partner was declared out of sync before; a piece is not written while it is copied.

mod copying;

use std::collections::{BTreeMap, BTreeSet};

use env::IoError;
use pair::{CommitRule, StoreEvent};

use crate::message::TwinNews;
use crate::order::{CopyId, Order, OwnDrive, RequestId};
use crate::record::{Synchrony, TwinId};
use crate::request::{Begun, Kind, Request};
use crate::twin::{Twin, TwinState};

/// So few lacking pieces are little.
const LITTLE: u32 = 16;

/// See the header of this file.
#[derive(Debug)]
pub struct Mirror {
    /// By the numbers that the caller gives to its drives.
    twins: BTreeMap<usize, Twin>,
    /// Twins that may be unsound while the partner's copy can still serve.
    tolerated: usize,
    /// Drives that were removed while the partner lacked something of them.
    left_behind: BTreeSet<TwinId>,
    /// Something is stored on a drive that has no twin.
    stores_alone: bool,
    /// Drives that both heads see, and how many of them the partner has not said it sees.
    shared: (usize, usize),
    /// All that the array has is there: a pool that was absent at the start may hold what the partner lacks.
    is_whole: bool,
    rule: CommitRule,
    /// The register says that the partner is in sync, by this name.
    in_sync: Option<Synchrony>,
    is_copying: bool,
    /// The partner's copy cannot serve, and it still counts.
    must_leave: bool,
    /// The partner has said what it lacks.
    knows_partner: bool,
    told: Option<StoreEvent>,
    requests: BTreeMap<RequestId, Request>,
    /// Those that have not begun.
    held: BTreeSet<RequestId>,
    copies: BTreeMap<CopyId, (usize, u32)>,
    serial: u64,
    /// Pieces that the own drives could not give.
    unreadable: u64,
    out: Vec<Order>,
}

impl Mirror {
    /// `tolerated`: so many twins may be unsound while the partner's copy can still serve.
    pub fn new(tolerated: usize) -> Mirror {
        Mirror {
            twins: BTreeMap::new(),
            tolerated,
            left_behind: BTreeSet::new(),
            stores_alone: false,
            shared: (0, 0),
            is_whole: true,
            rule: CommitRule::Both,
            in_sync: None,
            is_copying: false,
            must_leave: false,
            knows_partner: false,
            told: None,
            requests: BTreeMap::new(),
            held: BTreeSet::new(),
            copies: BTreeMap::new(),
            serial: 0,
            unreadable: 0,
            out: Vec::new(),
        }
    }

    /// A drive of a head that has become the owner. It has been flushed since: what the last owner had written there, and a cache may
    /// hold, has its marks on the other side only. A partner that counts must leave; the drive's writes wait for that.
    pub fn add(&mut self, drive: usize, own: OwnDrive) {
        self.left_behind.remove(&own.id);
        let before = self.twins.insert(drive, Twin::new(own));
        assert!(before.is_none(), "a drive is added once");
        // what the partner has of it is not known: it is not in sync any more
        if self.partner_counts() {
            self.have_it_leave();
        }
        self.open_again();
        self.go_on();
    }

    /// This drive is used no more. Nothing is under way on it. If the partner lacks something of it, that counts as a twin that is out, until
    /// the drive is added again: an owner that stops closes its drives one after the other, and its partner lacks what it lacked.
    pub fn remove(&mut self, drive: usize) {
        assert!(self.requests.values().all(|request| request.drive != drive), "drive {drive} is in use");
        self.forget_copies(drive);
        let twin = self.twins.remove(&drive).expect("only a drive that was added is removed");
        if twin.state != TwinState::Sound || !twin.lacking.is_empty() {
            self.left_behind.insert(twin.id());
        }
        self.go_on();
    }

    /// A drive that was removed belongs to nobody any more: nobody needs what the partner lacks of it.
    pub fn forget(&mut self, id: TwinId) {
        self.left_behind.remove(&id);
        self.go_on();
    }

    /// The partner is to say anew what it has.
    fn open_again(&mut self) {
        if std::mem::take(&mut self.knows_partner) {
            self.copy_again();
            self.out.push(Order::Reconnect);
        }
    }

    /// The drives that the partner is to be asked for, and how many bytes of each are mirrored.
    pub fn drives(&self) -> impl Iterator<Item = (usize, TwinId, u64)> + '_ {
        self.twins.iter().map(|(&drive, twin)| (drive, twin.id(), twin.geometry.drive_bytes()))
    }

    /// `None`: there is no such drive any more.
    pub fn id(&self, drive: usize) -> Option<TwinId> {
        self.twins.get(&drive).map(Twin::id)
    }

    /// What is to be done, in this order.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.out)
    }

    /// Bytes that the partner may lack.
    pub fn lacking_bytes(&self) -> u64 {
        let bytes = |twin: &Twin| twin.geometry.bytes_of(&twin.lacking);
        self.twins.values().filter(|twin| twin.state != TwinState::Out).map(bytes).sum()
    }

    /// Pieces that could not be copied, because the own drives could not be read there.
    pub fn unreadable_pieces(&self) -> u64 {
        self.unreadable
    }

    pub fn twin_state(&self, drive: usize) -> TwinState {
        self.twins[&drive].state
    }

    pub fn write(&mut self, request: RequestId, drive: usize, place: (u64, u64), durable: bool) {
        let (offset_bytes, length_bytes) = place;
        let kind = Kind::Write { offset_bytes, length_bytes, durable };
        self.twin(drive).accepted(offset_bytes, length_bytes);
        self.accept(request, drive, kind);
    }

    pub fn flush(&mut self, request: RequestId, drive: usize) {
        self.accept(request, drive, Kind::Flush);
    }

    fn accept(&mut self, id: RequestId, drive: usize, kind: Kind) {
        let before = self.requests.insert(id, Request { drive, kind, begun: None });
        assert!(before.is_none(), "a request is named once");
        self.held.insert(id);
        self.go_on();
    }

    /// The own drive has answered.
    pub fn on_own(&mut self, id: RequestId, result: Result<(), IoError>) {
        let request = self.requests.get_mut(&id).expect("the own drive answers what was begun");
        request.begun.as_mut().expect("it was begun").own = Some(result);
        self.end_if_done(id);
        self.go_on();
    }

    /// The partner has answered. What it answers to a request that has not waited for it is ignored.
    pub fn on_far(&mut self, id: RequestId, result: Result<(), IoError>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let drive = request.drive;
        let Some(begun) = request.begun.as_mut().filter(|begun| begun.awaits_far) else { return };
        begun.awaits_far = false;
        if result.is_err() {
            self.lose_twins(&[drive]);
        }
        self.end_if_done(id);
        self.go_on();
    }

    pub fn on_recorded(&mut self, drive: usize, result: Result<(), IoError>) {
        self.twin(drive).on_recorded(result.is_ok());
        if let Err(error) = result {
            let held: Vec<RequestId> =
                self.held.iter().copied().filter(|id| self.requests[id].drive == drive).collect();
            held.into_iter().for_each(|id| self.refuse(id, error));
        }
        self.go_on();
    }

    /// The partner is there, on a new connection, and says what it has. `is_same_start`: it has not started anew since the last one that
    /// counted. Whether this one counts.
    pub fn on_partner(&mut self, twins: &BTreeMap<usize, TwinNews>, is_same_start: bool) -> bool {
        if !self.twins.keys().all(|drive| twins.contains_key(drive)) {
            // a drive was added after it had been asked
            self.out.push(Order::Reconnect);
            return false;
        }
        if self.rule == CommitRule::Both {
            if !is_same_start {
                // not even a flush may reach it: it would answer for what it has lost
                self.out.push(Order::Reconnect);
                self.have_it_leave();
                return false;
            }
            self.on_partner_in_sync(twins);
            let waiting = |request: &Request| request.begun.is_some_and(|begun| begun.awaits_far);
            let again = self.requests.iter().filter(|(_, request)| waiting(request)).map(|(&id, _)| id);
            self.out.extend(again.map(|request| Order::SendAgain { request }));
            // it may not have arrived over the connection before
            self.tell_synchrony();
        } else {
            self.twins.iter_mut().for_each(|(drive, twin)| twin.on_partner(&twins[drive]));
        }
        self.knows_partner = true;
        self.copy_again();
        self.go_on();
        true
    }

    /// The partner still counts. A drive that it has opened again may have lost what was in its cache: as one that has failed and is
    /// there again, it is filled while it takes writes. What was sent to the one before does not reach it, because the connection is new.
    fn on_partner_in_sync(&mut self, twins: &BTreeMap<usize, TwinNews>) {
        let changed = |&(drive, twin): &(&usize, &Twin)| !twin.is_opening_of(&twins[drive]);
        let changed: Vec<usize> = self.twins.iter().filter(changed).map(|(&drive, _)| drive).collect();
        self.lose_twins(&changed);
        if self.must_leave {
            return;
        }
        for (drive, twin) in self.twins.iter_mut().filter(|(_, twin)| twin.state == TwinState::Out) {
            twin.on_partner(&twins[drive]);
            if twin.state == TwinState::Sound && !twin.lacking.is_empty() {
                twin.state = TwinState::Filling;
            }
        }
    }

    /// What counts as done from now on. When the partner does not count any more, it may lack whatever is marked.
    pub fn set_rule(&mut self, rule: CommitRule) {
        let before = std::mem::replace(&mut self.rule, rule);
        if rule == CommitRule::Own && before == CommitRule::Both {
            (self.in_sync, self.knows_partner, self.must_leave) = (None, false, false);
            self.twins.values_mut().for_each(Twin::lacks_what_is_marked);
            self.copy_again();
            self.out.push(Order::Reconnect);
            self.stop_waiting_for_far(|_| true);
        } else if rule == CommitRule::Both && before == CommitRule::Own && !self.is_fit() {
            // a drive has failed since the head was told that little is lacking
            self.have_it_leave();
        }
        self.told = None;
        self.go_on();
    }

    /// Nothing is to be written to this drive for a while: where both copies are durably equal, its record says so.
    pub fn settle(&mut self, drive: usize) {
        if self.in_sync.is_some() {
            self.twin(drive).settle();
            self.go_on();
        }
    }

    /// The register says that the partner is in sync. Both sides record the new synchrony.
    pub fn joined(&mut self, synchrony: Synchrony) {
        if self.must_leave {
            // it became unfit while the register was asked
            self.out.push(Order::PartnerIsUnfit);
            return;
        }
        self.in_sync = Some(synchrony);
        self.twins.values_mut().for_each(|twin| twin.joined(synchrony));
        self.tell_synchrony();
        self.go_on();
    }

    fn tell_synchrony(&mut self) {
        let Some(synchrony) = self.in_sync else { return };
        let sound = self.twins.iter().filter(|(_, twin)| twin.state == TwinState::Sound);
        let drives = sound.map(|(&drive, _)| drive).collect();
        self.out.push(Order::TellSynchrony { synchrony, drives });
    }

    /// All at once: what waits for one of them is not done if too many are lost with it.
    fn lose_twins(&mut self, drives: &[usize]) {
        let is_new = |drive: &usize| self.twins[drive].state != TwinState::Out;
        let lost: Vec<usize> = drives.iter().copied().filter(is_new).collect();
        for &drive in &lost {
            let twin = self.twin(drive);
            twin.state = TwinState::Out;
            twin.lacking.insert_all();
            self.forget_copies(drive);
        }
        if !lost.is_empty() {
            self.stop_waiting_for_far(|request| lost.contains(&request.drive));
            if !self.is_fit() {
                self.have_it_leave();
            }
        }
    }

    /// The partner's copy could not serve: nothing is done until it has left, if it counts. If it does not, the copy to its other drives
    /// goes on.
    fn have_it_leave(&mut self) {
        if self.partner_counts() {
            self.must_leave = true;
            self.out.push(Order::PartnerIsUnfit);
        }
    }

    /// Whether something is stored on a drive that has no twin: then the partner's copy could not serve.
    pub fn set_stores_alone(&mut self, stores_alone: bool) {
        if !std::mem::replace(&mut self.stores_alone, stores_alone) && stores_alone {
            self.have_it_leave();
        }
        self.go_on();
    }

    /// Drives that both heads see have come or gone, or the partner has said which it sees: there are so many, and it lacks so many. Nothing
    /// of them is copied.
    pub fn set_shared(&mut self, count: usize, unseen: usize) {
        let is_new = count > self.shared.0;
        self.shared = (count, unseen);
        if !self.is_fit() {
            self.have_it_leave();
        }
        if is_new {
            self.open_again();
        }
        self.go_on();
    }

    /// Whether all that the array has is there. As long as it is not, the partner cannot join; one that counts stays.
    pub fn set_whole(&mut self, is_whole: bool) {
        self.is_whole = is_whole;
        self.go_on();
    }

    pub fn partner_counts(&self) -> bool {
        self.rule == CommitRule::Both
    }

    fn twin(&mut self, drive: usize) -> &mut Twin {
        self.twins.get_mut(&drive).expect("the drive was added")
    }

    /// Requests that have begun do not wait for the partner any more.
    fn stop_waiting_for_far(&mut self, which: impl Fn(&Request) -> bool) {
        let begun = self.requests.values_mut().filter(|request| which(request));
        begun.filter_map(|request| request.begun.as_mut()).for_each(|begun| begun.awaits_far = false);
        self.end_what_is_done();
    }

    fn end_what_is_done(&mut self) {
        let begun = self.requests.iter().filter(|(_, request)| request.begun.is_some());
        let ids: Vec<RequestId> = begun.map(|(&id, _)| id).collect();
        ids.into_iter().for_each(|id| self.end_if_done(id));
    }

    fn is_fit(&self) -> bool {
        let out = self.twins.values().filter(|twin| twin.state != TwinState::Sound).count();
        out + self.left_behind.len() + self.shared.1 <= self.tolerated && !self.stores_alone
    }

    fn may_join(&self) -> bool {
        let stores_something = !self.twins.is_empty() || self.shared.0 > 0;
        self.is_copying && self.knows_partner && self.is_fit() && self.is_whole && stores_something
    }

    /// Ends a request that has not begun.
    fn refuse(&mut self, id: RequestId, error: IoError) {
        let request = self.requests.remove(&id).expect("it waits");
        self.held.remove(&id);
        if let Kind::Write { offset_bytes, length_bytes, .. } = request.kind {
            self.twin(request.drive).ended(offset_bytes, length_bytes, None, None);
        }
        self.out.push(Order::Done { request: id, result: Err(error) });
    }

    /// In sync, nothing is done while the partner is unfit: first it must have left.
    fn end_if_done(&mut self, id: RequestId) {
        if self.must_leave || self.rule == CommitRule::Both && !self.is_fit() {
            return;
        }
        let Some(request) = self.requests.get(&id) else { return };
        let (drive, kind) = (request.drive, request.kind);
        let Some(Begun { serial, own: Some(result), awaits_far: false }) = request.begun else {
            return;
        };
        self.requests.remove(&id);
        self.serial += 1;
        let now = self.serial;
        let twin = self.twin(drive);
        match kind {
            Kind::Write { offset_bytes, length_bytes, durable } => {
                let volatile = (!durable || result.is_err()).then_some(now);
                twin.ended(offset_bytes, length_bytes, Some(serial), volatile);
                if result.is_err() {
                    // the partner may have what the own drive refused: it is copied again, so that both are equal
                    twin.lacks(offset_bytes, length_bytes);
                }
            }
            // alone, too: when the partner is left, it lacks whatever is marked, flushed or not
            Kind::Flush if result.is_ok() => twin.flushed(serial),
            Kind::Flush => {}
        }
        self.out.push(Order::Done { request: id, result });
    }

    /// Begins what may begin.
    fn go_on(&mut self) {
        for (&drive, twin) in &mut self.twins {
            if let Some(record) = twin.next_record(self.in_sync.is_some()) {
                self.out.push(Order::Record { drive, record });
            }
        }
        self.begin_requests();
        self.begin_copies();
        self.tell();
    }

    fn begin_requests(&mut self) {
        let held: Vec<RequestId> = self.held.iter().copied().collect();
        for id in held {
            let request = self.requests.get_mut(&id).expect("what is held is known");
            let twin = self.twins.get_mut(&request.drive).expect("its drive is there");
            let far = self.rule == CommitRule::Both && twin.state != TwinState::Out;
            if let Kind::Write { offset_bytes, length_bytes, .. } = request.kind {
                if !twin.may_write(offset_bytes, length_bytes) {
                    continue;
                }
                self.serial += 1;
                twin.began(offset_bytes, length_bytes, self.serial, !far);
            }
            // a flush counts for what has ended
            request.begun = Some(Begun { serial: self.serial, own: None, awaits_far: far });
            self.held.remove(&id);
            self.out.push(Order::Begin { request: id, far });
        }
    }

    fn tell(&mut self) {
        let lacking = |twin: &Twin| if twin.state == TwinState::Sound { twin.lacking.len() } else { 0 };
        let lacking: u32 = self.twins.values().map(lacking).sum();
        let event = match self.rule {
            CommitRule::Own if lacking <= LITTLE && self.may_join() => StoreEvent::NearlyCopied,
            CommitRule::Both if lacking == 0 && self.is_fit() && !self.must_leave => StoreEvent::Covered,
            _ => return,
        };
        if self.told != Some(event) {
            self.told = Some(event);
            self.out.push(Order::Tell(event));
        }
    }
}
