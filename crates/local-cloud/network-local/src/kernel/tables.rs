//! The kernel's tables for the VXLAN device: all routes, permanent neighbours and forwardings of the device
//! belong to the agent.

use std::net::{IpAddr, Ipv4Addr};

use futures::{StreamExt, TryStreamExt, future};
use ipnet::Ipv4Net;
use rtnetlink::{
    RouteMessageBuilder,
    packet_route::{
        AddressFamily,
        neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState},
        route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope},
    },
};
use runtime::Result;

use super::{Kernel, failed};
use crate::{
    diff::Change,
    plan::{HardwareAddress, Plan, Tables},
};

impl Kernel {
    /// The present tables of the kernel.
    pub(super) async fn tables(&self, device: u32) -> Result<Tables> {
        let wanted = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let routes = self.routing.route().get(wanted).execute();
        let routes: Vec<RouteMessage> = routes
            .try_collect()
            .await
            .map_err(|error| failed("show its routes", error))?;
        let neighbours = self.neighbours(device, AddressFamily::Inet).await?;
        let forwardings = self.neighbours(device, AddressFamily::Bridge).await?;
        Ok(Tables {
            routes: routes
                .iter()
                .filter_map(|message| route(message, device))
                .collect(),
            neighbours: neighbours.iter().filter_map(neighbour).collect(),
            forwarding: forwardings.iter().filter_map(forwarding).collect(),
        })
    }

    /// The neighbours or forwardings of the device.
    async fn neighbours(&self, device: u32, family: AddressFamily) -> Result<Vec<NeighbourMessage>> {
        let all = self
            .routing
            .neighbours()
            .get()
            .set_address_family(family)
            .execute();
        let of_device = all.try_filter(move |message| {
            future::ready(message.header.ifindex == device && message.header.family == family)
        });
        let all = of_device.boxed().try_collect().await;
        all.map_err(|error| failed("show its neighbours", error))
    }

    /// Applies a change.
    pub(super) async fn change(
        &self,
        device: u32,
        plan: &Plan,
        change: Change,
    ) -> std::result::Result<(), rtnetlink::Error> {
        let (routes, neighbours) = (self.routing.route(), self.routing.neighbours());
        match change {
            Change::Route(range, gateway) => {
                let message = way(device, range, gateway, plan.gateway());
                routes.add(message).replace().execute().await
            }
            Change::Unroute(range) => gone(routes.del(any_way(device, range)).execute().await),
            Change::Meet(gateway, hardware) => {
                let add = neighbours.add(device, IpAddr::V4(gateway));
                add.link_layer_address(&hardware).replace().execute().await
            }
            Change::Part(gateway) => {
                let mut named = neighbours.add(device, IpAddr::V4(gateway));
                gone(neighbours.del(named.message_mut().clone()).execute().await)
            }
            Change::Forward(hardware, address) => {
                let add = neighbours
                    .add_bridge(device, &hardware)
                    .flags(NeighbourFlags::Own);
                add.destination(IpAddr::V4(address)).replace().execute().await
            }
            Change::Unforward(hardware, address) => {
                let named = neighbours
                    .add_bridge(device, &hardware)
                    .flags(NeighbourFlags::Own);
                let mut named = named.destination(IpAddr::V4(address));
                gone(neighbours.del(named.message_mut().clone()).execute().await)
            }
        }
    }
}

/// An entry that is already gone is success: `ESRCH` for routes, `ENOENT` for neighbours and forwardings.
fn gone(done: std::result::Result<(), rtnetlink::Error>) -> std::result::Result<(), rtnetlink::Error> {
    match done {
        Err(rtnetlink::Error::NetlinkError(error)) if matches!(error.raw_code(), -2 | -3) => Ok(()),
        other => other,
    }
}

/// The gateway is on no network that the kernel knows: `onlink` states that the device leads to the gateway.
fn way(device: u32, range: Ipv4Net, gateway: Ipv4Addr, own: Ipv4Addr) -> RouteMessage {
    RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(range.network(), range.prefix_len())
        .gateway(gateway)
        .pref_source(own)
        .output_interface(device)
        .onlink()
        .protocol(RouteProtocol::Static)
        .build()
}

/// A route to delete, with any origin and form.
fn any_way(device: u32, range: Ipv4Net) -> RouteMessage {
    RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(range.network(), range.prefix_len())
        .output_interface(device)
        .protocol(RouteProtocol::Unspec)
        .scope(RouteScope::NoWhere)
        .build()
}

fn route(message: &RouteMessage, device: u32) -> Option<(Ipv4Net, Ipv4Addr)> {
    let (mut range, mut gateway, mut through) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => {
                range = Ipv4Net::new(*address, message.header.destination_prefix_length).ok();
            }
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => gateway = Some(*address),
            RouteAttribute::Oif(index) => through = Some(*index),
            _ => {}
        }
    }
    if message.header.table != RouteHeader::RT_TABLE_MAIN || through != Some(device) {
        return None;
    }
    // A route without a gateway is foreign, and is removed.
    Some((range?, gateway.unwrap_or(Ipv4Addr::UNSPECIFIED)))
}

fn neighbour(message: &NeighbourMessage) -> Option<(Ipv4Addr, HardwareAddress)> {
    let (address, hardware) = entry(message)?;
    // The kernel's own entries (multicast) have different states.
    (message.header.state == NeighbourState::Permanent).then_some((address, hardware))
}

fn forwarding(message: &NeighbourMessage) -> Option<(HardwareAddress, Ipv4Addr)> {
    entry(message).map(|(address, hardware)| (hardware, address))
}

fn entry(message: &NeighbourMessage) -> Option<(Ipv4Addr, HardwareAddress)> {
    let (mut address, mut hardware) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(found)) => address = Some(*found),
            // For a forwarding, the library does not report the IP version of the address.
            NeighbourAttribute::Destination(NeighbourAddress::Other(bytes)) => {
                address = <[u8; 4]>::try_from(bytes.as_slice()).ok().map(Ipv4Addr::from);
            }
            NeighbourAttribute::LinkLayerAddress(bytes) => {
                hardware = HardwareAddress::try_from(bytes.as_slice()).ok();
            }
            _ => {}
        }
    }
    Some((address?, hardware?))
}
