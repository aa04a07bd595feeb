//! The Seed's setting `ownerChecks`, on a real API server: the effect on an existing shoot, and the
//! prerequisites.

#![allow(clippy::unwrap_used, clippy::panic)]

use anyhow::Result;
use api::{
    constants::{DRUID_REQUIRE_SNAPSHOT, OPERATION},
    druid::{Etcd, OwnerCheckSilence},
    extensions::DNSRecord,
    gardencore::Seed,
    meta::ErrorCode,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace as NamespaceObject, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use parts::{
    Deploy, DnsRecords, Etcds, Facts, KubeApiserver, Namespace, Operation, OwnerRecord, Secrets, Settings,
};
use parts_fixture::{NAMESPACE, OF_SEED, World};
use serde_json::{Value, json};

const CORE: &str = "core.gardener.cloud/v1beta1";
const DEPLOY: [Operation; 3] = [Operation::Create, Operation::Reconcile, Operation::Restore];
const OTHERS: [Operation; 3] = [Operation::Migrate, Operation::Delete, Operation::ForceDelete];

/// Writes the Seed, like an operator.
async fn seed(world: &World, checks: bool, has_domain: bool) -> Result<()> {
    let secret = |name| json!({"apiVersion": "v1", "kind": "Secret", "namespace": OF_SEED, "name": name});
    let internal =
        json!({"type": "local", "domain": "internal.example.test", "credentialsRef": secret("dns")});
    let body = json!({"spec": {
        "provider": {"type": "local", "region": "local"},
        "dns": if has_domain { json!({"internal": internal}) } else { json!({"defaults": [internal]}) },
        "backup": {"provider": "local", "region": "local", "credentialsRef": secret("backup")},
        "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "settings": {"ownerChecks": {"enabled": checks}},
    }});
    world.apply(CORE, "Seed", None, "seed-a", body).await
}

async fn facts(world: &World, operation: Operation) -> Result<Facts> {
    Box::pin(world.facts(operation, Settings::default())).await
}

async fn refusal(world: &World, operation: Operation) -> runtime::Error {
    facts(world, operation).await.unwrap_err().downcast().unwrap()
}

#[tokio::test]
async fn a_seed_that_checks_owners() -> Result<()> {
    let world = World::start("owner-checks").await?;
    Box::pin(nothing_begins_without_an_identity(&world)).await?;
    Box::pin(switched_on_and_off(&world)).await?;
    Box::pin(kube_apiserver_stores_events_past_the_gate(&world)).await
}

/// I8: a flow works with the Seed from the start of the flow. A flow does not begin without a field that the
/// flow would await in vain. Flows without a need for the identity are not blocked.
async fn nothing_begins_without_an_identity(world: &World) -> Result<()> {
    seed(world, true, true).await?;
    for operation in DEPLOY {
        let error = refusal(world, operation).await;
        assert_eq!(error.class(), "NotReady", "{operation:?} {error}");
        assert!(error.to_string().contains("status.clusterIdentity"), "{error}");
    }
    for operation in OTHERS {
        facts(world, operation).await?;
    }
    identify(world, "").await?;
    assert_eq!(refusal(world, Operation::Restore).await.class(), "NotReady");
    identify(world, "seed-a-uid").await?;
    for operation in DEPLOY {
        facts(world, operation).await?;
    }
    // The domain of a Seed is never removed: this is a Seed that never had a domain.
    let seeds: Api<Seed> = Api::all(world.client());
    seeds.delete("seed-a", &DeleteParams::default()).await?;
    seed(world, true, false).await?;
    for operation in DEPLOY {
        let error = refusal(world, operation).await;
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem], "{error}");
        assert!(error.to_string().contains("spec.dns.internal"), "{error}");
    }
    let namespaces: Api<NamespaceObject> = Api::all(world.client());
    assert!(namespaces.get_opt(NAMESPACE).await?.is_none());
    Ok(())
}

/// Records the identity, like a starting gardenlet of this seed.
async fn identify(world: &World, identity: &str) -> Result<()> {
    let seeds: Api<Seed> = Api::all(world.client());
    let status = Patch::Merge(json!({"status": {"clusterIdentity": identity}}));
    seeds
        .patch_status("seed-a", &PatchParams::default(), &status)
        .await?;
    Ok(())
}

/// R17-13: the check follows the setting only in flows that deploy: in all further flows the record may be
/// gone.
async fn switched_on_and_off(world: &World) -> Result<()> {
    seed(world, true, true).await?;
    identify(world, "seed-a-uid").await?;
    let f = facts(world, Operation::Reconcile).await?;
    Namespace::deploy(&f).await?;
    let secret = json!({"metadata": {"name": "etcd-backup"}, "stringData": {"bucketName": "backups"}});
    let secrets = world.any("v1", "Secret", Some(NAMESPACE));
    secrets
        .create(&PostParams::default(), &serde_json::from_value(secret)?)
        .await?;
    OwnerRecord::deploy(&f).await?;
    let record: DNSRecord = world.read("web-owner").await?;
    assert_eq!(record.spec.values, ["seed-a-uid"]);
    Box::pin(rotated_keys(world)).await?;
    Etcds::deploy(&f).await?;
    let checked = main(world).await?;
    let check = checked.spec.backup.owner_check.clone().unwrap();
    assert_eq!(
        (check.name.as_str(), check.id.as_str(), check.zone.as_str()),
        (record.spec.name.as_str(), "seed-a-uid", "internal.example.test")
    );
    let events: Etcd = world.read("etcd-events").await?;
    assert!(events.spec.backup.owner_check.is_none());

    // An operator lets etcd serve while all witnesses are gone, and every flow keeps this setting.
    silence(world, json!("Tolerate")).await?;
    for operation in DEPLOY.into_iter().chain([Operation::Migrate, Operation::Delete]) {
        Etcds::deploy(&facts(world, operation).await?).await?;
        let kept = main(world).await?.spec.backup.owner_check.unwrap();
        assert_eq!(kept.silence, Some(OwnerCheckSilence::Tolerate), "{operation:?}");
        assert_eq!((kept.id, kept.name), (check.id.clone(), check.name.clone()));
    }
    silence(world, Value::Null).await?;
    Box::pin(other_intervals(world)).await?;
    Box::pin(deleted_during_a_move(world)).await?;

    seed(world, false, true).await?;
    for (operation, checks) in [
        (Operation::Migrate, true),
        (Operation::Delete, true),
        (Operation::Reconcile, false),
        (Operation::Migrate, false),
    ] {
        Etcds::deploy(&facts(world, operation).await?).await?;
        let found = main(world).await?.spec.backup.owner_check;
        assert_eq!(found.is_some(), checks, "{operation:?} {found:?}");
    }
    Ok(())
}

/// An operator deletes the Etcd during a move. The next attempt creates an Etcd that does not start empty.
/// While the owner record stands, the Etcd checks the owner, because kube-apiserver may still write.
async fn deleted_during_a_move(world: &World) -> Result<()> {
    let etcds: Api<Etcd> = Api::namespaced(world.client(), NAMESPACE);
    let checked = main(world).await?.spec.backup.owner_check;
    let created_anew = async || -> Result<Etcd> {
        etcds.delete("etcd-main", &DeleteParams::default()).await?;
        Etcds::deploy(&facts(world, Operation::Migrate).await?).await?;
        let etcd = main(world).await?;
        let past = etcd.annotations().get(DRUID_REQUIRE_SNAPSHOT);
        assert_eq!(past.map(String::as_str), Some("true"));
        Ok(etcd)
    };
    // The provider has not written the record, and a check could not be confirmed.
    assert_eq!(created_anew().await?.spec.backup.owner_check, None);
    let extensions = "extensions.gardener.cloud/v1alpha1";
    let records = world.any(extensions, "DNSRecord", Some(NAMESPACE));
    let taken_up = Patch::Merge(json!({"metadata": {"annotations": {OPERATION: null}}}));
    let params = PatchParams::default();
    records.patch("web-owner", &params, &taken_up).await?;
    let status = json!({"lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100,
        "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}});
    world.status(extensions, "DNSRecord", "web-owner", status).await?;
    assert!(checked.is_some());
    assert_eq!(created_anew().await?.spec.backup.owner_check, checked);
    Ok(())
}

/// A fenced seed acknowledges no Events (decision 36). kube-apiserver uses the gate only while etcd-main has
/// the gate. When the check is switched off, kube-apiserver uses the direct address again. Flows that do not
/// deploy keep the address.
async fn kube_apiserver_stores_events_past_the_gate(world: &World) -> Result<()> {
    const DIRECT: &str = "https://etcd-events-client:2379";
    const GATE: &str = "https://etcd-main-client:2381";
    seed(world, false, true).await?;
    let f = facts(world, Operation::Reconcile).await?;
    Secrets::deploy(&f).await?;
    Etcds::deploy(&f).await?;
    let deployed = async |operation| -> Result<String> {
        KubeApiserver::deploy(&facts(world, operation).await?).await?;
        events_address(world).await
    };
    assert_eq!(deployed(Operation::Reconcile).await?, DIRECT);

    // An Etcd of an earlier release has the check without this gate, and a deletion adds no gate.
    seed(world, true, true).await?;
    Etcds::deploy(&facts(world, Operation::Reconcile).await?).await?;
    let ungated = json!({"spec": {"backup": {"ownerCheck": {"eventsGate": null}}}});
    let etcds: Api<Etcd> = Api::namespaced(world.client(), NAMESPACE);
    etcds
        .patch("etcd-main", &PatchParams::default(), &Patch::Merge(ungated))
        .await?;
    Etcds::deploy(&facts(world, Operation::Delete).await?).await?;
    assert_eq!(deployed(Operation::Delete).await?, DIRECT);

    // etcd-druid has not opened the port: an address without a server would cost the shoot all Events.
    Etcds::deploy(&facts(world, Operation::Reconcile).await?).await?;
    for ports in [None, Some(json!([{"name": "client", "port": 2379}]))] {
        if let Some(ports) = ports {
            let service = json!({"spec": {"ports": ports}});
            world
                .apply("v1", "Service", Some(NAMESPACE), "etcd-main-client", service)
                .await?;
        }
        assert_eq!(deployed(Operation::Reconcile).await?, DIRECT);
    }
    let ports =
        json!([{"name": "client", "port": 2379}, {"name": "events", "port": 2381, "targetPort": 2383}]);
    let service = json!({"spec": {"ports": ports}});
    world
        .apply("v1", "Service", Some(NAMESPACE), "etcd-main-client", service)
        .await?;
    assert_eq!(deployed(Operation::Reconcile).await?, GATE);

    // The setting is switched off: flows that do not deploy leave etcd-main and kube-apiserver unchanged.
    seed(world, false, true).await?;
    for (operation, expected) in [(Operation::Delete, GATE), (Operation::Reconcile, DIRECT)] {
        Etcds::deploy(&facts(world, operation).await?).await?;
        assert_eq!(deployed(operation).await?, expected, "{operation:?}");
    }
    Ok(())
}

/// The etcd address for Events in the Deployment kube-apiserver.
async fn events_address(world: &World) -> Result<String> {
    let deployment: Deployment = world.read("kube-apiserver").await?;
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let args = pod.containers[0].args.clone().unwrap();
    let mut addresses = args
        .iter()
        .filter_map(|arg| arg.strip_prefix("--etcd-servers-overrides=/events#"));
    Ok(addresses.next().unwrap().to_owned())
}

/// A planned move deletes the owner record while the shoot has no API. The zone would refuse a key that was
/// rotated since the last reconciliation. An unreadable key stops no flow.
async fn rotated_keys(world: &World) -> Result<()> {
    let copied = async || -> Result<Option<String>> {
        let secret: Secret = world.read("dnsrecord-web-owner").await?;
        let data = secret.data.unwrap_or_default();
        Ok(data
            .get("key")
            .map(|key| String::from_utf8_lossy(&key.0).into_owned()))
    };
    for (operation, key) in [(Operation::Migrate, "second"), (Operation::Delete, "third")] {
        let rotated = json!({"stringData": {"server": "127.0.0.1:53", "key": key}});
        world.apply("v1", "Secret", Some(OF_SEED), "dns", rotated).await?;
        DnsRecords::refresh_credentials(&facts(world, operation).await?).await?;
        assert_eq!(copied().await?.as_deref(), Some(key), "{operation:?}");
    }
    let names = world.secrets().await?;
    assert!(
        !names.contains_key("dnsrecord-web-internal"),
        "a record that is not there has no credentials"
    );
    let gone = facts(world, Operation::Migrate).await?;
    let secrets: Api<Secret> = Api::namespaced(world.client(), OF_SEED);
    secrets.delete("dns", &DeleteParams::default()).await?;
    DnsRecords::refresh_credentials(&gone).await?;
    assert_eq!(copied().await?.as_deref(), Some("third"));
    let server = json!({"stringData": {"server": "127.0.0.1:53"}});
    world.apply("v1", "Secret", Some(OF_SEED), "dns", server).await
}

/// Values of the Seed reach the Etcd and the terms of the flow. A value that the Seed drops is removed from
/// the Etcd.
async fn other_intervals(world: &World) -> Result<()> {
    wrong_intervals(world).await?;
    let longer =
        json!({"interval": "5s", "validity": "30s", "fence": "45s", "drift": 500, "silence": "Tolerate"});
    owner_checks(world, longer).await?;
    let f = facts(world, Operation::Reconcile).await?;
    let settings = *f.owner_check.settings();
    assert_eq!(
        (
            settings.interval.as_secs(),
            settings.validity.as_secs(),
            settings.fence.as_secs()
        ),
        (5, 30, 45)
    );
    Etcds::deploy(&f).await?;
    let check = main(world).await?.spec.backup.owner_check.unwrap();
    let expected = [Some("5s"), None, None, Some("30s"), None, None, None, Some("45s")];
    assert_eq!(check.durations().map(|(_, text)| text), expected);
    assert_eq!(
        (check.drift, check.silence),
        (Some(500), Some(OwnerCheckSilence::Tolerate))
    );

    let usual = json!({"interval": null, "validity": null, "fence": null, "drift": null, "silence": null});
    owner_checks(world, usual).await?;
    Etcds::deploy(&facts(world, Operation::Reconcile).await?).await?;
    let check = main(world).await?.spec.backup.owner_check.unwrap();
    assert_eq!(check.durations().map(|(_, text)| text), [None; 8]);
    assert_eq!((check.drift, check.silence), (None, None));
    Ok(())
}

/// The API server refuses invalid values before a process uses the values.
async fn wrong_intervals(world: &World) -> Result<()> {
    for (wrong, sentence) in [
        (json!({"interval": "0s"}), "must be from 100ms to 1h"),
        (json!({"interval": "-4s"}), "spec.settings.ownerChecks.interval"),
        (json!({"timeout": "10ms"}), "must be from 50ms to 1h"),
        (json!({"validity": "999999h"}), "must be from 100ms to 1h"),
        (
            json!({"requests": "99999999999h"}),
            "spec.settings.ownerChecks.requests",
        ),
        (json!({"propagation": "1us"}), "must be from 1ms to 1h, or 0s"),
        (json!({"fence": "23s"}), "must be from 24s to 1h"),
        (json!({"drift": 200_000}), "spec.settings.ownerChecks.drift"),
        (json!({"silence": "Maybe"}), "spec.settings.ownerChecks.silence"),
        (
            json!({"interval": "2s"}),
            "interval must be at least as long as a check may take",
        ),
        (json!({"interval": "5s"}), "validity must be at least"),
        (json!({"validity": "30s"}), "fence must be longer than"),
        (json!({"dnsCacheTTL": "1m"}), "fence must be longer than"),
    ] {
        let error = owner_checks(world, wrong.clone()).await.unwrap_err();
        assert!(error.to_string().contains(sentence), "{wrong}: {error}");
    }
    Ok(())
}

/// Changes the settings, like an operator.
async fn owner_checks(world: &World, change: Value) -> Result<()> {
    let seeds: Api<Seed> = Api::all(world.client());
    let patch = Patch::Merge(json!({"spec": {"settings": {"ownerChecks": change}}}));
    seeds.patch("seed-a", &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn main(world: &World) -> Result<Etcd> {
    world.read("etcd-main").await
}

/// Sets `silence`, like an operator.
async fn silence(world: &World, how: Value) -> Result<()> {
    let etcds: Api<Etcd> = Api::namespaced(world.client(), NAMESPACE);
    let patch = Patch::Merge(json!({"spec": {"backup": {"ownerCheck": {"silence": how}}}}));
    etcds.patch("etcd-main", &PatchParams::default(), &patch).await?;
    Ok(())
}
