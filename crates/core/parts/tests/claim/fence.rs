//! The fence of a source that did not hand the shoot over: the start of the fence, and the steps that wait
//! for the end.

use std::time::Duration;

use anyhow::Result;
use api::constants::OWNERSHIP_EPOCH;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use parts::{ClaimEvidence, ClaimPlan, ClaimSteps, Fence, FenceClock, Namespace, Operation, Settings};
use parts_fixture::{NAMESPACE, terms, zone::Zone};
use serde_json::json;

use super::{Claiming, Held, Last, Opening, Subject, data, settings, taken};

/// R17-20, R7-59, R7-60: the fence begins when the servers of the zone and the bucket show the new owner.
pub async fn seen_everywhere(subject: &Subject) -> Result<()> {
    let zone = Zone::start().await?;
    let named = json!({"spec": {"settings": {"ownerChecks": {"authorities": [zone.address.to_string()]}}}});
    let seeds = subject.world.any("core.gardener.cloud/v1beta1", "Seed", None);
    seeds
        .patch("seed-a", &PatchParams::default(), &Patch::Merge(&named))
        .await?;
    subject.set_record(taken(20)).await?;
    subject.source_asks(&zone).await?;
    // Long enough for a slow machine; no test waits for this fence.
    let settings = Settings {
        owner_check: terms::answered_within(Duration::from_secs(10))?,
        ..Settings::default()
    };
    let facts = subject.world.facts(Operation::Restore, settings).await?;
    let evidence = ClaimEvidence::default();
    let look = async || {
        Fence::begin(&facts, &evidence.fence)
            .await
            .map_err(|error| error.to_string())
    };
    let secrets: Api<Secret> = Api::namespaced(subject.world.client(), NAMESPACE);
    for (identity, epoch, claimed, expected) in [
        ("identity-of-z", 19, "", "not every authority shows it"),
        ("identity-of-a", 19, "", "not every authority shows it"),
        ("identity-of-a", 20, "", "has not claimed"),
        ("identity-of-a", 20, "19", "has not claimed"),
        ("identity-of-c", 21, "20", "not every authority shows it"),
    ] {
        zone.says(identity, epoch);
        if !claimed.is_empty() {
            let secret: Secret = serde_json::from_value(json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "source-etcd-backup", "annotations": {OWNERSHIP_EPOCH: claimed}}}))?;
            let params = PatchParams::apply("provider").force();
            secrets
                .patch("source-etcd-backup", &params, &Patch::Apply(&secret))
                .await?;
        }
        let waits = look().await.unwrap_err();
        assert!(
            waits.contains(expected),
            "{identity} {epoch} {claimed:?}: {waits}"
        );
        let unbegun = Fence::pass(&facts, &evidence.fence).await.unwrap_err();
        assert_eq!(unbegun.class(), "Bug", "the fence counts although {expected}");
    }
    zone.says("identity-of-a", 20);
    look().await.map_err(anyhow::Error::msg)?;
    let passing =
        tokio::time::timeout(Duration::from_millis(200), Fence::pass(&facts, &evidence.fence)).await;
    assert!(passing.is_err(), "it has begun, and takes its time: {passing:?}");
    Ok(())
}

/// Two server lists, and the server of the source serves an old copy of the zone: two seeds would write.
pub async fn servers_of_the_source(subject: &Subject) -> Result<()> {
    let (own, stale) = (Zone::start().await?, Zone::start().await?);
    let named = json!({"spec": {"settings": {"ownerChecks": {"authorities": [own.address.to_string()]}}}});
    let seeds = subject.world.any("core.gardener.cloud/v1beta1", "Seed", None);
    seeds
        .patch("seed-a", &PatchParams::default(), &Patch::Merge(&named))
        .await?;
    let secrets: Api<Secret> = Api::namespaced(subject.world.client(), NAMESPACE);
    let secret: Secret = serde_json::from_value(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "source-etcd-backup", "annotations": {OWNERSHIP_EPOCH: "20"}}}))?;
    let params = PatchParams::apply("provider").force();
    secrets
        .patch("source-etcd-backup", &params, &Patch::Apply(&secret))
        .await?;
    own.says("identity-of-a", 20);
    stale.says("identity-of-z", 19);
    let settings = || -> Result<Settings> {
        Ok(Settings {
            owner_check: terms::answered_within(Duration::from_secs(10))?,
            ..Settings::default()
        })
    };
    let facts = async || subject.world.facts(Operation::Restore, settings()?).await;
    subject.set_record(taken(20)).await?;
    subject.status(json!({"ownerChecks": null})).await?;
    let unknown = Fence::begin(&facts().await?, &FenceClock::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("Seed seed-z, which had the shoot, was deleted"),
        "{unknown}"
    );
    let elsewhere = json!({"seedName": "seed-z", "epoch": 19, "servers": [], "serversNamed": true, "fenceSeconds": 0,
        "name": "owner.web.dev.internal.old.test", "zone": "old.test"});
    subject.status(json!({"ownerChecks": [elsewhere]})).await?;
    let other = Fence::begin(&facts().await?, &FenceClock::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        other.contains("processes of seed seed-z ask for the owner record owner.web.dev.internal.old.test in zone old.test"),
        "{other}"
    );
    subject.source_asks(&stale).await?;
    let destination = facts().await?;
    let evidence = ClaimEvidence::default();
    let waits = Fence::begin(&destination, &evidence.fence)
        .await
        .unwrap_err()
        .to_string();
    assert!(waits.contains("not every authority shows it"), "{waits}");
    let whose = format!("({} is asked by seed seed-z)", stale.address);
    assert!(waits.contains(&whose), "{waits}");
    let unbegun = Fence::pass(&destination, &evidence.fence).await.unwrap_err();
    assert_eq!(unbegun.class(), "Bug", "the fence counts: {unbegun}");
    // The server follows the zone again.
    stale.says("identity-of-a", 20);
    Fence::begin(&destination, &evidence.fence).await?;
    // A user has stated that no process of the source runs: the servers of the source do not matter.
    stale.says("identity-of-z", 19);
    let mut record = taken(20);
    record["approval"]["sourceIsOff"] = json!(true);
    subject.set_record(record).await?;
    Fence::begin(&facts().await?, &FenceClock::default()).await?;
    Ok(())
}

/// R17-20, R17-31, I2, I3.
pub async fn behind_the_fence(subject: &Subject) -> Result<()> {
    let facts = subject.set_record(taken(2)).await?;
    let evidence = ClaimEvidence::default();
    assert_eq!(ClaimSteps::plan(&facts, true)?, ClaimPlan::AfterTakeover);
    Namespace::deploy(&facts).await?;
    for early in [
        ClaimSteps::open(&facts, &evidence).await,
        ClaimSteps::hold(&facts, &evidence.fence).await,
    ] {
        let early = early.unwrap_err();
        assert!(early.is_retryable(), "{early}");
    }
    // The witnesses were not checked: time alone fences no seed, even when all data are there.
    tokio::time::sleep(Duration::from_millis(600)).await;
    evidence.copy.record(data::brought(true));
    ClaimSteps::open(&facts, &evidence)
        .await
        .expect_err("etcd is opened before the fence has begun");
    evidence.copy.record(None);
    // No step waits for this fence, which has the default length.
    let early = subject
        .world
        .facts(Operation::Restore, Settings::default())
        .await?;
    let early_evidence = ClaimEvidence::default();
    early_evidence.copy.record(data::brought(true));
    early_evidence.fence.begin([]);
    ClaimSteps::open(&early, &early_evidence)
        .await
        .expect_err("etcd is opened before the fence is over");
    assert_eq!(subject.stands().await?, (2, Some(Claiming), None));
    evidence.fence.begin([]);
    Fence::pass(&facts, &evidence.fence).await?;
    ClaimSteps::hold(&facts, &evidence.fence).await.unwrap_err();
    // The fence shows that the source has ended, and gives no evidence of the copy.
    let unread = ClaimSteps::open(&facts, &evidence).await.unwrap_err();
    assert!(
        unread
            .to_string()
            .contains("not everything of the chain is copied"),
        "{unread}"
    );
    evidence.copy.record(data::brought(false));
    ClaimSteps::open(&facts, &evidence).await?;
    assert_eq!(subject.stands().await?, (2, Some(Opening), Some(Last)));
    // A repeated step, as after a lost answer.
    ClaimSteps::open(&facts, &evidence).await?;
    assert_eq!(subject.stands().await?, (2, Some(Opening), Some(Last)));
    ClaimSteps::hold(&facts, &evidence.fence).await?;
    ClaimSteps::hold(&facts, &evidence.fence).await?;
    ClaimSteps::open(&facts, &evidence).await?;
    assert_eq!(subject.stands().await?, (2, Some(Held), Some(Last)));
    let record = subject.record().await?;
    let restored = record.restored.clone().unwrap();
    assert_eq!(
        (restored.epoch, restored.last_revision, restored.saved),
        (2, Some(832), None)
    );
    assert!(
        restored.unknown.unwrap().contains("does not say when"),
        "{record:?}"
    );
    assert!(
        record.approval.is_some() && record.source.is_some(),
        "what tells how the epoch began stays: {record:?}"
    );
    let held = subject.world.facts(Operation::Restore, settings()).await?;
    assert_eq!(ClaimSteps::plan(&held, false)?, ClaimPlan::Nothing);
    Ok(())
}
