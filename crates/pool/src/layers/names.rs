//! Layers that belong to no volume: the array's catalog, and the record of where merged layers went.

use base::LayerId;

/// The layer that holds the catalog, in lane 0.
pub const CATALOG_LAYER: LayerId = LayerId(1);

/// Where each merged layer went: block n is about layer n.
pub(crate) const FORWARDS: LayerId = LayerId(u32::MAX);
