//! What goes wrong with two heads: with their processes, with what connects them, with the register, and with the partner's drives.

use std::sync::atomic::Ordering;

use base::{Nanos, ShardId};
use heads::Mail;
use pair::{LinkError, RoleName, Term};

use super::{Life, MACHINES, Seen, TROUBLE_NS_MAX, TwoHeads};
use crate::drive::Failing;
use crate::prng::Prng;

/// By then a head that cannot go on has ended: it waits for less than two seconds, and may stand still for one.
const HANG: Nanos = Nanos::from_secs(4);

impl TwoHeads {
    /// Something happens to a head, to what connects them, or to the way to the register.
    pub fn inject(&mut self, prng: &mut Prng) {
        let mut time = Nanos(prng.skewed(1_000_000, TROUBLE_NS_MAX));
        let mut head = prng.index(2);
        let most = if self.twins_fail { 16 } else { 12 };
        let mut what = prng.below(if self.calm { 8 } else { most });
        if !self.calm && self.register.content().in_sync && prng.chance(300) {
            // long enough for a takeover while the owner is there
            time = Nanos(prng.between(TROUBLE_NS_MAX / 2, TROUBLE_NS_MAX));
            (head, what) = (self.owner, 8);
        }
        match what {
            0..6 => drop(self.world.reset_some_connection()),
            6..8 => self.end_partner(prng),
            8 => {
                Seen::HeadHung.seen();
                self.must_end = None;
                if let Some(life) = &self.lives[head] {
                    (0..=self.shards).for_each(|shard| self.world.hold_up(life.process, shard, time));
                    if self.is_shared {
                        // its array goes on before the head itself does
                        let later = Nanos(time.0 + prng.below(30_000_000));
                        self.world.hold_up(life.process, self.shards, later);
                    }
                }
            }
            9..11 => {
                Seen::Cut.seen();
                self.world.cut_network(MACHINES[0], MACHINES[1], time);
            }
            11 => {
                Seen::RegisterAway.seen();
                self.register.cut_off(head, time);
            }
            12 => self.hang_a_shard(prng),
            _ if self.is_shared => self.trouble_a_path(prng, time),
            13 => self.hang_what_is_sent(prng),
            _ => self.trouble_a_twin(prng, time),
        }
    }

    /// Its faults were those of a partner. But all its drives may come late.
    pub(super) fn begin_faults_of_owner(&mut self, head: usize) {
        let mut failing = Failing::default();
        let was_others = self.lives[head].as_ref().is_some_and(|life| life.wishes.was_others.get());
        // such a head can give the array back
        let chance = if was_others { 500 } else { 80 };
        if self.permitted > Term(0) && !self.calm && self.prng.chance(chance) {
            Seen::DrivesCameLate.seen();
            failing.opens = self.prng.between(1, 12) as u8;
        }
        self.numbers[head].iter().for_each(|&drive| self.world.fail_next(drive, failing));
        if !self.servers.strangers(head).is_empty() {
            Seen::OtherArray.seen();
        }
    }

    /// A shard of the array hangs, while its head's own thread goes on: that must end it.
    fn hang_a_shard(&mut self, prng: &mut Prng) {
        let Some(life) = self.lives[self.owner].as_ref().filter(|life| life.term.is_some()) else { return };
        if self.must_end.is_none() && prng.chance(200) {
            let shard = prng.index(usize::from(self.shards)) as u16;
            self.world.hold_up(life.process, shard, Nanos(HANG.0 * 2));
            self.must_end = Some((life.process, self.world.now() + HANG));
        }
    }

    /// A drive of the partner hangs, and the owner dies when something that it has sent is on its way to this drive.
    fn hang_what_is_sent(&mut self, prng: &mut Prng) {
        if self.register.content().in_sync {
            let drive = *prng.pick(&self.numbers[1 - self.owner]);
            self.world.stick(drive, Nanos(HANG.0 * 2));
            self.doomed = Some((drive, self.world.now() + Nanos::from_millis(200)));
        }
    }

    /// To be called between any two events: an owner dies when the time has come, and what must have ended has ended.
    pub(super) fn follow_hangs(&mut self) -> Result<(), String> {
        self.register.arrive();
        let now = self.world.now();
        if let Some((drive, until)) = self.doomed {
            let dies = self.world.is_written_to(drive);
            if let Some(life) = self.lives[self.owner].as_ref().filter(|_| dies) {
                self.world.kill(life.process);
            }
            self.doomed = self.doomed.filter(|_| !dies && now < until);
        }
        if let Some((process, by)) = self.must_end {
            if !self.world.is_alive(process) {
                self.must_end = None;
            } else if now > by {
                return Err("a shard hangs, and its head goes on".to_owned());
            }
        }
        for life in self.lives.iter_mut().flatten() {
            let waits = life.running.role() == RoleName::Owner && life.term.is_none();
            life.owns_since = life.owns_since.or(Some(now)).filter(|_| waits);
            if life.owns_since.is_some_and(|since| now > since + HANG) {
                return Err("a head owns the array and does not start it".to_owned());
            }
        }
        Ok(())
    }

    /// To be called between any two events: an administrator sees that a head has the wrong key, at either of them, and corrects it.
    pub(super) fn correct_keys(&mut self) {
        let trouble = |life: &Life| life.running.link_trouble() == Some(LinkError::WrongKey);
        let lives = || self.lives.iter().flatten();
        if let Some(wrong) = lives().find(|life| life.has_wrong_key)
            && (self.calm || lives().any(trouble))
        {
            if lives().any(trouble) {
                Seen::WrongKey.seen();
            }
            self.world.kill(wrong.process);
        }
    }

    /// To be called between any two events: an array that has started lacks a pool for a while, in some runs.
    pub(super) fn complete_arrays(&mut self) {
        let now = self.world.now();
        for life in self.lives.iter_mut().flatten().filter(|life| !life.is_whole) {
            if life.whole_at.is_none() && life.wishes.is_started.load(Ordering::Relaxed) {
                let is_late = !self.calm && self.prng.chance(200);
                let wait = if is_late { self.prng.skewed(1_000_000, TROUBLE_NS_MAX) } else { 0 };
                life.whole_at = Some(now + Nanos(wait));
                if is_late {
                    Seen::CameWholeLate.seen();
                }
            }
            if life.whole_at.is_some_and(|at| self.calm || now >= at) {
                // a full queue is tried again
                life.is_whole = life.outside.send(ShardId(0), Mail::Whole).is_ok();
            }
        }
    }

    /// A partner does not join while the owner lacks a pool.
    pub(super) fn check_joins(&mut self) -> Result<(), String> {
        let (before, now) = (self.known, self.register.content());
        self.known = now;
        let joined = now.in_sync && !before.in_sync && now.term == before.term;
        let lacks = |life: &Life| life.term == Some(now.term) && !life.is_whole;
        match self.lives.iter().flatten().any(lacks) && joined {
            true => Err(format!("the partner has joined in {:?}, and the owner lacks a pool", now.term)),
            false => Ok(()),
        }
    }

    /// Something passes that happens to a drive of the partner.
    fn trouble_a_twin(&mut self, prng: &mut Prng, time: Nanos) {
        let drive = *prng.pick(&self.numbers[1 - self.owner]);
        match prng.below(4) {
            0 => {
                Seen::DriveStuck.seen();
                self.world.stick(drive, time);
            }
            // one that may be needed at once does not go
            1 if !self.register.content().in_sync => {
                Seen::DriveWent.seen();
                self.lost_power = true;
                self.world.vanish(drive, Some(Nanos(time.0 / 4)), false);
            }
            _ => {
                Seen::DriveFailedOnce.seen();
                let mut draw = || prng.below(3) as u8;
                let failing = Failing { opens: draw(), reads: draw(), writes: draw() };
                self.world.fail_next(drive, failing);
            }
        }
    }

    /// The partner does not reach a drive that both see, unless it may be needed at once.
    fn trouble_a_path(&mut self, prng: &mut Prng, time: Nanos) {
        if !self.register.content().in_sync {
            Seen::PathCut.seen();
            let drive = *prng.pick(&self.numbers[0]);
            self.world.cut_path(MACHINES[1 - self.owner], drive, time);
        }
    }

    /// To be called between any two events: counts what shared drives have refused.
    pub(super) fn count_refused(&mut self) {
        if self.world.refused_writes() > std::mem::replace(&mut self.refused, self.world.refused_writes()) {
            Seen::WriteRefused.seen();
        }
    }

    fn end_partner(&mut self, prng: &mut Prng) {
        let Some(life) = &self.lives[1 - self.owner] else { return };
        self.world.kill(life.process);
        if prng.chance(500) {
            Seen::PartnerKilled.seen();
        } else {
            Seen::PartnerLostPower.seen();
            self.world.lose_caches(MACHINES[1 - self.owner]);
            self.lost_power = true;
        }
    }
}
