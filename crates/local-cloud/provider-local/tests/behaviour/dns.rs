//! DNSRecord: names that outlive the objects of their writers, and refused keys.

use anyhow::{Result, ensure};
use api::extensions::DNSRecord;
use hickory_proto::rr::RecordType;
use kube::Api;
use serde_json::json;

use super::{
    World, codes, delete, run, run_created,
    world::{self, WRONG_TSIG_SECRET, ZONE, create, object},
};

/// The source's object is deleted only after the destination has written the record (I9).
pub async fn a_late_deletion_leaves_the_record_of_another_seed(world: &World) -> Result<()> {
    let name = format!("api.late.dev.{ZONE}");
    let record = |namespace: &str, value: &str| {
        object::<DNSRecord>(
            "record",
            namespace,
            json!({"name": name, "recordType": "A", "values": [value], "ttl": 5}),
        )
    };
    let reconciler = world::dns_record(&world.seed);
    for (namespace, value) in [("shoot--late--a", "192.0.2.1"), ("shoot--late--b", "192.0.2.2")] {
        world::namespace(&world.seed, namespace, &world::dns_credentials(&world.dns)).await?;
        run_created(&reconciler, &record(namespace, value)?).await?;
        ensure!(
            world.dns.addresses(&name).await? == [value],
            "the record was not replaced"
        );
    }
    delete(&reconciler, &record("shoot--late--a", "192.0.2.1")?).await?;
    ensure!(
        world.dns.addresses(&name).await? == ["192.0.2.2"],
        "a late deletion took another seed's record"
    );
    delete(&reconciler, &record("shoot--late--b", "192.0.2.2")?).await?;
    ensure!(
        world.dns.addresses(&name).await?.is_empty(),
        "the record was left"
    );
    Ok(())
}

pub async fn an_alias_and_addresses_replace_each_other(world: &World) -> Result<()> {
    let name = format!("api.alias.dev.{ZONE}");
    let reconciler = world::dns_record(&world.seed);
    let namespace = "shoot--dev--alias";
    world::namespace(&world.seed, namespace, &world::dns_credentials(&world.dns)).await?;
    let steps = [
        (
            "CNAME",
            vec!["lb.example"],
            RecordType::CNAME,
            vec!["lb.example."],
        ),
        (
            "A",
            vec!["192.0.2.1", "192.0.2.3"],
            RecordType::A,
            vec!["192.0.2.1", "192.0.2.3"],
        ),
        (
            "CNAME",
            vec!["other.example"],
            RecordType::CNAME,
            vec!["other.example."],
        ),
    ];
    for (index, (kind, values, asked, expected)) in steps.into_iter().enumerate() {
        let spec = json!({"name": name, "recordType": kind, "values": values, "zone": ZONE});
        run_created(&reconciler, &object(&format!("record-{index}"), namespace, spec)?).await?;
        let found = world.dns.records(&name, asked).await?;
        ensure!(found == expected, "step {index}: {found:?}");
    }
    let texts = json!({"name": format!("text.{ZONE}"), "recordType": "TXT", "values": ["seed-a"]});
    run_created(&reconciler, &object("text", namespace, texts)?).await?;
    ensure!(
        world.dns.texts(&format!("text.{ZONE}")).await?.len() == 1,
        "no text"
    );
    let found: DNSRecord = Api::<DNSRecord>::namespaced(world.seed.clone(), namespace)
        .get("text")
        .await?;
    ensure!(
        found.status.and_then(|s| s.zone).as_deref() == Some(ZONE),
        "the zone was not found"
    );
    Ok(())
}

pub async fn a_refused_dns_key_is_told(world: &World) -> Result<()> {
    let namespace = "shoot--dev--key";
    let reconciler = world::dns_record(&world.seed);
    let api: Api<DNSRecord> = Api::namespaced(world.seed.clone(), namespace);
    let right = world::dns_credentials(&world.dns);
    let wrong = |key: &str, value: &str| world::with(&right, key, value);
    world::namespace(&world.seed, namespace, &wrong("tsigSecret", WRONG_TSIG_SECRET)).await?;
    let spec = json!({"name": format!("key.{ZONE}"), "recordType": "A", "values": ["192.0.2.1"]});
    let record: DNSRecord = object("record", namespace, spec)?;
    create(&api, &record).await?;
    ensure!(run(&reconciler, &record).await.is_err(), "a wrong key was let in");
    codes(&api, "record", "ERR_INFRA_UNAUTHENTICATED").await?;
    world::set_credentials(&world.seed, namespace, &wrong("tsigKeyName", "unknown")).await?;
    ensure!(
        run(&reconciler, &record).await.is_err(),
        "an unknown key was let in"
    );
    codes(&api, "record", "ERR_INFRA_UNAUTHENTICATED").await?;
    let outside: DNSRecord = object(
        "outside",
        namespace,
        json!({"name": "api.elsewhere.test", "recordType": "A", "values": ["192.0.2.1"]}),
    )?;
    create(&api, &outside).await?;
    ensure!(
        run(&reconciler, &outside).await.is_err(),
        "a name without a zone was accepted"
    );
    codes(&api, "outside", "ERR_CONFIGURATION_PROBLEM").await?;
    world::set_credentials(&world.seed, namespace, &right).await?;
    run(&reconciler, &record).await?;
    Ok(())
}
