//! Checks the health of the shoots of the seed, each shoot once a period.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::ownership::Terms;
use api::{
    constants::{
        SHOOT_STATUS,
        condition::{
            API_SERVER_AVAILABLE, CONTROL_PLANE_HEALTHY, EVERY_NODE_READY, MOVING,
            OBSERVABILITY_COMPONENTS_HEALTHY, SYSTEM_COMPONENTS_HEALTHY,
        },
    },
    druid::Etcd,
    gardencore::{Seed, Shoot, ShootStatus},
    meta::{Condition, LastOperationType},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use placement::{Journey, journey};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, conditions, runner},
    error::Explain,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    checks, components,
    data_loss::{self, DataLoss},
    extensions,
    label::status_label,
    moving,
    observation::Observation,
    owner_checks::ObservedCheck,
    ownership, reading,
    settle::settle,
    webhooks,
};
use crate::{Context, MANAGER, shoots::is_hosted};

/// The conditions that every shoot gets.
const CONDITIONS: [&str; 5] = [
    API_SERVER_AVAILABLE,
    CONTROL_PLANE_HEALTHY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    EVERY_NODE_READY,
    SYSTEM_COMPONENTS_HEALTHY,
];

/// The observations about a shoot.
struct ShootObservations {
    observations: [(&'static str, Observation); 5],
    owner: Option<ownership::Verified>,
    owner_check: ObservedCheck,
    webhooks: Option<webhooks::Webhooks>,
    data_loss: DataLoss,
}

struct Care {
    context: Arc<Context>,
    /// The Seed of this gardenlet, as the watch has shown it last.
    own_seed: OwnSeed,
    /// Time of the last check per shoot. Holds only shoots of this seed.
    looked: Mutex<HashMap<String, Instant>>,
}

/// The Seed of this gardenlet; `None` before the watch has shown it.
type OwnSeed = Arc<Mutex<Option<Arc<Seed>>>>;

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let garden = context.garden.clone();
    let shoots = context.shoots.clone();
    // Progress and conditions change often, and do not affect the checks.
    let controller = shoots.controller(|shoot| {
        let status = shoot.status.as_ref();
        let operation = status.and_then(|status| status.last_operation.as_ref());
        runner::fingerprint((
            shoot.metadata.deletion_timestamp.as_ref().map(|t| t.0),
            status.and_then(|status| status.seed_name.as_deref()),
            operation.map(|o| (o.type_ as u8, o.state as u8)),
        ))
    });
    let own_seed = OwnSeed::default();
    let seen = Arc::clone(&own_seed);
    let seeds = garden.cluster_wide::<Seed>();
    let one = watcher::Config::default().fields(&format!("metadata.name={}", context.seed_name));
    // Each check compares with the newest Seed, so a change of the Seed triggers no check of a shoot.
    let controller = controller.watches(seeds, one, move |seed: Seed| {
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seed));
        Vec::<ObjectRef<Shoot>>::new()
    });
    let (settings, share) = (context.runner(), context.config.project_share());
    let care = Arc::new(Care {
        context,
        own_seed,
        looked: Mutex::default(),
    });
    let running = runner::run_namespaced_by_project(controller, &garden, care, settings, share);
    shoots.run_beside(running).await;
}

/// Whether this gardenlet reports the conditions of a shoot: the control plane is here or comes here, and is
/// not being deleted. The seed continues while a user wants the shoot in a different seed.
fn is_cared_for(shoot: &Shoot, seed: &str) -> bool {
    let Some(status) = &shoot.status else { return false };
    let here = status.seed_name.as_deref() == Some(seed);
    let taken_down = status
        .last_operation
        .as_ref()
        .is_none_or(|o| o.type_ == LastOperationType::Delete);
    here && !taken_down && !status.technical_id.is_empty() && shoot.metadata.deletion_timestamp.is_none()
}

/// Whether the status of a shoot already contains the change.
fn contains_change(shoot: &Shoot, change: impl Fn(&ShootStatus, &mut Vec<Condition>)) -> bool {
    let Some(status) = &shoot.status else { return false };
    let mut conditions = status.conditions.clone();
    change(status, &mut conditions);
    let label = shoot.labels().get(SHOOT_STATUS);
    conditions == status.conditions && label.is_some_and(|label| label == status_label(status))
}

impl Reconciler<Shoot> for Care {
    const NAME: &'static str = "care";

    /// The store holds the Shoots of all seeds. A Shoot that has left the seed is forgotten.
    fn is_responsible(&self, shoot: &Shoot) -> bool {
        let is_hosted = is_hosted(shoot, &self.context.seed_name);
        if !is_hosted {
            self.looked().remove(&key(shoot));
        }
        is_hosted
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let period = self.context.config.care_sync_period;
        if let Some(left) = self.time_until_check(&shoot, period) {
            return Ok(Next::After(left));
        }
        // The Shoot comes from the watch: a check without changes sends no request to the garden, at any
        // number of shoots.
        if is_cared_for(&shoot, &self.context.seed_name) {
            Box::pin(self.look_after(&shoot)).await?;
        }
        Ok(Next::After(period))
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.looked().remove(&key(&shoot));
        Ok(Next::Change)
    }
}

impl Care {
    async fn look_after(&self, seen: &Shoot) -> Result<()> {
        let ShootObservations {
            observations,
            owner,
            owner_check,
            webhooks,
            data_loss,
        } = Box::pin(self.observe(seen)).await?;
        data_loss::report(&self.context, seen, &data_loss).await?;
        if let Some(webhooks) = webhooks {
            webhooks::report(&self.context, seen, &webhooks).await?;
        }
        let now = clock::now_k8s();
        let threshold = self.context.config.condition_threshold;
        let own = &self.context.seed_name;
        // The last report of this epoch about the owner stays until the hand-over removes the report, and the
        // next seed has no process yet.
        let leaves = matches!(journey(seen), Journey::Leaving | Journey::Arriving);
        let change = |status: &ShootStatus, list: &mut Vec<Condition>| {
            for (type_, seen) in &observations {
                let old = api::meta::find_condition(list, type_).cloned();
                // Parts that a move has stopped get no time to recover.
                let threshold = if seen.reason == MOVING {
                    Duration::ZERO
                } else {
                    threshold
                };
                settle(old.as_ref(), type_, seen.clone(), threshold, &now).merge_into(list);
            }
            if !leaves {
                ownership::set_condition(owner.as_ref(), &now, list);
                owner_check.set_condition(status, own, &now, list);
            }
        };
        let is_reported = seen
            .status
            .as_ref()
            .is_none_or(|status| leaves || owner_check.entries(status, own).is_none());
        if is_reported && contains_change(seen, change) {
            return Ok(());
        }
        let api: Api<Shoot> = self
            .context
            .garden
            .namespaced(&seen.namespace().unwrap_or_default());
        let name = seen.name_any();
        // A watch may be late: the gardenlet writes no status of a shoot that has left this seed.
        let Some(shoot) = api.get_opt(&name).await? else {
            return Ok(());
        };
        if shoot.uid() != seen.uid() || !is_cared_for(&shoot, &self.context.seed_name) {
            return Ok(());
        }
        let status = shoot.status.clone().unwrap_or_default();
        if let Some(entries) = owner_check.entries(&status, own).filter(|_| !leaves) {
            // After a conflict with a different write, the next check repeats the write.
            let patch = json!({"ownerChecks": entries});
            if MANAGER.try_merge_status_of(&api, &shoot, &patch).await?.is_none() {
                return Ok(());
            }
        }
        conditions::change(MANAGER, &api, &name, "conditions", |list| change(&status, list)).await?;
        self.write_label(&name, &api).await
    }

    /// Observes a shoot and its owner.
    async fn observe(&self, shoot: &Shoot) -> Result<ShootObservations> {
        let namespace = shoot.status.as_ref().map(|s| s.technical_id.as_str());
        let namespace = namespace.unwrap_or_default();
        if let Some(sleep) = checks::of_sleep(shoot) {
            webhooks::warn_of_sleep(&self.context, shoot).await;
            // etcd serves until the last step before the sleep; after that, no process checks the owner.
            let etcds = reading::etcds(&self.context, namespace).await?;
            let owner = if placement::is_asleep(shoot) {
                None
            } else {
                self.owner(&etcds).await?
            };
            let deployments = reading::deployments(&self.context, namespace).await?;
            return Ok(ShootObservations {
                observations: CONDITIONS.map(|type_| (type_, sleep.clone())),
                owner,
                owner_check: self.owner_check(shoot, &etcds, &deployments).await?,
                webhooks: None,
                data_loss: DataLoss::find(&etcds),
            });
        }
        let inputs = Box::pin(reading::read_inputs(&self.context, shoot, namespace)).await?;
        let found = [
            (API_SERVER_AVAILABLE, checks::api_server(&inputs)),
            (CONTROL_PLANE_HEALTHY, checks::control_plane(&inputs)),
            (OBSERVABILITY_COMPONENTS_HEALTHY, checks::observability()),
            (EVERY_NODE_READY, checks::nodes(shoot, &inputs)),
            (SYSTEM_COMPONENTS_HEALTHY, components::system_components(&inputs)),
        ];
        let observations = found.map(|(type_, observation)| {
            let worse = extensions::worse(type_, observation, &inputs.extensions);
            (type_, moving::explained_by_move(shoot, type_, worse))
        });
        Ok(ShootObservations {
            observations,
            owner: self.owner(&inputs.etcds).await?,
            owner_check: self
                .owner_check(shoot, &inputs.etcds, &inputs.deployments)
                .await?,
            webhooks: inputs.webhooks,
            data_loss: DataLoss::find(&inputs.etcds),
        })
    }

    /// How the processes of the shoot check the owner.
    async fn owner_check(
        &self,
        shoot: &Shoot,
        etcds: &[Etcd],
        deployments: &[Deployment],
    ) -> Result<ObservedCheck> {
        let known = self
            .own_seed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let seed = if let Some(seed) = known {
            seed
        } else {
            let name = &self.context.seed_name;
            let seed = self.context.garden.cluster_wide::<Seed>().get(name).await;
            Arc::new(seed.context(format_args!("could not read Seed {name}"))?)
        };
        Ok(ObservedCheck::new(shoot, &seed, etcds, deployments))
    }

    /// Observes the owner of the shoot.
    async fn owner(&self, etcds: &[Etcd]) -> Result<Option<ownership::Verified>> {
        let usual = Terms::default();
        let fence = || async {
            let name = &self.context.seed_name;
            let seeds = self.context.garden.cluster_wide::<Seed>();
            let seed = seeds.get_opt(name).await;
            let seed = seed.context(format_args!("could not read Seed {name}"))?;
            let checks = seed.as_ref().and_then(|seed| seed.spec.owner_checks());
            // The reconciliation of shoots reports settings that cannot be parsed.
            let needed = checks.and_then(|checks| owner_checks::needed_fence(checks, usual).ok());
            Ok(needed.unwrap_or(usual.settings().fence))
        };
        ownership::verified(etcds, &clock::now_k8s(), fence).await
    }

    async fn write_label(&self, name: &str, api: &Api<Shoot>) -> Result<()> {
        let Some(shoot) = api.get_opt(name).await? else {
            return Ok(());
        };
        let label = status_label(shoot.status.as_ref().unwrap_or(&ShootStatus::default()));
        if shoot.labels().get(SHOOT_STATUS).is_some_and(|old| old == label) {
            return Ok(());
        }
        MANAGER
            .merge(api, name, &json!({"metadata": {"labels": {SHOOT_STATUS: label}}}))
            .await
            .map(|_| ())
    }

    /// How long a shoot rests after a recent check, so that a busy flow does not trigger a check at each
    /// step.
    fn time_until_check(&self, shoot: &Shoot, period: Duration) -> Option<Duration> {
        let mut looked = self.looked();
        let now = Instant::now();
        let least = period / 3;
        if let Some(last) = looked.get(&key(shoot))
            && let Some(rest) = least
                .checked_sub(now.duration_since(*last))
                .filter(|rest| !rest.is_zero())
        {
            return Some(rest);
        }
        looked.insert(key(shoot), now);
        None
    }

    fn looked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(shoot: &Shoot) -> String {
    format!("{}/{}", shoot.namespace().unwrap_or_default(), shoot.name_any())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{
        gardencore::ShootSpec,
        meta::{LastOperation, LastOperationState},
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn shoot(spec: &str, status: &str, type_: LastOperationType) -> Shoot {
        let mut shoot = Shoot::new(
            "web",
            ShootSpec {
                seed_name: Some(spec.into()),
                ..ShootSpec::default()
            },
        );
        shoot.status = Some(ShootStatus {
            seed_name: Some(status.into()),
            technical_id: "shoot--dev--web".into(),
            last_operation: Some(LastOperation {
                description: String::new(),
                last_update_time: Time(jiff::Timestamp::UNIX_EPOCH),
                progress: 0,
                state: LastOperationState::Processing,
                type_,
            }),
            ..ShootStatus::default()
        });
        shoot
    }

    #[test]
    fn only_the_seed_that_hosts_it_tells_also_while_a_move_waits_or_runs() {
        use LastOperationType::{Create, Delete, Migrate, Reconcile, Restore};
        for type_ in [Create, Reconcile, Restore, Migrate] {
            assert!(is_cared_for(&shoot("a", "a", type_), "a"));
            assert!(!is_cared_for(&shoot("a", "a", type_), "b"));
        }
        for type_ in [Reconcile, Migrate] {
            assert!(is_cared_for(&shoot("b", "a", type_), "a"));
            assert!(!is_cared_for(&shoot("b", "a", type_), "b"));
        }
        assert!(!is_cared_for(&shoot("a", "a", Delete), "a"));
        assert!(!is_cared_for(&Shoot::new("web", ShootSpec::default()), "a"));
    }
}
