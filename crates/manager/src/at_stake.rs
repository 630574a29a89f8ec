//! Which data depends on a drive that is to be erased, if its label says that it belongs to a pool.

use crate::manager::Manager;
use crate::probed::Probed;
use crate::state::State;
use pool::Content;

/// Maximum number of volumes that are named.
const NAMED_MAX: usize = 6;

impl Manager {
    /// One line for each of these drives that belongs to an offline pool of this array: without the drive, that pool
    /// may be lost.
    pub(crate) fn losses(&self, drives: &[Probed]) -> Vec<String> {
        let mut lines = Vec::new();
        for Probed { info, content, .. } in drives {
            let Some((pool, volumes)) = offline_pool(&self.state.borrow(), content) else { continue };
            let lost = match volumes.len() {
                0 => "what it holds is lost if it cannot do without it".to_owned(),
                1 => format!("{} is lost if the pool cannot do without it", named(&volumes)),
                _ => format!("{} are lost if the pool cannot do without it", named(&volumes)),
            };
            lines.push(format!("pool {pool}, which is offline, loses {}: {lost}", info.path));
        }
        lines
    }

    /// A description of a drive that has a pool's label.
    pub(crate) fn described(&self, content: &Content) -> Option<String> {
        let Content::Member(label) = content else { return None };
        Some(match offline_pool(&self.state.borrow(), content) {
            None => format!("a drive of pool {} (array {})", label.pool_name, label.array),
            Some((pool, volumes)) if volumes.is_empty() => {
                format!("a drive of pool {pool}, which is offline")
            }
            Some((pool, volumes)) => {
                format!("a drive of pool {pool}, which is offline and has {}", named(&volumes))
            }
        })
    }
}

/// The offline pool of this array that the label names, and the volumes in it.
fn offline_pool(state: &State, content: &Content) -> Option<(String, Vec<String>)> {
    let Content::Member(label) = content else { return None };
    let entry = state.catalog.pool(label.pool).filter(|_| label.array == state.catalog.array())?;
    if state.is_pool_online(entry.id) {
        return None;
    }
    let inside = |volume: &&catalog::Volume| volume.place().is_some_and(|(pool, _)| pool == entry.id);
    let volumes = state.catalog.all_volumes().filter(inside).map(|volume| volume.name.to_string());
    Some((entry.name.to_string(), volumes.collect()))
}

fn named(volumes: &[String]) -> String {
    let first = volumes.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let kind = if volumes.len() == 1 { "volume" } else { "volumes" };
    match volumes.len().saturating_sub(NAMED_MAX) {
        0 => format!("{kind} {first}"),
        more => format!("{kind} {first} and {more} more"),
    }
}
