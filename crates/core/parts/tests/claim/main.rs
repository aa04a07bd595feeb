//! The path of a destination from the hand-over to an acting owner, on a real API server. Each step runs
//! once, in order, and only on the destination.

#![allow(clippy::unwrap_used)]

mod contradiction;
mod data;
mod fence;
mod forged;
mod hand_over;
mod mutations;

use anyhow::Result;
use api::{
    constants::OWNERSHIP_EPOCH,
    druid::{Etcd, EtcdSpec},
    gardencore::{
        Shoot,
        shoot::{Ownership, OwnershipChain, OwnershipPhase},
    },
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use parts::{ClaimEvidence, ClaimPlan, ClaimSteps, Departure, EndedEtcd, Facts, Fence, Operation, Settings};
use parts_fixture::{NAMESPACE, PROJECT, World, terms, zone::Zone};
use serde_json::{Value, json};

fn settings() -> Settings {
    Settings {
        owner_check: terms::short().unwrap(),
        ..Settings::default()
    }
}

struct Subject {
    world: World,
}

impl Subject {
    async fn start(name: &str) -> Result<Self> {
        let world = World::start(name).await?;
        let subject = Self { world };
        let checks = json!({"spec": {"settings": {"ownerChecks": {"enabled": true}}}});
        subject
            .world
            .any("core.gardener.cloud/v1beta1", "Seed", None)
            .patch("seed-a", &PatchParams::default(), &Patch::Merge(&checks))
            .await?;
        subject.identity("identity-of-a").await?;
        Ok(subject)
    }

    /// Records the identity, like the gardenlet of the seed.
    async fn identity(&self, identity: &str) -> Result<()> {
        let seeds = self.world.any("core.gardener.cloud/v1beta1", "Seed", None);
        let status = json!({"status": {"clusterIdentity": identity}});
        seeds
            .patch_status("seed-a", &PatchParams::default(), &Patch::Merge(&status))
            .await?;
        Ok(())
    }

    /// Writes the status, like the hand-over or a later writer.
    async fn status(&self, status: Value) -> Result<()> {
        let shoots: Api<Shoot> = Api::namespaced(self.world.client(), PROJECT);
        let body = Patch::Merge(json!({"status": status}));
        shoots.patch_status("web", &PatchParams::default(), &body).await?;
        Ok(())
    }

    async fn set_record(&self, record: Value) -> Result<Facts> {
        self.status(json!({"seedName": "seed-a", "ownership": null}))
            .await?;
        self.status(
            json!({"seedName": "seed-a", "ownership": record, "lastOperation": operation("Restore")}),
        )
        .await?;
        self.world.facts(Operation::Restore, settings()).await
    }

    /// Writes the report of the source's gardenlet from before the end of the source. The source's Seed is
    /// gone.
    async fn source_asks(&self, zone: &Zone) -> Result<()> {
        let entry = json!({"seedName": "seed-z", "epoch": 19, "servers": [zone.address.to_string()], "serversNamed": true, "fenceSeconds": 0});
        self.status(json!({"ownerChecks": [entry]})).await
    }

    async fn record(&self) -> Result<Ownership> {
        let shoots: Api<Shoot> = Api::namespaced(self.world.client(), PROJECT);
        Ok(shoots.get("web").await?.status.unwrap().ownership.unwrap())
    }

    async fn stands(&self) -> Result<(i64, Option<OwnershipPhase>, Option<OwnershipChain>)> {
        let record = self.record().await?;
        Ok((record.epoch, record.phase, record.chain))
    }
}

fn operation(type_: &str) -> Value {
    json!({"type": type_, "state": "Processing", "progress": 1, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"})
}

fn taken(epoch: i64) -> Value {
    let approval = json!({"uid": "u", "from": "seed-z", "to": "seed-a", "epoch": epoch - 1, "acceptedLoss": "SinceLastSnapshot",
        "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "Because."});
    json!({"epoch": epoch, "phase": "Claiming", "source": {"name": "seed-z", "epoch": epoch - 1}, "approval": approval})
}

use OwnershipChain::{Final, Last};
use OwnershipPhase::{Claiming, Held, Leaving, Opening, Sealing};

#[tokio::test]
async fn a_destination_takes_its_steps_in_order_and_nobody_takes_them_for_it() -> Result<()> {
    let subject = Subject::start("claim").await?;
    Box::pin(fence::behind_the_fence(&subject)).await?;
    Box::pin(data::tells_what_is_lost(&subject)).await?;
    Box::pin(data::given_by_its_source(&subject)).await?;
    Box::pin(data::given_with_a_loss(&subject)).await?;
    Box::pin(data::copies_are_judged(&subject)).await?;
    Box::pin(a_restart_counts_anew(&subject)).await?;
    Box::pin(woken_late(&subject)).await?;
    Box::pin(two_at_once(&subject)).await?;
    Box::pin(pods_of_before(&subject)).await?;
    Box::pin(leaves_and_stays(&subject)).await?;
    Box::pin(comes_back(&subject)).await?;
    Box::pin(comes_back_after_its_clean_up(&subject)).await?;
    Box::pin(fence::seen_everywhere(&subject)).await?;
    Box::pin(fence::servers_of_the_source(&subject)).await?;
    Box::pin(contradiction::servers_that_contradict(&subject)).await?;
    Box::pin(hand_over::confirmed_by_the_record(&subject)).await?;
    Box::pin(hand_over::confirmed_by_one_server(&subject)).await?;
    Box::pin(hand_over::contradicted_by_the_record(&subject)).await?;
    Box::pin(hand_over::contradicted_by_one_server(&subject)).await?;
    Box::pin(hand_over::contradicted_by_an_earlier_owner(&subject)).await?;
    Box::pin(forged::phases_of_a_thief(&subject)).await?;
    Box::pin(forged::phases_without_a_restoration(&subject)).await?;
    Box::pin(forged::phases_of_a_former_version(&subject)).await?;
    Box::pin(mutations::a_claim_without_a_rule_is_noticed(&subject)).await;
    Ok(())
}

/// After a restart the chain stays, and the fence must begin again.
async fn a_restart_counts_anew(subject: &Subject) -> Result<()> {
    let facts = subject.set_record(taken(4)).await?;
    let evidence = ClaimEvidence::default();
    evidence.copy.record(data::brought(false));
    evidence.fence.begin([]);
    Fence::pass(&facts, &evidence.fence).await?;
    ClaimSteps::open(&facts, &evidence).await?;
    let restarted = subject.world.facts(Operation::Restore, settings()).await?;
    let anew = ClaimEvidence::default();
    assert_eq!(ClaimSteps::plan(&restarted, false)?, ClaimPlan::AfterTakeover);
    ClaimSteps::open(&restarted, &anew).await?;
    ClaimSteps::hold(&restarted, &anew.fence).await.unwrap_err();
    assert_eq!(subject.stands().await?, (4, Some(Opening), Some(Last)));
    anew.fence.begin([]);
    Fence::pass(&restarted, &anew.fence).await?;
    ClaimSteps::hold(&restarted, &anew.fence).await?;
    assert_eq!(subject.stands().await?, (4, Some(Held), Some(Last)));
    Ok(())
}

/// R17-60: the gardenlet slept while the shoot moved to a different seed, a different epoch or a different
/// operation.
async fn woken_late(subject: &Subject) -> Result<()> {
    let gone_on = [
        json!({"seedName": "seed-c", "ownership": taken(6), "lastOperation": operation("Restore")}),
        json!({"seedName": "seed-a", "ownership": taken(6), "lastOperation": operation("Restore")}),
        json!({"seedName": "seed-a", "ownership": taken(5), "lastOperation": operation("Migrate")}),
    ];
    for meanwhile in gone_on {
        let facts = subject.set_record(taken(5)).await?;
        let evidence = ClaimEvidence::default();
        evidence.fence.begin([]);
        Fence::pass(&facts, &evidence.fence).await?;
        subject.status(meanwhile).await?;
        let before = subject.record().await?;
        for step in [
            ClaimSteps::open(&facts, &evidence).await,
            ClaimSteps::hold(&facts, &evidence.fence).await,
        ] {
            let refused = step.unwrap_err();
            assert_eq!(refused.class(), "NotOwner", "{refused}");
        }
        assert_eq!(subject.record().await?, before);
    }
    Ok(())
}

/// Two processes that both assume the lock, beside a writer of progress.
async fn two_at_once(subject: &Subject) -> Result<()> {
    let facts = subject.set_record(taken(7)).await?;
    let other = subject.world.facts(Operation::Restore, settings()).await?;
    let (evidence, of_other) = (ClaimEvidence::default(), ClaimEvidence::default());
    for (facts, evidence) in [(&facts, &evidence), (&other, &of_other)] {
        evidence.copy.record(data::brought(false));
        evidence.fence.begin([]);
        Fence::pass(facts, &evidence.fence).await?;
    }
    let progress = async {
        for percent in 2..12 {
            let mut last = operation("Restore");
            last["progress"] = json!(percent);
            subject.status(json!({"lastOperation": last})).await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let both = |facts: Facts, evidence: ClaimEvidence| async move {
        ClaimSteps::open(&facts, &evidence).await?;
        ClaimSteps::hold(&facts, &evidence.fence).await
    };
    let (one, two, progress) = tokio::join!(both(facts, evidence), both(other, of_other), progress);
    one?;
    two?;
    progress?;
    assert_eq!(subject.stands().await?, (7, Some(Held), Some(Last)));
    Ok(())
}

/// R17-50: a source records each phase once, and cannot continue in a sealed epoch.
async fn leaves_and_stays(subject: &Subject) -> Result<()> {
    let held = json!({"epoch": 10, "phase": "Held"});
    subject.set_record(held).await?;
    let leaves = |type_: &'static str| async move {
        subject.status(json!({"lastOperation": operation(type_)})).await?;
        let which = if type_ == "Migrate" {
            Operation::Migrate
        } else {
            Operation::Restore
        };
        subject.world.facts(which, settings()).await
    };
    let source = leaves("Migrate").await?;
    for _ in 0..2 {
        Departure::begin(&source).await?;
        assert_eq!(subject.stands().await?, (10, Some(Leaving), None));
    }
    // Cancelled in time: the epoch continues.
    let kept = leaves("Restore").await?;
    assert_eq!(ClaimSteps::plan(&kept, false)?, ClaimPlan::DepartureCancelled);
    Departure::cancel(&kept).await?;
    Departure::cancel(&kept).await?;
    assert_eq!(subject.stands().await?, (10, Some(Held), None));
    // The earlier flow wakes up.
    assert_eq!(Departure::begin(&source).await.unwrap_err().class(), "NotOwner");

    let source = leaves("Migrate").await?;
    Departure::begin(&source).await?;
    for _ in 0..2 {
        Departure::seal(&source).await?;
        Departure::begin(&source).await?;
        assert_eq!(subject.stands().await?, (10, Some(Sealing), None));
    }
    let late = leaves("Restore").await?;
    Departure::cancel(&late).await?;
    assert_eq!(subject.stands().await?, (10, Some(Sealing), None));
    let waits = ClaimSteps::plan(&late, false).unwrap_err();
    assert_eq!(waits.class(), "NotReady", "{waits}");
    Ok(())
}

/// The seed gets the shoot again: the seed's own etcd stops, the data are kept, and no copy runs.
async fn comes_back(subject: &Subject) -> Result<()> {
    let mut record = taken(11);
    record["source"] = json!({"name": "seed-a", "epoch": 9});
    // The loss of an earlier takeover, which must not appear as the loss of this epoch.
    record["restored"] = json!({"epoch": 9, "lastRevision": 832, "saved": "2026-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z",
        "source": {"name": "seed-z", "epoch": 8}, "lostRevisions": 3});
    let facts = subject.set_record(record).await?;
    let evidence = ClaimEvidence::default();
    assert_eq!(ClaimSteps::plan(&facts, false)?, ClaimPlan::NewEpochSameSeed);
    assert!(!facts.is_copy_of_backups_required().await?);
    let spec = json!({"labels": {}, "etcd": {}, "backup": {}, "replicas": 1});
    let mut etcd = Etcd::new("etcd-main", serde_json::from_value(spec)?);
    etcd.annotations_mut().insert(OWNERSHIP_EPOCH.into(), "10".into());
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    etcds.create(&PostParams::default(), &etcd).await?;
    evidence.fence.begin([]);
    Fence::pass(&facts, &evidence.fence).await?;
    let waits = ClaimSteps::open(&facts, &evidence).await.unwrap_err().to_string();
    assert!(waits.contains("pods of an earlier epoch"), "{waits}");
    for _ in 0..2 {
        EndedEtcd::stop(&facts).await?;
        EndedEtcd::stopped(&facts).await?;
    }
    assert_eq!(etcds.get("etcd-main").await?.spec.replicas, 0);
    ClaimSteps::open(&facts, &evidence).await?;
    assert_eq!(subject.stands().await?, (11, Some(Opening), Some(Last)));
    let record = subject.record().await?;
    // The new record keeps the earlier loss.
    let before: Vec<_> = record
        .restored_before
        .iter()
        .map(|it| (it.epoch, it.lost_revisions))
        .collect();
    assert_eq!(before, [(9, Some(3))]);
    let restored = record.restored.unwrap();
    assert_eq!(
        (restored.epoch, restored.last_revision, &restored.saved),
        (11, None, &None)
    );
    assert_eq!(
        (restored.source.as_ref().unwrap().epoch, restored.lost_revisions),
        (9, None)
    );
    assert!(restored.unknown.unwrap().contains("Kept or Restored"));
    // An etcd that was started again is of this epoch, and stays.
    let up = json!({"metadata": {"annotations": {OWNERSHIP_EPOCH: "11"}}, "spec": {"replicas": 1}});
    etcds
        .patch("etcd-main", &PatchParams::default(), &Patch::Merge(&up))
        .await?;
    EndedEtcd::stop(&facts).await?;
    EndedEtcd::stopped(&facts).await?;
    assert_eq!(etcds.get("etcd-main").await?.spec.replicas, 1);
    ClaimSteps::hold(&facts, &evidence.fence).await?;
    etcds
        .delete("etcd-main", &kube::api::DeleteParams::default())
        .await?;
    Ok(())
}

/// The seed has handed the shoot over and has deleted the Etcd. The destination died before it opened the
/// data: the seed gets the shoot again, and fences the destination first.
async fn comes_back_after_its_clean_up(subject: &Subject) -> Result<()> {
    let mut record = taken(13);
    record["source"] = json!({"name": "seed-a", "epoch": 11});
    // The data are elsewhere, and no copy runs.
    let mut elsewhere = record.clone();
    elsewhere["sourceBucket"] = json!({"name": "elsewhere", "epoch": 11});
    let facts = subject.set_record(elsewhere).await?;
    let refused = ClaimSteps::open(&facts, &ClaimEvidence::default()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("names bucket elsewhere"), "{refused}");

    let facts = subject.set_record(record).await?;
    let evidence = ClaimEvidence::default();
    assert_eq!(ClaimSteps::plan(&facts, false)?, ClaimPlan::NewEpochSameSeed);
    assert!(!facts.is_copy_of_backups_required().await?);
    EndedEtcd::stop(&facts).await?;
    EndedEtcd::stopped(&facts).await?;
    ClaimSteps::open(&facts, &evidence).await.unwrap_err();
    assert_eq!(subject.stands().await?, (13, Some(Claiming), None));
    evidence.fence.begin([]);
    Fence::pass(&facts, &evidence.fence).await?;
    ClaimSteps::open(&facts, &evidence).await?;
    assert_eq!(subject.stands().await?, (13, Some(Opening), Some(Last)));
    ClaimSteps::hold(&facts, &evidence.fence).await?;
    assert_eq!(subject.stands().await?, (13, Some(Held), Some(Last)));
    Ok(())
}

/// An etcd from an earlier residency is not opened again.
async fn pods_of_before(subject: &Subject) -> Result<()> {
    let facts = subject.set_record(taken(8)).await?;
    let evidence = ClaimEvidence::default();
    evidence.copy.record(data::brought(false));
    evidence.fence.begin([]);
    Fence::pass(&facts, &evidence.fence).await?;
    let spec: EtcdSpec =
        serde_json::from_value(json!({"labels": {}, "etcd": {}, "backup": {}, "replicas": 1}))?;
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    etcds
        .create(&PostParams::default(), &Etcd::new("etcd-main", spec))
        .await?;
    let waits = ClaimSteps::open(&facts, &evidence).await.unwrap_err().to_string();
    assert!(waits.contains("pods of an earlier epoch"), "{waits}");
    assert_eq!(subject.stands().await?, (8, Some(Claiming), None));
    etcds
        .delete("etcd-main", &kube::api::DeleteParams::default())
        .await?;
    ClaimSteps::open(&facts, &evidence).await?;
    Ok(())
}
