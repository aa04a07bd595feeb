//! Makes the missing parts, step by step in the order of their dependencies. Existing parts stay unchanged.

mod nat;

use std::{collections::BTreeMap, time::Duration};

use api::meta::ErrorCode;
use runtime::{Error, Result};
use tracing::warn;

use super::{
    config::{GroupStatus, InfrastructureStatus, NODES, Plan, SubnetStatus, VpcStatus, problem},
    found::{Names, NetworkParts},
    plan_checks::{refuse_changes, zones},
    state::{Journal, Ledger, State, VPC},
    vpc::{Chosen, choose},
};
use crate::{
    Ec2, Tagged,
    identity::HomeAccount,
    network::{InternetGateway, SecurityGroup, Subnet},
    routing::{RouteTable, Via},
    token::token_since,
    zones::Zone,
};

/// Requeue delay for NAT gateways. EC2 takes up to three minutes for a NAT gateway, at least a minute.
const NAT_CREATION_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Purpose of the subnets for NAT gateways.
const PUBLIC: &str = "public";

/// The complete network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Range of the VPC.
    pub range: String,
    /// The source addresses of the shoot's packets, as seen from outside.
    pub egress: Vec<String>,
    /// All ids.
    pub state: State,
    /// The status for extensions that use the network.
    pub status: InfrastructureStatus,
}

/// Brings the account to the plan, and ends when EC2 shows all parts. `journal` keeps the ids of begun parts,
/// so that no part is made twice after an answer was lost or a process was killed.
///
/// # Errors
/// EC2 refuses or does not answer; NAT gateways are being made, or EC2 does not show a new part yet:
/// [`Error::NotReady`]; an existing part cannot become the planned part, the known VPC is gone, the keys
/// belong to a different account, or objects belong to a different Shoot: [`Error::Config`].
pub async fn make(
    ec2: &Ec2,
    names: &Names,
    plan: &Plan,
    known: Option<&State>,
    journal: &impl Journal,
) -> Result<Made> {
    let zones = zones(ec2, plan).await?;
    let mut ledger = Ledger::open(known, journal, ec2.listed_within(), names.vpc());
    ledger.record_shoot(names.owned().shoot_uid());
    let made = make_and_confirm(ec2, names, plan, &zones, &mut ledger).await;
    if made.is_err()
        && let Err(error) = ledger.save().await
    {
        // EC2 lists by the shoot's tags the parts that the state does not name.
        warn!(
            error = format_args!("{error:#}"),
            network = names.vpc(),
            "the ids of what was made could not be kept"
        );
    }
    made
}

async fn make_and_confirm<J: Journal>(
    ec2: &Ec2,
    names: &Names,
    plan: &Plan,
    zones: &[Zone],
    ledger: &mut Ledger<'_, J>,
) -> Result<Made> {
    let made = Maker::new(ec2, names, ledger).await?.make(plan, zones).await?;
    if !ledger.has_written() {
        return Ok(made);
    }
    ledger.confirm();
    Maker::new(ec2, names, ledger).await?.make(plan, zones).await
}

struct Maker<'a, 'l, J> {
    ec2: &'a Ec2,
    names: &'a Names,
    ledger: &'a mut Ledger<'l, J>,
    found: NetworkParts,
    without_uid: Vec<String>,
    vpc: String,
    subnets: Vec<SubnetStatus>,
    egress: Vec<String>,
    pending: Vec<String>,
    /// NAT gateways that EC2 could not make. The parts of all healthy zones are made all the same.
    failed: Vec<Error>,
}

impl<'a, 'l, J: Journal> Maker<'a, 'l, J> {
    async fn new(ec2: &'a Ec2, names: &'a Names, ledger: &'a mut Ledger<'l, J>) -> Result<Self> {
        let found = NetworkParts::list(ec2, names).await?;
        Ok(Self {
            without_uid: found.without_uid(names),
            found,
            ec2,
            names,
            ledger,
            vpc: String::new(),
            subnets: Vec::new(),
            egress: Vec::new(),
            pending: Vec::new(),
            failed: Vec::new(),
        })
    }

    async fn make(mut self, plan: &Plan, zones: &[Zone]) -> Result<Made> {
        self.found.refuse_foreign(self.names, |_| true)?;
        refuse_changes(plan, &self.found)?;
        self.vpc(plan).await?;
        self.add_uid().await?;
        let gateway = self.gateway().await?;
        let group = self.group().await?;
        let public = self.table(&self.names.one("main"), "routeTable/main").await?;
        self.lead_out(&public, Via::Internet(&gateway)).await?;
        for (zone, [workers, outside]) in &plan.zones {
            if plan.isolates(zone, zones) {
                self.keep(zone);
                continue;
            }
            let nodes = self.subnet(NODES, zone, &workers.to_string()).await?;
            let outside = self.subnet(PUBLIC, zone, &outside.to_string()).await?;
            self.associate(&public, &outside).await?;
            let name = self.names.in_zone("private", zone);
            let table = self.table(&name, &format!("routeTable/{zone}")).await?;
            self.associate(&table, &nodes).await?;
            match self.nat(zone, &outside.subnet_id).await? {
                Some(nat) if nat.is_available() => {
                    self.lead_out(&table, Via::Nat(&nat.nat_gateway_id)).await?;
                }
                Some(_) => self.pending.push(zone.clone()),
                None => {}
            }
        }
        self.made(plan, zones, group)
    }

    /// Reports the existing parts of an isolated zone. The zone gets no new part, change or wait: a NAT
    /// gateway or a subnet of a sick zone may never become available. The Infrastructure of the healthy zones
    /// must not wait for such a part.
    fn keep(&mut self, zone: &str) {
        for purpose in [NODES, PUBLIC] {
            let name = self.names.in_zone(purpose, zone);
            let listed = self.found.subnets.iter().find(|subnet| subnet.name() == name);
            let known = self.ledger.state().ids.get(&format!("subnet/{purpose}/{zone}"));
            let id = listed.map(|subnet| &subnet.subnet_id).or(known);
            self.subnets.extend(id.map(|id| SubnetStatus {
                id: id.clone(),
                purpose: purpose.into(),
                zone: zone.into(),
            }));
        }
        let name = self.names.in_zone("nat", zone);
        let address = self.found.addresses.iter().find(|address| address.name() == name);
        self.egress
            .extend(address.map(|address| format!("{}/32", address.public_ip)));
    }

    async fn vpc(&mut self, plan: &Plan) -> Result<()> {
        let name = self.names.vpc();
        let Chosen { id, unused } = choose(&self.found, name, self.ledger.state().vpc());
        let listed = std::mem::take(&mut self.found.vpcs);
        let used = listed.into_iter().filter(|vpc| id.as_deref() == Some(vpc.id()));
        let vpc = match (self.ledger.choose(VPC, used.collect(), name, |_| true)?.0, id) {
            (Some(vpc), _) => {
                self.adopt_account().await;
                vpc
            }
            // A part of the shoot names the VPC, or the VPC is known.
            (None, Some(id)) => {
                self.ledger.state().home().confirm(self.ec2, &id).await?;
                return Err(self.missing(&id));
            }
            (None, None) => {
                let home = self.ledger.state().home();
                home.confirm(self.ec2, &format!("the network of {name}")).await?;
                if home == HomeAccount::default() {
                    self.ledger.record_account(self.ec2.account_id().await?);
                }
                self.ledger.begin(VPC).await?;
                let range = plan.range.to_string();
                let made = self.ec2.create_vpc(&range, &self.names.tags(name)).await;
                let vpc = made.map_err(|failed| self.ledger.failed(VPC, failed))?;
                self.ledger.made(VPC, &vpc.vpc_id);
                vpc
            }
        };
        for other in unused {
            self.ledger.change(VPC)?;
            self.without_uid.retain(|id| *id != other);
            self.ec2.delete_vpc(&other).await?;
        }
        if vpc.cidr_block != plan.range.to_string() {
            return Err(problem(format!(
                "{} is {} and cannot become {}: put networks.vpc.cidr back",
                vpc.vpc_id, vpc.cidr_block, plan.range
            )));
        }
        self.vpc.clone_from(&vpc.vpc_id);
        // A VPC that was made twice has separate parts.
        self.found.subnets.retain(|subnet| subnet.vpc_id == vpc.vpc_id);
        self.found.groups.retain(|group| group.vpc_id == vpc.vpc_id);
        self.found.tables.retain(|table| table.vpc_id == vpc.vpc_id);
        Ok(())
    }

    /// Records the account of a network that is older than the record. A network without this record works
    /// as before, so that a failure is only logged.
    async fn adopt_account(&mut self) {
        if self.ledger.state().account_id.is_some() {
            return;
        }
        match self.ec2.account_id().await {
            Ok(id) => self.ledger.record_account(id),
            Err(error) => warn!(
                error = format_args!("{error:#}"),
                network = self.names.vpc(),
                "the account of the keys is not known"
            ),
        }
    }

    /// Gives objects that are older than the tag the uid of the Shoot.
    async fn add_uid(&mut self) -> Result<()> {
        let Some(tag) = self.names.owned().uid_tag() else {
            return Ok(());
        };
        let ids = std::mem::take(&mut self.without_uid);
        if ids.is_empty() {
            return Ok(());
        }
        self.ledger.change("the tag with the uid of the Shoot")?;
        Ok(self.ec2.set_tags_of(&ids, &[tag]).await?)
    }

    fn missing(&mut self, id: &str) -> Error {
        let (region, key) = (self.ec2.region(), self.names.owned().key());
        let name = self.names.vpc();
        self.ledger.missing(VPC, || {
            Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "{id} of {name} is not in {region} with the tag {key}; another VPC is never made in its place, because machines \
                     live in it: put the tag back, or correct the Secret if it is of another account"
                ),
            )
        })
    }

    async fn gateway(&mut self) -> Result<String> {
        const KEY: &str = "internetGateway";
        let (name, vpc) = (self.names.vpc(), self.vpc.as_str());
        let is_attached = |gateway: &InternetGateway| {
            let mut attachments = gateway.attachments.iter();
            attachments.any(|attachment| attachment.vpc_id == vpc)
        };
        let found = std::mem::take(&mut self.found.gateways);
        let (gateway, others) = self.ledger.choose(KEY, found, name, is_attached)?;
        // A gateway that is attached elsewhere belongs to a VPC that was made twice.
        for other in others.iter().filter(|other| other.attachments.is_empty()) {
            self.ledger.change(KEY)?;
            self.ec2.delete_internet_gateway(other.id()).await?;
        }
        let gateway = if let Some(gateway) = gateway {
            gateway
        } else {
            self.ledger.begin(KEY).await?;
            let made = self.ec2.create_internet_gateway(&self.names.tags(name)).await;
            let gateway = made.map_err(|failed| self.ledger.failed(KEY, failed))?;
            self.ledger.made(KEY, gateway.id());
            gateway
        };
        if !is_attached(&gateway) {
            self.ledger.change("the attachment of the internet gateway")?;
            self.ec2.attach_internet_gateway(gateway.id(), vpc).await?;
        }
        Ok(gateway.internet_gateway_id)
    }

    async fn group(&mut self) -> Result<String> {
        const KEY: &str = "securityGroup/nodes";
        let name = self.names.one(NODES);
        let found = std::mem::take(&mut self.found.groups);
        let (group, _) = self.ledger.choose(KEY, found, &name, |_| false)?;
        let lets_in = group.as_ref().is_some_and(SecurityGroup::lets_members_in);
        let id = if let Some(group) = group {
            group.group_id
        } else {
            self.ledger.change(KEY)?;
            let (vpc, tags) = (&self.vpc, self.names.tags(&name));
            let made = self.ec2.create_security_group(vpc, &name, &tags).await;
            let stranger = || format!("{vpc} has a security group {name} of others: remove it");
            let id = made.map_err(|failed| self.ledger.refused(KEY, failed, stranger))?;
            self.ledger.made(KEY, &id);
            id
        };
        if !lets_in {
            self.ledger.change("the rule of the security group")?;
            self.ec2.let_members_in(&id).await?;
        }
        Ok(id)
    }

    async fn table(&mut self, name: &str, key: &str) -> Result<RouteTable> {
        let found = self.found.tables.clone();
        let is_used = |table: &RouteTable| !table.associations.is_empty();
        let (table, others) = self.ledger.choose(key, found, name, is_used)?;
        for other in others.iter().filter(|other| !is_used(other)) {
            self.ledger.change(key)?;
            self.ec2.delete_route_table(other.id()).await?;
        }
        if let Some(table) = table {
            return Ok(table);
        }
        let token = token_since(&self.vpc, name, self.ledger.begin(key).await?);
        let tags = self.names.tags(name);
        let made = self.ec2.create_route_table(&self.vpc, &token, &tags).await;
        let table = made.map_err(|failed| self.ledger.failed(key, failed))?;
        self.ledger.made(key, table.id());
        Ok(table)
    }

    async fn lead_out(&mut self, table: &RouteTable, via: Via<'_>) -> Result<()> {
        let replaces = match table.way_out() {
            Some(route) if route.leads(via) => return Ok(()),
            route => route.is_some(),
        };
        self.ledger.change("a route")?;
        let id = &table.route_table_id;
        match self.ec2.lead_out(id, via, replaces).await {
            // EC2 did not show the route.
            Err(failed) if !replaces && failed.is_conflict() => Ok(self.ec2.lead_out(id, via, true).await?),
            Err(failed) if replaces && failed.code() == "InvalidParameterValue" => {
                // EC2 still shows a route that is gone.
                Ok(self.ec2.lead_out(id, via, false).await?)
            }
            done => Ok(done?),
        }
    }

    async fn subnet(&mut self, purpose: &str, zone: &str, range: &str) -> Result<Subnet> {
        let name = self.names.in_zone(purpose, zone);
        let key = format!("subnet/{purpose}/{zone}");
        let found = self.found.subnets.clone();
        let (subnet, _) = self.ledger.choose(&key, found, &name, |_| false)?;
        let subnet = if let Some(subnet) = subnet {
            subnet
        } else {
            self.ledger.change(&key)?;
            let (vpc, tags) = (&self.vpc, self.names.tags(&name));
            let made = self.ec2.create_subnet(vpc, zone, range, &tags).await;
            let stranger = || format!("{vpc} has a subnet of others in {range}: remove it");
            let subnet = made.map_err(|failed| self.ledger.refused(&key, failed, stranger))?;
            self.ledger.made(&key, &subnet.subnet_id);
            subnet
        };
        self.subnets.push(SubnetStatus {
            id: subnet.subnet_id.clone(),
            purpose: purpose.into(),
            zone: zone.into(),
        });
        Ok(subnet)
    }

    async fn associate(&mut self, table: &RouteTable, subnet: &Subnet) -> Result<()> {
        let (table_id, subnet_id) = (&table.route_table_id, &subnet.subnet_id);
        let key = format!("association/{subnet_id}");
        if table.association_of(subnet_id).is_some() {
            self.ledger.shown(&key);
            return Ok(());
        }
        self.ledger.change(&key)?;
        let associated = self.ec2.associate_route_table(table_id, subnet_id).await;
        associated.map_err(|failed| {
            self.ledger.refused(&key, failed, || {
                format!(
                    "somebody has associated {subnet_id} with another route table than {table_id}: take that association away"
                )
            })
        })
    }

    fn made(self, plan: &Plan, zones: &[Zone], group: String) -> Result<Made> {
        if let Some(error) = self.failed.into_iter().next() {
            return Err(error);
        }
        if !self.pending.is_empty() {
            return Err(Error::not_ready(
                NAT_CREATION_POLL_INTERVAL,
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
            zones: zones.to_vec(),
            account_id: self.ledger.state().account_id.clone(),
            ..InfrastructureStatus::default()
        };
        Ok(Made {
            range: plan.range.to_string(),
            egress: self.egress,
            state: State {
                unlisted: BTreeMap::new(),
                ..self.ledger.state().clone()
            },
            status,
        })
    }
}
