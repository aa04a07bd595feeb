//! The data with which an etcd opens, and the recorded loss: both follow only from the report of the copy.

use anyhow::Result;
use api::druid::CopiedChain;
use api::{
    constants::{OWNERSHIP_EPOCH, SHOOT_ACCEPT_LOSS},
    druid::Etcd,
    gardencore::Shoot,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use parts::{ClaimEvidence, ClaimPlan, ClaimSteps, Deploy, EtcdCopy, Etcds, Facts, Fence, Operation};
use parts_fixture::{NAMESPACE, PROJECT};
use runtime::clock;
use serde_json::{Value, json};

use super::{Claiming, Final, Held, Last, Subject, operation, settings, taken};

/// The report of a copy: the chain is complete, or ends early.
#[allow(clippy::unnecessary_wraps)] // `CopyReport::record` takes an Option
pub fn brought(complete: bool) -> Option<CopiedChain> {
    Some(CopiedChain {
        final_snapshot: false,
        last_revision: 832,
        saved: None,
        complete,
        sealed_revision: None,
        lost_revisions: None,
        left_aside: Vec::new(),
    })
}

/// R17-45: the loss of a copy without the source's last changes is recorded together with the choice of the
/// data, not later.
pub async fn tells_what_is_lost(subject: &Subject) -> Result<()> {
    let before = clock::now();
    for (epoch, is_final) in [(30, false), (31, true)] {
        let facts = subject.set_record(taken(epoch)).await?;
        let evidence = ClaimEvidence::default();
        evidence.copy.record(Some(CopiedChain {
            final_snapshot: is_final,
            last_revision: 832,
            saved: Some(Time("2026-01-01T00:00:00Z".parse()?)),
            complete: is_final,
            sealed_revision: None,
            lost_revisions: None,
            left_aside: Vec::new(),
        }));
        evidence.fence.begin([]);
        Fence::pass(&facts, &evidence.fence).await?;
        ClaimSteps::open(&facts, &evidence).await?;
        ClaimSteps::hold(&facts, &evidence.fence).await?;
        let told = subject.record().await?.restored;
        if is_final {
            assert_eq!(told, None, "all of it is there");
            continue;
        }
        let told = told.unwrap();
        assert_eq!(
            (told.epoch, told.last_revision, &told.unknown),
            (epoch, Some(832), &None)
        );
        assert_eq!(
            (told.source.clone(), told.lost_revisions),
            (subject.record().await?.source, None)
        );
        assert_eq!(told.saved.clone().unwrap().0, "2026-01-01T00:00:00Z".parse()?);
        let fenced = told.fenced.0.as_second();
        assert!(
            (before.as_second()..=clock::now().as_second()).contains(&fenced),
            "the fence passed while this ran: {told:?}"
        );
    }
    Ok(())
}

/// R17-50..54: both gates are open at once.
pub async fn given_by_its_source(subject: &Subject) -> Result<()> {
    let mut record = taken(3);
    record["drained"] = json!(true);
    let facts = subject.set_record(record).await?;
    let evidence = ClaimEvidence::default();
    assert_eq!(ClaimSteps::plan(&facts, true)?, ClaimPlan::AfterHandOver);
    // The hand-over proves no content of the bucket: a final snapshot may have been deleted since.
    for copied in [None, brought(false)] {
        evidence.copy.record(copied);
        let short = ClaimSteps::open(&facts, &evidence).await.unwrap_err().to_string();
        assert!(short.contains("not everything of the chain is copied"), "{short}");
        assert_eq!(subject.stands().await?, (3, Some(Claiming), None));
    }
    evidence.copy.record(brought(true));
    ClaimSteps::open(&facts, &evidence).await?;
    ClaimSteps::hold(&facts, &evidence.fence).await?;
    assert_eq!(subject.stands().await?, (3, Some(Held), Some(Final)));
    assert_eq!(subject.record().await?.restored, None);
    Ok(())
}

/// R17-45: a planned move with an incomplete copy continues with a user's consent, and reports the loss as a
/// number.
pub async fn given_with_a_loss(subject: &Subject) -> Result<()> {
    let mut record = taken(40);
    record["drained"] = json!(true);
    let facts = subject.set_record(record).await?;
    let evidence = ClaimEvidence::default();
    let accepted = brought(false).map(|copied| CopiedChain {
        sealed_revision: Some(849),
        lost_revisions: Some(17),
        ..copied
    });
    evidence.copy.record(accepted);
    ClaimSteps::open(&facts, &evidence).await?;
    ClaimSteps::hold(&facts, &evidence.fence).await?;
    assert_eq!(subject.stands().await?, (40, Some(Held), Some(Last)));
    let restored = subject.record().await?.restored.unwrap();
    assert_eq!(
        (restored.epoch, restored.last_revision, restored.lost_revisions),
        (40, Some(832), Some(17))
    );
    Ok(())
}

/// The destination's decision for each report of a copy.
pub async fn copies_are_judged(subject: &Subject) -> Result<()> {
    Box::pin(without_phases_a_loss_is_recorded(subject)).await?;
    Box::pin(given_without_an_end(subject)).await?;
    Box::pin(a_loss_of_own_data_is_known_when_etcd_has_started(subject)).await?;
    Box::pin(a_copy_of_an_earlier_epoch_is_no_evidence(subject)).await
}

/// An Etcd that has copied in an epoch, with the status from etcd-druid.
async fn copied_in(subject: &Subject, epoch: i64, copied: &Value) -> Result<()> {
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    let spec = json!({"labels": {}, "etcd": {}, "replicas": 1, "backup": {"sourceStore": {"prefix": "p"}}});
    let mut etcd = Etcd::new("etcd-main", serde_json::from_value(spec)?);
    etcd.metadata.annotations = Some([(OWNERSHIP_EPOCH.to_owned(), epoch.to_string())].into());
    let made = etcds.create(&PostParams::default(), &etcd).await?;
    let status = json!({"observedGeneration": made.metadata.generation, "ready": true, "copied": copied});
    let body = Patch::Merge(json!({"status": status}));
    etcds
        .patch_status("etcd-main", &PatchParams::default(), &body)
        .await?;
    Ok(())
}

/// Ready Etcds. etcd-main reports the data with which the epoch began.
async fn etcd_has_begun(subject: &Subject, begun: &Value) -> Result<()> {
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    for (name, begun) in [("etcd-main", begun), ("etcd-events", &Value::Null)] {
        let spec = json!({"labels": {}, "etcd": {}, "replicas": 1, "backup": {}});
        let etcd = Etcd::new(name, serde_json::from_value(spec)?);
        let made = etcds.create(&PostParams::default(), &etcd).await?;
        let status = json!({"observedGeneration": made.metadata.generation, "ready": true, "begun": begun});
        let body = Patch::Merge(json!({"status": status}));
        etcds.patch_status(name, &PatchParams::default(), &body).await?;
    }
    Ok(())
}

/// R17-45: a seed that keeps the shoot learns from etcd whether the volume was there.
async fn a_loss_of_own_data_is_known_when_etcd_has_started(subject: &Subject) -> Result<()> {
    let restored = |epoch: i64| json!({"result": "Restored", "epoch": epoch, "lastRevision": 49, "saved": "2026-01-01T00:00:00Z"});
    for (epoch, begun, expected) in [
        // No data are lost.
        (
            50,
            json!({"result": "Kept", "epoch": 50, "lastRevision": 49, "complete": true}),
            None,
        ),
        (51, restored(51), Some((Some(49), true))),
        // A missing report, or a report of an earlier epoch.
        (52, Value::Null, Some((None, false))),
        (53, restored(52), Some((None, false))),
    ] {
        let source = json!({"name": "seed-a", "epoch": epoch - 1});
        let unknown =
            json!({"epoch": epoch, "fenced": "2026-01-01T00:01:30Z", "source": source, "unknown": "why"});
        let record =
            json!({"epoch": epoch, "phase": "Held", "chain": "Last", "source": source, "restored": unknown});
        let facts = subject.set_record(record).await?;
        etcd_has_begun(subject, &begun).await?;
        for _ in 0..2 {
            Etcds::ready(&facts).await?;
            let restored = subject.record().await?.restored;
            let known = restored
                .as_ref()
                .map(|lost| (lost.last_revision, lost.unknown.is_none() && lost.saved.is_some()));
            assert_eq!(known, expected, "{epoch}: {restored:?}");
        }
        let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
        for name in ["etcd-main", "etcd-events"] {
            etcds.delete(name, &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

async fn copy_is_gone(subject: &Subject) -> Result<()> {
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    Ok(())
}

async fn accepts(subject: &Subject, number: Option<&str>) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(subject.world.client(), PROJECT);
    let body = json!({"metadata": {"annotations": {(SHOOT_ACCEPT_LOSS): number}}});
    shoots
        .patch("web", &PatchParams::default(), &Patch::Merge(&body))
        .await?;
    Ok(())
}

/// The Shoot after a hand-over by a seed without owner records: no phase, independent of the restoring seed.
async fn given_without_phases(subject: &Subject, record: Value) -> Result<Facts> {
    subject
        .status(json!({"seedName": "seed-a", "ownership": null}))
        .await?;
    let status = json!({"ownership": record, "lastOperation": operation("Restore")});
    subject.status(status).await?;
    subject.world.facts(Operation::Restore, settings()).await
}

/// R17-45: without phases, a loss that a user had accepted was not recorded, and the backups of the source
/// were deleted.
async fn without_phases_a_loss_is_recorded(subject: &Subject) -> Result<()> {
    let facts = given_without_phases(subject, json!({"epoch": 42})).await?;
    let evidence = ClaimEvidence::default();
    assert_eq!(ClaimSteps::plan(&facts, true)?, ClaimPlan::Nothing);
    copied_in(subject, 42, &json!({"finalSnapshot": false, "lastRevision": 37})).await?;
    let error = EtcdCopy::ready(&facts, &evidence).await.unwrap_err();
    assert_eq!(error.class(), "Config", "{error}");
    assert!(error.to_string().contains("end at revision 37"), "{error}");
    assert_eq!(subject.record().await?.restored, None);
    accepts(subject, Some("1")).await?;
    EtcdCopy::ready(&facts, &evidence).await.unwrap_err();
    accepts(subject, Some("unknown")).await?;
    for _ in 0..2 {
        EtcdCopy::ready(&facts, &evidence).await?;
        let restored = subject.record().await?.restored.unwrap();
        assert_eq!((restored.epoch, restored.last_revision), (42, Some(37)));
        assert_eq!(subject.stands().await?, (42, None, None));
    }
    copy_is_gone(subject).await?;

    // The loss as a number, beside the loss of an earlier epoch.
    let earlier = json!({"epoch": 41, "lastRevision": 7, "fenced": "2026-01-01T00:01:30Z", "unknown": "why"});
    let facts = given_without_phases(subject, json!({"epoch": 43, "restored": earlier})).await?;
    let short =
        json!({"finalSnapshot": false, "lastRevision": 37, "sealedRevision": 54, "lostRevisions": 17});
    copied_in(subject, 43, &short).await?;
    EtcdCopy::ready(&facts, &evidence).await?;
    let record = subject.record().await?;
    let restored = record.restored.unwrap();
    assert_eq!((restored.epoch, restored.lost_revisions), (43, Some(17)));
    assert_eq!(record.restored_before.first().map(|lost| lost.epoch), Some(41));
    copy_is_gone(subject).await?;

    // All data are there.
    let facts = given_without_phases(subject, json!({"epoch": 44})).await?;
    copied_in(
        subject,
        44,
        &json!({"finalSnapshot": true, "lastRevision": 37, "complete": true}),
    )
    .await?;
    EtcdCopy::ready(&facts, &evidence).await?;
    assert_eq!(subject.record().await?.restored, None);
    copy_is_gone(subject).await?;
    accepts(subject, None).await
}

/// R17-27: a source gardenlet from before `status.ownership.sealed`. The destination waited without an end.
async fn given_without_an_end(subject: &Subject) -> Result<()> {
    let mut record = taken(45);
    record["drained"] = json!(true);
    let facts = subject.set_record(record).await?;
    let evidence = ClaimEvidence::default();
    copied_in(subject, 45, &json!({"finalSnapshot": false, "lastRevision": 37})).await?;
    let error = EtcdCopy::ready(&facts, &evidence).await.unwrap_err();
    assert_eq!(error.class(), "Config", "{error}");
    assert!(error.to_string().contains("accept-loss=unknown"), "{error}");
    accepts(subject, Some("unknown")).await?;
    EtcdCopy::ready(&facts, &evidence).await?;
    copy_is_gone(subject).await?;
    ClaimSteps::open(&facts, &evidence).await?;
    assert_eq!(subject.record().await?.restored.unwrap().epoch, 45);
    assert_eq!(subject.record().await?.chain, Some(Last));
    accepts(subject, None).await
}

/// I2: a report of an earlier epoch is about a different source.
async fn a_copy_of_an_earlier_epoch_is_no_evidence(subject: &Subject) -> Result<()> {
    let facts = subject.set_record(taken(47)).await?;
    let evidence = ClaimEvidence::default();
    let whole = json!({"finalSnapshot": true, "lastRevision": 37, "complete": true});
    copied_in(subject, 46, &whole).await?;
    let error = EtcdCopy::ready(&facts, &evidence).await.unwrap_err().to_string();
    assert!(error.contains("another epoch than epoch 47"), "{error}");
    // The rest of the step needs the credentials of the buckets; the earlier copy is gone by then.
    EtcdCopy::deploy(&facts, &evidence.fence).await.unwrap_err();
    let etcds: Api<Etcd> = Api::namespaced(subject.world.client(), NAMESPACE);
    assert!(etcds.get_opt("etcd-main").await?.is_none());
    // A copy of this epoch stays.
    copied_in(subject, 47, &whole).await?;
    EtcdCopy::deploy(&facts, &evidence.fence).await.unwrap_err();
    EtcdCopy::ready(&facts, &evidence).await?;
    copy_is_gone(subject).await
}
