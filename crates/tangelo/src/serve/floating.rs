//! Addresses that are with the head that owns the array.

use ::floating::{Floating, FloatingAddress};
use control::config::Config;

/// What the configuration names.
fn addresses(config: &Config) -> Vec<FloatingAddress> {
    let address = |portal: &control::config::FloatingPortal| FloatingAddress {
        address: portal.address,
        interface: portal.interface.clone(),
    };
    config.floating.iter().map(address).collect()
}

/// Gives up what an earlier process of this head has left. To be called on the runtime.
pub fn start(config: &Config) -> Floating {
    Floating::start(addresses(config))
}

/// After the configuration was read again.
pub fn set(floating: &Floating, config: &Config) {
    floating.set_addresses(addresses(config));
}
