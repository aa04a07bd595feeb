//! A gardenlet reports in the Seed the maximum number of shoots, and whether Shoots are on the seed. A real
//! API server serves as garden and seed.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::Result;
use api::{
    constants::{
        LEFTOVER_NAMESPACES, ROLE, SHOOT_NAME, SHOOT_NAMESPACE, SHOOT_UID,
        condition::{EDGE_ADDRESS_READY, WITHOUT_SHOOTS},
    },
    gardencore::{BackupEntry, BackupEntrySpec, Seed},
    meta::{ConditionStatus, find_condition},
};
use gardenlet::{seed, shoot};
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use runtime::client::wait;
use serde_json::json;
use testkit::{apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

#[test]
fn the_first_flow_of_a_shoot_reports_that_the_seed_is_in_use() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("seed-in-use", false)).await?;
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let context = Arc::new(context(&ground.client, &["--max-shoots=7"])?);
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(seed::run(Arc::clone(&context))));
        let seed = reported(&seeds, ConditionStatus::True).await?;
        assert_eq!(seed.status.unwrap().allocatable["shoots"].0, "7");

        // From here on only a flow can report.
        gardenlet.shutdown().await;
        let web = json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
            "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
                "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}});
        apply(&ground.client, web).await?;
        gardenlet.spawn(Box::pin(shoot::run(context)));
        reported(&seeds, ConditionStatus::False).await.map(drop)
    })
}

/// The Seed lists the namespace of a shoot that runs in a different seed, until the namespace is gone.
#[test]
fn a_control_plane_that_no_process_cleans_up_is_listed_in_the_seed() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("leftovers", false)).await?;
        let web = json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
            "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-b",
                "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}});
        apply(&ground.client, web).await?;
        let status = json!({"status": {"seedName": "seed-b", "technicalID": NAMESPACE, "uid": "u-1"}});
        let params = PatchParams::default();
        ground
            .shoots
            .patch_status("web", &params, &Patch::Merge(status))
            .await?;
        let meta = json!({"name": NAMESPACE, "annotations": {(SHOOT_UID): "u-1"},
            "labels": {(ROLE): "shoot", (SHOOT_NAMESPACE): PROJECT, (SHOOT_NAME): "web"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta});
        apply(&ground.client, namespace).await?;

        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let context = Arc::new(context(&ground.client, &[])?);
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(seed::run(Arc::clone(&context))));
        listed(&seeds, Some(NAMESPACE)).await?;
        gardenlet.shutdown().await;

        let namespaces: Api<Namespace> = Api::all(ground.client.clone());
        namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
        testkit::measured("the object is gone", SOON, |bound| {
            wait::until_gone(&namespaces, NAMESPACE, bound)
        })
        .await?;
        gardenlet.spawn(Box::pin(seed::run(context)));
        listed(&seeds, None).await
    })
}

async fn listed(seeds: &Api<Seed>, expected: Option<&str>) -> Result<()> {
    eventually(
        &format!("{LEFTOVER_NAMESPACES} is {expected:?}"),
        SOON,
        || async {
            let seed = seeds.get("seed-a").await.map_err(|error| error.to_string())?;
            let found = seed.annotations().get(LEFTOVER_NAMESPACES).map(String::as_str);
            if found == expected {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        },
    )
    .await
}

/// The load balancer of the edge gets an address after the installation of the seed.
#[test]
fn an_edge_without_an_address_is_reported_until_it_has_an_address() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("seed-edge", false)).await?;
        let context = Arc::new(context(&ground.client, &[])?);
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(seed::run(context)));
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        edge_is(&seeds, "EdgeServiceMissing").await?;

        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-exposure"}});
        apply(&ground.client, namespace).await?;
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "ingress", "namespace": "garden-exposure"},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]}});
        apply(&ground.client, service).await?;
        edge_is(&seeds, "EdgeWithoutAddress").await?;

        let services: Api<Service> = Api::namespaced(ground.client.clone(), "garden-exposure");
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10"}]}}});
        services
            .patch_status("ingress", &PatchParams::default(), &Patch::Merge(status))
            .await?;
        edge_is(&seeds, "EdgeAddressKnown").await
    })
}

/// A former certificate says nothing about a token.
#[test]
fn the_seed_reports_the_end_of_the_certificate_until_the_gardenlet_uses_a_token() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("seed-certificate", false)).await?;
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        for end in [Some("2036-11-26T07:03:10Z"), Some("2037-11-26T07:03:10Z"), None] {
            let end: Option<Timestamp> = end.map(str::parse).transpose()?;
            let mut context = context(&ground.client, &[])?;
            context.certificate_expiry = end;
            let mut gardenlet = JoinSet::new();
            gardenlet.spawn(Box::pin(seed::run(Arc::new(context))));
            certificate_ends(&seeds, end).await?;
            gardenlet.shutdown().await;
        }
        Ok(())
    })
}

async fn certificate_ends(seeds: &Api<Seed>, end: Option<Timestamp>) -> Result<()> {
    eventually(&format!("the certificate ends at {end:?}"), SOON, || async {
        let seed = seeds.get("seed-a").await.map_err(|error| error.to_string())?;
        let status = seed.status.unwrap_or_default();
        let found = status.client_certificate_expiration_timestamp.map(|time| time.0);
        // The version is there as soon as the gardenlet has written the status.
        if status.kubernetes_version.is_some() && found == end {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await
}

async fn edge_is(seeds: &Api<Seed>, reason: &str) -> Result<()> {
    eventually(&format!("{EDGE_ADDRESS_READY} has {reason}"), SOON, || async {
        let seed = seeds.get("seed-a").await.map_err(|error| error.to_string())?;
        let conditions = seed.status.as_ref().map(|status| status.conditions.as_slice());
        let found = find_condition(conditions.unwrap_or_default(), EDGE_ADDRESS_READY);
        match found {
            Some(condition) if condition.reason == reason => Ok(()),
            found => Err(format!("{found:?}")),
        }
    })
    .await
}

/// The process would end before the Lease and the controllers start, so that the shoots of the seed might be
/// taken over.
#[test]
fn a_refused_seed_config_keeps_the_registered_seed() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("seed-config", false)).await?;
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let before = seeds.get("seed-a").await?;
        let manifest = tempfile::NamedTempFile::new()?;
        let mut context = context(&ground.client, &[])?;
        Arc::get_mut(&mut context.config).unwrap().seed_config = manifest.path().to_owned();
        let mut edited = serde_json::to_value(&before)?;
        edited["metadata"] = json!({"name": "seed-a"});
        edited["spec"]["dns"]["internal"]["domain"] = json!("other.example.test");
        edited.as_object_mut().unwrap().remove("status");
        std::fs::write(manifest.path(), serde_json::to_vec(&edited)?)?;

        seed::register(&context).await?;
        assert_eq!(seeds.get("seed-a").await?.spec, before.spec);
        let events: Api<Event> = Api::namespaced(ground.client.clone(), "default");
        eventually("SeedConfigRefused", SOON, || async {
            let all = events.list(&ListParams::default()).await;
            let all = all.map_err(|error| error.to_string())?;
            let found = all
                .items
                .iter()
                .find(|event| event.reason.as_deref() == Some("SeedConfigRefused"));
            let note = found.and_then(|event| event.note.clone()).unwrap_or_default();
            if note.contains("dns.internal are immutable") {
                Ok(())
            } else {
                Err(note)
            }
        })
        .await?;

        // No registered Seed exists with which the gardenlet could continue.
        edited["metadata"]["name"] = json!("seed-b");
        edited["metadata"]["labels"] = json!({"no key": "value"});
        std::fs::write(manifest.path(), serde_json::to_vec(&edited)?)?;
        context.seed_name = "seed-b".into();
        let error = seed::register(&context).await.unwrap_err().to_string();
        assert!(error.contains("could not be registered"), "{error}");
        Ok(())
    })
}

/// A Seed in deletion waits for its BackupEntry behind the first page of all BackupEntries.
#[test]
fn a_backup_entry_behind_many_others_keeps_the_seed() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("seed-entries", false)).await?;
        let entries: Api<BackupEntry> = Api::namespaced(ground.client.clone(), PROJECT);
        let others = (0..60).map(|number| (format!("a-{number}"), "seed-b"));
        for (name, seed) in others.chain([("z".to_owned(), "seed-a")]) {
            let spec = BackupEntrySpec {
                bucket_name: "bucket".into(),
                seed_name: Some(seed.into()),
                ..BackupEntrySpec::default()
            };
            let entry = BackupEntry::new(&name, spec);
            entries.create(&PostParams::default(), &entry).await?;
        }
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let context = Arc::new(context(&ground.client, &[])?);
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(seed::run(context)));
        reported(&seeds, ConditionStatus::True).await?;
        seeds.delete("seed-a", &DeleteParams::default()).await?;
        let events: Api<Event> = Api::namespaced(ground.client.clone(), "default");
        eventually("SeedInUse", SOON, || async {
            let all = events.list(&ListParams::default()).await;
            let all = all.map_err(|error| error.to_string())?;
            let mut notes = all.items.iter().filter_map(|event| event.note.as_deref());
            notes
                .any(|note| note.contains("BackupEntry garden-dev/z is here"))
                .then_some(())
                .ok_or_else(|| "no Event".to_owned())
        })
        .await
    })
}

async fn reported(seeds: &Api<Seed>, status: ConditionStatus) -> Result<Seed> {
    eventually(&format!("{WITHOUT_SHOOTS} is {status:?}"), SOON, || async {
        let seed = seeds.get("seed-a").await.map_err(|error| error.to_string())?;
        let constraints = seed.status.as_ref().map(|status| status.constraints.as_slice());
        let found = find_condition(constraints.unwrap_or_default(), WITHOUT_SHOOTS).map(|found| found.status);
        if found == Some(status) {
            Ok(seed)
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await
}

/// The owner records of the shoots name the registered cluster, whose processes may still run.
#[test]
fn a_gardenlet_runs_for_no_cluster_but_the_registered_cluster() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("seed-cluster", false)).await?;
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let context = context(&ground.client, &[])?;
        let error = seed::check_cluster(&context).await.unwrap_err().to_string();
        assert!(error.contains("status.clusterIdentity of Seed seed-a"), "{error}");
        // An administrator removes the field after the cluster was built anew.
        let namespaces: Api<Namespace> = Api::all(ground.client.clone());
        let uid = namespaces.get("kube-system").await?.uid();
        for identity in [json!(null), json!(""), json!(uid)] {
            let status = Patch::Merge(json!({"status": {"clusterIdentity": identity}}));
            seeds
                .patch_status("seed-a", &PatchParams::default(), &status)
                .await?;
            seed::check_cluster(&context).await?;
        }
        Ok(())
    })
}
