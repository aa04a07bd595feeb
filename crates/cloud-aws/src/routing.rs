//! Ways out: route tables, NAT gateways and their addresses.

use serde::Deserialize;

use crate::{
    Answer, Call, Ec2, Items, Owned,
    network::owned,
    refusal::CREATE_NAT_GATEWAY,
    tags::{Tag, tagged},
};

/// Everywhere, in IPv4.
pub const EVERYWHERE: &str = "0.0.0.0/0";

/// Where packets of subnets go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteTable {
    /// Its id.
    pub route_table_id: String,
    /// Where it is.
    pub vpc_id: String,
    /// Its routes.
    #[serde(default, rename = "routeSet")]
    pub routes: Items<Route>,
    /// For which subnets it counts.
    #[serde(default, rename = "associationSet")]
    pub associations: Items<RouteTableAssociation>,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// One route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// To where.
    #[serde(default)]
    pub destination_cidr_block: String,
    /// By an internet gateway.
    pub gateway_id: Option<String>,
    /// By a NAT gateway.
    pub nat_gateway_id: Option<String>,
}

/// For which subnet a table counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableAssociation {
    /// Its id.
    pub route_table_association_id: String,
    /// The subnet; none: all that have no table.
    pub subnet_id: Option<String>,
}

/// By what a route leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via<'a> {
    /// An internet gateway.
    Internet(&'a str),
    /// A NAT gateway.
    Nat(&'a str),
}

/// A way out for machines without public addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NatGateway {
    /// Its id.
    pub nat_gateway_id: String,
    /// Where it is.
    pub subnet_id: String,
    /// `pending`, `failed`, `available`, `deleting` or `deleted`.
    pub state: String,
    /// EC2's code for the failure of a gateway that is `failed`.
    pub failure_code: Option<String>,
    /// EC2's sentence for the failure of a gateway that is `failed`.
    pub failure_message: Option<String>,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// A public address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// Its id.
    pub allocation_id: String,
    /// The address.
    pub public_ip: String,
    /// What uses it, if something does.
    pub association_id: Option<String>,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

tagged!(RouteTable, route_table_id);
tagged!(NatGateway, nat_gateway_id);
tagged!(Address, allocation_id);

impl RouteTable {
    /// The route to everywhere.
    #[must_use]
    pub fn way_out(&self) -> Option<&Route> {
        let mut routes = self.routes.iter();
        routes.find(|route| route.destination_cidr_block == EVERYWHERE)
    }

    /// How it counts for a subnet, if it does.
    #[must_use]
    pub fn association_of(&self, subnet: &str) -> Option<&RouteTableAssociation> {
        let mut associations = self.associations.iter();
        associations.find(|association| association.subnet_id.as_deref() == Some(subnet))
    }
}

impl Route {
    /// Whether it leads by this.
    #[must_use]
    pub fn leads(&self, via: Via<'_>) -> bool {
        match via {
            Via::Internet(id) => self.gateway_id.as_deref() == Some(id),
            Via::Nat(id) => self.nat_gateway_id.as_deref() == Some(id),
        }
    }
}

impl Address {
    /// Something uses it.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.association_id.as_ref().is_some_and(|id| !id.is_empty())
    }
}

impl NatGateway {
    /// It is there, or is about to be.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self.state.as_str(), "available" | "pending")
    }

    /// It lets packets out.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.state == "available"
    }
}

impl Ec2 {
    /// The route tables of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn route_tables(&self, of: &Owned) -> Answer<Vec<RouteTable>> {
        self.list(&owned("DescribeRouteTables", of).paged()).await
    }

    /// Makes a route table without routes of its own.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_route_table(&self, vpc: &str, token: &str, tags: &[Tag]) -> Answer<RouteTable> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            route_table: RouteTable,
        }
        let call = Call::new("CreateRouteTable")
            .with("VpcId", vpc)
            .with("ClientToken", token)
            .tagged("route-table", tags);
        Ok(self.ask::<Made>(&call).await?.route_table)
    }

    /// Takes a route table away that counts for no subnet.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_route_table(&self, id: &str) -> Answer<()> {
        self.remove(&Call::new("DeleteRouteTable").with("RouteTableId", id))
            .await
    }

    /// The table leads everywhere by this. `replaces`: there is a route by something else.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn lead_out(&self, table: &str, via: Via<'_>, replaces: bool) -> Answer<()> {
        let action = if replaces { "ReplaceRoute" } else { "CreateRoute" };
        let (name, id) = match via {
            Via::Internet(id) => ("GatewayId", id),
            Via::Nat(id) => ("NatGatewayId", id),
        };
        let call = Call::new(action)
            .with("RouteTableId", table)
            .with("DestinationCidrBlock", EVERYWHERE)
            .with(name, id);
        self.tell(&call).await
    }

    /// The table counts for the subnet, which has none.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn associate_route_table(&self, table: &str, subnet: &str) -> Answer<()> {
        let call = Call::new("AssociateRouteTable")
            .with("RouteTableId", table)
            .with("SubnetId", subnet);
        self.tell(&call).await
    }

    /// A table does not count for a subnet any more.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn disassociate_route_table(&self, association: &str) -> Answer<()> {
        let call = Call::new("DisassociateRouteTable").with("AssociationId", association);
        self.remove(&call).await
    }

    /// The NAT gateways of a cluster, also such as are gone or have failed: they are listed for a while.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn nat_gateways(&self, of: &Owned) -> Answer<Vec<NatGateway>> {
        self.list(&owned("DescribeNatGateways", of).paged()).await
    }

    /// Makes a NAT gateway.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_nat_gateway(
        &self,
        subnet: &str,
        address: &str,
        token: &str,
        tags: &[Tag],
    ) -> Answer<NatGateway> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            nat_gateway: NatGateway,
        }
        let call = Call::new(CREATE_NAT_GATEWAY)
            .with("SubnetId", subnet)
            .with("AllocationId", address)
            .with("ClientToken", token)
            .tagged("natgateway", tags);
        Ok(self.ask::<Made>(&call).await?.nat_gateway)
    }

    /// Begins to take a NAT gateway away.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_nat_gateway(&self, id: &str) -> Answer<()> {
        let call = Call::new("DeleteNatGateway").with("NatGatewayId", id);
        match self.remove(&call).await {
            // Its word for it differs from that of the others.
            Err(failed) if failed.code() == "NatGatewayNotFound" => Ok(()),
            done => done,
        }
    }

    /// The public addresses of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn addresses(&self, of: &Owned) -> Answer<Vec<Address>> {
        self.list(&owned("DescribeAddresses", of)).await
    }

    /// Takes a public address, and gives its id.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn allocate_address(&self, tags: &[Tag]) -> Answer<Address> {
        let call = Call::new("AllocateAddress")
            .with("Domain", "vpc")
            .tagged("elastic-ip", tags);
        self.ask(&call).await
    }

    /// Gives a public address back.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn release_address(&self, id: &str) -> Answer<()> {
        self.remove(&Call::new("ReleaseAddress").with("AllocationId", id))
            .await
    }
}
