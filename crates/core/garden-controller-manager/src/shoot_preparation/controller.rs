//! Grants and withdraws the right of a seed to prepare.

use std::{sync::Arc, time::Duration};

use api::{
    constants::MIGRATION_PREPARE,
    gardencore::{
        Seed, Shoot,
        shoot::{MigrationPreparation, ShootStatus},
    },
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api, ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::recorded_preparation;
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::{Value, json};

use super::{
    change::{self, grant},
    decision::{PreparationDecision, PreparationReport, decide, expired, removed_by_host, requested},
    grant_slots::{BUSY, GrantSlots},
};
use crate::{
    Context, MANAGER,
    shoot_migration::{is_seed_name, judge_unrequested},
};

/// Pause after a write conflict. The concurrent change usually triggers an earlier check.
const CONFLICT_REQUEUE: Duration = Duration::from_secs(1);
/// Requeue interval of a request that waits for a slot or for the destination, and the longest wait for an
/// expiry, so that the controller follows a correction of the clock.
const CHECK_PERIOD: Duration = Duration::from_secs(60);

struct ShootPreparation {
    context: Context,
    slots: GrantSlots,
    /// The cache of all Shoots.
    known: Store<Shoot>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context.shoots.controller(|shoot| {
        let status = shoot.status.as_ref();
        let last = status.and_then(|status| status.last_operation.as_ref());
        let granted = recorded_preparation(shoot).map(|granted| {
            let seeds = (&granted.source, &granted.destination);
            (&granted.uid, seeds, granted.epoch, granted.expiry.0)
        });
        runner::fingerprint((
            shoot.uid(),
            shoot.metadata.deletion_timestamp.is_some(),
            requested(shoot),
            &shoot.spec.seed_name,
            status.map(|status| (&status.seed_name, status.epoch(), status.live_migration.is_some())),
            last.map(|last| (last.type_.to_string(), last.state.to_string())),
            granted,
        ))
    });
    let of_seed = controller.store();
    let seeds: Api<Seed> = context.garden.cluster_wide();
    // A silent destination and a Seed in deletion end a grant.
    let controller = controller.watches(seeds, watcher::Config::default(), move |seed| {
        let name = seed.name_any();
        let shoots = of_seed.state();
        let concerned = shoots.iter().filter(|shoot| requested(shoot) == Some(&*name));
        concerned
            .map(|shoot| ObjectRef::from_obj(shoot.as_ref()))
            .collect::<Vec<_>>()
    });
    let known = controller.store();
    context
        .run(controller, |context| ShootPreparation {
            slots: GrantSlots::new(context.config.preparations_per_seed),
            context,
            known,
        })
        .await;
}

impl Reconciler<Shoot> for ShootPreparation {
    const NAME: &'static str = "shoot-preparation";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        self.slots.concerns(shoot)
    }

    /// The judged objects are read from the API server, and each write is conditional on the read version of
    /// the Shoot.
    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        let Some(shoot) = self.context.latest(&shoot).await? else {
            return Ok(Next::Change);
        };
        if self.slots.is_grant_removed(&shoot) {
            return self.end(&shoots, &shoot, &removed_by_host(&shoot)).await;
        }
        if let Some(expiry) = self.slots.expired(&shoot, clock::now()) {
            return self.end(&shoots, &shoot, &expired(&shoot, expiry)).await;
        }
        let destination = self.read_destination(&shoot).await?;
        let most = self.context.config.preparations_per_seed;
        match decide(&shoot, destination.as_ref(), most, clock::now()) {
            PreparationDecision::Nothing => {
                self.slots.forget(&shoot);
                Ok(Next::Change)
            }
            PreparationDecision::Withdraw => self.withdraw(&shoots, &shoot).await,
            PreparationDecision::Refuse(report) => self.refuse(&shoots, &shoot, &report).await,
            PreparationDecision::Keep(rest) => {
                self.slots.note_recorded(&shoot);
                Ok(Next::After(rest.min(CHECK_PERIOD)))
            }
            PreparationDecision::Judge => Box::pin(self.judge(&shoots, &shoot)).await,
            PreparationDecision::End(report) => self.end(&shoots, &shoot, &report).await,
        }
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        Box::pin(self.apply(shoot)).await
    }
}

impl ShootPreparation {
    /// The Seed of the requested name. A text that cannot be such a name is not sent to the API server.
    async fn read_destination(&self, shoot: &Shoot) -> Result<Option<Seed>> {
        let Some(name) = requested(shoot).filter(|name| is_seed_name(name)) else {
            return Ok(None);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let found = seeds.get_opt(name).await;
        found.context(format_args!("could not read seed {name}"))
    }

    /// Grants the right if the destination could take the shoot, and has a free slot.
    async fn judge(&self, shoots: &Api<Shoot>, shoot: &Shoot) -> Result<Next> {
        // Without all Shoots, the grants for the seed cannot be counted.
        self.context.shoots.wait_until_ready().await?;
        let wanted = requested(shoot).unwrap_or_default();
        let known = self.known.state();
        let verdict = judge_unrequested(&self.context, shoot, wanted, &known).await?;
        let Some(verdict) = verdict else {
            return Err(Error::bug(
                "a preparation was judged for a Shoot without a different seed",
            ));
        };
        if !verdict.ready {
            let report = PreparationReport {
                reason: verdict.reason,
                message: verdict.message,
            };
            return self.refuse(shoots, shoot, &report).await;
        }
        if let Err(others) = self.slots.reserve(shoot, wanted, &known, clock::now()) {
            let report = PreparationReport {
                reason: BUSY,
                message: format!(
                    "Seed {wanted} prepares for {others} other shoots, and may prepare for {} (--preparations-per-seed of \
                     garden-controller-manager). A free slot is for the longest waiting shoot of a project that has less than half of \
                     the slots: remove annotation {MIGRATION_PREPARE} of a different Shoot, or wait.",
                    self.context.config.preparations_per_seed
                ),
            };
            return self.refuse(shoots, shoot, &report).await;
        }
        let granted = self.new_grant(shoot, wanted)?;
        let written = self
            .write(shoots, shoot, &grant(&granted, clock::now_k8s()))
            .await;
        if !matches!(written, Ok(true)) {
            self.slots.release(shoot);
        }
        if !written? {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        self.slots.note_granted(shoot, wanted, granted.expiry.0);
        let note = format!(
            "seed {wanted} may prepare for the shoot until {}",
            granted.expiry.0
        );
        self.context
            .events
            .normal(shoot, "PreparationGranted", &note)
            .await;
        Ok(Next::After(CHECK_PERIOD))
    }

    fn new_grant(&self, shoot: &Shoot, destination: &str) -> Result<MigrationPreparation> {
        let validity = SignedDuration::from_secs(self.context.config.preparation_validity_seconds.into());
        let longest = clock::now_k8s().0.checked_add(validity);
        let longest = longest.map_err(|error| Error::bug("the expiry is no time").caused_by(error))?;
        let status = shoot.status.as_ref();
        let host = status.and_then(|status| status.seed_name.clone());
        Ok(MigrationPreparation {
            uid: shoot.uid().unwrap_or_default(),
            source: host.unwrap_or_default(),
            destination: destination.to_owned(),
            epoch: status.map_or(1, ShootStatus::epoch),
            expiry: Time(self.slots.next_expiry(shoot, destination, longest)),
        })
    }

    /// Withdraws a grant, and reports the obstacle. The slot is released before the write: if the answer to
    /// the write is lost, the Shoot has no grant, and the host has not removed the grant. Until the write,
    /// the recorded grant holds the slot. The expiry of a grant of a former process is noted.
    async fn refuse(&self, shoots: &Api<Shoot>, shoot: &Shoot, report: &PreparationReport) -> Result<Next> {
        self.slots.note_recorded(shoot);
        self.slots.release(shoot);
        let Some(status) = change::refuse(shoot, report, clock::now_k8s()) else {
            return Ok(Next::After(CHECK_PERIOD));
        };
        if !self.write(shoots, shoot, &status).await? {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        if recorded_preparation(shoot).is_some() {
            self.context
                .events
                .warning(shoot, "PreparationWithdrawn", &report.message)
                .await;
        }
        Ok(Next::After(CHECK_PERIOD))
    }

    /// As for [`Self::refuse`], the records are dropped before the write.
    async fn withdraw(&self, shoots: &Api<Shoot>, shoot: &Shoot) -> Result<Next> {
        self.slots.forget(shoot);
        if !self.write(shoots, shoot, &change::withdraw()).await? {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        Ok(Next::Change)
    }

    /// Removes the annotation first: with the annotation, the next pass would grant the right again.
    async fn end(&self, shoots: &Api<Shoot>, shoot: &Shoot, report: &PreparationReport) -> Result<Next> {
        let answered = json!({"metadata": {"annotations": {MIGRATION_PREPARE: Value::Null}}});
        let Some(answered) = MANAGER.try_merge_of(shoots, shoot, &answered).await? else {
            return Ok(Next::After(CONFLICT_REQUEUE));
        };
        self.context
            .events
            .normal(&answered, "PreparationEnded", &report.message)
            .await;
        let has_fields = answered.status.as_ref();
        if has_fields.is_some_and(|status| status.live_migration.is_some()) {
            return self.withdraw(shoots, &answered).await;
        }
        self.slots.forget(&answered);
        Ok(Next::Change)
    }

    /// `false` after a concurrent write.
    async fn write(&self, shoots: &Api<Shoot>, shoot: &Shoot, status: &Value) -> Result<bool> {
        let written = MANAGER.try_merge_status_of(shoots, shoot, status).await?;
        Ok(written.is_some())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use http::{Request, Response};
    use kube::{Client, client::Body, runtime::reflector};
    use tower::service_fn;

    use super::*;

    /// A Shoot with a request for seed `b`, and with or without the grant.
    fn shoot(grant: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u", "annotations": {MIGRATION_PREPARE: "b"}},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "liveMigration": {"preparation": grant}},
        }))
        .unwrap()
    }

    /// The API server has stored the write. Otherwise the next pass would end the request of the user.
    #[tokio::test]
    async fn a_lost_answer_to_a_withdrawal_is_no_end_by_the_host() {
        let service = service_fn(|_: Request<Body>| async move {
            Err::<Response<Body>, _>(std::io::Error::other("the connection is lost"))
        });
        let context = Context::of_simulated_garden(&Client::new(service, "default"));
        let (known, _writer) = reflector::store();
        let controller = ShootPreparation {
            slots: GrantSlots::new(1),
            context,
            known,
        };
        let recorded = shoot(&json!({"uid": "u", "source": "a", "destination": "b", "epoch": 1,
            "expiry": "2126-01-01T00:00:00Z"}));
        let shoots: Api<Shoot> = controller.context.garden.namespaced("garden-dev");
        let report = PreparationReport {
            reason: "DestinationSeedNotReady",
            message: "The gardenlet does not report.".to_owned(),
        };
        let withdrawn = shoot(&Value::Null);
        // A grant of a former process.
        assert!(controller.refuse(&shoots, &recorded, &report).await.is_err());
        let expiry = recorded_preparation(&recorded).unwrap().expiry.0;
        assert!(controller.slots.next_expiry(&withdrawn, "b", expiry) < expiry);
        controller.slots.note_recorded(&recorded);
        assert!(controller.slots.is_grant_removed(&withdrawn));
        assert!(controller.refuse(&shoots, &recorded, &report).await.is_err());
        assert!(!controller.slots.is_grant_removed(&withdrawn));
        controller.slots.note_recorded(&recorded);
        assert!(controller.withdraw(&shoots, &recorded).await.is_err());
        assert!(!controller.slots.is_grant_removed(&withdrawn));
    }
}
