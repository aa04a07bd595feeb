//! Phases in the garden that the gardenlet of this seed has not recorded: a thief of the certificate of the
//! gardenlet, or a gardenlet of a former version.

use anyhow::Result;
use api::{
    constants::{OPENED_IN_EPOCH, OWNERSHIP_EPOCH},
    druid::Etcd,
};
use k8s_openapi::api::core::v1;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use parts::{ClaimEvidence, ClaimPlan, ClaimSteps, Fence, OpenedEpoch, Operation};
use parts_fixture::NAMESPACE;
use serde_json::{Value, json};

use super::{Held, Last, Subject, data, settings, taken};

/// The record of a takeover in which a phase was recorded.
fn in_phase(epoch: i64, phase: &str) -> Value {
    let mut record = taken(epoch);
    record["phase"] = json!(phase);
    record["chain"] = json!("Last");
    record
}

/// Security: the destination fences the source and chooses the data, as after a takeover.
pub async fn phases_of_a_thief(subject: &Subject) -> Result<()> {
    for (epoch, phase) in [(60, "Held"), (61, "Leaving"), (62, "Opening")] {
        let mut record = in_phase(epoch, phase);
        record["drained"] = json!(true);
        let facts = subject.set_record(record).await?;
        let plan = ClaimSteps::plan(&facts, true)?;
        assert_eq!(
            plan,
            ClaimPlan::AfterTakeover,
            "the gardenlet relies on phase {phase}"
        );
        let evidence = ClaimEvidence::default();
        evidence.copy.record(data::brought(false));
        let early = ClaimSteps::open(&facts, &evidence).await.unwrap_err();
        assert!(early.is_retryable(), "{phase}: {early}");
        assert_ne!(noted(subject).await?, Some(epoch.to_string()), "{phase}");
        evidence.fence.begin([]);
        Fence::pass(&facts, &evidence.fence).await?;
        ClaimSteps::open(&facts, &evidence).await?;
        assert_eq!(noted(subject).await?, Some(epoch.to_string()), "{phase}");
        ClaimSteps::hold(&facts, &evidence.fence).await?;
        assert_eq!(
            subject.stands().await?,
            (epoch, Some(Held), Some(Last)),
            "{phase}"
        );
        let restored = subject.record().await?.restored.unwrap();
        assert_eq!((restored.epoch, restored.last_revision), (epoch, Some(832)));
        let next = subject.world.facts(Operation::Reconcile, settings()).await?;
        assert_eq!(ClaimSteps::plan(&next, false)?, ClaimPlan::Nothing, "{phase}");
    }
    Ok(())
}

/// Only a restoration fences and copies, so no other operation acts on such a phase.
pub async fn phases_without_a_restoration(subject: &Subject) -> Result<()> {
    subject.set_record(in_phase(63, "Held")).await?;
    for operation in [Operation::Reconcile, Operation::Migrate] {
        let refused = subject.world.facts(operation, settings()).await.unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("the seed does not show that"), "{refused}");
    }
    Ok(())
}

/// Upgrade: a gardenlet of a former version has restored the shoot, and has written no note. The shoot is not
/// fenced again.
pub async fn phases_of_a_former_version(subject: &Subject) -> Result<()> {
    subject.set_record(in_phase(64, "Held")).await?;
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    let spec = json!({"labels": {}, "etcd": {}, "backup": {}, "replicas": 1});
    let mut etcd = Etcd::new("etcd-main", serde_json::from_value(spec)?);
    etcd.annotations_mut().insert(OWNERSHIP_EPOCH.into(), "64".into());
    etcds.create(&PostParams::default(), &etcd).await?;
    let facts = subject.world.facts(Operation::Reconcile, settings()).await?;
    assert_eq!(ClaimSteps::plan(&facts, false)?, ClaimPlan::Nothing);
    OpenedEpoch::keep(&facts.residency, &facts.shoot).await?;
    assert_eq!(noted(subject).await?, Some("64".to_owned()));
    // The note is enough, so that a lost Etcd is created again.
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    let facts = subject.world.facts(Operation::Reconcile, settings()).await?;
    assert_eq!(ClaimSteps::plan(&facts, false)?, ClaimPlan::Nothing);
    Ok(())
}

async fn noted(subject: &Subject) -> Result<Option<String>> {
    let namespaces: Api<v1::Namespace> = Api::all(subject.world.client());
    let namespace = namespaces.get(NAMESPACE).await?;
    Ok(namespace.annotations().get(OPENED_IN_EPOCH).cloned())
}
