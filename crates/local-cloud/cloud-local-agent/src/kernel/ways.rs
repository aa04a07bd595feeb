//! The link of each machine: each pod of the host is behind a separate link, with a route for the pod's
//! address alone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures::TryStreamExt;
use rtnetlink::{
    Handle, RouteMessageBuilder,
    packet_route::route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage},
};

use crate::plan::Ways;

pub(super) async fn ways(routing: &Handle) -> Result<Ways, rtnetlink::Error> {
    let mut ways = Ways::new();
    for wanted in [
        RouteMessageBuilder::<Ipv4Addr>::new().build(),
        RouteMessageBuilder::<Ipv6Addr>::new().build(),
    ] {
        let routes: Vec<RouteMessage> = routing.route().get(wanted).execute().try_collect().await?;
        ways.extend(routes.iter().filter_map(way));
    }
    Ok(ways)
}

/// The route of a single address by a link, without a gateway. Routes to the host are in a different table.
fn way(message: &RouteMessage) -> Option<(IpAddr, u32)> {
    if message.header.table != RouteHeader::RT_TABLE_MAIN {
        return None;
    }
    let (mut to, mut link) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => to = Some((IpAddr::V4(*address), 32)),
            RouteAttribute::Destination(RouteAddress::Inet6(address)) => {
                to = Some((IpAddr::V6(*address), 128));
            }
            RouteAttribute::Oif(index) => link = Some(*index),
            RouteAttribute::Gateway(_) => return None,
            _ => {}
        }
    }
    let (address, whole) = to?;
    (message.header.destination_prefix_length == whole).then_some((address, link?))
}
