//! Whether the shards of the array answer. The head has a thread of its own, so it would keep the lease although a shard hangs, and with
//! it all that hosts ask of this shard.
//!
//! What always holds: only time in which the head itself takes turns counts against a shard. A machine that stands still is not taken for
//! a shard that hangs.

use base::{Nanos, ShardId};

/// Between an answer and the next question.
const PAUSE: Nanos = Nanos::from_millis(500);
/// More than this is not counted of the time between two looks: the head itself was held up.
const LOOK_MAX: Nanos = Nanos::from_millis(50);

#[derive(Clone, Copy, Debug)]
enum Asked {
    /// It has answered. It is asked when so much time has passed.
    Not(Nanos),
    /// It is to be asked, or was, and has not answered for so long.
    Waits { waited: Nanos, is_sent: bool },
}

/// See the header of this file.
#[derive(Default, Debug)]
pub(crate) struct Watch {
    shards: Vec<Asked>,
    looked: Nanos,
}

impl Watch {
    /// The shards of an array are asked from now on.
    pub fn begin(&mut self, shards: u16, now: Nanos) {
        let waits = Asked::Waits { waited: Nanos::default(), is_sent: false };
        (self.shards, self.looked) = (vec![waits; usize::from(shards)], now);
    }

    /// The array is stopped in order: its shards need not answer.
    pub fn end(&mut self) {
        self.shards.clear();
    }

    /// Time has passed. Which shard has not answered for longer than `patience`?
    pub fn look(&mut self, now: Nanos, patience: Nanos) -> Option<ShardId> {
        let passed = now.saturating_sub(self.looked).min(LOOK_MAX);
        self.looked = now;
        for asked in &mut self.shards {
            *asked = match *asked {
                Asked::Not(left) if left <= passed => {
                    Asked::Waits { waited: Nanos::default(), is_sent: false }
                }
                Asked::Not(left) => Asked::Not(left.saturating_sub(passed)),
                Asked::Waits { waited, is_sent } => Asked::Waits { waited: waited + passed, is_sent },
            };
        }
        let hangs = |asked: &Asked| matches!(asked, Asked::Waits { waited, .. } if *waited > patience);
        self.shards.iter().position(hangs).map(|index| ShardId(index as u16))
    }

    /// Who is to be asked next.
    pub fn next(&self) -> Option<ShardId> {
        let is_due = |asked: &Asked| matches!(asked, Asked::Waits { is_sent: false, .. });
        self.shards.iter().position(is_due).map(|index| ShardId(index as u16))
    }

    pub fn asked(&mut self, shard: ShardId) {
        if let Some(Asked::Waits { is_sent, .. }) = self.shards.get_mut(usize::from(shard.0)) {
            *is_sent = true;
        }
    }

    pub fn on_answer(&mut self, shard: ShardId) {
        if let Some(asked) = self.shards.get_mut(usize::from(shard.0)) {
            *asked = Asked::Not(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = Nanos::from_millis(200);

    /// Looks every 10 ms.
    fn looks(watch: &mut Watch, now: &mut Nanos, times: u32) -> Option<ShardId> {
        (0..times).find_map(|_| {
            *now = *now + Nanos::from_millis(10);
            watch.look(*now, PATIENCE)
        })
    }

    #[test]
    fn a_shard_that_does_not_answer_hangs() {
        let (mut watch, mut now) = (Watch::default(), Nanos::from_secs(9));
        watch.begin(2, now);
        assert_eq!(watch.next(), Some(ShardId(0)));
        watch.asked(ShardId(0));
        assert_eq!(watch.next(), Some(ShardId(1)));
        watch.asked(ShardId(1));
        assert_eq!((watch.next(), looks(&mut watch, &mut now, 20)), (None, None));
        watch.on_answer(ShardId(0));
        assert_eq!(looks(&mut watch, &mut now, 1), Some(ShardId(1)));
        watch.on_answer(ShardId(1));
        assert_eq!((looks(&mut watch, &mut now, 60), watch.next()), (None, Some(ShardId(0))), "asked again");
        assert_eq!(looks(&mut watch, &mut now, 30), Some(ShardId(0)), "although its queue took no question");
        watch.end();
        assert_eq!(looks(&mut watch, &mut now, 100), None);
    }

    #[test]
    fn a_head_that_stood_still_blames_no_shard() {
        let (mut watch, now) = (Watch::default(), Nanos::from_secs(9));
        watch.begin(1, now);
        watch.asked(ShardId(0));
        assert_eq!(watch.look(now + Nanos::from_secs(60), PATIENCE), None);
    }
}
