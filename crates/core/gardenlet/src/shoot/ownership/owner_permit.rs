//! The permit under which a shoot is created, reconciled, restored or deleted: the permit of the owner, in
//! addition to the permit of the gardenlet's lock (R17-60). A gardenlet that is cut off stops the running
//! operation, and starts no operation in a seed that has lost the shoot.
//!
//! | operation | ownership check |
//! |---|---|
//! | create, reconcile, restore | from the start; the garden decides if DNS has no record of this epoch |
//! | delete | while this seed publishes an owner record, until the deletion removes the record |
//! | migrate, and the clean-up after a migration | none: both are needed when the shoot is lost (RX-42) |

use std::{future::Future, sync::Arc, time::Duration};

use api::gardencore::{Shoot, ShootStatus};
use futures::future::{BoxFuture, FutureExt};
use kube::ResourceExt;
use owner_checks::{NotOwned, OwnerClaim, once_owned};
use ownership::{OwnershipLoss, SecondWitness, Testimony};
use parts::{ClaimSteps, Facts, OwnerRecord};
use placement::{Operation, Role, ownership_status, role};
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
};

/// Limit for the first answer. Longer than the timeouts of all name servers of the owner record and of the
/// garden together.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Delay before the ownership is checked again.
const RECHECK_OWNER: Duration = Duration::from_secs(10);
/// Delay before a deletion continues that was dropped because the deletion removes the owner record.
const RESUME_DELETION: Duration = Duration::from_secs(1);

/// Why an operation did not start, or did not finish.
#[derive(Debug)]
pub(crate) enum PermitRefusal {
    /// The seed has lost the shoot and cannot regain the shoot in this epoch. The text states the loss and
    /// the remedy.
    Lost(String),
    /// The operation may succeed later.
    NotNow(Error),
}

impl From<Error> for PermitRefusal {
    fn from(error: Error) -> Self {
        Self::NotNow(error)
    }
}

/// Runs `work` with facts whose clients act under the permit that the operation needs.
///
/// # Errors
/// The permit was not granted, or has ended: `work` was dropped.
pub(crate) async fn run_under_owner_permit<T, F>(
    facts: Facts,
    work: impl FnOnce(Facts) -> F,
) -> Result<T, PermitRefusal>
where
    F: Future<Output = T>,
{
    let Some(claim) = claim_to_check(&facts).await? else {
        return Ok(work(facts).await);
    };
    let watch = claim.watch(Arc::new(GardenWitness::from_facts(&facts)))?;
    let lock = facts.residency.seed.permit().clone();
    let before = facts.clone();
    // Only where the answer counts, see `is_record_published`. A failed read is no obstacle here: the read
    // after a loss decides.
    let published_at_start = check_rule(before.operation) == CheckRule::Always
        && OwnerRecord::claim(&before)
            .await
            .is_ok_and(|claim| claim.is_some());
    let first_answer_timeout = FIRST_ANSWER_TIMEOUT.max(claim.terms.settings().check_takes() * 2);
    let ended = once_owned(watch, &lock, first_answer_timeout, |right| {
        let mut facts = facts;
        facts.residency.seed = facts.residency.seed.under(&right);
        work(facts)
    });
    match ended.await {
        Ok(done) => Ok(done),
        Err(NotOwned::Unconfirmed(why)) => Err(unconfirmed(&why, claim.epoch).into()),
        Err(NotOwned::Lost(loss)) => {
            let newest = OwnerRecord::claim(&before).await.map(|claim| claim.is_some());
            let record_published = is_record_published(published_at_start, newest, before.operation)?;
            let seed = before.seed_object.name_any();
            Err(refuse_after_loss(
                &loss,
                record_published,
                before.operation,
                (&seed, claim.epoch),
            ))
        }
    }
}

/// Whether this seed has published a record in this epoch, and no deletion removes the record. When the read
/// after a loss fails, the read at the start counts: otherwise the loss is not remembered. The record of a
/// deletion may be gone since the start, so a failed read decides nothing there.
fn is_record_published(at_start: bool, newest: Result<bool>, operation: Operation) -> Result<bool> {
    match newest {
        Err(_) if at_start && check_rule(operation) == CheckRule::Always => Ok(true),
        newest => newest,
    }
}

/// When an operation checks the owner of the shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckRule {
    Never,
    /// While this seed publishes an owner record.
    IfRecordPublished,
    Always,
}

fn check_rule(operation: Operation) -> CheckRule {
    match operation {
        Operation::Migrate => CheckRule::Never,
        Operation::Delete | Operation::ForceDelete => CheckRule::IfRecordPublished,
        Operation::Create | Operation::Reconcile | Operation::Restore => CheckRule::Always,
    }
}

/// Whether the operation is refused for a shoot that this seed has lost.
pub(crate) fn is_for_owners(operation: Operation) -> bool {
    check_rule(operation) != CheckRule::Never
}

/// The claim to check; `None` where this seed publishes no owner record.
async fn claim_to_check(facts: &Facts) -> Result<Option<OwnerClaim>> {
    match check_rule(facts.operation) {
        CheckRule::Never => Ok(None),
        CheckRule::IfRecordPublished => OwnerRecord::claim(facts).await,
        CheckRule::Always => {
            // Checked first: a seed that has sealed its epoch has removed its record and waits for the next
            // epoch.
            ClaimSteps::check_not_sealing(&facts.shoot)?;
            // Checked also without a published record. A missing record, a deleted record and a record of an
            // earlier epoch are no loss (`ownership::record_verdict`). In these cases the garden decides, and
            // the garden has assigned the shoot to this seed.
            OwnerRecord::wanted(facts)
        }
    }
}

/// The refusal that follows from a loss. `record_published`: see [`is_record_published`].
fn refuse_after_loss(
    loss: &OwnershipLoss,
    record_published: bool,
    operation: Operation,
    (seed, epoch): (&str, i64),
) -> PermitRefusal {
    if *loss == OwnershipLoss::Sealed {
        // The garden reports that this seed has sealed the epoch, and DNS returns no record: no seed has
        // taken the shoot yet.
        return PermitRefusal::NotNow(Error::not_ready(
            RECHECK_OWNER,
            format!(
                "seed {seed} has ended ownership epoch {epoch} of the shoot, and its record cannot be read"
            ),
        ));
    }
    if record_published {
        return PermitRefusal::Lost(format!(
            "seed {seed} has lost the shoot in ownership epoch {epoch}: {loss}. The seed does nothing for the shoot in this epoch. \
             To stay in this seed, the shoot needs a later epoch; see Event OwnershipLost in docs/operate/runbooks.md"
        ));
    }
    if check_rule(operation) == CheckRule::IfRecordPublished {
        // The deletion has removed the record of this seed in the meantime, and continues under the permit of
        // the lock.
        return PermitRefusal::NotNow(Error::not_ready(
            RESUME_DELETION,
            "the deletion of the shoot has removed the owner record, and continues without an owner check",
        ));
    }
    // This seed never published a record, so no ownership was lost. DNS still has the record of a different
    // owner, for example an earlier shoot of the same name. The operation continues when that record is gone.
    PermitRefusal::NotNow(Error::transient(format!(
        "seed {seed} cannot tell that it has the shoot, in ownership epoch {epoch}: {loss}. Nothing is done for the shoot; see \
         \"The owner record is refused\" in docs/operate/runbooks.md"
    )))
}

fn unconfirmed(why: &str, epoch: i64) -> Error {
    Error::not_ready(
        RECHECK_OWNER,
        format!("it is not confirmed that this seed has the shoot, in ownership epoch {epoch}: {why}"),
    )
}

/// The second witness of a gardenlet: the Shoot.
struct GardenWitness {
    garden: Garden,
    namespace: String,
    name: String,
    uid: Option<String>,
    seed: String,
}

impl GardenWitness {
    fn from_facts(facts: &Facts) -> Self {
        Self {
            garden: facts.garden.clone(),
            namespace: facts.shoot.namespace().unwrap_or_default(),
            name: facts.shoot.name_any(),
            uid: facts.shoot.uid(),
            seed: facts.seed_object.name_any(),
        }
    }
}

impl SecondWitness for GardenWitness {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        async {
            let shoots = self.garden.namespaced::<Shoot>(&self.namespace);
            match shoots.get_opt(&self.name).await {
                Ok(found) => testimony(found.as_ref(), self.uid.as_deref(), &self.seed),
                Err(error) => Testimony::Silent(format!("the garden: {error}")),
            }
        }
        .boxed()
    }
}

/// What the Shoot reports about the ownership of a seed. Without recorded phases the Shoot reports only the
/// owner.
fn testimony(found: Option<&Shoot>, uid: Option<&str>, seed: &str) -> Testimony {
    let Some(shoot) = found.filter(|shoot| shoot.metadata.uid.as_deref() == uid) else {
        return Testimony::Missing;
    };
    if let Ok(recorded) = ownership_status::ownership(shoot) {
        return recorded.testimony(&seed.to_owned());
    }
    let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
    if role(shoot, seed) == Role::Owner {
        Testimony::Owned { epoch, left: None }
    } else {
        Testimony::Claimed { epoch }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use serde_json::json;

    use super::*;

    fn shoot(seed: &str, epoch: i64) -> Shoot {
        let shoot = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
            "spec": {"seedName": seed, "provider": {"type": "local"}, "region": "local",
                "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": seed, "ownership": {"epoch": epoch}},
        });
        serde_json::from_value(shoot).unwrap()
    }

    #[test]
    fn the_shoot_is_the_second_witness() {
        let mine = shoot("seed-a", 3);
        let said = testimony(Some(&mine), Some("u"), "seed-a");
        assert_eq!(said, Testimony::Owned { epoch: 3, left: None });
        // A different seed has the shoot, and the epoch shows that the hand-over came later.
        let theirs = shoot("seed-b", 4);
        let said = testimony(Some(&theirs), Some("u"), "seed-a");
        assert_eq!(said, Testimony::Claimed { epoch: 4 });
        let phased = |phase: &str| {
            let mut phased = serde_json::to_value(shoot("seed-a", 3)).unwrap();
            phased["status"]["ownership"]["phase"] = json!(phase);
            testimony(
                Some(&serde_json::from_value(phased).unwrap()),
                Some("u"),
                "seed-a",
            )
        };
        // The record of this seed is not in DNS yet: this seed has to write the record first.
        assert_eq!(phased("Claiming"), Testimony::Owned { epoch: 3, left: None });
        assert_eq!(phased("Sealing"), Testimony::Sealed { epoch: 3 });
        // The shoot was handed over, and no phase is recorded.
        let mut arriving = serde_json::to_value(shoot("seed-a", 3)).unwrap();
        arriving["status"]["lastOperation"] = json!({"type": "Migrate", "state": "Succeeded", "progress": 100,
            "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let arriving = serde_json::from_value(arriving).unwrap();
        let said = testimony(Some(&arriving), Some("u"), "seed-a");
        assert_eq!(said, Testimony::Owned { epoch: 3, left: None });
        assert_eq!(testimony(None, Some("u"), "seed-a"), Testimony::Missing);
        assert_eq!(testimony(Some(&mine), Some("v"), "seed-a"), Testimony::Missing);
    }

    const OPERATIONS: [Operation; 6] = [
        Operation::Create,
        Operation::Reconcile,
        Operation::Restore,
        Operation::Delete,
        Operation::ForceDelete,
        Operation::Migrate,
    ];

    /// R17-60, RX-42.
    #[test]
    fn all_is_asked_for_but_to_hand_the_shoot_over() {
        for operation in OPERATIONS {
            let expected = match operation {
                Operation::Migrate => CheckRule::Never,
                _ if operation.deletes() => CheckRule::IfRecordPublished,
                _ => CheckRule::Always,
            };
            assert_eq!(check_rule(operation), expected, "{operation:?}");
            assert_eq!(is_for_owners(operation), operation != Operation::Migrate);
        }
    }

    /// R17-61: a seed can only lose a shoot whose record the seed has published. A deletion removes the
    /// record of this seed.
    #[test]
    fn what_was_told_is_lost_for_ever_and_what_was_not_is_asked_for_again() {
        for operation in OPERATIONS {
            for loss in [
                OwnershipLoss::Deleted,
                OwnershipLoss::LaterEpoch(4),
                OwnershipLoss::AnotherIdentity("b".into()),
            ] {
                let PermitRefusal::Lost(sentence) = refuse_after_loss(&loss, true, operation, ("seed-a", 3))
                else {
                    panic!("{operation:?}: it is lost");
                };
                for part in ["seed-a", "epoch 3", &loss.to_string(), "OwnershipLost"] {
                    assert!(sentence.contains(part), "{sentence}");
                }
                let again = match refuse_after_loss(&loss, false, operation, ("seed-a", 3)) {
                    PermitRefusal::NotNow(error) => error.class(),
                    PermitRefusal::Lost(sentence) => panic!("{operation:?}: {sentence}"),
                };
                let expected = if operation.deletes() {
                    "NotReady"
                } else {
                    "Transient"
                };
                assert_eq!(again, expected, "{operation:?}");
            }
        }
    }

    /// A forced deletion in the middle of a move continues when the record can be read, or is gone.
    #[test]
    fn what_the_seed_has_sealed_itself_is_not_lost() {
        for operation in OPERATIONS {
            for record_published in [true, false] {
                let PermitRefusal::NotNow(error) =
                    refuse_after_loss(&OwnershipLoss::Sealed, record_published, operation, ("seed-a", 3))
                else {
                    panic!("{operation:?}: nobody has taken it");
                };
                assert_eq!(error.class(), "NotReady");
            }
        }
    }

    /// R17-61: the API of the seed may fail in the moment of the loss.
    #[test]
    fn a_loss_is_remembered_although_the_seed_does_not_answer() {
        let failed = || Err(Error::transient("the seed does not answer"));
        for operation in OPERATIONS {
            let decided = is_record_published(true, failed(), operation);
            let is_remembered = check_rule(operation) == CheckRule::Always;
            assert_eq!(
                decided.is_ok_and(|published| published),
                is_remembered,
                "{operation:?}"
            );
            assert!(is_record_published(false, failed(), operation).is_err());
            for newest in [true, false] {
                assert_eq!(is_record_published(true, Ok(newest), operation), Ok(newest));
            }
        }
    }

    #[test]
    fn what_is_not_confirmed_is_waited_for() {
        assert_eq!(unconfirmed("nobody", 3).class(), "NotReady");
    }
}
