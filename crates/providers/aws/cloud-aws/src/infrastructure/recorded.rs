//! Parts that the state names and no tag shows. A user can remove the tags of a part by hand. A removal by
//! tags alone would leave such a part, with costs, in the account.

use api::meta::ErrorCode;
use runtime::{Error, Result};
use serde::de::DeserializeOwned;

use super::{
    found::{Names, NetworkParts, named},
    state::State,
};
use crate::{Call, Ec2, Tagged, identity::CONFIRMED_ACCOUNT, routing::NatGateway};

/// The lookup of parts of a kind by id. A filter leaves out ids that do not exist, while EC2 would refuse a
/// list of ids.
struct Lookup {
    /// The first part of the keys in the state.
    kind: &'static str,
    action: &'static str,
    filter: &'static str,
}

const VPCS: Lookup = Lookup::new("vpc", "DescribeVpcs", "vpc-id");
const GATEWAYS: Lookup = Lookup::new(
    "internetGateway",
    "DescribeInternetGateways",
    "internet-gateway-id",
);
const SUBNETS: Lookup = Lookup::new("subnet", "DescribeSubnets", "subnet-id");
const GROUPS: Lookup = Lookup::new("securityGroup", "DescribeSecurityGroups", "group-id");
const TABLES: Lookup = Lookup::new("routeTable", "DescribeRouteTables", "route-table-id");
const NATS: Lookup = Lookup::new("natGateway", "DescribeNatGateways", "nat-gateway-id");
const ADDRESSES: Lookup = Lookup::new("address", DESCRIBE_ADDRESSES, "allocation-id");
/// The list without pages.
const DESCRIBE_ADDRESSES: &str = "DescribeAddresses";

impl Lookup {
    const fn new(kind: &'static str, action: &'static str, filter: &'static str) -> Self {
        Self { kind, action, filter }
    }

    fn ids<'s>(&self, known: &'s State) -> Vec<&'s str> {
        let of_kind = |key: &str| key.split('/').next() == Some(self.kind);
        let ids = known.ids.iter().filter(|(key, _)| of_kind(key));
        ids.map(|(_, id)| id.as_str()).collect()
    }

    /// Adds the parts that the state names to the listed parts. The call asks for all ids, so that the call
    /// is the same in each round.
    async fn complete<T>(&self, ec2: &Ec2, known: &State, listed: &mut Vec<T>) -> Result<()>
    where
        T: Tagged + DeserializeOwned,
    {
        let ids = self.ids(known);
        if ids.iter().all(|id| is_listed(listed, id)) {
            return Ok(());
        }
        let mut call = Call::new(self.action).filtered_by_any(self.filter, ids);
        if self.action != DESCRIBE_ADDRESSES {
            call = call.paged();
        }
        for part in ec2.list::<T>(&call).await? {
            if !is_listed(listed, part.id()) {
                listed.push(part);
            }
        }
        Ok(())
    }
}

fn is_listed<T: Tagged>(listed: &[T], id: &str) -> bool {
    listed.iter().any(|part| part.id() == id)
}

impl NetworkParts {
    /// All parts with the cluster's tag, and the parts that the state names.
    pub(super) async fn list_with_recorded(ec2: &Ec2, names: &Names, known: &State) -> Result<Self> {
        let mut found = Self::list(ec2, names).await?;
        VPCS.complete(ec2, known, &mut found.vpcs).await?;
        GATEWAYS.complete(ec2, known, &mut found.gateways).await?;
        SUBNETS.complete(ec2, known, &mut found.subnets).await?;
        GROUPS.complete(ec2, known, &mut found.groups).await?;
        TABLES.complete(ec2, known, &mut found.tables).await?;
        ADDRESSES.complete(ec2, known, &mut found.addresses).await?;
        NATS.complete(ec2, known, &mut found.nats).await?;
        found.nats.retain(NatGateway::is_there);
        Ok(found)
    }

    /// Refuses parts of the state that lost the cluster's tag and have the tag of a different cluster.
    ///
    /// # Errors
    /// There are such parts: [`Error::Config`].
    pub(super) fn refuse_other_clusters(&self, names: &Names) -> Result<()> {
        let owned = names.owned();
        let others = self.objects().filter_map(|object| {
            let key = owned.foreign_cluster(object)?;
            Some((object.id(), key))
        });
        let others: Vec<(&str, &str)> = others.collect();
        let Some((_, key)) = others.first() else {
            return Ok(());
        };
        let ids: Vec<&str> = others.iter().map(|(id, _)| *id).collect();
        Err(Error::config(
            ErrorCode::ErrInfraDependencies,
            format!(
                "the state of {} names {}, which have the tag {key} of a different cluster and no tag {}. Nothing was removed: if they \
                 belong to this Shoot, set the tag of this Shoot; else remove the id from status.state of the Infrastructure",
                names.vpc(),
                named(&ids),
                owned.key()
            ),
        ))
    }

    /// Whether the parts prove that the keys belong to the account of the network. A part proves the account
    /// if the state names the part or the part has the uid of the Shoot.
    pub(super) fn proves_account(&self, names: &Names, known: &State) -> bool {
        let owned = names.owned();
        self.objects().any(|object| {
            let is_named = known.ids.values().any(|id| id == object.id());
            let is_tagged = owned.has_uid(object);
            is_named || is_tagged
        })
    }
}

/// All NAT gateways, with the cluster's tag or in the state, in every state of a gateway.
pub(super) async fn nat_gateways(ec2: &Ec2, names: &Names, known: &State) -> Result<Vec<NatGateway>> {
    let mut nats = ec2.nat_gateways(&names.owned()).await?;
    NATS.complete(ec2, known, &mut nats).await?;
    Ok(nats)
}

/// The error of a removal with keys that show no part of the state, while no account is recorded.
pub(super) async fn unconfirmed(ec2: &Ec2, names: &Names, known: &State) -> Result<Error> {
    let (origin, present) = (ec2.account.origin(), ec2.account_id().await?);
    let ids: Vec<&str> = known.ids.values().map(String::as_str).collect();
    Ok(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!(
            "the keys of the Secret {origin} belong to account {present} and show none of the parts of {} that the state names ({}), and \
             no account is recorded. No part counts as gone: put keys of the account with these parts into the Secret. If account \
             {present} is the account of the Shoot and the parts are gone, annotate the Shoot with {CONFIRMED_ACCOUNT}={present}",
            names.vpc(),
            named(&ids)
        ),
    ))
}
