//! The plan of the swaps, decided from the listed ACLs. Pure functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::meta::ErrorCode;
use jiff::Timestamp;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{Tag, Tagged, acls::NetworkAcl};

/// Prefix of the keys of our ACL's tags that name the former ACL of a subnet. The id of the subnet follows.
const FORMER: &str = "aws.provider.extensions.gardener.cloud/former-acl-of-";

/// The ACL of each subnet before the isolation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Before {
    /// ACLs by subnet.
    pub acls: BTreeMap<String, String>,
    /// ID of the ACL that closes the subnets, known before that ACL closes the first subnet. EC2 may not list
    /// the ACL yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation_acl: Option<String>,
    /// Since when EC2 does not know a subnet of the zone. Such a subnet counts as gone when the bound for
    /// objects that EC2 lists late has passed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Timestamp>,
}

/// The reasons against an open zone, by the answers of EC2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unconfirmed {
    /// Subnets that have an ACL of the isolation.
    pub closed: Vec<String>,
    /// Subnets that no listed ACL names: the ACL is not listed yet, or the subnet is gone.
    pub unlisted: Vec<String>,
}

/// A subnet with an ACL that is neither our ACL nor the former ACL: a user has set this ACL, and the ACL
/// stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedByHand {
    subnet: String,
    acl: String,
    former: String,
}

impl fmt::Display for ChangedByHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subnet, acl, former } = self;
        write!(
            f,
            "{subnet} has {acl}, which somebody has set while the zone was closed; it is left so and had {former} before"
        )
    }
}

/// An association, and the ACL that the association shall get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The current id of the association.
    pub association: String,
    /// The ACL.
    pub acl: String,
}

/// How the network is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The swaps back to the former ACLs.
    pub swaps: Vec<Swap>,
    /// The subnets that stay unchanged.
    pub changed: Vec<ChangedByHand>,
    /// The subnets that cannot get a former ACL, with the remedy.
    pub stuck: Vec<String>,
}

/// The tag of ours that names the former ACL of a subnet.
pub fn tag(subnet: &str, acl: &str) -> Tag {
    Tag::new(format!("{FORMER}{subnet}"), acl)
}

/// The ACL of a subnet, from all ACLs of the VPC.
fn acl_of<'a>(subnet: &str, acls: &'a [NetworkAcl]) -> Option<&'a NetworkAcl> {
    acls.iter().find(|acl| acl.association_of(subnet).is_some())
}

/// The former ACL of a subnet, as a tag of our ACLs names the former ACL.
fn find_former_acl<'a>(subnet: &str, ours: &[&'a NetworkAcl]) -> Option<&'a str> {
    let key = format!("{FORMER}{subnet}");
    ours.iter().find_map(|acl| acl.tag(&key))
}

/// The ACLs before the isolation. Recorded ACLs stay. A subnet that no ACL lists is left out.
///
/// # Errors
/// A subnet has our ACL, and no record names the former ACL.
pub fn before(
    subnets: &BTreeSet<String>,
    acls: &[NetworkAcl],
    is_ours: impl Fn(&NetworkAcl) -> bool,
    known: Option<&Before>,
) -> Result<Before> {
    let ours: Vec<&NetworkAcl> = acls.iter().filter(|acl| is_ours(acl)).collect();
    let mut before = known.cloned().unwrap_or_default();
    for subnet in subnets {
        if before.acls.contains_key(subnet) {
            continue;
        }
        let Some(now) = acl_of(subnet, acls) else {
            continue;
        };
        let former = if is_ours(now) {
            find_former_acl(subnet, &ours).ok_or_else(|| {
                Error::config(
                    ErrorCode::ErrInfraDependencies,
                    format!(
                        "{subnet} is closed by {}, and nothing says which network ACL it had before: set that one by hand in the \
                         account, and reconcile the shoot",
                        now.network_acl_id
                    ),
                )
            })?
        } else {
            now.network_acl_id.as_str()
        };
        before.acls.insert(subnet.clone(), former.to_owned());
    }
    Ok(before)
}

/// The subnets that no ACL lists: EC2 does not list the ACL yet, or the subnet is gone.
pub fn unlisted<'s>(subnets: &'s BTreeSet<String>, acls: &[NetworkAcl]) -> Vec<&'s String> {
    let subnets = subnets.iter();
    subnets.filter(|subnet| acl_of(subnet, acls).is_none()).collect()
}

/// The swaps of subnets that have to get our ACL. A subnet that no ACL lists does not keep the remaining
/// subnets open.
pub fn closing(subnets: &BTreeSet<String>, acls: &[NetworkAcl], ours: &str) -> Vec<Swap> {
    let mut swaps = Vec::new();
    for subnet in subnets {
        if let Some(now) = acl_of(subnet, acls)
            && now.network_acl_id != ours
            && let Some(association) = now.association_of(subnet)
        {
            swaps.push(Swap {
                association: association.network_acl_association_id.clone(),
                acl: ours.to_owned(),
            });
        }
    }
    swaps
}

/// The manual changes to a zone that was closed by the recorded ACL, as sentences: the ACL is gone, or a
/// subnet has a different ACL.
pub fn reopened(known: &Before, acls: &[NetworkAcl], is_ours: impl Fn(&NetworkAcl) -> bool) -> Vec<String> {
    let Some(recorded) = &known.isolation_acl else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    if !acls.iter().any(|acl| acl.network_acl_id == *recorded) {
        changes.push(format!(
            "the network ACL {recorded}, which closed the zone, was removed: a new network ACL closes the zone again"
        ));
    }
    for subnet in known.acls.keys() {
        if let Some(now) = acl_of(subnet, acls)
            && !is_ours(now)
        {
            changes.push(format!(
                "the subnet {subnet} of the closed zone had the network ACL {}, and is closed again",
                now.network_acl_id
            ));
        }
    }
    changes
}

/// The swaps back to the former ACLs, and the subnets that stay unchanged. `deleting`: the VPC's default ACL
/// replaces a former ACL that is gone.
pub fn opening(
    before: Option<&Before>,
    acls: &[NetworkAcl],
    is_ours: impl Fn(&NetworkAcl) -> bool,
    deleting: bool,
) -> Opening {
    let (ours, others): (Vec<&NetworkAcl>, Vec<&NetworkAcl>) = acls.iter().partition(|acl| is_ours(acl));
    let default = others.iter().find(|acl| acl.is_default);
    let mut opening = Opening::default();
    for acl in &ours {
        for association in acl.associations.iter() {
            let subnet = &association.subnet_id;
            let known = before
                .and_then(|before| before.acls.get(subnet))
                .map(String::as_str);
            let former = known.or_else(|| find_former_acl(subnet, &ours));
            let there = former.filter(|former| others.iter().any(|acl| acl.network_acl_id == **former));
            let given: &str = match (there, default) {
                (Some(former), _) => former,
                (None, Some(default)) if deleting => &default.network_acl_id,
                (None, _) => {
                    opening.stuck.push(stuck(subnet, former, &acl.network_acl_id));
                    continue;
                }
            };
            opening.swaps.push(Swap {
                association: association.network_acl_association_id.clone(),
                acl: given.to_owned(),
            });
        }
    }
    for (subnet, former) in before.iter().flat_map(|before| &before.acls) {
        if let Some(now) = acl_of(subnet, acls)
            && !is_ours(now)
            && now.network_acl_id != *former
        {
            opening.changed.push(ChangedByHand {
                subnet: subnet.clone(),
                acl: now.network_acl_id.clone(),
                former: former.clone(),
            });
        }
    }
    opening
}

/// The subnets that do not confirm an opening.
pub fn unconfirmed(
    before: Option<&Before>,
    acls: &[NetworkAcl],
    is_ours: impl Fn(&NetworkAcl) -> bool,
) -> Unconfirmed {
    let ours = acls.iter().filter(|acl| is_ours(acl));
    let closed = ours.flat_map(|acl| acl.associations.iter());
    let known = before.into_iter().flat_map(|before| before.acls.keys());
    Unconfirmed {
        closed: closed.map(|association| association.subnet_id.clone()).collect(),
        unlisted: known
            .filter(|subnet| acl_of(subnet, acls).is_none())
            .cloned()
            .collect(),
    }
}

fn stuck(subnet: &str, former: Option<&str>, ours: &str) -> String {
    let had = former.map_or_else(
        || "nothing says which network ACL it had before".into(),
        |former| format!("its former network ACL {former} is gone"),
    );
    format!(
        "{subnet} is still closed by {ours}, and {had}: set another network ACL for it by hand in the account, and reconcile the shoot"
    )
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
