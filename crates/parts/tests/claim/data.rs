//! With which data an etcd opens, and what is told of the others: by the report of the copy alone.

use anyhow::Result;
use api::druid::CopiedChain;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parts::{Claim, ClaimPlan, Deploy, Fence};
use runtime::clock;
use serde_json::json;

use super::{Claiming, Final, Held, Last, Subject, taken};

/// What a copy reports: the chain holds everything, or its end.
pub fn brought(complete: bool) -> Option<CopiedChain> {
    Some(CopiedChain {
        final_snapshot: false,
        last_revision: 832,
        saved: None,
        complete,
        sealed_revision: None,
        lost_revisions: None,
    })
}

/// R17-45: what a copy of the source's last snapshot leaves out is told, with the choice of the data and not later.
pub async fn tells_what_is_lost(subject: &Subject) -> Result<()> {
    let before = clock::now();
    for (epoch, is_final) in [(30, false), (31, true)] {
        let facts = subject.given(taken(epoch)).await?;
        facts.copied.keep(Some(CopiedChain {
            final_snapshot: is_final,
            last_revision: 832,
            saved: Some(Time("2026-01-01T00:00:00Z".parse()?)),
            complete: is_final,
            sealed_revision: None,
            lost_revisions: None,
        }));
        facts.fence.begin();
        Fence::ready(&facts).await?;
        Claim::open(&facts).await?;
        Claim::hold(&facts).await?;
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
    let facts = subject.given(record).await?;
    assert_eq!(Claim::plan(&facts, true)?, ClaimPlan::Given);
    // Its word says nothing of the bucket: a final snapshot may have gone since.
    for copied in [None, brought(false)] {
        facts.copied.keep(copied);
        let short = Claim::open(&facts).await.unwrap_err().to_string();
        assert!(short.contains("not everything of the chain is copied"), "{short}");
        assert_eq!(subject.stands().await?, (3, Some(Claiming), None));
    }
    facts.copied.keep(brought(true));
    Claim::open(&facts).await?;
    Claim::hold(&facts).await?;
    assert_eq!(subject.stands().await?, (3, Some(Held), Some(Final)));
    assert_eq!(subject.record().await?.restored, None);
    Ok(())
}

/// R17-45: a planned move whose backups are short goes on with the consent of a person, and reports the loss as a number.
pub async fn given_with_a_loss(subject: &Subject) -> Result<()> {
    let mut record = taken(40);
    record["drained"] = json!(true);
    let facts = subject.given(record).await?;
    let accepted = brought(false).map(|copied| CopiedChain {
        sealed_revision: Some(849),
        lost_revisions: Some(17),
        ..copied
    });
    facts.copied.keep(accepted);
    Claim::open(&facts).await?;
    Claim::hold(&facts).await?;
    assert_eq!(subject.stands().await?, (40, Some(Held), Some(Last)));
    let restored = subject.record().await?.restored.unwrap();
    assert_eq!(
        (restored.epoch, restored.last_revision, restored.lost_revisions),
        (40, Some(832), Some(17))
    );
    Ok(())
}
