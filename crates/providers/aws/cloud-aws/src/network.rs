//! Networks: VPCs, internet gateways, subnets and security groups.

use serde::Deserialize;

use crate::{
    Answer, Call, Ec2, Items, Owned,
    tags::{Tag, tagged},
};

/// A VPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vpc {
    /// The id of the VPC.
    pub vpc_id: String,
    /// The IP range in CIDR notation.
    pub cidr_block: String,
    /// The tags of the VPC.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// The way of a VPC to the internet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternetGateway {
    /// The id of the internet gateway.
    pub internet_gateway_id: String,
    /// The attachments of the gateway: at most a single VPC.
    #[serde(default, rename = "attachmentSet")]
    pub attachments: Items<Attachment>,
    /// The tags of the gateway.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// The attachment of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The VPC.
    pub vpc_id: String,
}

/// A part of a VPC in a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// The id of the subnet.
    pub subnet_id: String,
    /// The VPC of the subnet.
    pub vpc_id: String,
    /// The IP range in CIDR notation.
    pub cidr_block: String,
    /// The name of the zone in the account.
    pub availability_zone: String,
    /// The tags of the subnet.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// A security group: the allowed traffic to machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// The id of the security group.
    pub group_id: String,
    /// The VPC of the security group.
    #[serde(default)]
    pub vpc_id: String,
    /// The allowed incoming traffic.
    #[serde(default, rename = "ipPermissions")]
    pub ingress: Items<Permission>,
    /// The tags of the security group.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// A rule for allowed incoming traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// `-1`: all.
    pub ip_protocol: String,
    /// From members of these groups.
    #[serde(default)]
    pub groups: Items<Group>,
}

/// A group, as a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The id of the security group.
    #[serde(default)]
    pub group_id: String,
}

tagged!(Vpc, vpc_id);
tagged!(InternetGateway, internet_gateway_id);
tagged!(Subnet, subnet_id);
tagged!(SecurityGroup, group_id);

impl SecurityGroup {
    /// Whether the group allows all traffic between the members of the group.
    #[must_use]
    pub fn lets_members_in(&self) -> bool {
        let of_members = |permission: &Permission| {
            permission.ip_protocol == "-1"
                && permission
                    .groups
                    .iter()
                    .any(|group| group.group_id == self.group_id)
        };
        self.ingress.iter().any(of_members)
    }
}

/// A call that lists only things of a cluster.
pub(crate) fn owned(action: &'static str, of: &Owned) -> Call {
    let (filter, value) = of.filter();
    Call::new(action).filtered(&filter, value)
}

impl Ec2 {
    /// The VPCs of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn vpcs(&self, of: &Owned) -> Answer<Vec<Vpc>> {
        self.list(&owned("DescribeVpcs", of).paged()).await
    }

    /// Makes a VPC.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_vpc(&self, range: &str, tags: &[Tag]) -> Answer<Vpc> {
        #[derive(Deserialize)]
        struct Made {
            vpc: Vpc,
        }
        let call = Call::new("CreateVpc")
            .with("CidrBlock", range)
            .tagged("vpc", tags);
        Ok(self.ask::<Made>(&call).await?.vpc)
    }

    /// Takes a VPC away.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_vpc(&self, id: &str) -> Answer<()> {
        self.remove(&Call::new("DeleteVpc").with("VpcId", id)).await
    }

    /// The internet gateways of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn internet_gateways(&self, of: &Owned) -> Answer<Vec<InternetGateway>> {
        self.list(&owned("DescribeInternetGateways", of).paged()).await
    }

    /// Creates an internet gateway without an attachment.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_internet_gateway(&self, tags: &[Tag]) -> Answer<InternetGateway> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            internet_gateway: InternetGateway,
        }
        let call = Call::new("CreateInternetGateway").tagged("internet-gateway", tags);
        Ok(self.ask::<Made>(&call).await?.internet_gateway)
    }

    /// Attaches an internet gateway to a VPC.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn attach_internet_gateway(&self, gateway: &str, vpc: &str) -> Answer<()> {
        let call = Call::new("AttachInternetGateway")
            .with("InternetGatewayId", gateway)
            .with("VpcId", vpc);
        match self.tell(&call).await {
            Err(failed) if failed.code() == "Resource.AlreadyAssociated" => Ok(()),
            done => done,
        }
    }

    /// Detaches an internet gateway from a VPC.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn detach_internet_gateway(&self, gateway: &str, vpc: &str) -> Answer<()> {
        let call = Call::new("DetachInternetGateway")
            .with("InternetGatewayId", gateway)
            .with("VpcId", vpc);
        match self.tell(&call).await {
            Err(failed) if failed.is_missing() || failed.code() == "Gateway.NotAttached" => Ok(()),
            done => done,
        }
    }

    /// Deletes an internet gateway that is attached to no VPC.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_internet_gateway(&self, gateway: &str) -> Answer<()> {
        let call = Call::new("DeleteInternetGateway").with("InternetGatewayId", gateway);
        self.remove(&call).await
    }

    /// The subnets of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn subnets(&self, of: &Owned) -> Answer<Vec<Subnet>> {
        self.list(&owned("DescribeSubnets", of).paged()).await
    }

    /// The subnet with this id. `None`: EC2 knows no such subnet in the account, or does not show the subnet
    /// yet.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn subnet(&self, id: &str) -> Answer<Option<Subnet>> {
        let call = Call::new("DescribeSubnets").with("SubnetId.1", id);
        match self.list::<Subnet>(&call).await {
            Ok(found) => Ok(found.into_iter().next()),
            Err(failed) if failed.is_missing() => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// Creates a subnet. EC2 refuses a second subnet with the same range.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_subnet(&self, vpc: &str, zone: &str, range: &str, tags: &[Tag]) -> Answer<Subnet> {
        #[derive(Deserialize)]
        struct Made {
            subnet: Subnet,
        }
        let call = Call::new("CreateSubnet")
            .with("VpcId", vpc)
            .with("AvailabilityZone", zone)
            .with("CidrBlock", range)
            .tagged("subnet", tags);
        Ok(self.ask::<Made>(&call).await?.subnet)
    }

    /// Takes a subnet away.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_subnet(&self, id: &str) -> Answer<()> {
        self.remove(&Call::new("DeleteSubnet").with("SubnetId", id)).await
    }

    /// The security groups of a cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn security_groups(&self, of: &Owned) -> Answer<Vec<SecurityGroup>> {
        self.list(&owned("DescribeSecurityGroups", of).paged()).await
    }

    /// Creates a security group that allows no incoming traffic, and returns the id. EC2 refuses a second
    /// group with the same name in the VPC.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn create_security_group(&self, vpc: &str, name: &str, tags: &[Tag]) -> Answer<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            group_id: String,
        }
        let call = Call::new("CreateSecurityGroup")
            .with("VpcId", vpc)
            .with("GroupName", name)
            .with("GroupDescription", "Machines of one shoot")
            .tagged("security-group", tags);
        Ok(self.ask::<Made>(&call).await?.group_id)
    }

    /// Allows all traffic between the members of a security group.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn let_members_in(&self, group: &str) -> Answer<()> {
        let call = Call::new("AuthorizeSecurityGroupIngress")
            .with("GroupId", group)
            .with("IpPermissions.1.IpProtocol", "-1")
            .with("IpPermissions.1.Groups.1.GroupId", group);
        match self.tell(&call).await {
            Err(failed) if failed.code() == "InvalidPermission.Duplicate" => Ok(()),
            done => done,
        }
    }

    /// Takes a security group away.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn delete_security_group(&self, id: &str) -> Answer<()> {
        self.remove(&Call::new("DeleteSecurityGroup").with("GroupId", id))
            .await
    }
}
