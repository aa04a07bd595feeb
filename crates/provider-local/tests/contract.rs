//! Every actuator of this provider through the contract, over two seeds with real API servers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod world;

use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use api::extensions::{BackupBucket, BackupEntry, DNSRecord, Infrastructure};
use extension::contract::{Contract, Look};
use futures::FutureExt;
use hickory_proto::rr::RecordType;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::{NameServer, ObjectStore, PlayedKubelet};
use world::{WRONG_TSIG_SECRET, ZONE, object, proven, text};

const UID: &str = "0841c87f-8db9-4d04-a603-35570da6341f";

/// Nothing is put into the source's namespace.
fn nothing<'a>() -> Look<'a> {
    Box::new(|| async { Ok(Value::Null) }.boxed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_actuator_keeps_the_contract_over_two_seeds() -> Result<()> {
    let [source, destination] = testkit::ControlPlane::start_all(["seed-a", "seed-b"]).await?;
    let (a, b) = (world::seed(&source).await?, world::seed(&destination).await?);
    // The cloud outlives both seeds; here its API server happens to be that of the second one.
    let cloud = world::account(&destination, "cloud-user").await?;
    let dns = NameServer::start(&[ZONE]).await?;
    let store = ObjectStore::start().await?;

    let outcomes = [
        infrastructure(&a, &b, &destination, &cloud).await,
        control_plane(&a, &b).await,
        dns_record(&a, &b, &dns).await,
        backup_bucket(&a, &b, &store).await,
        backup_entry(&a, &b, &store).await,
    ];
    let failures: Vec<String> = outcomes
        .into_iter()
        .filter_map(|outcome| outcome.err().map(text))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

type Data = std::collections::BTreeMap<String, Vec<u8>>;

async fn infrastructure(
    a: &Client,
    b: &Client,
    cloud: &testkit::ControlPlane,
    credentials: &Data,
) -> Result<()> {
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
    let contract = Contract {
        source: &world::infrastructure(a),
        destination: &world::infrastructure(b),
        source_object: wanted.clone(),
        destination_object: wanted,
        outside: Box::new(move || {
            let cloud = cloud.clone();
            async move { world::networks(&cloud).await.map_err(text) }.boxed()
        }),
        inside_source: nothing(),
        refuse: Some(world::refuse(a, namespace, &stranger)),
        dropped: AtomicUsize::new(0),
    };
    proven("Infrastructure", contract.prove().await)
}

async fn control_plane(a: &Client, b: &Client) -> Result<()> {
    let namespace = "shoot--dev--cp";
    for seed in [a, b] {
        world::namespace(seed, namespace, &Data::new()).await?;
    }
    for seed in [a, b] {
        world::secrets_of_control_plane(seed, namespace).await?;
    }
    // Nobody reports on pods in seeds without nodes.
    let _pods = [a, b].map(PlayedKubelet::start);
    let wanted = world::control_plane_of(namespace)?;
    let source = a.clone();
    let contract = Contract {
        source: &world::control_plane(a),
        destination: &world::control_plane(b),
        source_object: wanted.clone(),
        destination_object: wanted,
        outside: nothing(),
        inside_source: Box::new(move || {
            let source = source.clone();
            async move {
                world::parts_of_control_plane(&source, namespace)
                    .await
                    .map(|parts| json!(parts))
                    .map_err(text)
            }
            .boxed()
        }),
        refuse: None,
        dropped: AtomicUsize::new(0),
    };
    proven("ControlPlane", contract.prove().await)
}

async fn dns_record(a: &Client, b: &Client, dns: &NameServer) -> Result<()> {
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
    let contract = Contract {
        source: &world::dns_record(a),
        destination: &world::dns_record(b),
        source_object: record("192.0.2.1")?,
        destination_object: record("192.0.2.2")?,
        // The address is the seed's and changes; that the name resolves to exactly one must not.
        outside: Box::new(move || {
            async move {
                dns.records(looked_up, RecordType::A)
                    .await
                    .map(|found| json!(found.len()))
                    .map_err(text)
            }
            .boxed()
        }),
        inside_source: nothing(),
        refuse: Some(world::refuse(
            a,
            namespace,
            &world::with(&world::dns_credentials(dns), "tsigSecret", WRONG_TSIG_SECRET),
        )),
        dropped: AtomicUsize::new(0),
    };
    proven("DNSRecord", contract.prove().await)
}

async fn backup_bucket(a: &Client, b: &Client, store: &ObjectStore) -> Result<()> {
    let namespace = "bucket-credentials";
    for seed in [a, b] {
        world::namespace(seed, namespace, &world::store_credentials(store)).await?;
    }
    let wanted: BackupBucket = object("bucket-of-a-seed", namespace, json!({}))?;
    let folder = store.folder().join("bucket-of-a-seed");
    let contract = Contract {
        source: &world::backup_bucket(a),
        destination: &world::backup_bucket(b),
        source_object: wanted.clone(),
        destination_object: wanted,
        outside: Box::new(move || {
            let there = folder.is_dir();
            async move { Ok(json!(there)) }.boxed()
        }),
        inside_source: nothing(),
        refuse: Some(world::refuse(
            a,
            namespace,
            &world::with(&world::store_credentials(store), "secretAccessKey", "wrong"),
        )),
        dropped: AtomicUsize::new(0),
    };
    proven("BackupBucket", contract.prove().await)
}

async fn backup_entry(a: &Client, b: &Client, store: &ObjectStore) -> Result<()> {
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
    let source = a.clone();
    let contract = Contract {
        source: &world::backup_entry(a),
        destination: &world::backup_entry(b),
        source_object: wanted.clone(),
        destination_object: wanted,
        outside: nothing(),
        inside_source: Box::new(move || {
            let api: Api<Secret> = Api::namespaced(source.clone(), namespace);
            async move {
                let secret = api.get_opt("etcd-backup").await.map_err(|e| e.to_string())?;
                Ok(json!(secret.and_then(|secret| secret.data)))
            }
            .boxed()
        }),
        refuse: Some(world::refuse(
            a,
            namespace,
            &world::with(&world::store_credentials(store), "secretAccessKey", "wrong"),
        )),
        dropped: AtomicUsize::new(0),
    };
    proven("BackupEntry", contract.prove().await)
}
