//! The gardenlet's own Secrets in a ShootState. Every write of a gardenlet passes policy
//! `gardenlet-shootstate` of the garden, and no write of a hostile host leads a restore to other keys. The
//! policy applies to all users here.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::Result;
use api::{
    extensions,
    gardencore::{GardenerResourceData, InternalSecret, InternalSecretFields, Shoot, ShootState as Object},
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Resource as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use parts::{Facts, Operation, Secrets, Settings, ShootState, secrets::config::CARRIED};
use parts_fixture::{NAMESPACE, PROJECT, World};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::eventually;

use super::{FEW, LARGE, grow, internal_secrets, names, planted::write, shoot, state};

const POLICIES: &str =
    include_str!("../../../../../charts/garden/files/policies/gardenlet-project-namespace.yaml");
/// The part of the refusal that names the rule.
const REFUSED: &str = "may not remove or change the keys in entry";
/// Longer than an API server takes to read a policy.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writes_of_a_gardenlet_keep_the_keys() -> Result<()> {
    let world = Box::pin(shoot("keys")).await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    let keys = own_entries(&world).await?;
    assert_eq!(keys.len(), CARRIED.len());
    enforce_policy(&world).await?;

    secrets_of_extensions_come_and_go(&world, &facts).await?;
    expect_kept(&world, &keys).await?;
    for number in 0..FEW {
        grow(&world, number, LARGE, 1).await?;
    }
    ShootState::persist(&facts).await?;
    assert!(state(&world).await?.spec.in_chunks.is_some());
    expect_kept(&world, &keys).await?;
    grow(&world, 1, LARGE, 2).await?;
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    expect_kept(&world, &keys).await?;
    Box::pin(in_a_later_epoch(&world)).await?;
    expect_kept(&world, &keys).await?;

    planted_chunks_lead_to_no_other_key(&world, &keys).await?;
    Box::pin(lost_chunks_lose_no_key(&world, &keys)).await?;
    Box::pin(small_again(&world)).await?;
    expect_kept(&world, &keys).await
}

/// The policy of the chart with its rules about entries, for each user.
async fn enforce_policy(world: &World) -> Result<()> {
    for document in serde_yaml_ng::Deserializer::from_str(POLICIES) {
        let document = Value::deserialize(document)?;
        if document["metadata"]["name"] != "gardenlet-shootstate" {
            continue;
        }
        let kind = document["kind"].as_str().unwrap_or_default();
        let mut spec = document["spec"].clone();
        if kind == "ValidatingAdmissionPolicy" {
            spec["matchConditions"] = json!([]);
            let rules = spec["validations"].as_array_mut().unwrap();
            let is_about_entries = |rule: &Value| {
                let rule = rule["expression"].as_str().unwrap_or_default();
                ["variables.entries", "variables.lost", "variables.own."]
                    .iter()
                    .any(|part| rule.contains(part))
            };
            rules.retain(is_about_entries);
            assert_eq!(rules.len(), 4);
        }
        let version = "admissionregistration.k8s.io/v1";
        let body = json!({"spec": spec});
        world
            .apply(version, kind, None, "gardenlet-shootstate", body)
            .await?;
    }
    eventually("the policy is in force", SOON, || {
        expect_refused(world, json!({"gardener": null}))
    })
    .await
}

/// A dry run of this change is refused by the rule.
async fn expect_refused(world: &World, spec: Value) -> Result<(), String> {
    let states: Api<Object> = Api::namespaced(world.client(), PROJECT);
    let patch = Patch::Merge(json!({"spec": spec}));
    match states
        .patch("web", &PatchParams::default().dry_run(), &patch)
        .await
    {
        Err(error) if error.to_string().contains(REFUSED) => Ok(()),
        other => Err(format!("{:?}", other.map(drop))),
    }
}

/// The entries of the gardenlet's own Secrets, by name.
async fn own_entries(world: &World) -> Result<BTreeMap<String, GardenerResourceData>> {
    let entries = state(world).await?.spec.gardener.into_iter();
    Ok(entries
        .filter(|entry| CARRIED.contains(&entry.name.as_str()))
        .map(|entry| (entry.name.clone(), entry))
        .collect())
}

/// The keys stand in the ShootState itself, and a host cannot remove the keys from this ShootState.
async fn expect_kept(world: &World, keys: &BTreeMap<String, GardenerResourceData>) -> Result<()> {
    assert_eq!(own_entries(world).await?, *keys);
    for emptied in [
        json!({"gardener": null}),
        json!({"gardener": [], "extensions": [], "resources": [], "inChunks": null}),
    ] {
        expect_refused(world, emptied).await.map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

/// An extension changes and removes its own carried Secrets.
async fn secrets_of_extensions_come_and_go(world: &World, facts: &Facts) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.client(), NAMESPACE);
    let secret = |data: &str| -> Result<Secret> {
        let metadata = json!({"name": "of-extension", "labels": {"persist": "true"}});
        Ok(serde_json::from_value(
            json!({"metadata": metadata, "data": {"k": data}}),
        )?)
    };
    for data in ["dw==", "eA=="] {
        secrets.create(&PostParams::default(), &secret(data)?).await?;
        ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
        assert_eq!(state(world).await?.spec.gardener.len(), CARRIED.len() + 1);
        secrets.delete("of-extension", &DeleteParams::default()).await?;
    }
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert_eq!(state(world).await?.spec.gardener.len(), CARRIED.len());
    Ok(())
}

/// The owner of a later epoch writes all, although no content has changed.
async fn in_a_later_epoch(world: &World) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(world.client(), PROJECT);
    let later = Patch::Merge(json!({"status": {"ownership": {"epoch": 2}}}));
    shoots
        .patch_status("web", &PatchParams::default(), &later)
        .await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    ShootState::persist(&facts).await?;
    assert_eq!(state(world).await?.spec.epoch, Some(2));
    Ok(())
}

/// The only chunk is valid, and has another `ca` and no further Secret. The policy does not see chunks.
async fn planted_chunks_lead_to_no_other_key(
    world: &World,
    keys: &BTreeMap<String, GardenerResourceData>,
) -> Result<()> {
    let mut planted = serde_json::to_value(&keys["ca"])?;
    planted["data"]["data"]["ca.crt"] = json!("eA==");
    let text = format!("{}\n", json!({"gardener": planted}));
    let bytes = zstd::bulk::compress(text.as_bytes(), 3)?;
    let name = "web.state-90-0";
    let chunk = json!({"name": name, "size": text.len(), "sha256": sha256(&bytes)});
    let fields = InternalSecretFields {
        data: [("chunk".to_owned(), ByteString(bytes))].into(),
        ..InternalSecretFields::default()
    };
    let mut secret = InternalSecret::new(name, fields);
    secret.metadata.owner_references = state(world).await?.owner_ref(&()).map(|owner| vec![owner]);
    internal_secrets(world)
        .create(&PostParams::default(), &secret)
        .await?;
    let chunks = json!({"size": text.len(), "sha256": sha256(text.as_bytes()), "chunks": [chunk]});
    write(world, json!({"inChunks": chunks})).await?;
    let facts = world.facts(Operation::Restore, Settings::default()).await?;
    let whole = ShootState::whole(&facts).await?.unwrap().gardener;
    assert_eq!(whole, keys.values().cloned().collect::<Vec<_>>());
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Without the chunks, the ShootState gives all keys and nothing else. After an administrator has removed the
/// reference, a restore finds all that is left.
async fn lost_chunks_lose_no_key(world: &World, keys: &BTreeMap<String, GardenerResourceData>) -> Result<()> {
    let before: Secret = world.read("service-account-key").await?;
    for name in names(world).await? {
        internal_secrets(world)
            .delete(&name, &DeleteParams::default())
            .await?;
    }
    let secrets: Api<Secret> = Api::namespaced(world.client(), NAMESPACE);
    secrets
        .delete("service-account-key", &DeleteParams::default())
        .await?;
    let facts = world.facts(Operation::Restore, Settings::default()).await?;
    Secrets::deploy(&facts).await?;
    let after: Secret = world.read("service-account-key").await?;
    assert_eq!(before.data, after.data);
    let refused = ShootState::whole(&facts).await.unwrap_err();
    assert!(refused.to_string().contains("InternalSecret"), "{refused}");
    write(world, json!({"inChunks": null})).await?;
    assert!(ShootState::whole(&facts).await?.is_some());
    assert_eq!(own_entries(world).await?, *keys);
    Ok(())
}

/// Small state stands in the ShootState again.
async fn small_again(world: &World) -> Result<()> {
    let all: Api<extensions::Extension> = Api::namespaced(world.client(), NAMESPACE);
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert!(state(world).await?.spec.in_chunks.is_some());
    all.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert!(state(world).await?.spec.in_chunks.is_none());
    Ok(())
}
