//! The owner record beside a planned hand-over: a source that has stopped has deleted its identity.

use std::time::Duration;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use parts::{ClaimPlan, ClaimSteps, Facts, FenceClock, HandOverVerdict, Operation, Settings};
use parts_fixture::{terms, zone::Zone};
use serde_json::{Value, json};

use super::{Claiming, Subject, taken};

/// The zone of the owner records.
const ZONE: &str = "internal.example.test";

/// Security: a stolen certificate of the source has handed over the shoot, and the processes of the source
/// still run. The destination fences the source, as after a takeover.
pub async fn contradicted_by_the_record(subject: &Subject) -> Result<()> {
    let zone = Zone::start().await?;
    zone.says("identity-of-z", 49);
    let facts = handed_over(subject, &zone).await?;
    assert_eq!(ClaimSteps::plan(&facts, true)?, ClaimPlan::AfterHandOver);
    let verdict = ask(&facts).await?;
    let told = "seed seed-z has handed over the shoot in epoch 49";
    assert!(
        matches!(&verdict, HandOverVerdict::Doubted(sentence) if sentence.contains(told)),
        "the hand-over counts as {verdict:?}"
    );
    assert_eq!(subject.stands().await?, (50, Some(Claiming), None));
    let record = subject.record().await?;
    assert_eq!((record.drained, &record.sealed), (false, &None));
    assert!(record.source.is_some() && record.approval.is_some());
    let next = subject.world.facts(Operation::Restore, settings()?).await?;
    assert_eq!(ClaimSteps::plan(&next, true)?, ClaimPlan::AfterTakeover);
    assert_eq!(ask(&next).await?, HandOverVerdict::Confirmed);
    // A second process of the seed has the earlier record.
    let repeated = ask(&facts).await?;
    assert!(matches!(repeated, HandOverVerdict::Doubted(_)), "{repeated:?}");
    assert_eq!(subject.record().await?, record);
    Ok(())
}

/// Security: the source has chosen a zone with a server that is always behind, has planted the identity of
/// the destination beside its own epoch, or has silenced all servers for a moment.
pub async fn contradicted_by_one_server(subject: &Subject) -> Result<()> {
    let (behind, zone) = (Zone::start().await?, Zone::start().await?);
    behind.says("identity-of-z", 48);
    for identity in ["identity-of-z", "identity-of-a"] {
        zone.says(identity, 49);
        let facts = handed_over_with(subject, &[&behind, &zone]).await?;
        let verdict = ask(&facts).await?;
        assert!(matches!(verdict, HandOverVerdict::Doubted(_)), "{verdict:?}");
    }
    zone.says_after_one_answer("identity-of-z", 49);
    let facts = handed_over(subject, &zone).await?;
    let verdict = ask(&facts).await?;
    assert!(matches!(verdict, HandOverVerdict::Doubted(_)), "{verdict:?}");
    // A later answer without a decision takes nothing back.
    zone.says_once("identity-of-z", 49, ZONE);
    let facts = handed_over(subject, &zone).await?;
    let verdict = ask(&facts).await?;
    assert!(matches!(verdict, HandOverVerdict::Doubted(_)), "{verdict:?}");
    Ok(())
}

/// Security: the source has never published its own epoch, so an earlier owner was never fenced. A second
/// server is down.
pub async fn contradicted_by_an_earlier_owner(subject: &Subject) -> Result<()> {
    let (down, zone) = (Zone::start().await?, Zone::start().await?);
    zone.says("identity-of-c", 48);
    let facts = handed_over_with(subject, &[&down, &zone]).await?;
    drop(down);
    let verdict = ask(&facts).await?;
    assert!(matches!(verdict, HandOverVerdict::Doubted(_)), "{verdict:?}");
    assert!(!subject.record().await?.drained);
    Ok(())
}

/// A record without an identity, a record of this seed, a record of no process, and servers that are down:
/// the move waits for no fence. A source without owner checks leaves the epoch of an earlier owner in DNS.
pub async fn confirmed_by_the_record(subject: &Subject) -> Result<()> {
    let zone = Zone::start().await?;
    let facts = handed_over(subject, &zone).await?;
    let confirms = async || -> Result<()> {
        assert_eq!(ask(&facts).await?, HandOverVerdict::Confirmed);
        assert!(subject.record().await?.drained);
        Ok(())
    };
    for (identity, epoch) in [("", 49), ("identity-of-a", 50), ("identity-of-c", 51)] {
        zone.says(identity, epoch);
        confirms().await?;
    }
    zone.deletes_identity(ZONE, 48);
    confirms().await?;
    drop(zone);
    confirms().await
}

/// One server of two is behind, and only the destination asks this server. The source has stopped, and the
/// move waits for no fence. Further attempts rely on the answer.
pub async fn confirmed_by_one_server(subject: &Subject) -> Result<()> {
    let (behind, zone) = (Zone::start().await?, Zone::start().await?);
    behind.says("identity-of-z", 49);
    zone.deletes_identity(ZONE, 49);
    let facts = handed_over_with(subject, &[&behind, &zone]).await?;
    let fence = FenceClock::default();
    let confirmed = HandOverVerdict::Confirmed;
    assert_eq!(ClaimSteps::confirm_hand_over(&facts, &fence).await?, confirmed);
    zone.says("identity-of-z", 49);
    assert_eq!(ClaimSteps::confirm_hand_over(&facts, &fence).await?, confirmed);
    assert!(subject.record().await?.drained);
    // A restarted gardenlet asks again.
    let asked = ask(&facts).await?;
    assert!(matches!(asked, HandOverVerdict::Doubted(_)), "{asked:?}");
    Ok(())
}

/// The first attempt of a gardenlet.
async fn ask(facts: &Facts) -> Result<HandOverVerdict> {
    Ok(ClaimSteps::confirm_hand_over(facts, &FenceClock::default()).await?)
}

/// Seed `seed-z` has handed over the shoot in epoch 49, and this server serves the zone.
async fn handed_over(subject: &Subject, zone: &Zone) -> Result<Facts> {
    handed_over_with(subject, &[zone]).await
}

async fn handed_over_with(subject: &Subject, zones: &[&Zone]) -> Result<Facts> {
    let servers: Vec<_> = zones.iter().map(|zone| zone.address.to_string()).collect();
    let named = json!({"spec": {"settings": {"ownerChecks": {"authorities": servers}}}});
    let seeds = subject.world.any("core.gardener.cloud/v1beta1", "Seed", None);
    seeds
        .patch("seed-a", &PatchParams::default(), &Patch::Merge(&named))
        .await?;
    let mut record: Value = taken(50);
    record["drained"] = json!(true);
    record["sealed"] =
        json!({"epoch": 49, "revision": 7, "snapshot": "Full-final", "sha256": "0".repeat(64)});
    subject.set_record(record).await?;
    subject.world.facts(Operation::Restore, settings()?).await
}

fn settings() -> Result<Settings> {
    Ok(Settings {
        owner_check: terms::answered_within(Duration::from_millis(500))?,
        ..Settings::default()
    })
}
