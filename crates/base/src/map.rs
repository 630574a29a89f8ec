//! Hash maps whose order is the same in every run: a seed decides everything in the simulator.

/// A hash map with a fixed hasher. Keys come from ourselves, never straight from a peer.
pub type HashMap<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;
/// A hash set with a fixed hasher.
pub type HashSet<K> = hashbrown::HashSet<K, foldhash::fast::FixedState>;
