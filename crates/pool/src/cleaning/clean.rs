//! Cleaning: choosing the segments whose live blocks are appended anew, until nothing in them is live and the
//! next checkpoint frees them. Moving is `round.rs`; why it always gets on is in `docs/design/0003-space.md`.

use std::rc::Rc;

use base::{Nanos, Sequence};

use crate::cleaning::round::Round;
use crate::decision::Decision;
use crate::geometry::position::SegmentId;
use crate::lane::{Lane, LaneError};
use crate::space::segments::{Segment, SegmentState};
use crate::space::shares::Shares;

/// Segments that a round is to gain, where room is not short.
const GAIN_WANTED: usize = 8;
/// Blocks of one round: what is known of them is kept in memory.
const ROUND_BLOCKS_MAX: usize = 64 << 10;
/// Rounds that may gain nothing while hosts wait, in the hope that the garbage they make is gathered by the next.
const FUTILE_MAX: u32 = 32;

/// Repairs that were looked for in vain are looked for again after this time.
const LOOK_AGAIN: Nanos = Nanos::from_secs(1);
/// Where nothing was worth cleaning, it is looked again after so many batches.
const BATCHES_AGAIN: u64 = 64;

/// What a round is chosen for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    /// Blocks that lack redundancy are written anew.
    Redundancy,
    /// More room, at a good price.
    Room,
    /// Hosts wait: any gain.
    AnyRoom,
}

impl Lane {
    /// Runs until the lane fails or is closed.
    pub(crate) async fn run_cleaning(self: Rc<Self>) {
        while !self.has_ended() {
            // what comes while it is looked around counts, too
            let more = self.background.wait();
            self.recount_if_doubted();
            // neither keeps the other from its work
            let layers = self.some_upkeep().await;
            let cleaned = self.clean_some().await;
            match (layers, cleaned) {
                // the lane may have been closed on the way, and has told so
                _ if self.has_ended() => return,
                (Ok(true), _) | (_, Ok(true)) => {}
                (Ok(false), Ok(false)) => more.await,
                _ => self.io.sleep(Nanos::from_millis(100)).await,
            }
        }
    }

    /// Empties or merges layers that nobody asks for any more. `false` where there are none, or no space to do it in.
    async fn some_upkeep(self: &Rc<Self>) -> Result<bool, LaneError> {
        let dropping = self.dropping_layer();
        let merge = self.unfinished_merge().or_else(|| self.next_merge().filter(|_| dropping.is_none()));
        let (worked, layers) = match (merge, dropping) {
            (Some(merge), _) => (self.merge_some(merge).await, merge.layers().to_vec()),
            (None, Some(layer)) => (self.empty_layer(layer).await, vec![layer]),
            (None, None) => return Ok(false),
        };
        let Err(LaneError::Unreadable { .. }) = worked else { return worked };
        // a page of the map is lost: what it says can be neither given back nor merged, others' turn comes
        Decision::LayerLeftAlone.taken();
        layers.into_iter().for_each(|layer| self.map.borrow_mut().leave_alone(layer));
        // nobody waits for it any more
        self.committed.notify();
        self.space.notify();
        Ok(true)
    }

    /// Starts one after the other take a segment or two each: they must not use up what cleaning needs.
    pub(crate) async fn clean_until_there_is_room(self: &Rc<Self>) {
        while self.must_wait_for_space() && matches!(self.clean_some().await, Ok(true)) {}
    }

    /// One round, if one is called for. `false` where there was nothing to do.
    async fn clean_some(self: &Rc<Self>) -> Result<bool, LaneError> {
        if self.starved.get() {
            return Ok(false);
        }
        if self.may_look_for_repairs() {
            self.seal_what_lacks();
            if let Some(round) = self.choose(Aim::Redundancy).await? {
                Decision::RoundForRedundancy.taken();
                return self.carry_out(round, true).await.map(|()| true);
            }
            self.no_repairs.set(Some(self.io.now()));
            self.repairs_lack_room.set(!self.candidates(Aim::Redundancy).is_empty());
        }
        if !self.wants_cleaning() && !self.repairs_lack_room.get() {
            return Ok(false);
        }
        let aim = if self.must_wait_for_space() { Aim::AnyRoom } else { Aim::Room };
        if aim == Aim::Room {
            self.forget_futility();
            if !self.may_look_for_room() {
                return Ok(false);
            }
        }
        match self.choose(aim).await? {
            Some(round) => {
                match aim {
                    Aim::AnyRoom => Decision::RoundForAnyRoom.taken(),
                    Aim::Room | Aim::Redundancy => Decision::RoundForRoom.taken(),
                }
                self.carry_out(round, false).await.map(|()| true)
            }
            None => {
                self.nothing_to_clean.set(Some(self.log.borrow().committed));
                self.find_space().await
            }
        }
    }

    /// Cleaning may hope again.
    pub(crate) fn forget_futility(&self) {
        self.futile.set(0);
        self.most_room.set(0);
    }

    /// Every segment is looked at for repairs: not for each write that has the cleaning look around.
    fn may_look_for_repairs(&self) -> bool {
        self.no_repairs.get().is_none_or(|then| self.io.now().0 > then.0 + LOOK_AGAIN.0)
    }

    /// What lacks redundancy is moved when no more goes into it, which may be nothing for long: that is not waited for.
    fn seal_what_lacks(&self) {
        let open = self.log.borrow().place;
        let lacks = open.is_some_and(|(id, _)| !self.segments.borrow().get(id).lacking.is_nothing());
        if lacks && self.seal_what_is_open() {
            self.want_checkpoint();
        }
    }

    /// Something lacks redundancy that did not before, or has a place to go.
    pub(crate) fn want_repairs(&self) {
        self.no_repairs.set(None);
        self.background.notify();
    }

    /// Where nothing was worth cleaning, enough has to be written before something can be.
    fn may_look_for_room(&self) -> bool {
        let committed = self.log.borrow().committed;
        self.nothing_to_clean.get().is_none_or(|then| committed.0 >= then.0 + BATCHES_AGAIN)
    }

    /// Writes wait, and there is nothing to clean: a checkpoint may free what is empty by now. Where even
    /// that does not help, everything is live, and writes are refused until something is unmapped.
    async fn find_space(&self) -> Result<bool, LaneError> {
        if !self.must_wait_for_space() {
            return Ok(false);
        }
        if self.checkpoint_could_help() {
            return self.write_checkpoint().await.map(|()| true);
        }
        if !self.log.borrow().in_flight.is_empty() {
            self.io.sleep(Nanos::from_millis(1)).await;
            return Ok(true);
        }
        // readers tell when they are done
        if !self.segments.borrow().awaits_readers() {
            Decision::Starved.taken();
            self.starve();
        }
        Ok(false)
    }

    async fn carry_out(self: &Rc<Self>, round: Round<'_>, repair: bool) -> Result<(), LaneError> {
        let victims = round.victims.clone();
        let braked = (!repair).then(|| self.apply_brake(&round));
        let complete = self.move_round(round, repair).await?;
        self.write_checkpoint().await?;
        drop(braked);
        for id in victims.into_iter().filter(|_| complete) {
            // what could not be moved now could not be moved the next time either
            if self.segments.borrow().find(id).is_some_and(|segment| segment.live > 0) {
                self.leave(id);
            }
        }
        let room = self.segments.borrow().room();
        // one round loses what the next gains: only more room than ever since hosts wait is progress
        let futile = room <= self.most_room.get();
        self.futile.set(if futile { self.futile.get() + 1 } else { 0 });
        self.most_room.set(room.max(self.most_room.get()));
        Ok(())
    }

    /// Chooses segments until the round is worth its cost, which is known to the page before anything is
    /// written. `None` where there is nothing to clean, or no round that is worth it.
    async fn choose(&self, aim: Aim) -> Result<Option<Round<'_>>, LaneError> {
        let mut round = Round::new(self);
        let braked = (aim != Aim::Redundancy).then(|| self.brake_while_choosing());
        for id in self.candidates(aim) {
            let shares = self.shares();
            let live = self.segments.borrow().find(id).map_or(0, |segment| segment.live);
            let layers = self.map.borrow().layers.len();
            let fits = match aim {
                Aim::Redundancy => self.has_room_for_repair(&round, live, layers, &shares),
                Aim::Room | Aim::AnyRoom => {
                    round.cost_with(3 * live as usize, layers, &shares) + shares.checkpoint < shares.room
                }
            };
            let too_many = !round.victims.is_empty() && round.moves.len() + live as usize > ROUND_BLOCKS_MAX;
            if !fits && aim == Aim::Redundancy && round.victims.is_empty() {
                // a smaller one may
                continue;
            }
            if !fits || too_many {
                break;
            }
            self.survey(id, &mut round).await?;
            self.choice_gets_on();
            let gain = round.gain(layers, &shares);
            let enough = match aim {
                Aim::Redundancy => round.victims.len() >= GAIN_WANTED,
                Aim::Room | Aim::AnyRoom => gain >= GAIN_WANTED as isize,
            };
            if enough {
                break;
            }
        }
        if braked.is_some() {
            self.chosen.set(round.victims.len());
        }
        drop(braked);
        let shares = self.shares();
        Ok(Some(round).filter(|round| self.is_worth_it(round, aim, &shares)))
    }

    /// Whether a segment with so many live blocks can be written anew besides the round, without hosts having to wait.
    pub(crate) fn has_room_for_repair(
        &self,
        round: &Round<'_>,
        live: u32,
        layers: usize,
        shares: &Shares,
    ) -> bool {
        // a block's page, and one above it, may have to be written for each
        round.cost_with(3 * live as usize, layers, shares) + shares.hosts_wait() + 1 < shares.room
    }

    fn is_worth_it(&self, round: &Round<'_>, aim: Aim, shares: &Shares) -> bool {
        let layers = self.map.borrow().layers.len();
        let left = shares.room.saturating_sub(round.cost_with(0, layers, shares));
        let hopes = || left > shares.checkpoint + shares.cleaning / 2 && self.futile.get() < FUTILE_MAX;
        !round.victims.is_empty()
            && match aim {
                Aim::Redundancy => true,
                Aim::Room => round.gain(layers, shares) > 0,
                Aim::AnyRoom => round.gain(layers, shares) > 0 || hopes(),
            }
    }

    /// The segments that may be cleaned, the best first: by what they give for their cost and how long they
    /// have been left alone, or, where hosts wait, by what they give alone.
    fn candidates(&self, aim: Aim) -> Vec<SegmentId> {
        let settled = self.checkpoint.borrow().sequence;
        let newest = self.log.borrow().newest.0;
        let segments = self.segments.borrow();
        let full = segments.packed_blocks() as u64;
        let may = |segment: &Segment| {
            segment.state == SegmentState::Sealed
                && !segment.stuck
                && segment.live > 0
                && segment.last <= settled
        };
        let wanted = |segment: &Segment| match aim {
            Aim::Redundancy => segments.wants_rewriting(segment),
            Aim::Room => u64::from(segment.live) * 16 < full * 15,
            Aim::AnyRoom => u64::from(segment.live) < full,
        };
        let rank = |segment: &Segment| {
            let live = u64::from(segment.live);
            let age = |last: Sequence| newest - last.0.min(newest) + 1000;
            match aim {
                // the most exposed first
                Aim::Redundancy => {
                    segments.lost_columns(segment) as u64 * 2 * full + full.saturating_sub(live)
                }
                Aim::AnyRoom => full.saturating_sub(live),
                Aim::Room => full.saturating_sub(live) * age(segment.last) / (full + live),
            }
        };
        let mut ranked: Vec<(u64, SegmentId)> = segments
            .iter()
            .filter(|(_, segment)| may(segment) && wanted(segment))
            .map(|(&id, segment)| (rank(segment), id))
            .collect();
        ranked.sort_unstable_by_key(|&(rank, id)| (std::cmp::Reverse(rank), id));
        ranked.into_iter().map(|(_, id)| id).collect()
    }
}
