//! The test environment of a shoot: EC2, simulated by moto, behind a [`Proxy`].

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
        InfrastructureConfig, InfrastructureStatus, Journal, Made, Names, NetworkParts, Plan, State, make,
    },
    isolation::{Before, ZoneAcl},
    machines::Machines,
    network::Subnet,
};
use permit::{Clock, Issuer, Permit};
use runtime::{Error, client::Credentials};
use serde_json::{Value, json};
use testkit::Moto;

use crate::proxy::Proxy;

/// Attempts of an operation: more than the operation has calls.
const MOST_ATTEMPTS: usize = 100;
/// Technical id of the shoot.
pub const SHOOT: &str = "shoot--dev--one";
/// An image that moto has.
pub const IMAGE: &str = "ami-1e749f67";

/// A region with a proxy.
pub struct Region {
    /// The proxy in front of EC2.
    pub proxy: Proxy,
    /// A client without the proxy, for the test.
    pub direct: Ec2,
    access: Ec2Access,
    name: &'static str,
}

impl Region {
    /// The region of this name, behind a new proxy.
    pub async fn start(moto: &Moto, name: &'static str) -> Result<Self> {
        // As a process does at the start. A different test may have installed the provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        moto.load_region(name).await?;
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

    /// A client like the client of the provider, where EC2 lists all objects within a time.
    pub fn ec2_listing_within(&self, bound: Duration) -> Result<Ec2> {
        let access = Ec2Access::with_bound(Some(self.proxy.endpoint.clone()), bound);
        Ok(access.open(&credentials(), self.name, &Permit::sole("a test"))?)
    }

    /// Names of the first two zones.
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
        Ok(Plan::from_config(&config)?)
    }

    /// All parts of the shoot without ACLs.
    pub async fn list_parts(&self) -> Result<NetworkParts> {
        Ok(NetworkParts::list(&self.direct, &Names::for_cluster(SHOOT)).await?)
    }

    /// The infrastructure of a shoot, made without faults.
    pub async fn made(&self) -> Result<(InfrastructureStatus, State)> {
        let made = Notebook::default()
            .make(&self.direct, &Names::for_cluster(SHOOT), &self.plan()?)
            .await?;
        Ok((made.status, made.state))
    }

    /// The shoot's instances.
    pub async fn instances(&self) -> Result<Instances> {
        let all = Machines::for_cluster(self.direct.clone(), SHOOT).list().await?;
        Ok(all
            .into_iter()
            .map(|one| (one.id().to_owned(), one.placement.availability_zone))
            .collect())
    }

    /// Checks a failover with a machine in each of two zones. The machine of the first zone was replaced in
    /// the second zone, and the machine of the second zone stayed.
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

    /// Checks a recovery: the first zone has machines again, and elsewhere no machine was replaced. A machine
    /// of the failover may have gone.
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

    /// The ACL of each subnet of a VPC, and the rules and tags of all ACLs.
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

    /// Sets the ACL of a subnet, like a user by hand.
    pub async fn set_acl(&self, vpc: &str, subnet: &str, acl: &str) -> Result<()> {
        let acls = self.direct.network_acls(vpc).await?;
        let association = acls.iter().find_map(|acl| acl.association_of(subnet));
        let association = association.ok_or_else(|| anyhow!("{subnet} has no ACL"))?;
        let id = &association.network_acl_association_id;
        Ok(refused(self.direct.replace_association(id, acl).await)?)
    }

    /// Creates a foreign ACL with a rule.
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

    /// The last kept state.
    pub fn state(&self) -> Option<State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes an infrastructure from the kept state.
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

/// Instances by id, with zones.
pub type Instances = BTreeMap<String, String>;

/// Closes subnets as a provider does. Returns the former ACLs, with the ACL that closes the subnets.
pub async fn close(
    acl: &ZoneAcl,
    subnets: &BTreeSet<String>,
    known: Option<&Before>,
) -> runtime::Result<Before> {
    let before = acl.make(&acl.read_former_acls(subnets, known).await?).await?;
    acl.close(subnets, &before).await?;
    Ok(before)
}

/// The ACLs of a VPC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acls {
    /// ACLs by subnet.
    pub subnets: BTreeMap<String, String>,
    /// Rules and tags by ACL.
    pub rules: BTreeMap<String, (Vec<Entry>, Vec<String>)>,
}

impl Acls {
    /// The ids of the ACLs of these subnets.
    pub fn acl_ids(&self, subnets: &BTreeSet<String>) -> BTreeSet<String> {
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

/// Keys of an account. moto accepts any keys.
pub fn credentials() -> Credentials {
    let data = [("accessKeyID", "AKIATEST"), ("secretAccessKey", "secret")];
    Credentials::new(
        "garden/aws",
        data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()))
            .into(),
    )
}

/// A permit that lasts longer than any test, until the test ends the permit.
pub fn right() -> Arc<Issuer> {
    let clock = Clock::default();
    let until = clock.now() + Duration::from_secs(3600);
    Arc::new(Issuer::new("the shoot", clock, until))
}

/// As an error that tests can pass on.
pub fn refused<T>(answer: cloud_aws::Answer<T>) -> runtime::Result<T> {
    answer.map_err(Error::from)
}

/// Repeats an attempt until success, like the reconciler: only transient failures are repeated. Returns the
/// number of failures.
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

/// As [`until_done`], with short pauses in place of the reconciler's pauses. Returns the awaited states.
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

/// Checks that each part exists once, and each part of a zone once in each of two zones.
pub fn is_complete(found: &NetworkParts) -> Result<()> {
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

/// Checks the default route of a subnet: by the NAT gateway of the same zone, or by the internet gateway of
/// the VPC.
fn has_a_way_out(found: &NetworkParts, subnet: &Subnet) -> Result<()> {
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
