//! Outgoing traffic: route tables, NAT gateways and elastic IP addresses.

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
    /// The id of the route table.
    pub route_table_id: String,
    /// The VPC of the route table.
    pub vpc_id: String,
    /// The routes of the table.
    #[serde(default, rename = "routeSet")]
    pub routes: Items<Route>,
    /// The subnets of the table.
    #[serde(default, rename = "associationSet")]
    pub associations: Items<RouteTableAssociation>,
    /// The tags of the table.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// A route.
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

/// The association of a route table with a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteTableAssociation {
    /// The id of the association.
    pub route_table_association_id: String,
    /// The subnet; none: all that have no table.
    pub subnet_id: Option<String>,
}

/// The target of a route.
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
    /// The id of the NAT gateway.
    pub nat_gateway_id: String,
    /// The subnet of the NAT gateway.
    pub subnet_id: String,
    /// `pending`, `failed`, `available`, `deleting` or `deleted`.
    pub state: String,
    /// EC2's code for the failure of a gateway that is `failed`.
    pub failure_code: Option<String>,
    /// EC2's sentence for the failure of a gateway that is `failed`.
    pub failure_message: Option<String>,
    /// The tags of the NAT gateway.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// A public address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// The id of the address.
    pub allocation_id: String,
    /// The address.
    pub public_ip: String,
    /// The association with the user of the address. `None`: the address is not in use.
    pub association_id: Option<String>,
    /// The tags of the address.
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

    /// The association of this table with a subnet. `None`: the subnet does not use this table.
    #[must_use]
    pub fn association_of(&self, subnet: &str) -> Option<&RouteTableAssociation> {
        let mut associations = self.associations.iter();
        associations.find(|association| association.subnet_id.as_deref() == Some(subnet))
    }
}

impl Route {
    /// Whether the route has this target.
    #[must_use]
    pub fn leads(&self, via: Via<'_>) -> bool {
        match via {
            Via::Internet(id) => self.gateway_id.as_deref() == Some(id),
            Via::Nat(id) => self.nat_gateway_id.as_deref() == Some(id),
        }
    }
}

impl Address {
    /// Whether the address is in use.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.association_id.as_ref().is_some_and(|id| !id.is_empty())
    }
}

impl NatGateway {
    /// Whether the NAT gateway exists or is being made.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self.state.as_str(), "available" | "pending")
    }

    /// Whether the NAT gateway forwards packets.
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

    /// Creates a route table without routes.
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

    /// Sets the default route of the table to this target. `replaces`: the table has a default route with a
    /// different target.
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

    /// Associates the table with a subnet without a table.
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

    /// The NAT gateways of a cluster, including gone and failed gateways: EC2 lists such gateways for a
    /// while.
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
            // The code for NAT gateways differs from the codes for all further kinds.
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

    /// Allocates a public address, and returns the id.
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
