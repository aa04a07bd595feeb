//! Watches the sources of ShootStates, and writes the ShootStates.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{
    constants::condition::SHOOT_STATE_UP_TO_DATE,
    gardencore::Shoot,
    meta::{ConditionStatus, find_condition},
};
use futures::StreamExt;
use kube::{
    Api, ResourceExt,
    runtime::reflector::{ObjectRef, Store},
};
use parts::{Residency, ShootState, shoot_state::ShootStateWrite, tenant};
use placement::names;
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, conditions, runner},
};
use tokio::time::Instant;

use super::{
    changes,
    debounce::{Debounce, Pace},
    duty::{Stage, not_synced, report_left_out, sync_stage, up_to_date},
    gauge::Gauges,
};
use crate::{Context, MANAGER, care, shoots::is_hosted};

/// Shortest pause after an awaited object was missing. A change in the meantime ends the pause.
const MISSING_OBJECT_PAUSE: Duration = Duration::from_secs(15);

struct Sync {
    context: Arc<Context>,
    changes: Arc<Mutex<Debounce>>,
    gauges: Gauges,
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let changes = Arc::new(Mutex::new(Debounce::default()));
    let (garden, shoots) = (context.garden.clone(), context.shoots.clone());
    let touched = touched(&context, shoots.store(), Arc::clone(&changes));
    let controller = shoots.controller(wakes).reconcile_on(touched);
    let mut settings = context.runner();
    settings.concurrency = context.config.shoot_state.concurrent_shoot_state_syncs;
    let share = context.config.project_share();
    let gauges = Gauges::of_process(&context.metrics);
    let sync = Arc::new(Sync {
        context,
        changes,
        gauges,
    });
    let running = runner::run_namespaced_by_project(controller, &garden, sync, settings, share);
    shoots.run_beside(running).await;
}

fn wakes(shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    runner::fingerprint((
        shoot.uid(),
        shoot.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        status.and_then(|status| status.seed_name.as_deref()),
        last.map(|last| (last.type_ as u8, last.state as u8)),
    ))
}

/// The Shoots whose namespaces in the seed have changed; each change is recorded.
fn touched(
    context: &Context,
    shoots: Store<Shoot>,
    changes: Arc<Mutex<Debounce>>,
) -> impl futures::Stream<Item = ObjectRef<Shoot>> + Send + use<> {
    let seed = context.seed_name.clone();
    changes::namespaces(&context.seed).filter_map(move |namespace| {
        let shoot = shoots.find(|shoot| {
            names::recorded_technical_id(shoot) == Some(namespace.as_str()) && is_hosted(shoot, &seed)
        });
        let reference = shoot.map(|shoot| {
            let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
            changes.touch(&key(&shoot), Instant::now());
            ObjectRef::from_obj(shoot.as_ref())
        });
        std::future::ready(reference)
    })
}

fn key(shoot: &Shoot) -> String {
    format!("{}/{}", shoot.namespace().unwrap_or_default(), shoot.name_any())
}

impl Reconciler<Shoot> for Sync {
    const NAME: &'static str = "shoot-state-sync";

    /// The store holds the Shoots of all seeds. A Shoot that has left the seed is forgotten.
    fn is_responsible(&self, shoot: &Shoot) -> bool {
        let is_hosted = is_hosted(shoot, &self.context.seed_name);
        if !is_hosted && self.changes().forget(&key(shoot)) {
            self.gauges.forget(shoot);
        }
        is_hosted
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let key = key(&shoot);
        let Some(stage) = sync_stage(&shoot, &self.context.seed_name) else {
            self.gauges.forget(&shoot);
            return Ok(Next::Change);
        };
        if let Some(left) = self.time_until_due(&key, stage) {
            return Ok(Next::After(left));
        }
        let api: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        // The cached Shoot may be old, and during a move the namespace of a shoot is incomplete.
        let Some(shoot) = api.get_opt(&shoot.name_any()).await? else {
            return Ok(Next::Change);
        };
        let Some(stage) = sync_stage(&shoot, &self.context.seed_name) else {
            return Ok(Next::Change);
        };
        self.changes().begin(&key);
        let outcome = self.sync(&shoot).await;
        if outcome.is_err() {
            self.changes().touch(&key, Instant::now());
        }
        // A shoot that is being created lacks some keys at first; each new key triggers this controller
        // again.
        if stage == Stage::Creating && matches!(outcome, Err(Error::NotReady { .. })) {
            return Ok(Next::After(MISSING_OBJECT_PAUSE));
        }
        let reported = self.report(&api, &shoot, outcome.as_ref()).await;
        if reported.is_err() {
            // The report is due, although the ShootState is up to date.
            self.changes().touch(&key, Instant::now());
        }
        reported?;
        let write = outcome.map_err(patiently)?;
        self.gauges.synced(&shoot, &write);
        self.changes().done(&key, stage, Instant::now());
        Ok(Next::After(self.time_until_due(&key, stage).unwrap_or_default()))
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.changes().forget(&key(&shoot));
        self.gauges.forget(&shoot);
        Ok(Next::Change)
    }
}

impl Sync {
    async fn sync(&self, shoot: &Shoot) -> Result<ShootStateWrite> {
        let residency = Residency {
            seed: self.context.seed.clone(),
            settings: Arc::clone(&self.context.settings),
            namespace: names::recorded_technical_id(shoot).unwrap_or_default().to_owned(),
            tenant: tenant(shoot),
        };
        ShootState::sync(&self.context.garden, &residency, shoot).await
    }

    /// Reports the age, and the obstacle to a newer ShootState.
    async fn report(
        &self,
        api: &Api<Shoot>,
        shoot: &Shoot,
        outcome: Result<&ShootStateWrite, &Error>,
    ) -> Result<()> {
        if let Err(Error::NotOwner(_)) = outcome {
            return Ok(());
        }
        let config = &self.context.config;
        let now = clock::now_k8s();
        conditions::change(MANAGER, api, &shoot.name_any(), "constraints", |list| {
            let old = find_condition(list, SHOOT_STATE_UP_TO_DATE).cloned();
            match &outcome {
                Ok(write) => {
                    report_left_out(list, &write.left_out, &now);
                    let period = config.shoot_state.shoot_state_sync_period / 2;
                    if let Some(new) = up_to_date(old.as_ref(), period, &now) {
                        list.retain(|condition| condition.type_ != new.type_);
                        list.push(new);
                    }
                }
                Err(error) => {
                    let seen = care::Observation {
                        status: ConditionStatus::False,
                        reason: not_synced(old.as_ref()),
                        message: error.to_string(),
                        codes: error.codes().to_vec(),
                    };
                    let threshold = config.condition_threshold;
                    care::settle(old.as_ref(), SHOOT_STATE_UP_TO_DATE, seen, threshold, &now)
                        .merge_into(list);
                }
            }
        })
        .await
        .map(drop)
    }

    /// The time until the next write is due; `None`: a write is due.
    fn time_until_due(&self, key: &str, stage: Stage) -> Option<Duration> {
        self.changes()
            .time_until_due(key, stage, self.pace(), Instant::now())
    }

    fn pace(&self) -> Pace {
        let flags = &self.context.config.shoot_state;
        Pace {
            quiet: flags.shoot_state_sync_delay,
            longest: flags.shoot_state_sync_max_delay,
            period: flags.shoot_state_sync_period,
        }
    }

    fn changes(&self) -> std::sync::MutexGuard<'_, Debounce> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// No process waits for a ShootState, and there may be many: the pause is longer.
fn patiently(error: Error) -> Error {
    match error {
        Error::NotReady { after, why } => Error::NotReady {
            after: after.max(MISSING_OBJECT_PAUSE),
            why,
        },
        other => other,
    }
}
