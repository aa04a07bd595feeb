//! Runs the flow of a preparation while the grant is valid, and reports condition `Prepared`. In the source,
//! issues the keys for the destination, and lists the certificate at the gate of etcd, while the grant is
//! valid.
//!
//! In the destination, the controller creates objects in this seed alone. The removal belongs to the check of
//! the namespaces (`removal.rs`), which needs no Shoot. In the source, garden-controller-manager deletes the
//! object with the keys.

use std::{sync::Arc, time::Duration};

use api::gardencore::{Shoot, shoot::MigrationPreparation};
use jiff::Timestamp;
use kube::{Api, ResourceExt};
use parts::{PreparationFacts, PreparationState, PreparedBackupEntry};
use placement::{Role, preparation, preparation_in, role};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use tokio::time::Instant;

use super::{
    key_waits::{KeyWaits, REPORTED_AFTER, pause_after},
    listed::ListedShoots,
    report,
};
use crate::{
    context::{Context, MANAGER},
    shoot::{flows::prepare_flow, operation::failure::class_of},
};

/// Pause after a write conflict.
const CONFLICT_REQUEUE: Duration = Duration::from_secs(1);
/// Requeue interval in the source: the object with the keys is not watched, and the list at the gate of etcd
/// ends by itself.
const REISSUE_PERIOD: Duration = Duration::from_secs(20);
/// Pause after a gate has not confirmed the end of a list.
const WITHDRAW_AGAIN: Duration = Duration::from_secs(2);
/// Requeue interval of a preparation, whose objects are not watched.
const RESYNC_PERIOD: Duration = Duration::from_secs(600);

struct ShootPreparations {
    context: Arc<Context>,
    listed: ListedShoots,
    waits: KeyWaits,
}

/// Runs the controller until shutdown. Without `--enable-preparation` there is no controller.
pub(crate) async fn run(context: Arc<Context>) {
    if !context.config.enable_preparation {
        return;
    }
    let seed = context.seed_name.clone();
    let controller = context.shoots.controller(move |shoot| {
        let granted =
            preparation(shoot).filter(|granted| granted.destination == seed || granted.source == seed);
        let granted = granted.map(|granted| {
            let seeds = (&granted.source, &granted.destination);
            (&granted.uid, seeds, granted.epoch, granted.expiry.0)
        });
        runner::fingerprint((shoot.uid(), granted))
    });
    let (garden, shoots) = (context.garden.clone(), context.shoots.clone());
    let (settings, share) = (context.runner(), context.config.project_share());
    let reconciler = Arc::new(ShootPreparations {
        context,
        listed: ListedShoots::default(),
        waits: KeyWaits::default(),
    });
    let running = runner::run_namespaced_by_project(controller, &garden, reconciler, settings, share);
    shoots.run_beside(running).await;
}

impl Reconciler<Shoot> for ShootPreparations {
    const NAME: &'static str = "shoot-preparation";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        self.grant(shoot).is_some()
            || grant_of_destination(shoot, &self.context.seed_name, clock::now()).is_some()
            || self.listed_epoch(shoot).is_some()
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let (name, namespace) = (shoot.name_any(), shoot.namespace().unwrap_or_default());
        let api: Api<Shoot> = self.context.garden.namespaced(&namespace);
        let found = api.get_opt(&name).await;
        let found = found.context(format_args!("could not read Shoot {name}"))?;
        let Some(shoot) = found.map(Arc::new) else {
            return Ok(Next::Change);
        };
        if let Some(granted) = grant_of_destination(&shoot, &self.context.seed_name, clock::now()) {
            self.listed.record(&granted.uid, granted.epoch, Instant::now());
            Box::pin(self.publish(Arc::clone(&shoot), granted.clone())).await?;
            return Ok(Next::After(REISSUE_PERIOD));
        }
        if let Some(next) = Box::pin(self.withdraw(&shoot)).await {
            return Ok(next);
        }
        let Some(granted) = self.grant(&shoot) else {
            return Ok(Next::Change);
        };
        let prepared = Box::pin(self.prepare(Arc::clone(&shoot), granted.clone())).await;
        let failure = prepared.as_ref().err().map(ToString::to_string);
        let condition = report::prepared(&self.context.seed_name, failure.as_deref(), clock::now_k8s());
        let waited = match &prepared {
            Err(Error::NotReady { .. }) => Some(self.waits.record(granted, Instant::now())),
            _ => None,
        };
        let is_due = waited.is_none_or(|waited| waited >= REPORTED_AFTER);
        if let Some(status) = report::patch(&shoot, condition).filter(|_| is_due) {
            let written = MANAGER.try_merge_status_of(&api, &shoot, &status).await?;
            if written.is_none() {
                return Ok(Next::After(CONFLICT_REQUEUE));
            }
        }
        match (prepared, waited) {
            (Err(Error::NotReady { why, .. }), Some(waited)) => {
                Err(Error::not_ready(pause_after(waited), why))
            }
            (prepared, _) => prepared.map(|()| Next::After(RESYNC_PERIOD)),
        }
    }

    /// The grant of a Shoot in deletion is void.
    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        Ok(Box::pin(self.withdraw(&shoot)).await.unwrap_or(Next::Change))
    }
}

impl ShootPreparations {
    /// The grant of this seed, before the expiry.
    fn grant<'a>(&self, shoot: &'a Shoot) -> Option<&'a MigrationPreparation> {
        let seed = &self.context.seed_name;
        let granted = preparation_in(shoot, seed).filter(|_| role(shoot, seed) == Role::Incoming);
        granted.filter(|granted| granted.expiry.0 > clock::now())
    }

    /// The epoch of a list at the gate of this shoot.
    fn listed_epoch(&self, shoot: &Shoot) -> Option<i64> {
        self.listed.epoch(&shoot.uid()?, Instant::now())
    }

    /// Ends the list at the gate after the end of the grant. `Some` where the gate has not confirmed the end:
    /// the gate may be gone with the etcd, and the list ends by itself.
    async fn withdraw(&self, shoot: &Shoot) -> Option<Next> {
        let (uid, epoch) = (shoot.uid()?, self.listed_epoch(shoot)?);
        let context = &self.context;
        let (seed, settings) = (context.seed.clone(), Arc::clone(&context.settings));
        match PreparationState::withdraw(seed, settings, shoot, epoch).await {
            Ok(()) => {
                self.listed.forget(&uid);
                None
            }
            Err(error) => {
                tracing::debug!(
                    error = format_args!("{error:#}"),
                    "the certificate of an ended preparation is withdrawn later"
                );
                Some(Next::After(WITHDRAW_AGAIN))
            }
        }
    }

    async fn facts(&self, shoot: Arc<Shoot>, granted: MigrationPreparation) -> Result<PreparationFacts> {
        let context = &self.context;
        PreparationFacts::new(
            &context.garden,
            context.seed.clone(),
            Arc::clone(&context.settings),
            &context.seed_name,
            shoot,
            granted,
        )
        .await
    }

    async fn publish(&self, shoot: Arc<Shoot>, granted: MigrationPreparation) -> Result<()> {
        let facts = self.facts(shoot, granted).await?;
        PreparationState::publish(&facts).await
    }

    /// Prepares the namespace also without keys and BackupEntry: the error is [`Error::NotReady`] then. A
    /// task that waits for these objects would hold a worker.
    async fn prepare(&self, shoot: Arc<Shoot>, granted: MigrationPreparation) -> Result<()> {
        let facts = self.facts(shoot, granted).await?;
        let keys = PreparationState::check(&facts).await;
        let has_keys = !matches!(keys, Err(Error::NotReady { .. }));
        prepare_flow::build(&facts, has_keys)
            .into_flow()
            .run(|_| ())
            .await
            .map(|_| ())
            .map_err(|error| class_of(&error))?;
        let keys = if has_keys { Ok(()) } else { keys };
        merge_waits(keys, PreparedBackupEntry::check(&facts).await)
    }
}

/// Both awaited objects in a single report. A failure comes before a wait.
fn merge_waits(keys: Result<()>, entry: Result<()>) -> Result<()> {
    match (keys, entry) {
        (Err(Error::NotReady { after, why: keys }), Err(Error::NotReady { why: entry, .. })) => {
            Err(Error::not_ready(after, format!("{entry}; {keys}")))
        }
        (Err(Error::NotReady { .. }), Err(failure)) => Err(failure),
        (keys, entry) => keys.and(entry),
    }
}

/// The grant of a different seed for a shoot that this seed serves, before the expiry.
fn grant_of_destination<'a>(
    shoot: &'a Shoot,
    seed: &str,
    now: Timestamp,
) -> Option<&'a MigrationPreparation> {
    let granted = preparation(shoot).filter(|granted| granted.source == seed);
    granted.filter(|granted| role(shoot, seed) == Role::Owner && granted.expiry.0 > now)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    /// The user learns of each missing object, and a failure is not hidden by a wait.
    #[test]
    fn the_report_names_each_awaited_object() {
        let wait = |why: &str| Err(Error::not_ready(Duration::from_secs(1), why));
        let text = |merged: Result<()>| merged.map_err(|error| error.to_string());
        assert_eq!(text(merge_waits(Ok(()), Ok(()))), Ok(()));
        let both = text(merge_waits(wait("no keys"), wait("no entry"))).unwrap_err();
        assert!(both.contains("no keys") && both.contains("no entry"), "{both}");
        let is_wait = |merged: Result<()>| matches!(merged, Err(Error::NotReady { .. }));
        assert!(is_wait(merge_waits(wait("no keys"), wait("no entry"))));
        assert!(is_wait(merge_waits(wait("no keys"), Ok(()))));
        assert!(is_wait(merge_waits(Ok(()), wait("no entry"))));
        let failed = merge_waits(wait("no keys"), Err(Error::transient("no answer")));
        assert!(matches!(failed, Err(Error::Transient(_))), "{failed:?}");
    }

    /// The keys of a shoot leave the seed for a valid grant alone.
    #[test]
    fn the_host_issues_keys_for_a_valid_grant_before_the_expiry() {
        let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3,
            "expiry": "1970-01-01T00:01:40Z"});
        let valid = json!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "ownership": {"epoch": 3}, "liveMigration": {"preparation": grant}},
        });
        let issues = |shoot: &Value, seed: &str, now: i64| {
            let shoot: Shoot = serde_json::from_value(shoot.clone()).unwrap();
            grant_of_destination(&shoot, seed, Timestamp::from_second(now).unwrap()).is_some()
        };
        assert!(issues(&valid, "a", 99));
        assert!(!issues(&valid, "a", 100));
        assert!(!issues(&valid, "b", 99) && !issues(&valid, "c", 99));
        for (field, value) in [
            ("/metadata/uid", json!("v")),
            ("/status/seedName", json!("c")),
            ("/status/ownership/epoch", json!(4)),
            ("/status/liveMigration", Value::Null),
            ("/status/liveMigration/preparation/source", json!("c")),
        ] {
            let mut void = valid.clone();
            *void.pointer_mut(field).unwrap() = value;
            for seed in ["a", "b", "c"] {
                assert!(!issues(&void, seed, 99), "{field} {seed}");
            }
        }
    }
}
