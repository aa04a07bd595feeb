//! The required order of tasks, regardless of further changes of a flow.

use super::{
    ASLEEP, Checked, DELETION, DESTINATION, FORCED, LEFT, SOURCE, orders_of_drawn_flows, sample_inputs,
};

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
#[tokio::test]
async fn nothing_that_writes_is_woken_in_a_sleep() {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let flow = &flows[ASLEEP];
    for task in [
        "Deploying Kubernetes API server",
        "Deploying Kubernetes controller manager",
        "Deploying Kubernetes scheduler",
        "Initializing connection to Shoot",
    ] {
        assert!(flow.tasks().all(|name| name != task), "{task}");
    }
}

#[tokio::test]
async fn what_a_step_stands_on_comes_before_it() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    for (title, order) in ORDERS {
        flows[title].require(*order)?;
    }
    Ok(())
}

#[tokio::test]
async fn an_order_that_does_not_hold_is_told() {
    let inputs = sample_inputs();
    let wrong = [
        "Creating ETCD Snapshot",
        "Waiting until kube-apiserver has been deleted",
    ];
    let told = orders_of_drawn_flows(&inputs)[SOURCE].require(wrong).err();
    assert!(
        told.is_some_and(|told| told.contains("does not wait for \"Creating ETCD Snapshot\"")),
        "the reverse holds too"
    );
}
