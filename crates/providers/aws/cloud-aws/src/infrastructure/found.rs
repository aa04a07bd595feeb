//! The existing parts of an Infrastructure, found by tags; and the names of the parts.

use std::collections::BTreeMap;

use api::meta::ErrorCode;
use futures::try_join;
use runtime::{Error, Result};

use crate::{
    Ec2, Owned, Tag, Tagged,
    network::{InternetGateway, SecurityGroup, Subnet, Vpc},
    routing::{Address, NatGateway, RouteTable},
    tags::SHOOT_UID,
};

/// How many objects an error names.
const NAMED: usize = 4;

/// Names of the parts of a shoot.
#[derive(Clone, Debug)]
pub struct Names {
    id: String,
    owned: Owned,
}

impl Names {
    /// Of the shoot with this technical id.
    #[must_use]
    pub fn for_cluster(technical_id: &str) -> Self {
        Self {
            id: technical_id.to_owned(),
            owned: Owned::by(technical_id),
        }
    }

    /// The same with the uid of the Shoot. The uid distinguishes objects of a different Shoot with the same
    /// technical id.
    #[must_use]
    pub fn of_shoot(self, uid: Option<&str>) -> Self {
        Self {
            owned: self.owned.of_shoot(uid),
            ..self
        }
    }

    /// The tag by which the parts of the shoot are found.
    #[must_use]
    pub fn owned(&self) -> Owned {
        self.owned.clone()
    }

    /// The name of the VPC and of the internet gateway.
    #[must_use]
    pub fn vpc(&self) -> &str {
        &self.id
    }

    /// The name of a part that exists once in the shoot.
    #[must_use]
    pub fn one(&self, what: &str) -> String {
        format!("{}-{what}", self.id)
    }

    /// The name of a part that exists once in each zone.
    #[must_use]
    pub fn in_zone(&self, what: &str, zone: &str) -> String {
        format!("{}-{what}-{zone}", self.id)
    }

    /// The tags of a part with this name.
    #[must_use]
    pub fn tags(&self, name: &str) -> Vec<Tag> {
        self.owned.tags(name)
    }
}

/// All things with the shoot's tag.
#[derive(Clone, Debug, Default)]
pub struct NetworkParts {
    /// The VPC: a single VPC if complete.
    pub vpcs: Vec<Vpc>,
    /// The internet gateway: a single gateway if complete.
    pub gateways: Vec<InternetGateway>,
    /// Two for each zone.
    pub subnets: Vec<Subnet>,
    /// The security group of the machines: a single group if complete.
    pub groups: Vec<SecurityGroup>,
    /// Route tables: the table of the public subnets, and a private table for each zone.
    pub tables: Vec<RouteTable>,
    /// NAT gateways: a gateway for each zone, without gateways that are gone or have failed.
    pub nats: Vec<NatGateway>,
    /// NAT gateways that could not be made.
    pub failed: Vec<NatGateway>,
    /// Elastic IP addresses: an address for each zone.
    pub addresses: Vec<Address>,
}

impl NetworkParts {
    /// Lists the parts. This function changes no part.
    ///
    /// # Errors
    /// EC2 refuses or does not answer.
    pub async fn list(ec2: &Ec2, names: &Names) -> Result<Self> {
        let of = &names.owned;
        let (vpcs, gateways, subnets, groups, tables, nats, addresses) = try_join!(
            ec2.vpcs(of),
            ec2.internet_gateways(of),
            ec2.subnets(of),
            ec2.security_groups(of),
            ec2.route_tables(of),
            ec2.nat_gateways(of),
            ec2.addresses(of),
        )?;
        let failed = nats.iter().filter(|nat| nat.state == "failed").cloned().collect();
        Ok(Self {
            failed,
            vpcs,
            gateways,
            subnets,
            groups,
            tables,
            nats: nats.into_iter().filter(NatGateway::is_there).collect(),
            addresses,
        })
    }

    /// All objects.
    pub(super) fn objects(&self) -> impl Iterator<Item = &dyn Tagged> {
        fn each<T: Tagged>(objects: &[T]) -> impl Iterator<Item = &dyn Tagged> {
            objects.iter().map(|object| object as &dyn Tagged)
        }
        let all = each(&self.vpcs)
            .chain(each(&self.gateways))
            .chain(each(&self.subnets));
        let all = all.chain(each(&self.groups)).chain(each(&self.tables));
        all.chain(each(&self.nats)).chain(each(&self.addresses))
    }

    /// The ids of all things.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.objects().map(Tagged::id).collect()
    }

    /// The ids of objects without the uid of the Shoot.
    pub(super) fn without_uid(&self, names: &Names) -> Vec<String> {
        let objects = self.objects().filter(|object| names.owned.lacks_uid(*object));
        objects.map(|object| object.id().to_owned()).collect()
    }

    /// The objects of a different Shoot, with the uid of that Shoot.
    fn foreign(&self, names: &Names) -> BTreeMap<&str, &str> {
        let objects = self.objects();
        objects
            .filter_map(|object| Some((object.id(), names.owned.foreign_uid(object)?)))
            .collect()
    }

    /// Refuses objects of a different Shoot among those that `is_claimed` selects by id.
    ///
    /// # Errors
    /// A different Shoot owns objects: [`Error::Config`].
    pub(super) fn refuse_foreign(&self, names: &Names, is_claimed: impl Fn(&str) -> bool) -> Result<()> {
        let foreign: Vec<_> = self
            .foreign(names)
            .into_iter()
            .filter(|(id, _)| is_claimed(id))
            .collect();
        let Some((_, uid)) = foreign.first() else {
            return Ok(());
        };
        let own = names.owned.shoot_uid().unwrap_or_default();
        let ids: Vec<&str> = foreign.iter().map(|(id, _)| *id).collect();
        Err(Error::config(
            ErrorCode::ErrInfraDependencies,
            format!(
                "{} have the cluster's tag of {} and belong to a different Shoot: their tag {SHOOT_UID} is {uid}, and the uid of \
                 this Shoot is {own}. A second garden uses the technical ID in this account. Nothing was changed: use a different account \
                 or a different name for this Shoot. Only if the objects belong to this Shoot, set their tag to {own}",
                named(&ids),
                names.id
            ),
        ))
    }

    /// Refuses objects that no record and no tag claims for this Shoot: the state names no part, and the
    /// objects have only the cluster's tag. A different installation may use this tag with the same technical
    /// ID.
    ///
    /// # Errors
    /// There are such objects: [`Error::Config`].
    pub(super) fn refuse_unclaimed(&self, names: &Names) -> Result<()> {
        let own = names.owned.shoot_uid();
        let unclaimed = self
            .objects()
            .filter(|object| own.is_none() || object.tag(SHOOT_UID).is_none());
        let ids: Vec<&str> = unclaimed.map(Tagged::id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        Err(Error::config(
            ErrorCode::ErrInfraDependencies,
            format!(
                "{} have the cluster's tag of {} and no tag {SHOOT_UID}, and the state of the Infrastructure names none of them: they may \
                 belong to another installation, and were not removed. If they belong to this Shoot, set their tag {SHOOT_UID} to {}; \
                 else change their cluster's tag",
                named(&ids),
                names.id,
                own.unwrap_or("the uid of the Shoot")
            ),
        ))
    }

    /// Leaves out the objects of a different Shoot or a different cluster.
    pub(super) fn without_foreign(mut self, names: &Names) -> Self {
        fn keep<T: Tagged>(objects: &mut Vec<T>, names: &Names) {
            objects.retain(|object| !names.owned.is_foreign(object));
        }
        keep(&mut self.vpcs, names);
        keep(&mut self.gateways, names);
        keep(&mut self.subnets, names);
        keep(&mut self.groups, names);
        keep(&mut self.tables, names);
        keep(&mut self.nats, names);
        keep(&mut self.failed, names);
        keep(&mut self.addresses, names);
        self
    }
}

/// The first ids, and the number of the remaining ids.
pub(super) fn named(ids: &[&str]) -> String {
    let first: Vec<&str> = ids.iter().take(NAMED).copied().collect();
    match ids.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more objects", first.join(", ")),
    }
}
