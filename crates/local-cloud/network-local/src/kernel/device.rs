//! The VXLAN device. A correct device stays unchanged: a new device would lose packets under way.

use std::net::{IpAddr, Ipv4Addr};

use futures::{StreamExt, TryStreamExt};
use rtnetlink::{
    LinkUnspec, LinkVxlan,
    packet_route::{
        address::AddressMessage,
        link::{InfoData, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage},
    },
};
use runtime::{Error, Result};

use super::{Kernel, failed};
use crate::plan::{Plan, hardware_address};

/// Name of the device.
pub const DEVICE: &str = "network-local";
/// Distinguishes this network from further networks between the same machines.
pub const VNI: u32 = 1;
/// The port that is registered for VXLAN.
pub const PORT: u16 = 4789;
/// Bytes that VXLAN adds to a packet: outer addresses (20), UDP (8), VXLAN (8), inner hardware addresses
/// (14).
pub const OVERHEAD: u32 = 50;
/// Smaller than the MTU of any link. Also the lower bound that prevents an underflow.
const LEAST: u32 = 576;

impl Kernel {
    /// Creates or changes the device according to the plan. Returns index and MTU of the device.
    pub(super) async fn device(&self, plan: &Plan) -> Result<(u32, u32)> {
        let mtu = self
            .mtu_below(plan.address)
            .await?
            .saturating_sub(OVERHEAD)
            .max(LEAST);
        let mut found = self.link().await?;
        if let Some(link) = found.take_if(|link| !is_planned(link, plan)) {
            let removed = self.routing.link().del(link.header.index).execute().await;
            removed.map_err(|error| failed("remove the VXLAN device of before", error))?;
        }
        let index = match found {
            Some(link) if is_up(&link, mtu) => link.header.index,
            Some(link) => {
                let index = link.header.index;
                let message = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
                let changed = self.routing.link().set(message).execute().await;
                changed.map_err(|error| failed("change the VXLAN device", error))?;
                index
            }
            None => self.add(plan, mtu).await?,
        };
        self.address(index, plan.gateway()).await?;
        Ok((index, mtu))
    }

    async fn link(&self) -> Result<Option<LinkMessage>> {
        let found = self.routing.link().get().match_name(DEVICE).execute();
        match found.boxed().try_next().await {
            Ok(link) => Ok(link),
            // The device does not exist.
            Err(rtnetlink::Error::NetlinkError(error)) if error.raw_code() == -NO_DEVICE => Ok(None),
            Err(error) => Err(failed("show its VXLAN device", error)),
        }
    }

    async fn add(&self, plan: &Plan, mtu: u32) -> Result<u32> {
        let message = LinkVxlan::new(DEVICE, VNI)
            .port(PORT)
            .local(plan.address)
            // Only the agent writes the forwarding table.
            .learning(false)
            .address(hardware_address(plan.address).to_vec())
            .mtu(mtu)
            .up()
            .build();
        let added = self.routing.link().add(message).execute().await;
        added.map_err(|error| failed("make a VXLAN device", error))?;
        let made = self.link().await?;
        made.map(|link| link.header.index)
            .ok_or_else(|| Error::transient("the VXLAN device was removed as soon as it was made"))
    }

    /// Gives the device exactly this address.
    async fn address(&self, index: u32, address: Ipv4Addr) -> Result<()> {
        let get = self.routing.address().get().set_link_index_filter(index);
        let all: Vec<AddressMessage> = get
            .execute()
            .try_collect()
            .await
            .map_err(|error| failed("show the addresses of its VXLAN device", error))?;
        let mut there = false;
        for other in all.into_iter().filter(|message| local(message).is_some()) {
            if local(&other) == Some(address) {
                there = true;
                continue;
            }
            let removed = self.routing.address().del(other).execute().await;
            removed.map_err(|error| failed("remove an address of its VXLAN device", error))?;
        }
        if there {
            return Ok(());
        }
        let add = self.routing.address().add(index, IpAddr::V4(address), 32);
        let added = add.execute().await;
        added.map_err(|error| failed("give its VXLAN device an address", error))
    }

    /// The MTU of the link with the machine's address.
    async fn mtu_below(&self, address: Ipv4Addr) -> Result<u32> {
        let get = self
            .routing
            .address()
            .get()
            .set_address_filter(IpAddr::V4(address));
        let found = get.execute().boxed().try_next().await;
        let found = found.map_err(|error| failed("show its addresses", error))?;
        let index = found.map(|message| message.header.index).ok_or_else(|| {
            Error::transient(format!(
                "no link of this machine has the address {address} that its Node names: start its kubelet with --node-ip"
            ))
        })?;
        let get = self.routing.link().get().match_index(index).execute();
        let link = get.boxed().try_next().await;
        let link = link.map_err(|error| failed("show the link of its address", error))?;
        let mtu = link
            .iter()
            .flat_map(|link| &link.attributes)
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu),
                _ => None,
            });
        mtu.ok_or_else(|| Error::transient(format!("the link with the address {address} has no MTU")))
    }
}

/// `ENODEV`.
const NO_DEVICE: i32 = 19;

/// Whether the unchangeable properties match the plan.
fn is_planned(link: &LinkMessage, plan: &Plan) -> bool {
    let infos = link.attributes.iter().filter_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => Some(infos),
        _ => None,
    });
    let data = infos.flatten().find_map(|info| match info {
        LinkInfo::Data(InfoData::Vxlan(data)) => Some(data.as_slice()),
        _ => None,
    });
    let has = |wanted: InfoVxlan| data.is_some_and(|data| data.contains(&wanted));
    let hardware = LinkAttribute::Address(hardware_address(plan.address).to_vec());
    has(InfoVxlan::Id(VNI))
        && has(InfoVxlan::Port(PORT))
        && has(InfoVxlan::Local(plan.address))
        && has(InfoVxlan::Learning(false))
        && link.attributes.contains(&hardware)
}

fn is_up(link: &LinkMessage, mtu: u32) -> bool {
    link.header.flags.contains(LinkFlags::Up) && link.attributes.contains(&LinkAttribute::Mtu(mtu))
}

/// The IPv4 address of a message, if any.
fn local(message: &AddressMessage) -> Option<Ipv4Addr> {
    use rtnetlink::packet_route::address::AddressAttribute::{Address, Local};
    let mut addresses = message.attributes.iter().filter_map(|attribute| match attribute {
        Local(IpAddr::V4(address)) | Address(IpAddr::V4(address)) => Some(*address),
        _ => None,
    });
    addresses.next()
}
