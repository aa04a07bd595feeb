//! The test environment of actuators, with real components: API servers for seeds and cloud, a DNS server, an
//! object store.
#![allow(dead_code)] // each test file uses its own part of it

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use api::{
    Target, crds_of,
    extensions::{
        BackupBucket, BackupEntry, Cluster, ControlPlane, DNSRecord, ExtensionObject, Infrastructure,
        Network, OperatingSystemConfig, SubnetIsolation, Worker,
    },
    resources::ManagedResource,
};
use extension::{
    ExtensionReconciler, OwnerChecks,
    control_plane::ControlPlaneActuator,
    reconciler::{Scope, cluster_wide, namespaced},
    subnet_isolation::SubnetIsolationActuator,
    worker::WorkerActuator,
};
use extension_contract::{Proof, Refuse};
use futures::FutureExt;
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Pod, Secret},
        rbac::v1::{Role, RoleBinding},
    },
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use provider_local::{
    MANAGER,
    backup_bucket::BackupBucketActuator,
    backup_entry::BackupEntryActuator,
    control_plane::{LocalControlPlane, cloud_controller_manager},
    controllers,
    dns_record::DNSRecordActuator,
    infrastructure::InfrastructureActuator,
    network::NetworkActuator,
    operating_system_config::OperatingSystemConfigActuator,
    subnet_isolation::LocalZones,
    worker::LocalMachines,
};
use runtime::client::{Permit, Seed, apply::Object};
use serde_json::{Value, json};
use testkit::{NameServer, ObjectStore, eventually};

/// The field manager of the test in the role of a gardenlet or a user.
pub const MANAGER_OF_TEST: runtime::client::apply::FieldManager =
    runtime::client::apply::FieldManager("test");

/// Far longer than any of these operations takes: a few seconds on an idle machine, including the start of
/// the process.
pub const SOON: Duration = Duration::from_secs(70);
/// The name of the seed under test.
pub const THIS_SEED: &str = "this-seed";
/// Zone of the DNS server.
pub const ZONE: &str = "internal.example";
/// The cloud account: a namespace.
pub const ACCOUNT: &str = "account";

pub type Reconciler<K, A> = ExtensionReconciler<K, A>;

pub fn infrastructure_by<A: extension::Actuator<Infrastructure>>(
    seed: &Client,
    actuator: A,
) -> Reconciler<Infrastructure, A> {
    reconciler(seed, namespaced, actuator)
}

pub fn infrastructure(seed: &Client) -> Reconciler<Infrastructure, InfrastructureActuator> {
    reconciler(seed, namespaced, InfrastructureActuator)
}

pub fn control_plane(seed: &Client) -> Reconciler<ControlPlane, ControlPlaneActuator<LocalControlPlane>> {
    let parts = LocalControlPlane {
        cloud_controller_manager: cloud_controller_manager::Settings {
            image: "cloud-controller-manager-local:test".into(),
            load_balancer_range: None,
        },
    };
    reconciler(seed, namespaced, ControlPlaneActuator(parts))
}

pub fn network(seed: &Client) -> Reconciler<Network, NetworkActuator> {
    let actuator = NetworkActuator {
        image: "network-local:test".into(),
    };
    reconciler(seed, namespaced, actuator)
}

pub fn operating_system_config(
    seed: &Client,
) -> Reconciler<OperatingSystemConfig, OperatingSystemConfigActuator> {
    reconciler(seed, namespaced, OperatingSystemConfigActuator)
}

pub fn worker(seed: &Client) -> Reconciler<Worker, WorkerActuator<LocalMachines>> {
    let machines = LocalMachines {
        manager_image: "machine-controller-manager-local:test".into(),
    };
    reconciler(seed, namespaced, WorkerActuator(machines))
}

pub fn subnet_isolation(seed: &Client) -> Reconciler<SubnetIsolation, SubnetIsolationActuator<LocalZones>> {
    reconciler(seed, namespaced, SubnetIsolationActuator(LocalZones))
}

pub fn dns_record(seed: &Client) -> Reconciler<DNSRecord, DNSRecordActuator> {
    reconciler(seed, namespaced, DNSRecordActuator)
}

pub fn backup_bucket(seed: &Client) -> Reconciler<BackupBucket, BackupBucketActuator> {
    reconciler(seed, cluster_wide, BackupBucketActuator)
}

pub fn backup_entry(seed: &Client) -> Reconciler<BackupEntry, BackupEntryActuator> {
    reconciler(seed, cluster_wide, BackupEntryActuator)
}

fn reconciler<K, A>(seed: &Client, scope: Scope<K>, actuator: A) -> Reconciler<K, A>
where
    K: ExtensionObject,
    A: extension::Actuator<K>,
{
    ExtensionReconciler::new(
        controllers::provider(
            &Seed::new(seed.clone(), &Permit::sole("a test")),
            &OwnerChecks::default(),
        ),
        scope,
        actuator,
    )
}

/// A seed: an API server with the kinds of seeds.
pub async fn seed(control_plane: &testkit::ControlPlane) -> Result<Client> {
    testkit::apply_crds(&control_plane.admin(), &crds_of(Target::Seed)).await?;
    Ok(control_plane.admin())
}

/// Opens an account in the cloud for a user with exactly the rights that the provider needs. Returns the
/// content of the Secret.
pub async fn account(cloud: &testkit::ControlPlane, user: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let client = cloud.admin();
    create(
        &Api::all(client.clone()),
        &named::<Namespace>(json!({"metadata": {"name": ACCOUNT}}))?,
    )
    .await?;
    let role: Role = named(json!({
        "metadata": {"name": "machines-and-networks"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]}],
    }))?;
    create(&Api::namespaced(client.clone(), ACCOUNT), &role).await?;
    let binding: RoleBinding = named(json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "machines-and-networks"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))?;
    create(&Api::namespaced(client, ACCOUNT), &binding).await?;
    // A granted right counts only after the API server has seen the RBAC objects, a moment later.
    let of_user: Api<ConfigMap> = Api::namespaced(cloud.client(user, &[]).await?, ACCOUNT);
    eventually("the user is let in", SOON, || of_user.get_opt("none")).await?;
    credentials_of(cloud, user)
}

/// Credentials of a user of the cloud, with any rights.
pub fn credentials_of(cloud: &testkit::ControlPlane, user: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let kubeconfig = serde_json::to_vec(&cloud.kubeconfig(user, &[])?)?;
    Ok(data([("kubeconfig", kubeconfig), ("namespace", ACCOUNT.into())]))
}

/// Credentials of the DNS server.
pub fn dns_credentials(server: &NameServer) -> BTreeMap<String, Vec<u8>> {
    data([
        ("server", server.address.clone().into()),
        ("tsigKeyName", server.tsig_key_name.into()),
        ("tsigSecret", server.tsig_secret.clone().into()),
        ("tsigAlgorithm", server.tsig_algorithm.into()),
    ])
}

/// Credentials of the object store.
pub fn store_credentials(store: &ObjectStore) -> BTreeMap<String, Vec<u8>> {
    data([
        ("endpoint", store.endpoint.clone().into()),
        ("region", store.region.into()),
        ("accessKeyID", store.access_key_id.into()),
        ("secretAccessKey", store.secret_access_key.into()),
    ])
}

fn data<const N: usize>(entries: [(&str, Vec<u8>); N]) -> BTreeMap<String, Vec<u8>> {
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// Writes the Cluster like a gardenlet, with the acting seed of the shoot.
pub async fn cluster(seed: &Client, name: &str, acting: &str) -> Result<()> {
    cluster_of(seed, name, acting, Value::Null).await
}

/// As [`cluster`], for a shoot that was handed over to this seed: with `status.ownership`.
pub async fn create_handed_over(seed: &Client, name: &str, ownership: Value) -> Result<()> {
    cluster_of(seed, name, THIS_SEED, ownership).await
}

async fn cluster_of(seed: &Client, name: &str, acting: &str, ownership: Value) -> Result<()> {
    let cluster: Cluster = named(json!({"metadata": {"name": name}, "spec": {
        "cloudProfile": {}, "seed": {"metadata": {"name": THIS_SEED}},
        "shoot": {"spec": {"seedName": acting}, "status": {
            "seedName": acting, "advertisedAddresses": [{"name": "internal", "url": "https://api.internal.example"}],
            "ownership": ownership,
        }},
    }}))?;
    MANAGER_OF_TEST.apply(&Api::all(seed.clone()), &cluster).await?;
    Ok(())
}

/// The machine images of the CloudProfile in a shoot's Cluster.
pub async fn cloud_profile(seed: &Client, name: &str) -> Result<()> {
    let images = json!([{"name": "local", "versions": [{"version": "1", "image": "machine:test"}]}]);
    let profile = json!({"spec": {"cloudProfile": {"spec": {"providerConfig": {"machineImages": images}}}}});
    MANAGER_OF_TEST
        .merge(&Api::<Cluster>::all(seed.clone()), name, &profile)
        .await?;
    Ok(())
}

/// A worker pool in these zones, in the Shoot of a Cluster.
pub async fn pool_in(seed: &Client, name: &str, zones: &[&str]) -> Result<()> {
    let pools = json!({"spec": {"provider": {"workers": [{"name": "a", "zones": zones}]}}});
    MANAGER_OF_TEST
        .merge(
            &Api::<Cluster>::all(seed.clone()),
            name,
            &json!({"spec": {"shoot": pools}}),
        )
        .await?;
    Ok(())
}

/// A namespace in a seed with a Secret `credentials`, of a shoot that this seed acts on.
pub async fn namespace(seed: &Client, name: &str, credentials: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    cluster(seed, name, THIS_SEED).await?;
    create(
        &Api::all(seed.clone()),
        &named::<Namespace>(json!({"metadata": {"name": name}}))?,
    )
    .await?;
    set_credentials(seed, name, credentials).await
}

/// Writes the Secret `credentials`.
pub async fn set_credentials(
    seed: &Client,
    namespace: &str,
    credentials: &BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    secret(seed, namespace, "credentials", credentials).await
}

/// Writes the Secrets that a gardenlet creates before a ControlPlane. The content is never used, because no
/// pod runs.
pub async fn secrets_of_control_plane(seed: &Client, namespace: &str) -> Result<()> {
    for name in ["cloud-controller-manager", "cloudprovider"] {
        secret(seed, namespace, name, &data([("kubeconfig", b"one".to_vec())])).await?;
    }
    Ok(())
}

/// Writes a Secret.
pub async fn secret(
    seed: &Client,
    namespace: &str,
    name: &str,
    content: &BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    let secret = Secret {
        data: Some(
            content
                .iter()
                .map(|(key, value)| (key.clone(), ByteString(value.clone())))
                .collect(),
        ),
        ..named(json!({"metadata": {"name": name}}))?
    };
    MANAGER
        .apply(&Api::namespaced(seed.clone(), namespace), &secret)
        .await?;
    Ok(())
}

/// An extension object of this provider's type with the Secret `credentials` of a namespace.
pub fn object<K: ExtensionObject>(name: &str, namespace: &str, more: Value) -> Result<K> {
    let mut object = json!({
        "metadata": {"name": name},
        "spec": {"type": "local", "region": "local", "secretRef": {"name": "credentials", "namespace": namespace}},
    });
    if !matches!(K::kind(&()).as_ref(), "BackupBucket" | "BackupEntry") {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    named(object)
}

/// An object from JSON.
pub fn named<K: kube::Resource<DynamicType = ()> + serde::de::DeserializeOwned>(
    mut object: Value,
) -> Result<K> {
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    serde_json::from_value(object).context("the object does not fit its kind")
}

/// Creates an object.
pub async fn create<K: runtime::client::apply::Object>(api: &Api<K>, object: &K) -> Result<K> {
    api.create(&PostParams::default(), object)
        .await
        .with_context(|| format!("could not create {}", K::kind(&())))
}

/// From now on, the Secret `credentials` of a namespace has these credentials: outside systems refuse
/// requests with these credentials.
pub fn refuse<'a>(
    seed: &Client,
    namespace: &'static str,
    credentials: &BTreeMap<String, Vec<u8>>,
) -> Refuse<'a> {
    let (seed, credentials) = (seed.clone(), credentials.clone());
    Box::new(move || {
        let (seed, credentials) = (seed.clone(), credentials.clone());
        async move {
            set_credentials(&seed, namespace, &credentials)
                .await
                .map_err(text)
        }
        .boxed()
    })
}

/// The same credentials, with a wrong value for `key`.
pub fn with(credentials: &BTreeMap<String, Vec<u8>>, key: &str, wrong: &str) -> BTreeMap<String, Vec<u8>> {
    let mut credentials = credentials.clone();
    credentials.insert(key.into(), wrong.into());
    credentials
}

/// A key that the DNS server does not know.
pub const WRONG_TSIG_SECRET: &str = "d3Jvbmcgc2VjcmV0IG9mIDMyIGJ5dGVzLCByZWFsbHkh";

/// A ControlPlane whose cloud-controller-manager is in the middle of a hand-over.
pub fn control_plane_of(namespace: &str) -> Result<ControlPlane> {
    let migration = json!({
        "leaderName": "node-ipam-migration",
        "controllerLeaders": [{"name": "node-ipam-controller", "component": "*"}],
    });
    let ranges = json!({"clusterCIDR": "100.96.0.0/11", "serviceClusterIPRange": "100.64.0.0/13"});
    object(
        "cp",
        namespace,
        json!({
            "infrastructureProviderStatus": {"networkID": "net-1"},
            "cloudControllerManager": {"nodeIPAM": ranges, "leaderMigration": migration},
        }),
    )
}

/// The objects of a ControlPlane in a namespace of a seed: names of objects, and the number of pods.
pub async fn parts_of_control_plane(seed: &Client, namespace: &str) -> Result<Vec<String>> {
    let all = ListParams::default();
    let mut found = Vec::new();
    for map in Api::<ConfigMap>::namespaced(seed.clone(), namespace)
        .list(&all)
        .await?
    {
        found.extend(map.metadata.name.filter(|name| name != "kube-root-ca.crt"));
    }
    for deployment in Api::<Deployment>::namespaced(seed.clone(), namespace)
        .list(&all)
        .await?
    {
        found.extend(deployment.metadata.name);
    }
    let pods = Api::<Pod>::namespaced(seed.clone(), namespace)
        .list(&all)
        .await?
        .items;
    found.extend((!pods.is_empty()).then(|| format!("{} pods", pods.len())));
    Ok(found)
}

/// The names of a Network's objects in a namespace of a seed.
pub async fn parts_of_network(seed: &Client, namespace: &str) -> Result<Vec<String>> {
    let resources: Api<ManagedResource> = Api::namespaced(seed.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), namespace);
    let resource = resources.get_opt("extension-network-local").await?;
    let secret = secrets.get_opt("managedresource-extension-network-local").await?;
    let names = [
        resource.and_then(|it| it.metadata.name),
        secret.and_then(|it| it.metadata.name),
    ];
    Ok(names.into_iter().flatten().collect())
}

/// The networks in the cloud account with the lists of instances, and the ledger's claims, by name.
pub async fn networks(cloud: &Client) -> Result<Value> {
    let objects: Api<ConfigMap> = Api::namespaced(cloud.clone(), ACCOUNT);
    let mut found = serde_json::Map::new();
    for object in objects.list(&ListParams::default()).await? {
        let name = object.metadata.name.unwrap_or_default();
        let data = object.data.unwrap_or_default();
        if name.starts_with("shoot--")
            || name.starts_with("instances.")
            || (name == "networks" && !data.is_empty())
        {
            found.insert(name, json!(data));
        }
    }
    Ok(Value::Object(found))
}

/// Errors in the form that the contract expects.
#[allow(clippy::needless_pass_by_value)] // for map_err
pub fn text(error: anyhow::Error) -> String {
    format!("{error:#}")
}

/// A violation of the contract as a test's error; also checks for enough disturbances.
pub fn proven(name: &str, outcome: Result<Proof, String>) -> Result<()> {
    let Proof { dropped, failed } = outcome.map_err(|why| anyhow!("{name}: {why}"))?;
    println!("{name}: kept, work was dropped half way {dropped} times, and {failed} requests failed");
    ensure!(dropped > 20, "{name}: work was dropped only {dropped} times");
    ensure!(failed > 10, "{name}: only {failed} requests failed");
    Ok(())
}

/// Deletes an object and waits for the end.
pub async fn gone<K: Object>(api: &Api<K>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default()).await?;
    eventually("the object is gone", SOON, || async {
        let found = api.get_opt(name).await?;
        ensure!(found.is_none(), "{found:?}");
        Ok(())
    })
    .await
}
