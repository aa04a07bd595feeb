//! The observations of a probe, and the faults in the observations. No I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use k8s_openapi::{api::core::v1, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use kube::ResourceExt;

/// Taint of a Node that a kubelet has just registered: no pod is scheduled on the Node.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The two managers that can run node IPAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manager {
    /// kube-controller-manager.
    Kubernetes,
    /// cloud-controller-manager-local.
    Cloud,
}

impl Manager {
    /// The manager by a name that the manager uses for writes or locks.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name.contains("cloud-controller-manager") {
            Some(Self::Cloud)
        } else if name.contains("kube-controller-manager") {
            Some(Self::Kubernetes)
        } else {
            None
        }
    }
}

/// The range of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The text in the Node.
    pub text: String,
    /// The writer of the range.
    pub by: Option<Manager>,
    /// The time of the observation.
    pub at: Instant,
    /// The first resourceVersion of the Node with this range; `None` if that version was not observed.
    pub version: Option<u64>,
}

/// A Node that the probe registered.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    /// The time of the registration.
    pub at: Instant,
    /// The time at which the Node had the provider ID and no taint.
    pub described: Option<Instant>,
    /// The range of the Node.
    pub range: Option<Range>,
}

/// A Service that the probe made.
#[derive(Clone, Debug)]
pub struct ServiceRecord {
    /// The time of the creation.
    pub at: Instant,
    /// The address, with the time of the assignment.
    pub address: Option<(Instant, String)>,
}

/// The observations of a probe.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// Nodes by name.
    pub nodes: BTreeMap<String, NodeRecord>,
    /// Services by name.
    pub services: BTreeMap<String, ServiceRecord>,
    /// Holders of the migration lock, by the first observed resourceVersion of the Lease. An empty name means
    /// no holder.
    holders: BTreeMap<u64, String>,
    /// The reasons of failed registrations; each registration was repeated.
    pub refusals: Vec<String>,
    wrong: Vec<String>,
}

/// The longest waits of objects created in a span of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Nodes that came.
    pub nodes: usize,
    /// Services that came.
    pub services: usize,
    /// Until a Node was described by the cloud.
    pub described: Duration,
    /// Until a Node had a range.
    pub range: Duration,
    /// Until a Service had an address.
    pub address: Duration,
    /// Ranges that the kube-controller-manager gave.
    pub by_kubernetes: usize,
    /// Ranges that the cloud-controller-manager gave.
    pub by_cloud: usize,
}

impl Book {
    /// A Node is about to be registered. Repeated where the API did not answer: the first time counts.
    pub fn node_comes(&mut self, name: &str, at: Instant) {
        let record = NodeRecord {
            at,
            described: None,
            range: None,
        };
        self.nodes.entry(name.to_owned()).or_insert(record);
    }

    /// A Service is about to be made.
    pub fn service_comes(&mut self, name: &str, at: Instant) {
        let record = ServiceRecord { at, address: None };
        self.services.entry(name.to_owned()).or_insert(record);
    }

    /// Records a Node. `change`: this version is the result of a write, and the version before was observed
    /// too.
    pub fn see_node(&mut self, node: &v1::Node, change: bool, now: Instant) {
        let name = node.name_any();
        let Some(record) = self.nodes.get_mut(&name) else {
            return;
        };
        if record.described.is_none() && is_described(node) {
            record.described = Some(now);
        }
        let spec = node.spec.as_ref();
        let ranges = spec
            .and_then(|spec| spec.pod_cidrs.as_deref())
            .unwrap_or_default();
        if ranges.len() > 1 {
            self.wrong.push(format!("{name} has several ranges: {ranges:?}"));
        }
        match (&record.range, ranges.first()) {
            (None, Some(range)) => {
                record.range = Some(Range {
                    text: range.clone(),
                    by: giver(node.managed_fields()),
                    at: now,
                    version: version(node.resource_version()).filter(|_| change),
                });
            }
            (Some(before), now) if now != Some(&before.text) => {
                self.wrong
                    .push(format!("{name} had the range {} and then {now:?}", before.text));
            }
            _ => {}
        }
    }

    /// Records a foreign removal of a Node.
    pub fn node_went(&mut self, node: &v1::Node) {
        self.wrong.push(format!("{} was removed", node.name_any()));
    }

    /// Takes down a Service.
    pub fn see_service(&mut self, service: &v1::Service, now: Instant) {
        let name = service.name_any();
        let Some(record) = self.services.get_mut(&name) else {
            return;
        };
        let shown = service.status.as_ref().and_then(|status| {
            status
                .load_balancer
                .as_ref()?
                .ingress
                .as_ref()?
                .first()?
                .ip
                .clone()
        });
        match (&record.address, shown) {
            (None, Some(address)) => record.address = Some((now, address)),
            (Some((_, before)), now) if now.as_ref() != Some(before) => {
                self.wrong
                    .push(format!("{name} had the address {before} and then {now:?}"));
            }
            _ => {}
        }
    }

    /// Records the holder of the migration lock since this version; empty without a holder.
    pub fn see_holder(&mut self, resource_version: Option<String>, holder: &str) {
        if let Some(version) = version(resource_version) {
            self.holders.insert(version, holder.to_owned());
        }
    }

    /// Objects created until `until` that still wait.
    #[must_use]
    pub fn waiting(&self, until: Instant) -> Vec<&str> {
        let nodes = self
            .nodes
            .iter()
            .filter(|(_, node)| node.at <= until && (node.described.is_none() || node.range.is_none()));
        let services = self
            .services
            .iter()
            .filter(|(_, service)| service.at <= until && service.address.is_none());
        let nodes = nodes.map(|(name, _)| name.as_str());
        nodes.chain(services.map(|(name, _)| name.as_str())).collect()
    }

    /// The managers that assigned ranges to Nodes created after `since`.
    #[must_use]
    pub fn givers(&self, since: Instant) -> BTreeSet<Option<Manager>> {
        let later = self.nodes.values().filter(|node| node.at >= since);
        later.filter_map(|node| Some(node.range.as_ref()?.by)).collect()
    }

    /// The longest waits of objects created in this span of time.
    #[must_use]
    pub fn waits(&self, from: Instant, to: Instant) -> Waits {
        let mut waits = Waits::default();
        for node in self
            .nodes
            .values()
            .filter(|node| from <= node.at && node.at <= to)
        {
            waits.nodes += 1;
            if let Some(described) = node.described {
                waits.described = waits.described.max(described.duration_since(node.at));
            }
            if let Some(range) = &node.range {
                waits.range = waits.range.max(range.at.duration_since(node.at));
                match range.by {
                    Some(Manager::Kubernetes) => waits.by_kubernetes += 1,
                    Some(Manager::Cloud) => waits.by_cloud += 1,
                    None => {}
                }
            }
        }
        let services = self.services.values();
        for service in services.filter(|service| from <= service.at && service.at <= to) {
            waits.services += 1;
            if let Some((shown, _)) = &service.address {
                waits.address = waits.address.max(shown.duration_since(service.at));
            }
        }
        waits
    }

    /// All faults; empty without a fault. Call at the end, when no object waits any more.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut found = self.wrong.clone();
        found.extend(self.overlaps());
        found.extend(self.usurped());
        let unknown = |name: &String, node: &NodeRecord| match &node.range {
            None => Some(format!("{name} has no range")),
            Some(range) if range.by.is_none() => Some(format!("nobody knows who gave {name} its range")),
            Some(_) => None,
        };
        found.extend(self.nodes.iter().filter_map(|(name, node)| unknown(name, node)));
        let mut owners = BTreeMap::new();
        for (name, service) in &self.services {
            if let Some((_, address)) = &service.address
                && let Some(other) = owners.insert(address, name)
            {
                found.push(format!("{other} and {name} have the same address {address}"));
            }
        }
        found
    }

    /// Ranges that have addresses in common.
    fn overlaps(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut spans = Vec::new();
        for (name, node) in &self.nodes {
            let Some(range) = &node.range else { continue };
            match span(&range.text) {
                Some((first, last)) => spans.push((first, last, name, &range.text)),
                None => found.push(format!("{name} has the range {:?}, which is none", range.text)),
            }
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            let ((_, last, name, range), (first, _, other, another)) = (pair[0], pair[1]);
            if first <= last {
                found.push(format!("{name} and {other} share addresses: {range}, {another}"));
            }
        }
        found
    }

    /// Ranges that a manager assigned while the second manager held the lock. Exact, because all
    /// resourceVersions count the same writes.
    fn usurped(&self) -> Vec<String> {
        let wrong = |name: &String, node: &NodeRecord| {
            let range = node.range.as_ref()?;
            let version = range.version?;
            let holder = self.holders.range(..=version).next_back()?.1;
            let allowed = Manager::from_name(holder)?;
            (range.by != Some(allowed)).then(|| {
                format!(
                    "{name} has its range of {:?} while {holder} held the lock",
                    range.by
                )
            })
        };
        self.nodes
            .iter()
            .filter_map(|(name, node)| wrong(name, node))
            .collect()
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "longest waits: {:.1} s for a range ({} of kube-controller-manager, {} of cloud-controller-manager), \
             {:.1} s to be described by the cloud, {:.1} s for an address ({} Nodes, {} Services)",
            self.range.as_secs_f64(),
            self.by_kubernetes,
            self.by_cloud,
            self.described.as_secs_f64(),
            self.address.as_secs_f64(),
            self.nodes,
            self.services
        )
    }
}

fn is_described(node: &v1::Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| {
        let tainted = spec
            .taints
            .iter()
            .flatten()
            .any(|taint| taint.key == UNINITIALIZED);
        !tainted && spec.provider_id.as_ref().is_some_and(|id| !id.is_empty())
    })
}

/// The writer of the range, from the managed fields.
fn giver(fields: &[ManagedFieldsEntry]) -> Option<Manager> {
    let wrote = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.pointer("/f:spec/f:podCIDR").is_some())
    };
    Manager::from_name(fields.iter().find(wrote)?.manager.as_deref()?)
}

fn version(resource_version: Option<String>) -> Option<u64> {
    resource_version?.parse().ok()
}

/// First and last address of a range.
fn span(range: &str) -> Option<(u32, u32)> {
    let (address, length) = range.split_once('/')?;
    let (address, length): (Ipv4Addr, u32) = (address.parse().ok()?, length.parse().ok()?);
    let hosts = u32::MAX.checked_shr(length).unwrap_or(0);
    (length <= 32).then(|| (u32::from(address) & !hosts, u32::from(address) | hosts))
}
