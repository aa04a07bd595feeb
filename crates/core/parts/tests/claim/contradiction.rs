//! Answers of the zone's servers before a source ends the epoch.

use std::time::Duration;

use anyhow::Result;
use api::{constants::OPERATION, gardencore::shoot::OwnershipPhase::Held};
use kube::api::{Patch, PatchParams};
use parts::{Departure, Deploy, Facts, Operation, OwnerRecord, Settings};
use parts_fixture::{NAMESPACE, terms, zone::Zone};
use serde_json::json;

use super::{Subject, operation};

/// R17-50: a server with a different record would delay the final snapshot while the shoot has no API. The
/// move waits before the stop of the API, and does not wait for a server that is down.
pub async fn servers_that_contradict(subject: &Subject) -> Result<()> {
    let (primary, secondary) = (Zone::start().await?, Zone::start().await?);
    let named = [primary.address.to_string(), secondary.address.to_string()];
    let named = json!({"spec": {"settings": {"ownerChecks": {"authorities": named}}}});
    let seeds = subject.world.any("core.gardener.cloud/v1beta1", "Seed", None);
    seeds
        .patch("seed-a", &PatchParams::default(), &Patch::Merge(&named))
        .await?;
    subject.set_record(json!({"epoch": 30, "phase": "Held"})).await?;
    subject
        .status(json!({"lastOperation": operation("Migrate")}))
        .await?;
    let settings = Settings {
        owner_check: terms::answered_within(Duration::from_secs(2))?,
        ..Settings::default()
    };
    let source = subject.world.facts(Operation::Migrate, settings).await?;
    secondary.says("identity-of-a", 29);
    primary.says("identity-of-a", 30);
    Departure::check_servers(&source).await?;
    write_record(subject, &source).await?;

    let waits = Departure::check_servers(&source).await.unwrap_err().to_string();
    assert!(waits.contains(&secondary.address.to_string()), "{waits}");
    assert!(waits.contains("it is still at epoch 29"), "{waits}");
    assert_eq!(subject.stands().await?, (30, Some(Held), None));
    secondary.says("identity-of-a", 30);
    Departure::check_servers(&source).await?;
    // The secondary is down.
    drop(secondary);
    Departure::check_servers(&source).await?;
    primary.says("identity-of-z", 31);
    let waits = Departure::check_servers(&source).await.unwrap_err().to_string();
    assert!(waits.contains("epoch 31 has begun"), "{waits}");
    Ok(())
}

/// Writes the owner record, and reports the record as written, like the provider.
async fn write_record(subject: &Subject, facts: &Facts) -> Result<()> {
    OwnerRecord::deploy(facts).await?;
    let extensions = "extensions.gardener.cloud/v1alpha1";
    let records = subject.world.any(extensions, "DNSRecord", Some(NAMESPACE));
    let done = json!({"metadata": {"annotations": {OPERATION: null}}});
    records
        .patch("web-owner", &PatchParams::default(), &Patch::Merge(&done))
        .await?;
    let status = json!({"lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z"}});
    subject
        .world
        .status(extensions, "DNSRecord", "web-owner", status)
        .await
}
