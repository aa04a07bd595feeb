//! The address at which pods find the proxy of their own node: the same address on every machine, on the
//! loopback device.
//!
//! A separate process holds the address ([`hold`]). The kernel demands a privilege for the change, and a
//! process that reads the traffic of pods must not have that privilege. The address stays when the process
//! ends, so connections are not affected.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use futures::{StreamExt, TryStreamExt};
use rtnetlink::{
    Handle, MulticastGroup, new_multicast_connection,
    packet_route::address::{AddressAttribute, AddressMessage, AddressScope},
};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::limits::HOLD_AGAIN;

/// The device.
const DEVICE: &str = "lo";

/// Adds the address to the loopback device, and adds the address again after a removal, until `shutdown`.
///
/// # Errors
/// The kernel refuses the address.
pub async fn hold(address: Ipv4Addr, shutdown: CancellationToken) -> Result<(), String> {
    // Opened before the first look, so that no change is missed.
    let opened = new_multicast_connection(&[MulticastGroup::Ipv4Ifaddr]);
    let (connection, handle, mut changes) =
        opened.map_err(|error| format!("the kernel gives no netlink socket: {error}"))?;
    let mut passing = JoinSet::new();
    passing.spawn(connection);
    loop {
        ensure(&handle, address).await.map_err(|error| {
            format!("the kernel does not give device {DEVICE} the address {address}: {error}")
        })?;
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            change = changes.next() => change.ok_or("the kernel says nothing any more")?,
        };
        // The pause limits the load when a process removes the address repeatedly.
        sleep(HOLD_AGAIN).await;
        // The next check covers all changes that arrived during the pause.
        while changes.try_recv().is_ok() {}
    }
}

/// Whether the machine has the address. The check neither blocks nor sends a packet.
#[must_use]
pub fn is_here(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

async fn ensure(handle: &Handle, address: Ipv4Addr) -> Result<(), rtnetlink::Error> {
    let mut links = handle.link().get().match_name(DEVICE).execute().boxed();
    let index = links.try_next().await?.map_or(1, |link| link.header.index);
    let found = handle.address().get().set_link_index_filter(index).execute();
    let found: Vec<AddressMessage> = found.try_collect().await?;
    let wanted = AddressAttribute::Local(IpAddr::V4(address));
    if found.iter().any(|message| message.attributes.contains(&wanted)) {
        return Ok(());
    }
    let mut add = handle.address().add(index, IpAddr::V4(address), 32);
    // Scope `host`: the address is never the source of packets to remote machines, and a kubelet never takes
    // the address for the machine's address.
    add.message_mut().header.scope = AddressScope::Host;
    add.replace().execute().await?;
    info!(%address, "device {DEVICE} has the address");
    Ok(())
}
