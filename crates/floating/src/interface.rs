//! Addresses of this machine's interfaces, by netlink.

use std::time::Duration;

use futures_util::TryStreamExt;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, CacheInfo};
use netlink_packet_route::link::LinkAttribute;
use rtnetlink::Handle;

use crate::FloatingAddress;

/// The kernel answers within microseconds; nothing here may wait for it forever.
const TIME_MAX: Duration = Duration::from_secs(2);

/// For how long an address is added.
pub(crate) const LIFETIME_SECONDS: u32 = 5;

/// Why an address is not here, in words.
pub(crate) type Refusal = String;

pub(crate) struct Interfaces(Handle);

/// An interface: its index, and its hardware address if it is an Ethernet one.
struct Link {
    index: u32,
    hardware: Option<[u8; 6]>,
}

impl Interfaces {
    /// To be called on the runtime.
    pub fn open() -> Result<Interfaces, Refusal> {
        let (connection, handle, _) =
            rtnetlink::new_connection().map_err(|error| format!("netlink cannot be used: {error}"))?;
        tokio::spawn(connection);
        Ok(Interfaces(handle))
    }

    /// Adds an address for [`LIFETIME_SECONDS`], or has it stay for as long from now on. Gives the hardware address of the interface.
    pub async fn hold(&self, wanted: &FloatingAddress) -> Result<Option<[u8; 6]>, Refusal> {
        within(async {
            let link = self.link(&wanted.interface).await?;
            let prefix = if wanted.address.is_ipv4() { 32 } else { 128 };
            let mut request = self.0.address().add(link.index, wanted.address, prefix).replace();
            let mut lifetime = CacheInfo::default();
            (lifetime.ifa_preferred, lifetime.ifa_valid) = (LIFETIME_SECONDS, LIFETIME_SECONDS);
            let attributes = &mut request.message_mut().attributes;
            attributes.push(AddressAttribute::CacheInfo(lifetime));
            if wanted.address.is_ipv6() {
                // the head that had it before is asked to give it up, not the network
                attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
            }
            request.execute().await.map_err(|error| error.to_string())?;
            Ok(link.hardware)
        })
        .await
    }

    /// Removes an address. Says whether it was there.
    pub async fn release(&self, wanted: &FloatingAddress) -> Result<bool, Refusal> {
        within(async {
            let link = self.link(&wanted.interface).await?;
            let is_wanted = |message: &AddressMessage| {
                message.header.index == link.index
                    && message.attributes.iter().any(|attribute| {
                        matches!(attribute, AddressAttribute::Address(found) if *found == wanted.address)
                    })
            };
            let mut found = self.0.address().get().set_link_index_filter(link.index).execute();
            while let Some(message) = found.try_next().await.map_err(|error| error.to_string())? {
                if is_wanted(&message) {
                    self.0.address().del(message).execute().await.map_err(|error| error.to_string())?;
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    async fn link(&self, name: &str) -> Result<Link, Refusal> {
        let mut found = self.0.link().get().match_name(name.to_owned()).execute();
        let message = found.try_next().await.map_err(|error| match error {
            rtnetlink::Error::NetlinkError(_) => format!("there is no interface {name}"),
            error => error.to_string(),
        })?;
        let message = message.ok_or_else(|| format!("there is no interface {name}"))?;
        let hardware = message.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        });
        Ok(Link { index: message.header.index, hardware })
    }
}

async fn within<T>(work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    tokio::time::timeout(TIME_MAX, work)
        .await
        .unwrap_or_else(|_| Err("the kernel does not answer over netlink".to_owned()))
}
