//! The address at which pods find the proxy of their own node: one and the same on every machine, on its
//! loopback device.
//!
//! It is held by a process of its own ([`hold`]): telling the kernel takes a privilege that nothing should
//! have that reads what pods send. It stays when that process ends; connections do not notice.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use futures::{StreamExt, TryStreamExt};
use rtnetlink::{
    Handle, MulticastGroup, new_multicast_connection,
    packet_route::address::{AddressAttribute, AddressMessage, AddressScope},
};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::bounds::HOLD_AGAIN;

/// The device.
const DEVICE: &str = "lo";

/// Puts the address on the loopback device, and puts it back when somebody takes it away, until `shutdown`.
///
/// # Errors
/// The kernel refuses it.
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
        // Somebody who takes it away again and again keeps this process from nothing else than this.
        sleep(HOLD_AGAIN).await;
        // What was said meanwhile is seen by the one look that follows.
        while changes.try_recv().is_ok() {}
    }
}

/// Whether the machine has the address. It does not wait, and sends nothing.
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
    // Known to this machine only: never the source of what it sends to others, nor taken for the machine's
    // own by a kubelet.
    add.message_mut().header.scope = AddressScope::Host;
    add.replace().execute().await?;
    info!(%address, "device {DEVICE} has the address");
    Ok(())
}
