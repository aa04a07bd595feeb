//! Makes what is missing, step by step in the order of what needs what. What is there is left as it is.

use std::collections::BTreeMap;
use std::time::Duration;

use api::meta::ErrorCode;
use runtime::{Error, Result};

use super::{
    config::{GroupStatus, InfrastructureStatus, NODES, Plan, State, SubnetStatus, VPC, VpcStatus, problem},
    found::{Found, Names, split},
};
use crate::{
    Ec2, Tagged,
    network::{InternetGateway, SecurityGroup, Subnet},
    routing::{Address, NatGateway, RouteTable, Via},
    token::token,
    zones::Zone,
};

/// How soon to look again for NAT gateways, which take one to three minutes.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Purpose of the subnets for NAT gateways.
const PUBLIC: &str = "public";

/// What is there in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Range of the VPC.
    pub range: String,
    /// From where packets of the shoot come, as others see it.
    pub egress: Vec<String>,
    /// All ids.
    pub state: State,
    /// For other extensions.
    pub status: InfrastructureStatus,
}

/// Brings the account to what is planned.
///
/// # Errors
/// EC2 refuses or does not answer; NAT gateways are being made: [`Error::NotReady`]; what is there cannot become what is planned, or the
/// VPC that is known is gone: [`Error::Config`].
pub async fn make(ec2: &Ec2, names: &Names, plan: &Plan, known: Option<&State>) -> Result<Made> {
    let zones = zones(ec2, plan).await?;
    let found = Found::look(ec2, names).await?;
    refuse_changes(plan, &found)?;
    let mut maker = Maker {
        ec2,
        names,
        found,
        vpc: String::new(),
        ids: BTreeMap::new(),
        subnets: Vec::new(),
        egress: Vec::new(),
        pending: Vec::new(),
    };
    maker.vpc(plan, known).await?;
    let gateway = maker.gateway().await?;
    let group = maker.group().await?;
    let public = maker.table(&names.one("main"), "routeTable/main").await?;
    maker.lead_out(&public, Via::Internet(&gateway)).await?;
    for (zone, [workers, outside]) in &plan.zones {
        let nodes = maker.subnet(NODES, zone, &workers.to_string()).await?;
        let outside = maker.subnet(PUBLIC, zone, &outside.to_string()).await?;
        maker.associate(&public, &outside).await?;
        let table = maker
            .table(&names.in_zone("private", zone), &format!("routeTable/{zone}"))
            .await?;
        maker.associate(&table, &nodes).await?;
        let nat = maker.nat(zone, &outside.subnet_id).await?;
        if nat.is_available() {
            maker.lead_out(&table, Via::Nat(&nat.nat_gateway_id)).await?;
        } else {
            maker.pending.push(zone.clone());
        }
    }
    maker.made(plan, zones, group)
}

/// The zones of the plan with their IDs. A name of a zone is of one ID, and the other way round.
async fn zones(ec2: &Ec2, plan: &Plan) -> Result<Vec<Zone>> {
    let all = ec2.zones().await?;
    let used: Vec<Zone> = all
        .iter()
        .filter(|zone| plan.zones.contains_key(&zone.name))
        .cloned()
        .collect();
    if let Some(unknown) = plan
        .zones
        .keys()
        .find(|name| !all.iter().any(|zone| zone.name == **name))
    {
        let known: Vec<&str> = all.iter().map(|zone| zone.name.as_str()).collect();
        return Err(problem(format!(
            "networks.zones names {unknown:?}, which this account does not have in {}: take some of {}",
            ec2.region(),
            known.join(", ")
        )));
    }
    Ok(used)
}

/// Machines live in what is there, so it is not changed.
fn refuse_changes(plan: &Plan, found: &Found) -> Result<()> {
    for subnet in &found.subnets {
        let (zone, range) = (&subnet.availability_zone, &subnet.cidr_block);
        match plan.zones.get(zone) {
            None => {
                return Err(problem(format!(
                    "zone {zone} has subnet {} of this shoot and is not named any more: put it back. Taking a zone out is not \
                     supported yet",
                    subnet.subnet_id
                )));
            }
            Some(ranges) if !ranges.iter().any(|planned| planned.to_string() == *range) => {
                return Err(problem(format!(
                    "subnet {} of zone {zone} is {range}, and ranges of subnets cannot change: put it back",
                    subnet.subnet_id
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

struct Maker<'a> {
    ec2: &'a Ec2,
    names: &'a Names,
    found: Found,
    vpc: String,
    ids: BTreeMap<String, String>,
    subnets: Vec<SubnetStatus>,
    egress: Vec<String>,
    pending: Vec<String>,
}

impl Maker<'_> {
    async fn vpc(&mut self, plan: &Plan, known: Option<&State>) -> Result<()> {
        let name = self.names.vpc();
        let known = known.and_then(State::vpc);
        let found = std::mem::take(&mut self.found.vpcs);
        let (subnets, groups) = (&self.found.subnets, &self.found.groups);
        let is_used = |id: &str| {
            known == Some(id)
                || subnets.iter().any(|subnet| subnet.vpc_id == id)
                || groups.iter().any(|group| group.vpc_id == id)
        };
        let (vpc, others) = split(found, name, |vpc| is_used(&vpc.vpc_id));
        for other in others {
            self.ec2.delete_vpc(&other.vpc_id).await?;
        }
        let vpc = match (vpc, known) {
            (found, Some(known)) if found.as_ref().is_none_or(|vpc| vpc.vpc_id != known) => {
                return Err(Error::config(
                    ErrorCode::ErrInfraDependencies,
                    format!(
                        "{known} of {name} is not in {} with the tag {}; another VPC is never made in its place, because machines \
                         live in it: put the tag back, or correct the Secret if it is of another account",
                        self.ec2.region(),
                        self.names.owned().key()
                    ),
                ));
            }
            (Some(vpc), _) => vpc,
            (None, _) => {
                let range = plan.range.to_string();
                self.ec2.create_vpc(&range, &self.names.tags(name)).await?
            }
        };
        if vpc.cidr_block != plan.range.to_string() {
            return Err(problem(format!(
                "{} is {} and cannot become {}: put networks.vpc.cidr back",
                vpc.vpc_id, vpc.cidr_block, plan.range
            )));
        }
        self.ids.insert(VPC.into(), vpc.vpc_id.clone());
        self.vpc = vpc.vpc_id;
        Ok(())
    }

    async fn gateway(&mut self) -> Result<String> {
        let name = self.names.vpc();
        let vpc = self.vpc.as_str();
        let found = std::mem::take(&mut self.found.gateways);
        let is_attached = |gateway: &InternetGateway| {
            gateway
                .attachments
                .iter()
                .any(|attachment| attachment.vpc_id == vpc)
        };
        let (gateway, others) = split(found, name, is_attached);
        for other in others {
            self.ec2
                .delete_internet_gateway(&other.internet_gateway_id)
                .await?;
        }
        let gateway = match gateway {
            Some(gateway) => gateway,
            None => self.ec2.create_internet_gateway(&self.names.tags(name)).await?,
        };
        let id = gateway.internet_gateway_id.clone();
        if !is_attached(&gateway) {
            self.ec2.attach_internet_gateway(&id, vpc).await?;
        }
        self.ids.insert("internetGateway".into(), id.clone());
        Ok(id)
    }

    async fn group(&mut self) -> Result<String> {
        let name = self.names.one(NODES);
        let found = std::mem::take(&mut self.found.groups);
        let (group, _) = split(found, &name, |group| group.vpc_id == self.vpc);
        let lets_in = group.as_ref().is_some_and(SecurityGroup::lets_members_in);
        let id = if let Some(group) = group {
            group.group_id
        } else {
            let tags = self.names.tags(&name);
            self.ec2.create_security_group(&self.vpc, &name, &tags).await?
        };
        if !lets_in {
            self.ec2.let_members_in(&id).await?;
        }
        self.ids.insert("securityGroup/nodes".into(), id.clone());
        Ok(id)
    }

    async fn table(&mut self, name: &str, key: &str) -> Result<RouteTable> {
        let found = self.found.tables.clone();
        let (table, others) = split(found, name, |table| !table.associations.is_empty());
        for other in others {
            self.ec2.delete_route_table(&other.route_table_id).await?;
        }
        let table = if let Some(table) = table {
            table
        } else {
            let tags = self.names.tags(name);
            self.ec2
                .create_route_table(&self.vpc, &token(&self.vpc, name), &tags)
                .await?
        };
        self.ids.insert(key.into(), table.route_table_id.clone());
        Ok(table)
    }

    async fn lead_out(&self, table: &RouteTable, via: Via<'_>) -> Result<()> {
        let replaces = match table.way_out() {
            Some(route) if route.leads(via) => return Ok(()),
            route => route.is_some(),
        };
        Ok(self.ec2.lead_out(&table.route_table_id, via, replaces).await?)
    }

    async fn subnet(&mut self, purpose: &str, zone: &str, range: &str) -> Result<Subnet> {
        let name = self.names.in_zone(purpose, zone);
        let found = self
            .found
            .subnets
            .iter()
            .find(|subnet| subnet.name() == name)
            .cloned();
        let subnet = if let Some(subnet) = found {
            subnet
        } else {
            let tags = self.names.tags(&name);
            self.ec2.create_subnet(&self.vpc, zone, range, &tags).await?
        };
        self.ids
            .insert(format!("subnet/{purpose}/{zone}"), subnet.subnet_id.clone());
        self.subnets.push(SubnetStatus {
            id: subnet.subnet_id.clone(),
            purpose: purpose.into(),
            zone: zone.into(),
        });
        Ok(subnet)
    }

    async fn associate(&self, table: &RouteTable, subnet: &Subnet) -> Result<()> {
        let (table_id, subnet_id) = (&table.route_table_id, &subnet.subnet_id);
        if table.association_of(subnet_id).is_some() {
            return Ok(());
        }
        match self.ec2.associate_route_table(table_id, subnet_id).await {
            Err(failed) if failed.code() == "Resource.AlreadyAssociated" => Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "somebody has associated {subnet_id} with another route table than {table_id}: take that association away"
                ),
            )),
            done => Ok(done?),
        }
    }

    async fn nat(&mut self, zone: &str, subnet: &str) -> Result<NatGateway> {
        let name = self.names.in_zone("nat", zone);
        let found = self.found.addresses.clone();
        let (address, others) = split(found, &name, Address::is_used);
        for other in others.into_iter().filter(|other| !other.is_used()) {
            self.ec2.release_address(&other.allocation_id).await?;
        }
        let address = match address {
            Some(address) => address,
            None => self.ec2.allocate_address(&self.names.tags(&name)).await?,
        };
        let (nat, others) = split(self.found.nats.clone(), &name, NatGateway::is_available);
        for other in others {
            self.ec2.delete_nat_gateway(&other.nat_gateway_id).await?;
        }
        let failed = self.found.failed.iter().find(|failed| failed.name() == name);
        if let (None, Some(failed)) = (&nat, failed) {
            self.ec2.delete_nat_gateway(&failed.nat_gateway_id).await?;
            return Err(Error::transient(format!(
                "NAT gateway {} of zone {zone} could not be made ({}); it is removed, and made anew",
                failed.nat_gateway_id,
                failed
                    .failure_message
                    .as_deref()
                    .unwrap_or("EC2 does not say why")
            )));
        }
        let nat = if let Some(nat) = nat {
            nat
        } else {
            let (tags, token) = (self.names.tags(&name), token(&self.vpc, &name));
            let id = &address.allocation_id;
            self.ec2.create_nat_gateway(subnet, id, &token, &tags).await?
        };
        self.ids.insert(format!("address/{zone}"), address.allocation_id);
        self.ids
            .insert(format!("natGateway/{zone}"), nat.nat_gateway_id.clone());
        self.egress.push(format!("{}/32", address.public_ip));
        Ok(nat)
    }

    fn made(self, plan: &Plan, zones: Vec<Zone>, group: String) -> Result<Made> {
        if !self.pending.is_empty() {
            return Err(Error::not_ready(
                LOOK_AGAIN,
                format!("the NAT gateways of {} are being made", self.pending.join(", ")),
            ));
        }
        let status = InfrastructureStatus {
            vpc: VpcStatus {
                id: self.vpc,
                subnets: self.subnets,
                security_groups: vec![GroupStatus {
                    id: group,
                    purpose: NODES.into(),
                }],
            },
            zones,
            ..InfrastructureStatus::default()
        };
        Ok(Made {
            range: plan.range.to_string(),
            egress: self.egress,
            state: State { ids: self.ids },
            status,
        })
    }
}
