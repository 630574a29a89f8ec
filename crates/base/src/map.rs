//! Hash maps with the same iteration order in every run, so that a seed determines a simulated run.

/// A hash map with a fixed hasher. Keys come from ourselves, never straight from a peer.
pub type HashMap<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;
/// A hash set with a fixed hasher.
pub type HashSet<K> = hashbrown::HashSet<K, foldhash::fast::FixedState>;
