//! What is there of an Infrastructure, told by tags; and how its things are called.

use futures::try_join;
use runtime::Result;

use crate::{
    Ec2, Owned, Tag, Tagged,
    network::{InternetGateway, SecurityGroup, Subnet, Vpc},
    routing::{Address, NatGateway, RouteTable},
};

/// Names of the things of one shoot.
#[derive(Clone, Debug)]
pub struct Names {
    id: String,
    owned: Owned,
}

impl Names {
    /// Of the shoot with this technical id.
    #[must_use]
    pub fn of(technical_id: &str) -> Self {
        Self {
            id: technical_id.to_owned(),
            owned: Owned::by(technical_id),
        }
    }

    /// By which tag its things are found.
    #[must_use]
    pub fn owned(&self) -> Owned {
        self.owned.clone()
    }

    /// Of the VPC and of its internet gateway.
    #[must_use]
    pub fn vpc(&self) -> &str {
        &self.id
    }

    /// Of something that there is once.
    #[must_use]
    pub fn one(&self, what: &str) -> String {
        format!("{}-{what}", self.id)
    }

    /// Of something that there is in each zone.
    #[must_use]
    pub fn in_zone(&self, what: &str, zone: &str) -> String {
        format!("{}-{what}-{zone}", self.id)
    }

    /// The tags of something with this name.
    #[must_use]
    pub fn tags(&self, name: &str) -> Vec<Tag> {
        self.owned.tags(name)
    }
}

/// All things with the shoot's tag.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Networks: one.
    pub vpcs: Vec<Vpc>,
    /// Ways to the internet: one.
    pub gateways: Vec<InternetGateway>,
    /// Two for each zone.
    pub subnets: Vec<Subnet>,
    /// What may reach machines: one.
    pub groups: Vec<SecurityGroup>,
    /// One, and one for each zone.
    pub tables: Vec<RouteTable>,
    /// One for each zone. Those that are gone or have failed are left out.
    pub nats: Vec<NatGateway>,
    /// NAT gateways that could not be made.
    pub failed: Vec<NatGateway>,
    /// One for each zone.
    pub addresses: Vec<Address>,
}

impl Found {
    /// Looks. Nothing is changed.
    ///
    /// # Errors
    /// EC2 refuses or does not answer.
    pub async fn look(ec2: &Ec2, names: &Names) -> Result<Self> {
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

    /// The ids of all things.
    pub(super) fn ids(&self) -> Vec<&str> {
        fn ids<T: Tagged>(things: &[T]) -> impl Iterator<Item = &str> {
            things.iter().map(Tagged::id)
        }
        let all = ids(&self.vpcs)
            .chain(ids(&self.gateways))
            .chain(ids(&self.subnets));
        let all = all.chain(ids(&self.groups)).chain(ids(&self.tables));
        all.chain(ids(&self.nats)).chain(ids(&self.addresses)).collect()
    }
}
