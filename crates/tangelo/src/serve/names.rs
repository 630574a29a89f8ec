//! Between the API's words for names and hosts and the engine's.

use ::api as shard;
use control::api;

pub(super) fn named(of: api::Named) -> shard::Named {
    match of {
        api::Named::Volume(name) => shard::Named::Volume(name),
        api::Named::Pool(name) => shard::Named::Pool(name),
        api::Named::Host(name) => shard::Named::Host(name),
        api::Named::Snapshot { volume, snapshot } => shard::Named::Snapshot { volume, snapshot },
        api::Named::Schedule(name) => shard::Named::Schedule(name),
    }
}

pub(super) fn host_update(update: api::HostUpdate) -> shard::HostUpdate {
    shard::HostUpdate {
        add_initiators: update.add_initiators,
        remove_initiators: update.remove_initiators,
        chap: update.chap.map(chap),
        mutual_chap: update.mutual_chap.map(chap),
        no_chap: update.no_chap,
        no_mutual_chap: update.no_mutual_chap,
    }
}

pub(super) fn chap(chap: api::NewChap) -> shard::NewChap {
    shard::NewChap { user: chap.user, secret: chap.secret }
}
