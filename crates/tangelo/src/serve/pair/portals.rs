//! Portals of both heads: what this head tells the other one, and what the array is to listen on.
//!
//! What always holds: the portal groups of the two heads differ, so hosts see different target ports. A portal that floats is on the owner
//! alone, and is one target port.

use std::net::SocketAddr;

use api::PortalOptions;
use base::limits::PORTAL_GROUPS_OF_A_HEAD_MAX;
use control::config::Config;
use pair::Portal;
use setup::PairFile;

/// A portal of the head in this seat, as the array sees it. One that floats is the same target port on both heads.
fn seen_by_array(config: &Config, portal: &PortalOptions, seat: u8) -> PortalOptions {
    let group = match config.floats(portal) {
        true => portal.group,
        false => portal.group + u16::from(seat) * PORTAL_GROUPS_OF_A_HEAD_MAX,
    };
    PortalOptions { group, ..portal.clone() }
}

/// Those of a head that is alone. One that was of a pair has the seat that it had there.
pub fn of_one_head(config: &Config, seat: u8) -> Vec<PortalOptions> {
    config.iscsi.iter().map(|portal| seen_by_array(config, portal, seat)).collect()
}

/// What the other head is told. A portal that listens on every address of this server is told as the one that the other head reaches it by.
pub fn of_this_head(config: &Config, file: &PairFile) -> Vec<Portal> {
    let told = |portal: &PortalOptions| {
        let PortalOptions { address, group, hosts, .. } = seen_by_array(config, portal, file.seat);
        let ip = if address.ip().is_unspecified() { file.listen[0].ip() } else { address.ip() };
        Portal { address: SocketAddr::new(ip, address.port()), group, hosts }
    };
    // where the array is, its own addresses are
    config.iscsi.iter().filter(|portal| !config.floats(portal)).map(told).collect()
}

/// What the array listens on while this head owns it. The other head's portals come to its door.
pub fn of_array(config: &Config, file: &PairFile) -> Vec<PortalOptions> {
    let forwarded = file.partner_portals.iter().map(|portal| PortalOptions {
        address: portal.address,
        group: portal.group,
        hosts: portal.hosts.clone(),
        forwarded: true,
    });
    config.iscsi.iter().map(|portal| seen_by_array(config, portal, file.seat)).chain(forwarded).collect()
}
