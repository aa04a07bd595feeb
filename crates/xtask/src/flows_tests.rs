//! The required order of tasks, regardless of further changes of a flow.

use std::collections::{BTreeMap, BTreeSet};

use super::{facts, page};
use anyhow::{Context, Result, ensure};

#[path = "flows_gates_tests.rs"]
mod gates;
#[path = "flows_owner_tests.rs"]
mod owner;

/// A drawing, read again.
struct Drawn {
    title: &'static str,
    names: BTreeMap<String, String>,
    before: BTreeMap<String, BTreeSet<String>>,
}

impl Drawn {
    fn read(page: &str, title: &'static str) -> Result<Self> {
        let (_, after) = page
            .split_once(&format!("\n## {title}\n"))
            .with_context(|| format!("no flow {title}"))?;
        let section = after.split("\n## ").next().unwrap_or_default();
        let (mut names, mut before) = (BTreeMap::new(), BTreeMap::<String, BTreeSet<String>>::new());
        for line in section.lines().map(str::trim) {
            if let Some((from, to)) = line.split_once(" --> ") {
                before.entry(to.to_owned()).or_default().insert(from.to_owned());
            } else if let Some((id, name)) = line.split_once("[\"") {
                let name = name.split("\"]").next().unwrap_or_default();
                names.insert(name.to_owned(), id.to_owned());
            }
        }
        Ok(Self { title, names, before })
    }

    fn id(&self, name: &str) -> Result<&str> {
        let id = self
            .names
            .get(name)
            .with_context(|| format!("{}: no task {name:?}", self.title))?;
        Ok(id)
    }

    /// Whether the second task starts only after the first has ended.
    fn in_order(&self, [first, second]: [&str; 2]) -> Result<()> {
        let (first_id, mut open) = (self.id(first)?, vec![self.id(second)?]);
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if id == first_id {
                return Ok(());
            }
            if seen.insert(id) {
                open.extend(self.before.get(id).into_iter().flatten().map(String::as_str));
            }
        }
        ensure!(false, "{}: {second:?} does not wait for {first:?}", self.title);
        Ok(())
    }
}

const SOURCE: &str = "Move, in the source seed";
const DESTINATION: &str = "Move, in the destination seed";
const LEFT: &str = "After a move, in the source seed";
const DELETION: &str = "Deletion";
const FORCED: &str = "Forced deletion";
const ASLEEP: &str = "Asleep: kept, or restored by a move";

const ORDERS: &[(&str, [&str; 2])] = &[
    // gardener#11813: without this order, the Secret had no namespace.
    (
        DESTINATION,
        [
            "Deploying Shoot namespace in Seed",
            "Deploying source backup entry",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until the source backup entry has been reconciled",
            "Copying etcd backups to new seed's backup bucket",
        ],
    ),
    // R17-29, R17-31, I3: the cloud is touched after the backups are here and the copy Job is gone. Machines
    // are touched after the API is ready.
    (
        DESTINATION,
        [
            "Destroying copy of etcd backups",
            "Deploying Shoot infrastructure",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until Kubernetes API server rolled out",
            "Configuring shoot worker pools",
        ],
    ),
    // gardener#4584: the users of the API have released the API before the API stops.
    (
        SOURCE,
        [
            "Waiting until shoot control plane has been migrated",
            "Deleting kube-apiserver deployment",
        ],
    ),
    // I2: no write follows the final snapshot.
    (
        SOURCE,
        [
            "Waiting until kube-apiserver has been deleted",
            "Creating ETCD Snapshot",
        ],
    ),
    // R17-21: the new owner is announced before the flow touches a resource that a former owner might touch.
    (
        DESTINATION,
        [
            "Waiting until owner domain DNS record is ready",
            "Deploying source backup entry",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until owner domain DNS record is ready",
            "Deploying internal domain DNS record",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until owner domain DNS record is ready",
            "Deploying Shoot infrastructure",
        ],
    ),
    (
        ASLEEP,
        [
            "Waiting until owner domain DNS record is ready",
            "Deploying Shoot infrastructure",
        ],
    ),
    // R17-50: the former owner has learned of the loss when the final snapshot is taken.
    (
        SOURCE,
        [
            "Waiting until owner domain DNS record has been migrated",
            "Creating ETCD Snapshot",
        ],
    ),
    // The shoot is owned as long as any component of the shoot can act.
    (
        DELETION,
        [
            "Waiting until main and event etcd have been destroyed",
            "Destroying owner domain DNS record",
        ],
    ),
    (
        DELETION,
        [
            "Waiting until shoot infrastructure has been destroyed",
            "Destroying owner domain DNS record",
        ],
    ),
    (
        FORCED,
        [
            "Waiting until extension resources have been deleted",
            "Destroying owner domain DNS record",
        ],
    ),
    // The machine manager gets time before the provider stops the machine manager, and the machines are
    // removed before their network.
    (
        FORCED,
        [
            "Waiting until the machine manager has deleted all machines",
            "Deleting extension resources by force",
        ],
    ),
    // The machine manager of a third-party provider may be in a ManagedResource.
    (
        FORCED,
        [
            "Waiting until the machine manager has deleted all machines",
            "Deleting all Managed Resources from the Shoot's namespace",
        ],
    ),
    // A Machine without finalizers leaves the instance running.
    (
        FORCED,
        [
            "Waiting until extension resources have been deleted",
            "Shallow-deleting machine resources from the Shoot namespace",
        ],
    ),
    // The backups are complete while a shoot is hibernated.
    (
        ASLEEP,
        [
            "Waiting until Kubernetes API server has stopped",
            "Creating ETCD Snapshot before etcd sleeps",
        ],
    ),
    (
        ASLEEP,
        [
            "Creating ETCD Snapshot before etcd sleeps",
            "Scaling main and events etcd down",
        ],
    ),
    // gardener#8943: a provider reads the kube-apiserver Deployment, and finds the Deployment scaled down at
    // the time of the request.
    (
        ASLEEP,
        [
            "Scaling Kubernetes API server down",
            "Scaling shoot control plane components down",
        ],
    ),
    // The backups of the source are removed only after the data have been opened here.
    (
        ASLEEP,
        [
            "Waiting until main and event etcd report readiness",
            "Destroying source backup entry",
        ],
    ),
    // gardener#9651: a provider of extensions may influence further extension objects, so the extensions are
    // removed last.
    (
        DELETION,
        [
            "Waiting until extension resources have been deleted",
            "Deleting extensions before kube-apiserver",
        ],
    ),
    (
        LEFT,
        [
            "Waiting until extension resources have been deleted",
            "Deleting extensions",
        ],
    ),
    // Each extension has a lifecycle time, by api.md 4.3.
    (
        DESTINATION,
        [
            "Destroying copy of etcd backups",
            "Deploying extensions before kube-apiserver",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until extensions before kube-apiserver have been reconciled",
            "Deploying Kubernetes API server",
        ],
    ),
    (
        DESTINATION,
        [
            "Initializing connection to Shoot",
            "Deploying extensions after kube-apiserver",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until extensions after kube-apiserver have been reconciled",
            "Deploying operating system specific configuration for shoot workers",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until shoot worker nodes have been reconciled",
            "Deploying extensions after workers",
        ],
    ),
    (
        SOURCE,
        [
            "Waiting until extensions that should be handled before kube-apiserver have been migrated",
            "Deleting kube-apiserver deployment",
        ],
    ),
    (
        SOURCE,
        [
            "Waiting until kube-apiserver has been deleted",
            "Migrating extensions after kube-apiserver",
        ],
    ),
    (
        DELETION,
        [
            "Waiting until extensions that should be handled before kube-apiserver have been deleted",
            "Deleting kube-apiserver deployment",
        ],
    ),
    (
        DELETION,
        [
            "Waiting until kube-apiserver has been deleted",
            "Deleting extensions after kube-apiserver",
        ],
    ),
    // RX-11: the state that each extension wrote in migrate is carried.
    (
        SOURCE,
        [
            "Waiting until extensions that should be handled before kube-apiserver have been migrated",
            "Persisting ShootState in garden cluster",
        ],
    ),
    (
        SOURCE,
        [
            "Waiting until extensions that should be handled after kube-apiserver have been migrated",
            "Persisting late state in ShootState",
        ],
    ),
    // R17-20, R17-21: the fence begins when both witnesses show the new owner, and the copy reads for the
    // last time after the fence.
    (
        DESTINATION,
        [
            "Waiting until owner domain DNS record is ready",
            "Waiting until every witness shows that the seed has the shoot",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until the source backup entry has been reconciled",
            "Waiting until every witness shows that the seed has the shoot",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until every witness shows that the seed has the shoot",
            "Copying etcd backups to new seed's backup bucket",
        ],
    ),
    (
        DESTINATION,
        [
            "Waiting until the former seed cannot act any more",
            "Recording with which backups the shoot begins",
        ],
    ),
    // I2, the etcd condition: the origin of the data is recorded before etcd is opened with the data.
    (
        DESTINATION,
        [
            "Destroying copy of etcd backups",
            "Recording with which backups the shoot begins",
        ],
    ),
    (
        DESTINATION,
        [
            "Recording with which backups the shoot begins",
            "Deploying main and events etcd",
        ],
    ),
    (
        ASLEEP,
        [
            "Recording with which backups the shoot begins",
            "Deploying main and events etcd",
        ],
    ),
    (
        DESTINATION,
        [
            "Recording with which backups the shoot begins",
            "Recording that the seed holds the shoot",
        ],
    ),
    // A runtime is installed on nodes that are there.
    (
        DESTINATION,
        [
            "Waiting until shoot worker nodes have been reconciled",
            "Deploying container runtime resources",
        ],
    ),
];

/// R17-54: during hibernation, only etcd is woken up.
#[test]
fn nothing_that_writes_is_woken_in_a_sleep() -> Result<()> {
    let page = page()?;
    let flow = Drawn::read(&page, ASLEEP)?;
    for task in [
        "Deploying Kubernetes API server",
        "Deploying Kubernetes controller manager",
        "Deploying Kubernetes scheduler",
        "Initializing connection to Shoot",
    ] {
        ensure!(!flow.names.contains_key(task), "{task}");
    }
    Ok(())
}

#[test]
fn what_a_step_stands_on_comes_before_it() -> Result<()> {
    let page = page()?;
    for (title, order) in ORDERS {
        Drawn::read(&page, title)?.in_order(*order)?;
    }
    Ok(())
}

#[test]
fn an_order_that_does_not_hold_is_told() -> Result<()> {
    let page = page()?;
    let flow = Drawn::read(&page, SOURCE)?;
    let wrong = [
        "Creating ETCD Snapshot",
        "Waiting until kube-apiserver has been deleted",
    ];
    let told = flow.in_order(wrong).err().map(|error| error.to_string());
    assert!(
        told.is_some_and(|told| told.contains("does not wait for \"Creating ETCD Snapshot\"")),
        "the reverse holds too"
    );
    Ok(())
}
