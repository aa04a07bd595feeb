//! EC2 as it is for a shoot: played by moto, behind a [`Proxy`].
#![allow(dead_code)] // each test program uses its own part of it

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Result, anyhow, ensure};
use cloud_aws::{
    Ec2, Ec2Access, Tagged,
    acls::Entry,
    infrastructure::{
        Found, InfrastructureConfig, InfrastructureStatus, Journal, Made, Names, Plan, State, make,
    },
    isolation::{Before, ZoneAcl},
    machines::Machines,
    network::Subnet,
};
use permit::{Clock, Issuer, Permit};
use runtime::{Credentials, Error};
use serde_json::{Value, json};
use testkit::Moto;

use super::proxy::Proxy;

/// Attempts of one operation: more than it has calls.
const MOST_ATTEMPTS: usize = 100;
/// Technical id of the shoot.
pub const SHOOT: &str = "shoot--dev--one";
/// An image that moto has.
pub const IMAGE: &str = "ami-1e749f67";

/// A region with a proxy before it.
pub struct Region {
    /// What stands before it.
    pub proxy: Proxy,
    /// Past the proxy, for the test itself.
    pub direct: Ec2,
    access: Ec2Access,
    name: &'static str,
}

impl Region {
    /// Of this name.
    pub async fn of(moto: &Moto, name: &'static str) -> Result<Self> {
        // As a process does at its start; another test may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let sole = Permit::sole("a test looks");
        let proxy = Proxy::start(moto.port).await?;
        Ok(Self {
            access: Ec2Access::new(Some(proxy.endpoint.clone())),
            proxy,
            direct: Ec2Access::new(Some(moto.endpoint.clone())).open(&credentials(), name, &sole)?,
            name,
        })
    }

    /// As the provider goes there.
    pub fn ec2(&self, permit: &Permit) -> Result<Ec2> {
        Ok(self.access.open(&credentials(), self.name, permit)?)
    }

    /// As the provider goes there, where EC2 lists everything within a time.
    pub fn ec2_listing_within(&self, bound: Duration) -> Result<Ec2> {
        let access = Ec2Access::with_bound(Some(self.proxy.endpoint.clone()), bound);
        Ok(access.open(&credentials(), self.name, &Permit::sole("a test"))?)
    }

    /// Names of its first zones.
    pub fn zones(&self) -> [String; 2] {
        ["a", "b"].map(|zone| format!("{}{zone}", self.name))
    }

    /// The configuration of a shoot in two zones.
    pub fn config(&self) -> Value {
        let [a, b] = self.zones();
        json!({"networks": {"vpc": {"cidr": "10.250.0.0/16"}, "zones": [
            {"name": a, "workers": "10.250.0.0/19", "public": "10.250.32.0/20"},
            {"name": b, "workers": "10.250.64.0/19", "public": "10.250.96.0/20"},
        ]}})
    }

    /// The same, understood.
    pub fn plan(&self) -> Result<Plan> {
        let config: InfrastructureConfig = serde_json::from_value(self.config())?;
        Ok(Plan::of(&config)?)
    }

    /// Everything of the shoot but ACLs.
    pub async fn found(&self) -> Result<Found> {
        Ok(Found::look(&self.direct, &Names::of(SHOOT)).await?)
    }

    /// The infrastructure of a shoot, made without faults.
    pub async fn made(&self) -> Result<(InfrastructureStatus, State)> {
        let made = Notebook::default()
            .make(&self.direct, &Names::of(SHOOT), &self.plan()?)
            .await?;
        Ok((made.status, made.state))
    }

    /// The shoot's instances.
    pub async fn instances(&self) -> Result<Instances> {
        let all = Machines::of(self.direct.clone(), SHOOT).list().await?;
        Ok(all
            .into_iter()
            .map(|one| (one.id().to_owned(), one.placement.availability_zone))
            .collect())
    }

    /// Of two machines, one in each zone, that in the first zone has gone to the other one, and nobody else
    /// has noticed.
    pub fn first_zone_is_left(&self, before: &Instances, left: &Instances) -> Result<()> {
        let [sick, other] = self.zones();
        ensure!(
            left.len() == 2 && left.values().all(|zone| *zone == other),
            "{left:?}"
        );
        let mut elsewhere = before.iter().filter(|(_, zone)| **zone != sick);
        ensure!(
            elsewhere.all(|(id, _)| left.contains_key(id)),
            "a machine elsewhere has noticed: {left:?} of {before:?}"
        );
        Ok(())
    }

    /// The first zone has machines again, and elsewhere no machine was replaced. One that was made for the
    /// failover may have gone.
    pub fn first_zone_is_back(&self, left: &Instances, back: &Instances) -> Result<()> {
        let [sick, _] = self.zones();
        ensure!(
            back.values().any(|zone| *zone == sick),
            "no machine came back: {back:?}"
        );
        let mut elsewhere = back.iter().filter(|(_, zone)| **zone != sick);
        ensure!(
            elsewhere.all(|(id, _)| left.contains_key(id)) && left.keys().any(|id| back.contains_key(id)),
            "a machine elsewhere was replaced: {back:?} of {left:?}"
        );
        Ok(())
    }

    /// Which ACL each subnet of a VPC has, and the rules and tags of all ACLs.
    pub async fn acls(&self, vpc: &str) -> Result<Acls> {
        let mut seen = Acls::default();
        for acl in self.direct.network_acls(vpc).await? {
            let mut entries = acl.entries.to_vec();
            entries.sort();
            for association in acl.associations.iter() {
                seen.subnets
                    .insert(association.subnet_id.clone(), acl.network_acl_id.clone());
            }
            let mut tags: Vec<String> = acl
                .tags()
                .iter()
                .map(|tag| format!("{}={}", tag.key, tag.value))
                .collect();
            tags.sort();
            seen.rules.insert(acl.network_acl_id, (entries, tags));
        }
        Ok(seen)
    }

    /// Gives a subnet another ACL, as somebody does by hand.
    pub async fn set_acl(&self, vpc: &str, subnet: &str, acl: &str) -> Result<()> {
        let acls = self.direct.network_acls(vpc).await?;
        let association = acls.iter().find_map(|acl| acl.association_of(subnet));
        let association = association.ok_or_else(|| anyhow!("{subnet} has no ACL"))?;
        let id = &association.network_acl_association_id;
        Ok(refused(self.direct.replace_association(id, acl).await)?)
    }

    /// An ACL of somebody else, with a rule.
    pub async fn other_acl(&self, vpc: &str) -> Result<String> {
        let acl = refused(self.direct.create_network_acl(vpc, "by-hand", &[]).await)?.network_acl_id;
        refused(self.direct.create_entry(&acl, &allow(10)).await)?;
        Ok(acl)
    }
}

/// Keeps the state of an infrastructure, as a seed does.
#[derive(Default)]
pub struct Notebook(Mutex<Option<State>>);

impl Notebook {
    /// With this state.
    pub fn with(state: State) -> Self {
        Self(Mutex::new(Some(state)))
    }

    /// What was kept last.
    pub fn state(&self) -> Option<State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes an infrastructure from what is known of it.
    pub async fn make(&self, ec2: &Ec2, names: &Names, plan: &Plan) -> runtime::Result<Made> {
        let made = make(ec2, names, plan, self.state().as_ref(), self).await?;
        self.save(&made.state).await?;
        Ok(made)
    }
}

impl Journal for Notebook {
    async fn save(&self, state: &State) -> runtime::Result<()> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(state.clone());
        Ok(())
    }
}

/// Instances by id, with their zones.
pub type Instances = BTreeMap<String, String>;

/// Closes subnets as a provider does. Returns what was there before, with the ACL that closes them.
pub async fn close(
    acl: &ZoneAcl,
    subnets: &BTreeSet<String>,
    known: Option<&Before>,
) -> runtime::Result<Before> {
    let before = acl.make(&acl.look(subnets, known).await?).await?;
    acl.close(subnets, &before).await?;
    Ok(before)
}

/// What a VPC's ACLs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acls {
    /// ACLs by subnet.
    pub subnets: BTreeMap<String, String>,
    /// Rules and tags by ACL.
    pub rules: BTreeMap<String, (Vec<Entry>, Vec<String>)>,
}

impl Acls {
    /// Of these subnets.
    pub fn of(&self, subnets: &BTreeSet<String>) -> BTreeSet<String> {
        let of = self
            .subnets
            .iter()
            .filter(|(subnet, _)| subnets.contains(*subnet));
        of.map(|(_, acl)| acl.clone()).collect()
    }
}

/// A rule that lets all of IPv4 in.
pub fn allow(number: u16) -> Entry {
    Entry {
        egress: false,
        rule_number: number,
        protocol: "-1".into(),
        rule_action: "allow".into(),
        cidr_block: Some("0.0.0.0/0".into()),
        ipv6_cidr_block: None,
    }
}

/// Keys of an account. Whatever they are, they are good here.
pub fn credentials() -> Credentials {
    let data = [("accessKeyID", "AKIATEST"), ("secretAccessKey", "secret")];
    Credentials::new(
        "garden/aws",
        data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()))
            .into(),
    )
}

/// A right that lasts longer than any test, until it is ended.
pub fn right() -> Arc<Issuer> {
    let clock = Clock::default();
    let until = clock.now() + Duration::from_secs(3600);
    Arc::new(Issuer::new("the shoot", clock, until))
}

/// As an error that tests can pass on.
pub fn refused<T>(answer: cloud_aws::Answer<T>) -> runtime::Result<T> {
    answer.map_err(Error::from)
}

/// Tries until it succeeds, as the reconciler does: only what passes by itself is tried again. Returns how
/// often it failed.
pub async fn until_done<T, F, Fut>(mut attempt: F) -> Result<(T, usize)>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = runtime::Result<T>>,
{
    for failed in 0..MOST_ATTEMPTS {
        match attempt().await {
            Ok(done) => return Ok((done, failed)),
            Err(error) => ensure!(error.is_retryable(), "attempt {failed}: {error}"),
        }
    }
    Err(anyhow!("it did not succeed in {MOST_ATTEMPTS} attempts"))
}

/// As [`until_done`], with the pauses of the reconciler cut short. Returns what was awaited.
pub async fn until_shown<T, F, Fut>(mut attempt: F) -> Result<(T, Vec<String>)>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = runtime::Result<T>>,
{
    let mut awaited = Vec::new();
    while awaited.len() < 4 * MOST_ATTEMPTS {
        match attempt().await {
            Ok(done) => return Ok((done, awaited)),
            Err(error) => {
                ensure!(error.is_retryable(), "after {awaited:?}: {error}");
                awaited.push(error.to_string());
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(anyhow!("it did not succeed: {awaited:?}"))
}

/// One of everything, and in each of two zones one of everything.
pub fn is_complete(found: &Found) -> Result<()> {
    let counts = [
        found.vpcs.len(),
        found.gateways.len(),
        found.groups.len(),
        found.subnets.len(),
        found.tables.len(),
        found.nats.len(),
        found.addresses.len(),
    ];
    ensure!(counts == [1, 1, 1, 4, 3, 2, 2], "{counts:?} in {found:#?}");
    let gateway = found.gateways[0]
        .attachments
        .iter()
        .map(|attachment| &attachment.vpc_id);
    ensure!(
        gateway.eq([&found.vpcs[0].vpc_id]),
        "the gateway is attached elsewhere"
    );
    ensure!(
        found.groups[0].lets_members_in(),
        "machines cannot reach each other"
    );
    for subnet in &found.subnets {
        has_a_way_out(found, subnet)?;
    }
    Ok(())
}

/// By the NAT gateway of its own zone, or by the VPC's gateway.
fn has_a_way_out(found: &Found, subnet: &Subnet) -> Result<()> {
    let id = &subnet.subnet_id;
    let of: Vec<_> = found
        .tables
        .iter()
        .filter(|table| table.association_of(id).is_some())
        .collect();
    ensure!(of.len() == 1, "{id} has {} route tables", of.len());
    let way = of[0].way_out().ok_or_else(|| anyhow!("{id} has no way out"))?;
    let Some(nat) = &way.nat_gateway_id else {
        ensure!(
            subnet.name().contains("-public-") && way.gateway_id.is_some(),
            "{id}: {way:?}"
        );
        return Ok(());
    };
    let nat = found.nats.iter().find(|known| known.nat_gateway_id == *nat);
    let nat = nat.ok_or_else(|| anyhow!("{id} leads to a NAT gateway that is gone"))?;
    let of_nat = found
        .subnets
        .iter()
        .find(|known| known.subnet_id == nat.subnet_id);
    let zone = of_nat.map(|known| &known.availability_zone);
    ensure!(
        zone == Some(&subnet.availability_zone),
        "{id} goes out by zone {zone:?}"
    );
    Ok(())
}
