//! Describes to people the space that deletions free.

use base::BLOCK_BYTES;
use base::units::size;

/// The text about the space that a deletion frees; `referred`: copies by reference keep something in its pool.
pub(crate) fn given_back(blocks: u64, referred: bool) -> String {
    let bytes = size(blocks * BLOCK_BYTES as u64);
    match referred {
        false => format!("{bytes} are given back"),
        // only a walk of the map could tell which of them keeps what
        true => format!(
            "at least {bytes} are given back; what only its copies by reference have kept comes back some seconds later"
        ),
    }
}
