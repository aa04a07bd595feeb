//! Networks: VPCs, their gateway to the internet, subnets and security groups.

use serde::Deserialize;

use crate::{
    Answer, Call, Ec2, Items, Owned,
    tags::{Tag, tagged},
};

/// A network of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vpc {
    /// Its id.
    pub vpc_id: String,
    /// Its range.
    pub cidr_block: String,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// The way of a VPC to the internet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternetGateway {
    /// Its id.
    pub internet_gateway_id: String,
    /// Where it is attached: one VPC at most.
    #[serde(default, rename = "attachmentSet")]
    pub attachments: Items<Attachment>,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// To what a gateway is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The VPC.
    pub vpc_id: String,
}

/// A part of a VPC in one zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    /// Its id.
    pub subnet_id: String,
    /// Where it is.
    pub vpc_id: String,
    /// Its range.
    pub cidr_block: String,
    /// Its zone, as the account calls it.
    pub availability_zone: String,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// What may reach machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroup {
    /// Its id.
    pub group_id: String,
    /// Where it is.
    #[serde(default)]
    pub vpc_id: String,
    /// What is let in.
    #[serde(default, rename = "ipPermissions")]
    pub ingress: Items<Permission>,
    /// Its tags.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// What is let in.
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
    /// Its id.
    #[serde(default)]
    pub group_id: String,
}

tagged!(Vpc, vpc_id);
tagged!(InternetGateway, internet_gateway_id);
tagged!(Subnet, subnet_id);
tagged!(SecurityGroup, group_id);

impl SecurityGroup {
    /// Its members let each other in.
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

    /// Makes an internet gateway, attached to nothing.
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

    /// Takes an internet gateway away that is attached to nothing.
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

    /// Makes a subnet. A second one with the same range is refused.
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

    /// Makes a security group that lets nothing in, and gives its id. A second one with the same name in the
    /// VPC is refused.
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

    /// The members of a security group let each other in.
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
