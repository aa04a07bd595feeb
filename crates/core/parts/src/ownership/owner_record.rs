//! The owner record: the seed that has the shoot, published in DNS. The record is also readable for processes
//! that reach no API server (R17-10..13; docs/understand/ownership.md).
//!
//! The gardenlet writes the record once per epoch, and does not touch the record otherwise (R17-12). A seed
//! that has lost the shoot without knowing must not even try a write. The provider would refuse a late write;
//! this part does not request a late write.

use api::{
    constants::{OPERATION, OWNERSHIP_EPOCH, OWNERSHIP_FORGOTTEN, operation},
    extensions::{DNSRecord, ExtensionObject, OWNER_RECORD_TTL_SECONDS, RecordType},
    gardencore::{Seed, Shoot, ShootStatus},
    meta::LastOperationState,
};
use kube::ResourceExt;
use owner_checks::OwnerClaim;
use ownership::Terms;
use placement::Names;
use runtime::{Result, client::Cluster};

use crate::{
    ExtensionResource, FIELD_MANAGER, Facts, Residency, configuration_problem,
    extensions::dns_records,
    ownership::owner_claim,
    task::{DNS, ExternalSystems, PartTask},
    verbs::{Deploy, Destroy, Tasks},
};

/// The DNSRecord of the owner record.
#[derive(Debug)]
pub struct OwnerRecord;

/// Treatment of the owner record in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRecordPlan {
    /// The record does not exist, and the Seed requests no record.
    Nothing,
    /// The Seed requests owner records.
    Keep,
    /// The record exists, but the Seed no longer requests owner records.
    Drop,
}

impl OwnerRecordPlan {
    /// Whether a record exists or may exist.
    #[must_use]
    pub fn may_be_there(self) -> bool {
        self != Self::Nothing
    }
}

impl OwnerRecord {
    /// Decides the treatment before a flow is built.
    pub async fn plan(f: &Facts) -> Result<OwnerRecordPlan> {
        if f.seed_object.spec.checks_owners() {
            return Ok(OwnerRecordPlan::Keep);
        }
        Ok(match object(&f.residency).get().await? {
            Some(_) => OwnerRecordPlan::Drop,
            None => OwnerRecordPlan::Nothing,
        })
    }

    /// The claim to verify for a shoot in the present epoch, whether or not this seed's record is already
    /// published. Before the publication, a missing record and a record of an earlier epoch decide nothing,
    /// and the check asks the second witness. `None` where the Seed does not enable owner checks.
    ///
    /// # Errors
    /// The Seed lacks the DNS provider, the identity or valid authorities.
    pub fn wanted(f: &Facts) -> Result<Option<OwnerClaim>> {
        claim_of(&f.seed_object, &f.shoot, &f.names, f.owner_check)
    }

    /// The claim that the seed `seed` would have in the present epoch of a Shoot that has left the seed. A
    /// check of this claim shows the seed that has the shoot now. `None` where the Seed does not enable owner
    /// checks.
    ///
    /// # Errors
    /// The Seed lacks the DNS provider, the identity or valid authorities, or the Shoot has no valid network.
    pub fn claim_of_former(
        seed: &Seed,
        shoot: &Shoot,
        project: &str,
        terms: Terms,
    ) -> Result<Option<OwnerClaim>> {
        let names = Names::for_shoot(shoot, project, seed);
        let names = names.map_err(|error| configuration_problem(error.to_string()))?;
        claim_of(seed, shoot, &names, terms)
    }

    /// Like [`Self::wanted`], but only when this seed has published the record in this epoch. `None` before
    /// the publication, while the record is being deleted, and where the Seed does not enable owner checks.
    ///
    /// # Errors
    /// The DNSRecord cannot be read, or the Seed lacks the DNS provider, the identity or valid authorities.
    pub async fn claim(f: &Facts) -> Result<Option<OwnerClaim>> {
        if !f.seed_object.spec.checks_owners() {
            return Ok(None);
        }
        let Some(found) = object(&f.residency).get().await? else {
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
    const TOUCHES: ExternalSystems = DNS;

    async fn deploy(f: &Facts) -> Result<()> {
        let (name, dns) = owner_claim::name(&f.seed_object, &f.names)?;
        let provider = dns_records::of_seed(&f.seed_object, dns)?;
        let identity = owner_claim::identity(&f.seed_object)?;
        let secret = format!("dnsrecord-{}", object_name(&f.residency));
        dns_records::copy_credentials(f, &provider, &secret).await?;
        let mut found = object(&f.residency).get().await?;
        if found
            .as_ref()
            .is_some_and(|found| found.metadata.deletion_timestamp.is_some())
        {
            // A leftover of a cancelled move.
            object(&f.residency).wait_until_deleted().await?;
            found = None;
        }
        let wanted = dns_records::record(
            &f.residency,
            &name,
            provider,
            &secret,
            (RecordType::TXT, identity),
        );
        let wanted = in_epoch(wanted, f.epoch());
        if found.is_some_and(|found| is_written(&found, &wanted)) {
            return Ok(());
        }
        object(&f.residency).deploy(f, wanted).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        object(&f.residency).wait_until_ready().await
    }
}

impl OwnerRecord {
    /// [`Self::withdraw`] and [`Self::withdrawn`], as tasks. Not a [`crate::Migrate`]: a migration
    /// changes nothing outside the seed.
    pub const WITHDRAW: [PartTask<Residency>; 2] = [
        PartTask::new("Migrating owner domain DNS record", DNS, |residency| {
            Box::pin(Self::withdraw(residency))
        }),
        PartTask::new(
            "Waiting until owner domain DNS record has been migrated",
            DNS,
            |residency| Box::pin(Self::withdrawn(residency)),
        ),
    ];

    /// "Migrating owner domain DNS record": deletes the DNSRecord. The deletion removes the owner's name in
    /// DNS and keeps the name with the epoch. So every process with an owner check sees that this epoch has
    /// ended (R17-50).
    pub async fn withdraw(residency: &Residency) -> Result<()> {
        object(residency).delete().await
    }

    /// Waits until the DNSRecord is deleted.
    pub async fn withdrawn(residency: &Residency) -> Result<()> {
        object(residency).wait_until_deleted().await
    }
}

/// Both names are removed: the shoot is deleted, or the Seed no longer enables owner checks.
impl Destroy for OwnerRecord {
    const TASKS: Tasks = [
        "Destroying owner domain DNS record",
        "Waiting until owner domain DNS record has been deleted",
    ];
    const TOUCHES: ExternalSystems = DNS;

    async fn destroy(residency: &Residency) -> Result<()> {
        if object(residency).get().await?.is_none() {
            return Ok(());
        }
        let api = residency.seed.namespaced::<DNSRecord>(&residency.namespace);
        FIELD_MANAGER
            .annotate(&api, &object_name(residency), OWNERSHIP_FORGOTTEN, Some("true"))
            .await?;
        object(residency).delete().await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        object(residency).wait_until_deleted().await
    }
}

/// The claim of the seed in the present epoch of the Shoot.
fn claim_of(seed: &Seed, shoot: &Shoot, names: &Names, terms: Terms) -> Result<Option<OwnerClaim>> {
    if !seed.spec.checks_owners() {
        return Ok(None);
    }
    let (name, dns) = owner_claim::name(seed, names)?;
    Ok(Some(OwnerClaim {
        shoot_uid: placement::names::uid(shoot),
        name,
        identity: owner_claim::identity(seed)?,
        zone: dns.zone_name().to_owned(),
        authorities: owner_claim::authorities(seed)?,
        epoch: shoot.status.as_ref().map_or(1, ShootStatus::epoch),
        terms,
    }))
}

fn object_name(residency: &Residency) -> String {
    format!("{}-owner", residency.tenant.name)
}

fn object(residency: &Residency) -> ExtensionResource<'_, DNSRecord> {
    ExtensionResource::new(
        residency,
        object_name(residency),
        residency.settings.timeouts.dns_record,
    )
}

/// Whether the DNSRecord exists, published or not.
pub(crate) async fn exists(residency: &Residency) -> Result<bool> {
    Ok(object(residency).get().await?.is_some())
}

/// Adds the TTL and the epoch annotation of an owner record.
fn in_epoch(mut record: DNSRecord, epoch: i64) -> DNSRecord {
    record.spec.ttl = Some(OWNER_RECORD_TTL_SECONDS.into());
    let annotations = record.annotations_mut();
    annotations.insert(OWNERSHIP_EPOCH.to_owned(), epoch.to_string());
    record
}

/// Whether the provider already has this record as a request (R17-12). A DNSRecord that waits for state has
/// no request yet.
fn is_written(found: &DNSRecord, wanted: &DNSRecord) -> bool {
    let asked = found.annotations().get(OPERATION).map(String::as_str);
    asked != Some(operation::WAIT_FOR_STATE)
        && found.annotations().get(OWNERSHIP_EPOCH) == wanted.annotations().get(OWNERSHIP_EPOCH)
        && found.spec.values == wanted.spec.values
}

/// Whether the provider has published the record.
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
        // The provider has the request and has not answered yet; the provider retries without a new request.
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
        // A seed with a different identity; the provider refuses this record unless the epoch has changed.
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
        assert_eq!(record.spec.ttl, Some(10));
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
