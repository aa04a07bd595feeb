//! Every actuator of this provider through the contract, over two seeds with real API servers. The state
//! suffices for a restore in the destination seed (R7-04). Each actuator has a migrate and a restore;
//! actuators that are not generic have their own (RX-43).
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod world;

use anyhow::Result;
use api::constants::{OWNERSHIP_EPOCH, OWNERSHIP_FORGOTTEN};
use api::extensions::{
    BackupBucket, BackupEntry, DNSRecord, Infrastructure, Network, OperatingSystemConfig, SubnetIsolation,
    Worker,
};
use extension_contract::{Contract, OutsideReader, machines, shoot_objects::ShootObjects};
use futures::FutureExt;
use hickory_proto::rr::RecordType;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use local_cloud_fixture::{closed_zone, run_hosts};
use serde_json::json;
use testkit::{NameServer, ObjectStore, PlayedKubelet};
use world::{ACCOUNT, MANAGER_OF_TEST, WRONG_TSIG_SECRET, ZONE, object, proven, text};

const UID: &str = "0841c87f-8db9-4d04-a603-35570da6341f";

/// Two seeds, and the servers outside that outlive both.
struct TwoSeeds {
    a: Client,
    b: Client,
    dns: NameServer,
    store: ObjectStore,
    /// The content of the Secret with the cloud credentials.
    credentials: Data,
    /// The API server of seed b is also the API server of the cloud.
    cloud: testkit::ControlPlane,
    _source: testkit::ControlPlane,
}

impl TwoSeeds {
    async fn start() -> Result<Self> {
        let [source, destination] = testkit::ControlPlane::start_all(["seed-a", "seed-b"]).await?;
        Ok(Self {
            a: world::seed(&source).await?,
            b: world::seed(&destination).await?,
            dns: NameServer::start(&[ZONE]).await?,
            store: ObjectStore::start().await?,
            credentials: world::account(&destination, "cloud-user").await?,
            cloud: destination,
            _source: source,
        })
    }
}

// R7-04, R7-30..32: actuators with a state find all resources in the destination seed, and actuators without
// a state create no resource twice either.
testkit::scenarios! {
    mod kept_over_two_seeds for TwoSeeds = TwoSeeds::start();
    in_sequence:
    infrastructure,
    control_plane,
    network,
    operating_system_config,
    worker,
    subnet_isolation,
    dns_record,
    owner_record,
    backup_bucket,
    backup_entry;
}

/// The content of a Secret that an actuator has written into the seed.
fn secret_in<'a>(seed: &Client, namespace: &'static str, name: &'static str) -> OutsideReader<'a> {
    let api: Api<Secret> = Api::namespaced(seed.clone(), namespace);
    Box::new(move || {
        let api = api.clone();
        async move {
            let secret = api.get_opt(name).await.map_err(|e| e.to_string())?;
            Ok(json!(secret.and_then(|secret| secret.data)))
        }
        .boxed()
    })
}

/// The objects that a ControlPlane's actuator has created in the seed.
fn parts_in<'a>(seed: &Client, namespace: &'static str) -> OutsideReader<'a> {
    let seed = seed.clone();
    Box::new(move || {
        let seed = seed.clone();
        async move {
            let parts = world::parts_of_control_plane(&seed, namespace).await;
            parts.map(|parts| json!(parts)).map_err(text)
        }
        .boxed()
    })
}

/// The objects that a Network's actuator has created in the seed.
fn network_in<'a>(seed: &Client, namespace: &'static str) -> OutsideReader<'a> {
    let seed = seed.clone();
    Box::new(move || {
        let seed = seed.clone();
        async move {
            let parts = world::parts_of_network(&seed, namespace).await;
            parts.map(|parts| json!(parts)).map_err(text)
        }
        .boxed()
    })
}

type Data = std::collections::BTreeMap<String, Vec<u8>>;

async fn infrastructure(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds {
        a,
        b,
        cloud,
        credentials,
        ..
    } = seeds;
    let namespace = "shoot--dev--infra";
    let stranger = world::credentials_of(cloud, "stranger")?;
    let cloud = &cloud.admin();
    for seed in [a, b] {
        world::namespace(seed, namespace, credentials).await?;
    }
    let wanted: Infrastructure = object(
        "infra",
        namespace,
        json!({"providerConfig": {
            "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureConfig", "pool": "10.200.0.0/16",
        }}),
    )?;
    let contract = Contract::new(
        || world::infrastructure(a),
        || world::infrastructure(b),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(move || {
        let cloud = cloud.clone();
        async move { world::networks(&cloud).await.map_err(text) }.boxed()
    }))
    .refuse(world::refuse(a, namespace, &stranger));
    proven("Infrastructure", contract.prove().await)
}

/// The generic actuator with the parts of this provider (RX-43); R7-32: without state, a restore is a
/// reconciliation.
async fn control_plane(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, .. } = seeds;
    let namespace = "shoot--dev--cp";
    for seed in [a, b] {
        world::namespace(seed, namespace, &Data::new()).await?;
    }
    for seed in [a, b] {
        world::secrets_of_control_plane(seed, namespace).await?;
    }
    // Seeds without nodes have no kubelet that reports on pods.
    let _pods = [a, b].map(PlayedKubelet::start);
    let wanted = world::control_plane_of(namespace)?;
    let contract = Contract::new(
        || world::control_plane(a),
        || world::control_plane(b),
        [wanted.clone(), wanted],
    )
    .inside_source(parts_in(a, namespace))
    .inside_destination(parts_in(b, namespace));
    proven("ControlPlane", contract.prove().await)
}

/// Objects in the shoot are outside of the seeds, and stay there in a move (RX-02, RX-23).
async fn network(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, .. } = seeds;
    let namespace = "shoot--dev--network";
    for seed in [a, b] {
        world::namespace(seed, namespace, &Data::new()).await?;
    }
    let shoot = &ShootObjects::default();
    let _managers = [a, b].map(|seed| shoot.kept_by(seed, namespace));
    let ranges = json!({"podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"});
    let wanted: Network = object("network", namespace, ranges)?;
    let contract = Contract::new(
        || world::network(a),
        || world::network(b),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(|| async { Ok(shoot.list_objects()) }.boxed()))
    .inside_source(network_in(a, namespace))
    .inside_destination(network_in(b, namespace));
    proven("Network", contract.prove().await)
}

/// User data are in the seed and are deleted with the seed's objects; the destination seed generates the same
/// data.
async fn operating_system_config(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, .. } = seeds;
    let namespace = "shoot--dev--osc";
    for seed in [a, b] {
        world::namespace(seed, namespace, &Data::new()).await?;
    }
    let wanted: OperatingSystemConfig = object(
        "osc",
        namespace,
        json!({"purpose": "provision",
            "files": [{"path": "/etc/name", "content": {"inline": {"encoding": "", "data": "<<MACHINE_NAME>>"}}}],
            "units": [{"name": "kubelet.service", "enable": true, "command": "restart"}]}),
    )?;
    let contract = Contract::new(
        || world::operating_system_config(a),
        || world::operating_system_config(b),
        [wanted.clone(), wanted],
    )
    .inside_source(secret_in(a, namespace, "osc-result-osc"))
    .inside_destination(secret_in(b, namespace, "osc-result-osc"));
    proven("OperatingSystemConfig", contract.prove().await)
}

/// The generic actuator with this provider's machines (RX-43). The manager is a fake; the real manager has
/// separate tests.
async fn worker(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, .. } = seeds;
    let namespace = "shoot--dev--worker";
    for seed in [a, b] {
        world::namespace(seed, namespace, &Data::new()).await?;
        world::cloud_profile(seed, namespace).await?;
        world::secret(seed, namespace, machines::MANAGER, &Data::new()).await?;
        let user_data = Data::from([("cloud_config".to_owned(), b"run me".to_vec())]);
        world::secret(seed, namespace, "user-data", &user_data).await?;
    }
    let _pods = [a, b].map(PlayedKubelet::start);
    let machines = &machines::FakeMachines::new(namespace);
    let _managers = [a, b].map(|seed| machines.managed_by(seed));
    let wanted: Worker = object(
        "worker",
        namespace,
        json!({"pools": [{
            "name": "a", "machineType": "small", "machineImage": {"name": "local", "version": "1"}, "minimum": 3, "maximum": 3,
            "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"],
            "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        }]}),
    )?;
    let contract = Contract::new(|| world::worker(a), || world::worker(b), [wanted.clone(), wanted])
        .outside(Box::new(|| async { Ok(machines.list_instances()) }.boxed()))
        .inside_source(Box::new(|| {
            async { machines.manager_in(a).await.map_err(text) }.boxed()
        }))
        .inside_destination(Box::new(|| {
            async { machines.manager_in(b).await.map_err(text) }.boxed()
        }))
        .carried_apart(Box::new(|| {
            async { machines.collect_and_forget(a, 3).await.map_err(text) }.boxed()
        }));
    proven("Worker", contract.prove().await)
}

/// The generic actuator with zones of the local cloud (RZ-31..33). Fake hosts use the library of the real
/// agents.
async fn subnet_isolation(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds {
        a,
        b,
        cloud,
        credentials,
        ..
    } = seeds;
    let namespace = "shoot--dev--zones";
    let stranger = world::credentials_of(cloud, "stranger")?;
    let cloud = &cloud.admin();
    for seed in [a, b] {
        world::namespace(seed, namespace, credentials).await?;
        world::pool_in(seed, namespace, &["x", "y"]).await?;
    }
    let _hosts = run_hosts(cloud, ACCOUNT, MANAGER_OF_TEST, ["host-1", "host-2"]).await?;
    let wanted: SubnetIsolation = object(
        "zones",
        namespace,
        json!({"isolatedZoneID": cloud_local::zones::id_of("x")}),
    )?;
    let contract = Contract::new(
        || world::subnet_isolation(a),
        || world::subnet_isolation(b),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(move || {
        async move { closed_zone(cloud, ACCOUNT, namespace).await.map_err(text) }.boxed()
    }))
    .refuse(world::refuse(a, namespace, &stranger));
    proven("SubnetIsolation", contract.prove().await)
}

async fn dns_record(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, dns, .. } = seeds;
    let namespace = "shoot--dev--dns";
    for seed in [a, b] {
        world::namespace(seed, namespace, &world::dns_credentials(dns)).await?;
    }
    let name = format!("api.one.dev.{ZONE}");
    let record = |address: &str| {
        object::<DNSRecord>(
            "one-internal",
            namespace,
            json!({"name": name, "recordType": "A", "values": [address], "ttl": 5}),
        )
    };
    let looked_up = name.as_str();
    let contract = Contract::new(
        || world::dns_record(a),
        || world::dns_record(b),
        [record("192.0.2.1")?, record("192.0.2.2")?],
    )
    .outside(Box::new(move || {
        async move {
            dns.records(looked_up, RecordType::A)
                .await
                .map(|found| json!(found.len()))
                .map_err(text)
        }
        .boxed()
    }))
    .refuse(world::refuse(
        a,
        namespace,
        &world::with(&world::dns_credentials(dns), "tsigSecret", WRONG_TSIG_SECRET),
    ));
    proven("DNSRecord", contract.prove().await)
}

/// Both names of the owner record, as the two seeds write the names in their epochs; finally the shoot is
/// deleted for good.
async fn owner_record(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, dns, .. } = seeds;
    let namespace = "shoot--dev--owner";
    for seed in [a, b] {
        world::namespace(seed, namespace, &world::dns_credentials(dns)).await?;
    }
    let name = format!("owner.one.dev.{ZONE}");
    let record = |identity: &str, epoch: &str| {
        let spec = json!({"name": name, "recordType": "TXT", "values": [identity]});
        let mut record = object::<DNSRecord>("one-owner", namespace, spec)?;
        let annotations = [(OWNERSHIP_EPOCH, epoch), (OWNERSHIP_FORGOTTEN, "true")];
        record.metadata.annotations = Some(annotations.map(|(key, value)| (key.into(), value.into())).into());
        anyhow::Ok(record)
    };
    let names = &[name.clone(), format!("epoch.{name}")];
    let contract = Contract::new(
        || world::dns_record(a),
        || world::dns_record(b),
        [record("seed-a", "1")?, record("seed-b", "2")?],
    )
    .outside(Box::new(move || {
        async move {
            let mut found = Vec::new();
            for name in names {
                found.push(dns.texts(name).await.map_err(text)?.len());
            }
            Ok(json!(found))
        }
        .boxed()
    }))
    .refuse(world::refuse(
        a,
        namespace,
        &world::with(&world::dns_credentials(dns), "tsigSecret", WRONG_TSIG_SECRET),
    ));
    proven("DNSRecord of an owner", contract.prove().await)
}

async fn backup_bucket(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, store, .. } = seeds;
    let namespace = "bucket-credentials";
    for seed in [a, b] {
        world::namespace(seed, namespace, &world::store_credentials(store)).await?;
    }
    let wanted: BackupBucket = object("bucket-of-a-seed", namespace, json!({}))?;
    let folder = store.folder().join("bucket-of-a-seed");
    let contract = Contract::new(
        || world::backup_bucket(a),
        || world::backup_bucket(b),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(move || {
        let there = folder.is_dir();
        async move { Ok(json!(there)) }.boxed()
    }))
    .refuse(world::refuse(
        a,
        namespace,
        &world::with(&world::store_credentials(store), "secretAccessKey", "wrong"),
    ));
    proven("BackupBucket", contract.prove().await)
}

async fn backup_entry(seeds: &TwoSeeds) -> Result<()> {
    let TwoSeeds { a, b, store, .. } = seeds;
    let namespace = "shoot--dev--entry";
    for seed in [a, b] {
        world::namespace(seed, namespace, &world::store_credentials(store)).await?;
    }
    store.create_bucket("bucket-of-an-entry")?;
    let wanted: BackupEntry = object(
        &format!("{namespace}--{UID}"),
        namespace,
        json!({"bucketName": "bucket-of-an-entry"}),
    )?;
    let contract = Contract::new(
        || world::backup_entry(a),
        || world::backup_entry(b),
        [wanted.clone(), wanted],
    )
    .inside_source(secret_in(a, namespace, "etcd-backup"))
    .inside_destination(secret_in(b, namespace, "etcd-backup"))
    .refuse(world::refuse(
        a,
        namespace,
        &world::with(&world::store_credentials(store), "secretAccessKey", "wrong"),
    ));
    proven("BackupEntry", contract.prove().await)
}
