//! The owner record: which seed has the shoot, told in DNS, where also those can read it who reach no API
//! server (R17-10..13; docs/understand/ownership.md).
//!
//! It is written once an epoch and left alone otherwise (R17-12): a reconciliation of a seed that does not
//! know yet that it has lost the shoot must not even try. The provider refuses what comes late; this part
//! does not ask for it.

use api::{
    constants::{OPERATION, OWNERSHIP_EPOCH, OWNERSHIP_FORGOTTEN, operation},
    extensions::{DNSRecord, ExtensionObject, RecordType},
    meta::LastOperationState,
};
use kube::ResourceExt;
use owner_checks::OwnerClaim;
use runtime::{Cluster, Result};

use crate::{
    ExtensionResource, FIELD_MANAGER, Facts, Stay, dns_records, owner_claim,
    verbs::{Deploy, Destroy, Migrate, Tasks},
};

/// For how many seconds resolvers may keep it. Owner checks ask past them (docs/understand/ownership.md).
const TTL: i64 = 10;

/// The DNSRecord of the owner record.
#[derive(Debug)]
pub struct OwnerRecord;

/// What becomes of the owner record in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRecordPlan {
    /// There is none, and none is wanted.
    Nothing,
    /// The seed says whose its shoots are.
    Keep,
    /// It did, and does not any more.
    Drop,
}

impl OwnerRecordPlan {
    /// Whether there is, or may be, something to take away.
    #[must_use]
    pub fn may_be_there(self) -> bool {
        self != Self::Nothing
    }
}

impl OwnerRecord {
    /// Finds out what becomes of it, before a flow is built.
    pub async fn plan(f: &Facts) -> Result<OwnerRecordPlan> {
        if f.seed_object.spec.checks_owners() {
            return Ok(OwnerRecordPlan::Keep);
        }
        Ok(match object(f).get().await? {
            Some(_) => OwnerRecordPlan::Drop,
            None => OwnerRecordPlan::Nothing,
        })
    }

    /// What is to be asked of a shoot in the epoch that it has, whether or not this seed's record is told.
    /// Before it is, no record and one of an earlier epoch decide nothing, and the second witness is asked.
    /// Nothing where the seed does not say whose its shoots are.
    ///
    /// # Errors
    /// The Seed lacks what it takes.
    pub fn wanted(f: &Facts) -> Result<Option<OwnerClaim>> {
        if !f.seed_object.spec.checks_owners() {
            return Ok(None);
        }
        let (name, dns) = owner_claim::name(&f.seed_object, &f.names)?;
        Ok(Some(OwnerClaim {
            shoot_uid: placement::names::uid(&f.shoot),
            name,
            identity: owner_claim::identity(&f.seed_object)?,
            zone: dns.zone_name().to_owned(),
            authorities: owner_claim::authorities(&f.seed_object)?,
            epoch: f.epoch(),
            terms: f.owner_check,
        }))
    }

    /// The same of a shoot whose record this seed has written in this epoch. Nothing before it has, nothing
    /// when the record goes with the shoot, and nothing where the seed does not say whose its shoots are.
    ///
    /// # Errors
    /// The record's object cannot be read, or the Seed lacks what it takes.
    pub async fn claim(f: &Facts) -> Result<Option<OwnerClaim>> {
        if !f.seed_object.spec.checks_owners() {
            return Ok(None);
        }
        let Some(found) = object(f).get().await? else {
            return Ok(None);
        };
        let claim = Self::wanted(f)?;
        Ok(claim.filter(|claim| is_told(&found, claim)))
    }
}

impl Deploy for OwnerRecord {
    const TASKS: Tasks = [
        "Deploying owner domain DNS record",
        "Waiting until owner domain DNS record is ready",
    ];

    async fn deploy(f: &Facts) -> Result<()> {
        let (name, dns) = owner_claim::name(&f.seed_object, &f.names)?;
        let provider = dns_records::of_seed(dns);
        let identity = owner_claim::identity(&f.seed_object)?;
        let secret = format!("dnsrecord-{}", object_name(f));
        dns_records::copy_credentials(f, &provider, &secret).await?;
        let mut found = object(f).get().await?;
        if found
            .as_ref()
            .is_some_and(|found| found.metadata.deletion_timestamp.is_some())
        {
            // Of a move that was called off.
            object(f).wait_until_deleted().await?;
            found = None;
        }
        let wanted = dns_records::record(f, &name, provider, &secret, (RecordType::TXT, identity));
        let wanted = in_epoch(wanted, f.epoch());
        if found.is_some_and(|found| is_written(&found, &wanted)) {
            return Ok(());
        }
        object(f).deploy(f, wanted).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        object(f).wait_until_ready().await
    }
}

/// Differs from what else is migrated: it is deleted, and with it the owner's name outside; the epoch's name
/// stays. So whoever acts by it knows that this epoch is over (R17-50).
impl Migrate for OwnerRecord {
    const TASKS: Tasks = [
        "Migrating owner domain DNS record",
        "Waiting until owner domain DNS record has been migrated",
    ];

    async fn migrate(stay: &Stay) -> Result<()> {
        object(stay).delete().await
    }

    async fn migrated(stay: &Stay) -> Result<()> {
        object(stay).wait_until_deleted().await
    }
}

/// Both names go: the shoot does, or nobody is to check it any more.
impl Destroy for OwnerRecord {
    const TASKS: Tasks = [
        "Destroying owner domain DNS record",
        "Waiting until owner domain DNS record has been deleted",
    ];

    async fn destroy(stay: &Stay) -> Result<()> {
        if object(stay).get().await?.is_none() {
            return Ok(());
        }
        let api = stay.seed.namespaced::<DNSRecord>(&stay.namespace);
        FIELD_MANAGER
            .annotate(&api, &object_name(stay), OWNERSHIP_FORGOTTEN, Some("true"))
            .await?;
        object(stay).delete().await
    }

    async fn gone(stay: &Stay) -> Result<()> {
        object(stay).wait_until_deleted().await
    }
}

fn object_name(stay: &Stay) -> String {
    format!("{}-owner", stay.tenant.name)
}

fn object(stay: &Stay) -> ExtensionResource<'_, DNSRecord> {
    ExtensionResource::new(stay, object_name(stay), stay.settings.timeouts.dns_record)
}

/// Whether its object exists, written or not.
pub(crate) async fn exists(stay: &Stay) -> Result<bool> {
    Ok(object(stay).get().await?.is_some())
}

/// What makes a DNSRecord an owner record.
fn in_epoch(mut record: DNSRecord, epoch: i64) -> DNSRecord {
    record.spec.ttl = Some(TTL);
    let annotations = record.annotations_mut();
    annotations.insert(OWNERSHIP_EPOCH.to_owned(), epoch.to_string());
    record
}

/// Whether the provider was told already (R17-12). One that waits for its state was not.
fn is_written(found: &DNSRecord, wanted: &DNSRecord) -> bool {
    let asked = found.annotations().get(OPERATION).map(String::as_str);
    asked != Some(operation::WAIT_FOR_STATE)
        && found.annotations().get(OWNERSHIP_EPOCH) == wanted.annotations().get(OWNERSHIP_EPOCH)
        && found.spec.values == wanted.spec.values
}

/// Whether the provider has written it.
fn is_told(found: &DNSRecord, claim: &OwnerClaim) -> bool {
    let epoch = claim.epoch.to_string();
    let done = found
        .default_status()
        .and_then(|status| status.last_operation.as_ref());
    found.metadata.deletion_timestamp.is_none()
        && !found.annotations().contains_key(OPERATION)
        && found.annotations().get(OWNERSHIP_EPOCH) == Some(&epoch)
        && found.spec.values == [claim.identity.as_str()]
        && done.is_some_and(|done| done.state == LastOperationState::Succeeded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn record(identity: &str) -> DNSRecord {
        crate::from_json(json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "DNSRecord",
            "metadata": {"name": "web-owner", "namespace": "shoot--dev--web"},
            "spec": {"type": "local", "secretRef": {"name": "s"}, "name": "owner.web.dev.internal.example.test",
                     "recordType": "TXT", "values": [identity]},
        }))
        .unwrap()
    }

    #[test]
    fn an_ordinary_reconciliation_writes_nothing() {
        let wanted = in_epoch(record("seed-a"), 3);
        let found = in_epoch(record("seed-a"), 3);
        assert!(is_written(&found, &wanted));
        // The provider was asked and has not answered yet; it tries again by itself.
        let mut asked = in_epoch(record("seed-a"), 3);
        asked
            .annotations_mut()
            .insert(OPERATION.into(), operation::RECONCILE.into());
        assert!(is_written(&asked, &wanted));
    }

    #[test]
    fn a_new_epoch_is_written_and_so_is_what_waits_for_its_state() {
        let wanted = in_epoch(record("seed-a"), 3);
        let earlier = in_epoch(record("seed-a"), 2);
        assert!(!is_written(&earlier, &wanted));
        let mut waits = in_epoch(record("seed-a"), 3);
        waits
            .annotations_mut()
            .insert(OPERATION.into(), operation::WAIT_FOR_STATE.into());
        assert!(!is_written(&waits, &wanted));
        // A seed with another identity; the provider refuses it unless the epoch has changed.
        assert!(!is_written(&in_epoch(record("seed-b"), 3), &wanted));
        assert!(!is_written(&record("seed-a"), &wanted));
    }

    #[test]
    fn it_can_be_asked_for_when_it_is_written() {
        let claim = OwnerClaim {
            shoot_uid: String::new(),
            name: "owner.web.dev.internal.example.test".into(),
            identity: "seed-a".into(),
            zone: "example.test".into(),
            authorities: Vec::new(),
            epoch: 3,
            terms: ownership::Terms::default(),
        };
        let mut written = in_epoch(record("seed-a"), 3);
        assert!(!is_told(&written, &claim), "nobody has written it");
        let done = json!({"lastOperation": {"description": "", "lastUpdateTime": "2026-01-01T00:00:00Z", "progress": 100,
            "state": "Succeeded", "type": "Reconcile"}});
        written.status = Some(serde_json::from_value(done).unwrap());
        assert!(is_told(&written, &claim));
        assert!(!is_told(
            &written,
            &OwnerClaim {
                epoch: 4,
                ..claim.clone()
            }
        ));
        let theirs = OwnerClaim {
            identity: "seed-b".into(),
            ..claim.clone()
        };
        assert!(!is_told(&written, &theirs));
        written
            .annotations_mut()
            .insert(OPERATION.into(), operation::RECONCILE.into());
        assert!(!is_told(&written, &claim), "it is being written");
    }

    #[test]
    fn it_says_its_epoch_and_is_short_lived() {
        let record = in_epoch(record("seed-a"), 1);
        assert_eq!(record.annotations()[OWNERSHIP_EPOCH], "1");
        assert_eq!(record.spec.ttl, Some(TTL));
    }

    #[test]
    fn the_name_is_beside_that_of_the_api() {
        let names = crate::names_in_tests("100.96.0.0/11");
        assert_eq!(
            names.owner().as_deref(),
            Some("owner.web.dev.internal.example.test")
        );
    }
}
