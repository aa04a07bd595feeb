//! Removes the parts that have the shoot's tag or that the state names, in the order of the dependencies:
//! dependents first. A part that is gone already is success.

use std::time::Duration;

use runtime::{Error, Result};

use super::{
    found::{Names, NetworkParts},
    recorded::{nat_gateways, unconfirmed},
    state::{Journal, State},
};
use crate::Ec2;

/// Requeue delay for NAT gateways. EC2 takes about a minute to delete a NAT gateway.
const NAT_DELETION_POLL_INTERVAL: Duration = Duration::from_secs(5);
const LISTED_AGAIN: Duration = Duration::from_secs(2);

/// Removes the network. A part without tags is found by the id in the state. Objects of a different Shoot and
/// of a different cluster stay. [`confirm_removal`] comes before.
///
/// # Errors
/// EC2 refuses, as while a foreign object is in the VPC, or does not answer; NAT gateways are going:
/// [`Error::NotReady`].
pub async fn remove(ec2: &Ec2, names: &Names, known: &State) -> Result<()> {
    let owned = names.owned();
    let found = NetworkParts::list_with_recorded(ec2, names, known).await?;
    let found = found.without_foreign(names);
    for nat in &found.nats {
        ec2.delete_nat_gateway(&nat.nat_gateway_id).await?;
    }
    let mut going = nat_gateways(ec2, names, known).await?;
    going.retain(|nat| !owned.is_foreign(nat) && (nat.is_there() || nat.state == "deleting"));
    if !going.is_empty() {
        let ids: Vec<&str> = going.iter().map(|nat| nat.nat_gateway_id.as_str()).collect();
        return Err(Error::not_ready(
            NAT_DELETION_POLL_INTERVAL,
            format!("the NAT gateways {} are being removed", ids.join(", ")),
        ));
    }
    for address in &found.addresses {
        ec2.release_address(&address.allocation_id).await?;
    }
    for association in found.tables.iter().flat_map(|table| table.associations.iter()) {
        ec2.disassociate_route_table(&association.route_table_association_id)
            .await?;
    }
    remove_network_acls(ec2, names).await?;
    for subnet in &found.subnets {
        ec2.delete_subnet(&subnet.subnet_id).await?;
    }
    for table in &found.tables {
        ec2.delete_route_table(&table.route_table_id).await?;
    }
    for gateway in &found.gateways {
        for attachment in gateway.attachments.iter() {
            ec2.detach_internet_gateway(&gateway.internet_gateway_id, &attachment.vpc_id)
                .await?;
        }
        ec2.delete_internet_gateway(&gateway.internet_gateway_id).await?;
    }
    for group in &found.groups {
        ec2.delete_security_group(&group.group_id).await?;
    }
    for vpc in &found.vpcs {
        ec2.delete_vpc(&vpc.vpc_id).await?;
    }
    let left = NetworkParts::list_with_recorded(ec2, names, known).await?;
    let left = left.without_foreign(names);
    if left.ids().is_empty() {
        return Ok(());
    }
    Err(Error::not_ready(
        LISTED_AGAIN,
        format!("EC2 still lists {} of {}", left.ids().join(", "), names.vpc()),
    ))
}

/// Confirms that a removal will find all objects of the Shoot and no foreign objects. The keys belong to the
/// account with the network, and EC2 lists the parts that were just made. No part that the state names
/// belongs to a different Shoot. `journal` keeps the account of a network that is older than the record of
/// the account. A state that names no part needs no account: no part was made.
///
/// # Errors
/// EC2 does not list a part that may be there: [`Error::NotReady`]; the keys belong to a different account,
/// a part belongs to a different Shoot, or no account is recorded and the keys show no part of the state:
/// [`Error::Config`]; EC2 refuses or does not answer.
pub async fn confirm_removal(ec2: &Ec2, names: &Names, known: &State, journal: &impl Journal) -> Result<()> {
    let network = format!("the network of {}", names.vpc());
    known.home().confirm(ec2, &network).await?;
    let found = NetworkParts::list_with_recorded(ec2, names, known).await?;
    found.refuse_foreign(names, |id| known.ids.values().any(|part| part == id))?;
    found.refuse_other_clusters(names)?;
    if known.ids.is_empty() {
        found.refuse_unclaimed(names)?;
    }
    let is_unconfirmed = known.account_id.is_none() && !known.ids.is_empty();
    let is_proved = found.proves_account(names, known);
    if is_unconfirmed && is_proved {
        let account_id = Some(ec2.account_id().await?);
        let known = known.clone();
        journal.save(&State { account_id, ..known }).await?;
    }
    let unlisted = known.unlisted(&found.ids(), ec2.listed_within());
    if unlisted.is_empty() && is_unconfirmed && !is_proved {
        return Err(unconfirmed(ec2, names, known).await?);
    }
    if unlisted.is_empty() {
        return Ok(());
    }
    Err(Error::not_ready(
        LISTED_AGAIN,
        format!(
            "EC2 does not show {} of {} yet, which may be there and must be removed",
            unlisted.join(", "),
            names.vpc()
        ),
    ))
}

/// Removes ACLs of an isolation that ended with the seed. Such an ACL would hold the VPC. The default ACL of
/// the VPC replaces this ACL in front of subnets.
async fn remove_network_acls(ec2: &Ec2, names: &Names) -> Result<()> {
    let owned = names.owned();
    let mut acls = ec2.owned_network_acls(&owned).await?;
    acls.retain(|acl| owned.foreign_uid(acl).is_none());
    for left in acls {
        if !left.associations.is_empty() {
            let acls = ec2.network_acls(&left.vpc_id).await?;
            for default in acls.iter().filter(|acl| acl.is_default) {
                for association in left.associations.iter() {
                    let id = &association.network_acl_association_id;
                    ec2.replace_association(id, &default.network_acl_id).await?;
                }
            }
        }
        ec2.delete_network_acl(&left.network_acl_id).await?;
    }
    Ok(())
}
