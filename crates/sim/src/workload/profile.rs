//! Which requests a run makes, and how often: drawn per seed (swarm testing).
//!
//! Each seed leaves out a random half of the kinds, so that no kind always hides another's effects. It draws the
//! sizes, the hot set and the rate of the rest.

use crate::oracle::SECTORS_PER_BLOCK;
use crate::prng::Prng;

/// Blocks of a map page: 1 MiB.
const PAGE_BLOCKS: u64 = 256;

/// A volume of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumePlan {
    pub volume: u32,
    pub blocks: u64,
    pub write_back: bool,
}

/// Kinds of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    /// Continues where this client's last one ended.
    SequentialWrite,
    /// Less than a block, in 512-byte sectors.
    SmallWrite,
    Zero,
    Flush,
    CompareAndWrite,
}

/// How clients behave in one run.
#[derive(Clone, Debug)]
pub struct Profile {
    weights: Vec<(Kind, u64)>,
    /// Largest write or read, in blocks.
    blocks_max: u64,
    /// Per thousand requests that go to the first few blocks of a volume.
    hot_permille: u32,
    hot_blocks: u64,
    /// Per thousand requests that ask for durability on their own.
    pub(super) durable_permille: u32,
    /// Every request is for a few blocks on both sides of a border of map pages.
    pub(super) contended: bool,
    /// Longest pause between two requests of a client, in nanoseconds.
    pub(super) pause_max: u64,
}

impl Profile {
    pub fn draw(prng: &mut Prng) -> Profile {
        let all = [
            (Kind::Read, 60),
            (Kind::SequentialWrite, 30),
            (Kind::SmallWrite, 30),
            (Kind::Zero, 20),
            (Kind::Flush, 10),
            (Kind::CompareAndWrite, 15),
        ];
        let mut weights = vec![(Kind::Write, prng.between(20, 100))];
        for (kind, weight) in all {
            if prng.chance(650) {
                weights.push((kind, prng.between(1, weight)));
            }
        }
        Profile {
            weights,
            blocks_max: *prng.pick(&[1, 4, 16, 64]),
            hot_permille: *prng.pick(&[0, 200, 700, 950]),
            hot_blocks: prng.between(1, 40),
            durable_permille: *prng.pick(&[0, 100, 500]),
            contended: false,
            pause_max: *prng.pick(&[0, 10_000, 1_000_000, 20_000_000]),
        }
    }

    /// Compare-and-writes, writes and reads that are all in each other's way, across the borders of lanes.
    pub fn contended() -> Profile {
        Profile {
            weights: vec![(Kind::CompareAndWrite, 60), (Kind::Write, 20), (Kind::Read, 20)],
            blocks_max: 1,
            hot_permille: 0,
            hot_blocks: 1,
            durable_permille: 100,
            contended: true,
            pause_max: 0,
        }
    }

    /// Compare-and-writes, half of them durable: nothing else is, so that nothing else makes them so.
    pub fn compares() -> Profile {
        Profile { durable_permille: 500, ..Profile::only(&[(Kind::CompareAndWrite, 90), (Kind::Read, 10)]) }
    }

    /// Writes that are as durable as flushes make them.
    pub fn flushes() -> Profile {
        Profile { durable_permille: 0, ..Profile::only(&[(Kind::Write, 70), (Kind::Flush, 30)]) }
    }

    /// Writes and reads of very few blocks.
    pub fn hot() -> Profile {
        Profile { hot_permille: 950, hot_blocks: 4, ..Profile::only(&[(Kind::Write, 50), (Kind::Read, 50)]) }
    }

    /// Anywhere, some of it in a few blocks.
    fn only(weights: &[(Kind, u64)]) -> Profile {
        let weights = weights.to_vec();
        Profile { weights, hot_blocks: 8, hot_permille: 300, contended: false, ..Profile::contended() }
    }

    /// The same, with pauses between a client's requests of so many nanoseconds at most.
    pub fn with_pauses(self, pause_max: u64) -> Profile {
        Profile { pause_max, ..self }
    }

    pub(super) fn kind(&self, prng: &mut Prng) -> Kind {
        let total = self.weights.iter().map(|&(_, weight)| weight).sum();
        let mut drawn = prng.below(total);
        for &(kind, weight) in &self.weights {
            if drawn < weight {
                return kind;
            }
            drawn -= weight;
        }
        unreachable!("the draw is below the sum")
    }

    /// First block and number of blocks of a request.
    pub(super) fn range(&self, volume: &VolumePlan, prng: &mut Prng) -> (u64, u64) {
        let blocks = prng.skewed(1, self.blocks_max.min(volume.blocks));
        let within = if prng.chance(self.hot_permille) { self.hot_blocks.max(blocks) } else { volume.blocks };
        (prng.below(within.min(volume.blocks) - blocks + 1), blocks)
    }

    /// A run of sectors within one block, or across the border of two.
    pub(super) fn small_range(&self, volume: &VolumePlan, prng: &mut Prng) -> (u64, u64) {
        let (block, _) = self.range(volume, prng);
        let first = block * SECTORS_PER_BLOCK + prng.below(SECTORS_PER_BLOCK);
        let most = (volume.blocks * SECTORS_PER_BLOCK - first).min(SECTORS_PER_BLOCK - 1);
        (first, prng.between(1, most))
    }

    /// A run of sectors across the border of two map pages, which two lanes may have; `None`: there is no border.
    pub(super) fn straddling_range(&self, volume: &VolumePlan, prng: &mut Prng) -> Option<(u64, u64)> {
        let borders = (volume.blocks - 1) / PAGE_BLOCKS;
        let border = (borders > 0).then(|| (1 + prng.below(borders)) * PAGE_BLOCKS * SECTORS_PER_BLOCK)?;
        let before = prng.between(1, 2 * SECTORS_PER_BLOCK);
        let after = prng.between(1, 2 * SECTORS_PER_BLOCK).min(volume.blocks * SECTORS_PER_BLOCK - border);
        Some((border - before, before + after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_request_lies_within_its_volume() {
        for seed in 0..300 {
            let mut prng = Prng::new(seed);
            let profile = Profile::draw(&mut prng);
            let volume = VolumePlan { volume: 1, blocks: prng.between(1, 600), write_back: false };
            for _ in 0..50 {
                let (first, blocks) = profile.range(&volume, &mut prng);
                assert!(blocks >= 1 && first + blocks <= volume.blocks);
                let (first, sectors) = profile.small_range(&volume, &mut prng);
                assert!(sectors >= 1 && first + sectors <= volume.blocks * SECTORS_PER_BLOCK);
                let straddling = profile.straddling_range(&volume, &mut prng);
                assert_eq!(straddling.is_some(), volume.blocks > PAGE_BLOCKS);
                if let Some((first, sectors)) = straddling {
                    let pages = PAGE_BLOCKS * SECTORS_PER_BLOCK;
                    assert_eq!(first / pages + 1, (first + sectors - 1) / pages);
                    assert!(first + sectors <= volume.blocks * SECTORS_PER_BLOCK);
                }
            }
        }
    }

    #[test]
    fn seeds_leave_kinds_out() {
        let sizes: Vec<usize> =
            (0..50).map(|seed| Profile::draw(&mut Prng::new(seed)).weights.len()).collect();
        assert!(sizes.contains(&7) || sizes.contains(&6));
        assert!(sizes.iter().any(|&size| size <= 4), "{sizes:?}");
    }
}
