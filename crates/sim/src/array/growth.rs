//! The administrator makes volumes larger while hosts write to them.
//!
//! An acknowledged growth must persist, and the new space must be zeros until it is written. A change that a crash cut
//! off may or may not have taken effect.

use std::collections::BTreeMap;
use std::rc::Rc;

use api::Command;
use api::{ArrayStatus, CommandErrorKind};
use base::{BLOCK_BYTES, Nanos};
use engine::ShardMessage;
use task::Io;

use super::engine_shard::command;
use super::notices::CAPACITY_CHANGED;
use super::reserve::Holders;
use crate::environment::Outside;
use crate::workload::{Failure, Shared, VolumePlan};

/// Blocks that one change adds, at most: more than two map pages.
const STEP_BLOCKS_MAX: u64 = 600;
/// Changes in one round.
const CHANGES: u32 = 3;
/// Longest pause before one.
const PAUSE_NS_MAX: u64 = 20_000_000;

/// Sizes that were asked for and of those the largest that was acknowledged, by volume, in blocks.
#[derive(Default)]
pub struct Growth(BTreeMap<u32, Sizes>);

#[derive(Clone, Copy)]
struct Sizes {
    acknowledged: u64,
    asked: u64,
}

impl Growth {
    fn sizes(&self, volume: &VolumePlan) -> Sizes {
        let first = Sizes { acknowledged: volume.blocks, asked: volume.blocks };
        self.0.get(&volume.volume).copied().unwrap_or(first)
    }

    /// The volume with the size that clients can rely on.
    pub fn grown(&self, volume: &VolumePlan) -> VolumePlan {
        VolumePlan { blocks: self.sizes(volume).acknowledged, ..*volume }
    }

    /// What a start found differs from what can be.
    pub fn check(&self, volumes: &[VolumePlan], status: &ArrayStatus) -> Result<(), String> {
        for volume in volumes {
            let name = format!("volume{}", volume.volume);
            let sizes = self.sizes(volume);
            let found = status.volumes.iter().find(|found| found.name == name);
            let blocks = found.map(|found| found.size_bytes / BLOCK_BYTES as u64);
            if !blocks.is_some_and(|blocks| (sizes.acknowledged..=sizes.asked).contains(&blocks)) {
                let (acknowledged, asked) = (sizes.acknowledged, sizes.asked);
                return Err(format!(
                    "{name} has {blocks:?} blocks; {acknowledged} were acknowledged, {asked} asked for"
                ));
            }
        }
        Ok(())
    }
}

/// Grows volumes at random, a few times.
pub async fn grow(
    io: Io,
    outside: Rc<Outside<ShardMessage>>,
    shared: Rc<Shared>,
    volumes: Rc<Vec<VolumePlan>>,
    holders: Rc<Holders>,
) {
    for _ in 0..CHANGES {
        io.sleep(Nanos(io.random_u64() % PAUSE_NS_MAX)).await;
        if shared.stop.get() {
            return;
        }
        let volume = volumes[(io.random_u64() % volumes.len() as u64) as usize];
        let mut sizes = shared.growth.borrow().sizes(&volume);
        sizes.asked += 1 + io.random_u64() % STEP_BLOCKS_MAX;
        shared.growth.borrow_mut().0.insert(volume.volume, sizes);
        let name = format!("volume{}", volume.volume);
        let size_bytes = sizes.asked * BLOCK_BYTES as u64;
        let wanted = Command::VolumeResize { name: name.clone(), size_bytes, force: false, dry_run: false };
        let began = io.now();
        let answer = command(&io, &outside, wanted).await;
        shared.world.note(|| format!("{name} to {} blocks: {answer:?}", sizes.asked));
        match answer {
            Ok(_) => {
                holders.notices.owe(volume.volume as u16, None, CAPACITY_CHANGED, began, &io);
                sizes.acknowledged = sizes.asked;
                shared.growth.borrow_mut().0.insert(volume.volume, sizes);
            }
            // drives fail, pools are full, the array stops
            Err(error)
                if matches!(
                    error.kind,
                    CommandErrorKind::Io | CommandErrorKind::Unavailable | CommandErrorKind::Stopping
                ) => {}
            Err(error) => shared.fail(Failure::Broken(format!("{name} does not grow: {error}"))),
        }
    }
}
