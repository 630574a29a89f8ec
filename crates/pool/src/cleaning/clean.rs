//! Cleaning: chooses segments and appends their live blocks anew. When no block of a segment is live any more, the next
//! checkpoint frees the segment. `round.rs` moves the blocks. `docs/design/0003-space.md` explains why cleaning always
//! makes progress.

use std::rc::Rc;

use base::{Nanos, Sequence};

use crate::cleaning::cleaner::{Next, RoundPurpose, plan_next};
use crate::cleaning::pacing::{HostPacing, RepairPiece};
use crate::cleaning::round::Round;
use crate::decision::Decision;
use crate::error::LaneError;
use crate::format::header::Entry;
use crate::geometry::position::SegmentId;
use crate::lane::Lane;
use crate::log::batch::Built;
use crate::space::segments::{Segment, SegmentState};
use crate::space::shares::Shares;

/// Segments that a round should gain when room is not short.
const GAIN_WANTED: usize = 8;
/// Maximum number of blocks in a round: their records are kept in memory.
const ROUND_BLOCKS_MAX: usize = 64 << 10;
impl Lane {
    /// Runs until the lane fails or is closed.
    pub(crate) async fn run_cleaning(self: Rc<Self>) {
        while !self.has_ended() {
            // a notification that arrives during the checks counts, too
            let more = self.background.wait();
            self.recount_if_doubted();
            // neither kind of work prevents the other
            let layers = self.some_upkeep().await;
            let cleaned = self.clean_some().await;
            match (layers, cleaned) {
                // the lane may have been closed meanwhile, which it has reported
                _ if self.has_ended() => return,
                (Ok(true), _) | (_, Ok(true)) => {}
                (Ok(false), Ok(false)) => more.await,
                _ => self.io.sleep(Nanos::from_millis(100)).await,
            }
        }
    }

    /// Empties or merges layers that nobody needs any more. `false` if there are none, or if there is no space for it.
    async fn some_upkeep(self: &Rc<Self>) -> Result<bool, LaneError> {
        let dropping = self.dropping_layer();
        let merge = self.unfinished_merge().or_else(|| self.next_merge().filter(|_| dropping.is_none()));
        let (worked, layers) = match (merge, dropping) {
            (Some(merge), _) => (self.merge_some(merge).await, merge.layers().to_vec()),
            (None, Some(layer)) => (self.empty_layer(layer).await, vec![layer]),
            (None, None) => return Ok(false),
        };
        let Err(LaneError::Unreadable { .. }) = worked else { return worked };
        // a page of the map is lost: its layer can be neither emptied nor merged, so others get their turn
        Decision::LayerLeftAlone.taken();
        layers.into_iter().for_each(|layer| self.map.borrow_mut().leave_alone(layer));
        // nobody waits for this layer any more
        self.committed.notify();
        self.space.notify();
        Ok(true)
    }

    /// Cleans until there is room. Several starts in a row take a segment or two each, and they must not use up the
    /// room that cleaning needs.
    pub(crate) async fn clean_until_there_is_room(self: &Rc<Self>) {
        while self.must_wait_for_space() && matches!(self.clean_some().await, Ok(true)) {}
    }

    /// Runs one round, if one is due. `false` if there was nothing to do.
    async fn clean_some(self: &Rc<Self>) -> Result<bool, LaneError> {
        if self.cleaner.is_starved() {
            return Ok(false);
        }
        if self.cleaner.may_look_for_repairs(self.io.now()) {
            self.seal_what_lacks();
            if let Some(round) = self.choose(RoundPurpose::Redundancy).await? {
                Decision::RoundForRedundancy.taken();
                return self.carry_out(round, true).await.map(|()| true);
            }
            let lack_room = !self.candidates(RoundPurpose::Redundancy).is_empty();
            self.cleaner.repairs_in_vain(self.io.now(), lack_room);
        }
        let shares = self.shares();
        let committed = self.log.borrow().committed;
        let next = plan_next(
            shares.room <= shares.cleaning_begins(),
            self.cleaner.repairs_lack_room(),
            self.have_to_wait(&shares),
            self.cleaner.may_look_for_room(committed),
        );
        let purpose = match next {
            Next::Rest => return Ok(false),
            Next::AwaitGarbage => {
                self.cleaner.hope_again();
                return Ok(false);
            }
            Next::Clean(purpose) => purpose,
        };
        match purpose {
            RoundPurpose::AnyRoom => {}
            RoundPurpose::Room | RoundPurpose::Redundancy => self.cleaner.hope_again(),
        }
        let Some(round) = self.choose(purpose).await? else {
            self.cleaner.found_nothing_worth(self.log.borrow().committed);
            return self.find_space().await;
        };
        match purpose {
            RoundPurpose::AnyRoom => Decision::RoundForAnyRoom.taken(),
            RoundPurpose::Room | RoundPurpose::Redundancy => Decision::RoundForRoom.taken(),
        }
        self.carry_out(round, false).await.map(|()| true)
    }

    /// Seals the open segment if it lacks redundancy, so that its blocks can be moved. It might otherwise receive no
    /// batch for a long time.
    fn seal_what_lacks(&self) {
        let open = self.log.borrow().place;
        let lacks = open.is_some_and(|(id, _)| !self.segments.borrow().get(id).lacking.is_nothing());
        if lacks && self.seal_what_is_open() {
            self.want_checkpoint();
        }
    }

    /// Something has lost redundancy, or can now be written anew.
    pub(crate) fn want_repairs(&self) {
        self.cleaner.want_repairs();
        self.background.notify();
    }

    /// Writes wait, and there is nothing to clean: a checkpoint may free segments that are empty by now. If even this
    /// does not help, everything is live, and writes are refused until something is unmapped.
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
        // readers notify when they are done
        if !self.segments.borrow().awaits_readers() {
            Decision::Starved.taken();
            self.starve();
        }
        Ok(false)
    }

    async fn carry_out(self: &Rc<Self>, round: Round<'_>, repair: bool) -> Result<(), LaneError> {
        let victims = round.victims.clone();
        let paced = (!repair).then(|| self.pace_round(&round));
        let complete = self.move_round(round, repair).await?;
        self.write_checkpoint().await?;
        drop(paced);
        for id in victims.into_iter().filter(|_| complete) {
            // a segment that could not be moved now could not be moved the next time either
            if self.segments.borrow().find(id).is_some_and(|segment| segment.live > 0) {
                self.leave(id);
            }
        }
        self.cleaner.note_round(self.segments.borrow().room());
        Ok(())
    }

    /// Chooses segments until the round is worth its cost. The cost is known to the page before anything is written.
    /// `None` if there is nothing to clean, or no round is worth it.
    async fn choose(&self, purpose: RoundPurpose) -> Result<Option<Round<'_>>, LaneError> {
        let mut round = Round::new(self);
        let paced = (purpose != RoundPurpose::Redundancy).then(|| self.pace_choice());
        for id in self.candidates(purpose) {
            let shares = self.shares();
            let live = self.segments.borrow().find(id).map_or(0, |segment| segment.live);
            let layers = self.map.borrow().layers.len();
            let fits = match purpose {
                RoundPurpose::Redundancy => self.has_room_for_repair(&round, live, layers, &shares),
                RoundPurpose::Room | RoundPurpose::AnyRoom => {
                    round.cost_with(3 * live as usize, layers, &shares) + shares.checkpoint < shares.room
                }
            };
            let too_many = !round.victims.is_empty() && round.moves.len() + live as usize > ROUND_BLOCKS_MAX;
            if !fits && purpose == RoundPurpose::Redundancy && round.victims.is_empty() {
                // a smaller one may fit
                continue;
            }
            if !fits || too_many {
                break;
            }
            self.survey(id, &mut round).await?;
            self.change_pacing(HostPacing::note_victim);
            let gain = round.gain(layers, &shares);
            let enough = match purpose {
                RoundPurpose::Redundancy => round.victims.len() >= GAIN_WANTED,
                RoundPurpose::Room | RoundPurpose::AnyRoom => gain >= GAIN_WANTED as isize,
            };
            if enough {
                break;
            }
        }
        if paced.is_some() {
            self.cleaner.note_victims(round.victims.len());
        }
        drop(paced);
        let shares = self.shares();
        Ok(Some(round).filter(|round| self.is_worth_it(round, purpose, &shares)))
    }

    /// Whether a segment with this many live blocks can be written anew besides the round, without making hosts wait.
    pub(crate) fn has_room_for_repair(
        &self,
        round: &Round<'_>,
        live: u32,
        layers: usize,
        shares: &Shares,
    ) -> bool {
        // for each block, its leaf page and a page above it may have to be written
        round.cost_with(3 * live as usize, layers, shares) + shares.hosts_wait() + 1 < shares.room
    }

    fn is_worth_it(&self, round: &Round<'_>, purpose: RoundPurpose, shares: &Shares) -> bool {
        let layers = self.map.borrow().layers.len();
        let left = shares.room.saturating_sub(round.cost_with(0, layers, shares));
        let hopes = || left > shares.checkpoint + shares.cleaning / 2 && self.cleaner.may_hope();
        !round.victims.is_empty()
            && match purpose {
                RoundPurpose::Redundancy => true,
                RoundPurpose::Room => round.gain(layers, shares) > 0,
                RoundPurpose::AnyRoom => round.gain(layers, shares) > 0 || hopes(),
            }
    }

    /// The segments that may be cleaned, the best first. They are sorted by gain per cost and by how long they have
    /// been left alone or, if hosts wait, by gain alone.
    fn candidates(&self, purpose: RoundPurpose) -> Vec<SegmentId> {
        let settled = self.checkpointer.sequence();
        let newest = self.log.borrow().newest.0;
        let segments = self.segments.borrow();
        let full = segments.packed_blocks() as u64;
        let may = |segment: &Segment| {
            segment.state == SegmentState::Sealed
                && !segment.stuck
                && segment.live > 0
                && segment.last <= settled
        };
        let wanted = |segment: &Segment| match purpose {
            RoundPurpose::Redundancy => segments.wants_rewriting(segment),
            RoundPurpose::Room => u64::from(segment.live) * 16 < full * 15,
            RoundPurpose::AnyRoom => u64::from(segment.live) < full,
        };
        let rank = |segment: &Segment| {
            let live = u64::from(segment.live);
            let age = |last: Sequence| newest - last.0.min(newest) + 1000;
            match purpose {
                // the most exposed first
                RoundPurpose::Redundancy => {
                    segments.lost_columns(segment) as u64 * 2 * full + full.saturating_sub(live)
                }
                RoundPurpose::AnyRoom => full.saturating_sub(live),
                RoundPurpose::Room => full.saturating_sub(live) * age(segment.last) / (full + live),
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

    /// Paces hosts by the choice of a round until the result is dropped.
    fn pace_choice(&self) -> Paced<'_> {
        self.cleaner.begin_choosing();
        Paced(self)
    }

    /// Paces hosts by a round until the result is dropped.
    fn pace_round(&self, round: &Round<'_>) -> Paced<'_> {
        let (layers, shares) = (self.map.borrow().layers.len(), self.shares());
        let excess = round.cost_with(0, layers, &shares).saturating_sub(shares.cleaning);
        let total = round.blocks_with(0, layers, &shares).max(1);
        let pages = total.saturating_sub(round.moves.len());
        self.cleaner.begin_moving(HostPacing::of_round(total, pages, excess));
        Paced(self)
    }

    /// A batch has its place: its moves count as done, the rest as used by hosts.
    pub(crate) fn placed(&self, built: &Built) {
        if self.cleaner.pacing().is_none() {
            return;
        }
        let (mut moves, mut pages, mut others) = (0, 0, 0);
        for entry in &built.header.entries {
            match entry {
                Entry::Move { .. } => moves += 1,
                Entry::Page { .. } | Entry::Table { .. } => pages += 1,
                _ => others += 1,
            }
        }
        let segments = self.segments.borrow();
        let place = usize::from(built.header.rows) * segments.packed_blocks() / segments.rows;
        drop(segments);
        self.change_pacing(|pacing| pacing.note_batch(moves, pages, others, place));
    }

    fn change_pacing(&self, change: impl FnOnce(&mut HostPacing)) {
        let Some((before, after)) = self.cleaner.change_pacing(change) else { return };
        let shares = self.shares();
        if before.lent(shares.packed) != after.lent(shares.packed) {
            self.log_work.notify();
            self.space.notify();
        } else if before.is_ahead(&shares) && !after.is_ahead(&shares) {
            self.space.notify();
        }
    }

    /// Whether hosts' writes should wait until the running round has progressed.
    pub(crate) fn is_ahead_of_cleaning(&self) -> bool {
        self.cleaner.pacing().is_some_and(|pacing| pacing.is_ahead(&self.shares()))
    }

    pub(crate) fn begin_repair(&self) -> RepairPiece {
        RepairPiece { began: self.io.now(), host_blocks: self.host_blocks() }
    }

    /// Waits as long as the share of repairs requires.
    pub(crate) async fn end_repair(&self, piece: RepairPiece) {
        let share_percent = self.options.get().repair_share_percent;
        let pause = piece.pause(self.io.now(), self.host_blocks(), share_percent);
        if pause.0 > 0 {
            self.io.sleep(pause).await;
        }
    }

    fn host_blocks(&self) -> u64 {
        let counters = self.counters.borrow();
        counters.blocks_read + counters.blocks_written
    }
}

/// Hosts are being paced.
struct Paced<'a>(&'a Lane);

impl Drop for Paced<'_> {
    fn drop(&mut self) {
        self.0.cleaner.end();
        self.0.space.notify();
        self.0.log_work.notify();
    }
}
