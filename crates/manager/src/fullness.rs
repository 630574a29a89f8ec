//! What is to be said of a pool's space: how full it is, whose writes are refused, what the next failure would leave, and who
//! could give space back.

use std::collections::BTreeMap;

use base::limits::{SPACE_THRESHOLD_PERCENT, SPACE_WARNING_PERCENT};
use base::{BLOCK_BYTES, LayerId, PoolId, VolumeId};
use catalog::{Catalog, Volume};
use pool::LaneStats;

use shard::{Answer, ShardCall, pool_layer};

use crate::bin::full_percent;
use crate::manager::Manager;
use crate::words::size;
use api::{Harm, Health, NextFailure, Problem};

/// Volumes that are named.
const NAMED_MAX: usize = 4;

/// What there is in a pool, as far as its space is concerned.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Uses {
    /// What its volumes say they have.
    pub(crate) provisioned_bytes: u64,
    snapshots: usize,
    /// Volumes in the bin, and what nothing else keeps.
    binned: usize,
    bin_blocks: u64,
    /// Volumes whose writes are refused, each with its host.
    refused: Vec<String>,
}

impl Manager {
    /// Of every pool. What the bin holds is counted where the pool is so full that it is told.
    pub(crate) async fn uses(&self, stats: &[(PoolId, LaneStats)]) -> BTreeMap<PoolId, Uses> {
        let mut refused = Vec::new();
        for answer in self.context.ask_all(|| ShardCall::SpaceRefusals).await {
            let Answer::SpaceRefusals(of_shard) = answer else {
                unreachable!("the answer to what is refused")
            };
            refused.extend(of_shard);
        }
        refused.sort();
        refused.dedup();
        let (mut uses, bins) = {
            let catalog = &self.state.borrow().catalog;
            (uses_of(catalog, &refused), bin_layers(catalog))
        };
        for (pool, layers) in bins {
            let lanes: Vec<&LaneStats> =
                stats.iter().filter(|(id, _)| *id == pool).map(|(_, stats)| stats).collect();
            if full_percent(&lanes) >= u128::from(SPACE_WARNING_PERCENT) {
                let blocks = self.kept_by(pool, layers.into()).await;
                uses.entry(pool).or_default().bin_blocks = blocks;
            }
        }
        uses
    }
}

fn uses_of(catalog: &Catalog, refused: &[(VolumeId, String)]) -> BTreeMap<PoolId, Uses> {
    let mut uses: BTreeMap<PoolId, Uses> = BTreeMap::new();
    for (volume, (pool, _)) in catalog.volumes().iter().filter_map(|volume| Some((volume, volume.place()?))) {
        let uses = uses.entry(pool).or_default();
        uses.provisioned_bytes = uses.provisioned_bytes.saturating_add(volume.size_bytes);
    }
    for snapshot in catalog.snapshots() {
        let Some((pool, _)) = catalog.volume(snapshot.volume).and_then(Volume::place) else { continue };
        uses.entry(pool).or_default().snapshots += 1;
    }
    for (pool, _) in catalog.bin().iter().filter_map(|binned| binned.volume.place()) {
        uses.entry(pool).or_default().binned += 1;
    }
    for (id, host) in refused {
        let Some(volume) = catalog.volume(*id) else { continue };
        let Some((pool, _)) = volume.place() else { continue };
        uses.entry(pool).or_default().refused.push(format!("host {host} to volume {}", volume.name));
    }
    uses
}

/// The layers of what is in the bin, by the pools' names.
fn bin_layers(catalog: &Catalog) -> BTreeMap<PoolId, Vec<LayerId>> {
    let mut layers: BTreeMap<PoolId, Vec<LayerId>> = BTreeMap::new();
    for binned in catalog.bin() {
        let Some((pool, top)) = Volume::place(&binned.volume) else { continue };
        let frozen = binned.snapshots.iter().map(|snapshot| snapshot.layer);
        layers.entry(pool).or_default().extend([top].into_iter().chain(frozen).map(pool_layer));
    }
    layers
}

/// What is wrong with a pool's space, the worst first.
pub(crate) fn problems(
    subject: &str,
    lanes: &[&LaneStats],
    next_failure: Option<NextFailure>,
    uses: &Uses,
) -> Vec<Problem> {
    let problem = |health, reason: String, action: String| Problem {
        harm: Harm::Space,
        health,
        subject: subject.to_owned(),
        reason,
        action,
    };
    let full = full_percent(lanes);
    let mut problems = Vec::new();
    let refuses = "when it is full, writes that need space are refused";
    let told = match full {
        _ if !uses.refused.is_empty() => Some((
            Health::Degraded,
            format!(
                "it is {full} % full, and writes are refused for want of space: of {}",
                named(&uses.refused)
            ),
        )),
        full if full >= u128::from(SPACE_THRESHOLD_PERCENT) => Some((
            Health::Degraded,
            format!("it is {full} % full, and hosts are warned of it (38h/07h); {refuses}"),
        )),
        full if full >= u128::from(SPACE_WARNING_PERCENT) => {
            Some((Health::Healthy, format!("it is {full} % full; {refuses}")))
        }
        _ => None,
    };
    problems.extend(told.map(|(health, reason)| problem(health, reason, room(uses))));
    if let Some(NextFailure { rebuildable: true, short_bytes: short_bytes @ 1.. }) = next_failure {
        problems.push(problem(
            Health::Degraded,
            format!(
                "after the failure of one more drive it could not be rebuilt: {} short",
                size(short_bytes)
            ),
            room(uses),
        ));
    }
    problems
}

/// How to come by space.
fn room(uses: &Uses) -> String {
    let mut ways = "add a drive, delete volumes, or discard what hosts do not need (fstrim)".to_owned();
    if uses.binned > 0 {
        let volumes =
            if uses.binned == 1 { "1 volume".to_owned() } else { format!("{} volumes", uses.binned) };
        let holds = match uses.bin_blocks {
            0 => String::new(),
            blocks => format!(" holds {}", size(blocks * BLOCK_BYTES as u64)),
        };
        ways.push_str(&format!("; the bin ({volumes}){holds}: `tangelo volume eradicate`"));
    }
    if uses.snapshots > 0 {
        let count = if uses.snapshots == 1 {
            "1 snapshot".to_owned()
        } else {
            format!("{} snapshots", uses.snapshots)
        };
        ways.push_str(&format!(
            "; there are {count}: `tangelo snapshot list` shows what each would give back"
        ));
    }
    ways
}

fn named(refused: &[String]) -> String {
    let first = refused.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match refused.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first}, and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(percent: u64, short_bytes: u64, uses: &Uses) -> Vec<(Health, String)> {
        let lane = LaneStats { capacity_blocks: 1000, live_blocks: percent * 10, ..LaneStats::default() };
        let next = Some(NextFailure { rebuildable: true, short_bytes });
        let problems = problems("pool fast", &[&lane], next, uses);
        problems
            .into_iter()
            .map(|problem| (problem.health, format!("{}: {}", problem.reason, problem.action)))
            .collect()
    }

    #[test]
    fn space_is_warned_of_then_missed_then_refused() {
        let mut uses = Uses::default();
        assert_eq!(at(79, 0, &uses), []);
        let warned = at(80, 0, &uses);
        assert_eq!((warned.len(), warned[0].0), (1, Health::Healthy), "{warned:?}");
        let told = at(90, 0, &uses);
        assert!(told[0].0 == Health::Degraded && told[0].1.contains("38h/07h"), "{told:?}");
        let short = at(50, 3 << 30, &uses);
        assert!(short[0].0 == Health::Degraded && short[0].1.contains("3 GiB short"), "{short:?}");
        uses.refused = vec!["host alpha to volume thin".to_owned()];
        let refused = at(60, 0, &uses);
        assert!(
            refused[0].1.contains("writes are refused")
                && refused[0].1.contains("of host alpha to volume thin")
        );
        assert_eq!(refused[0].0, Health::Degraded);
    }

    #[test]
    fn who_could_give_space_back_is_named() {
        let uses = Uses { snapshots: 3, binned: 1, bin_blocks: 512, ..Uses::default() };
        let said = at(95, 0, &uses).remove(0).1;
        assert!(said.contains("the bin (1 volume) holds 2 MiB"), "{said}");
        assert!(said.contains("there are 3 snapshots"), "{said}");
        assert!(!at(95, 0, &Uses::default()).remove(0).1.contains("bin"));
    }
}
