//! What a connection is made with.

use std::net::SocketAddr;
use std::rc::Rc;

use block::Budget;

/// Where a connection came in.
#[derive(Clone, Debug)]
pub struct ConnectionParams {
    /// Our end of the socket.
    pub local_address: SocketAddr,
    /// Of the portal that accepted it.
    pub portal_group_tag: u16,
    /// What the commands of all connections of this shard may hold.
    pub budget: Rc<Budget>,
}
