//! Watches Seeds and their Leases.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{
    constants::{
        SEED_LEASE_NAMESPACE,
        condition::{GARDENLET_READY, OWNER_SERVERS_AGREE},
    },
    gardencore::Seed,
    meta::{Condition, ConditionStatus, find_condition},
};
use jiff::Timestamp;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, conditions, runner},
    error::Explain as _,
};
use tokio::time::Instant;

use super::{
    condition_metrics,
    liveness::{Liveness, Observations},
    namespace, owner_servers_agree, shoot_conditions,
};
use crate::{Context, MANAGER};

struct SeedController {
    context: Context,
    observations: Mutex<Observations>,
    /// The cache of all Seeds.
    known: Store<Seed>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let leases: Api<Lease> = context.garden.namespaced(SEED_LEASE_NAMESPACE);
    let controller = runner::controller(seeds.clone(), watcher::Config::default(), |_| None).watches(
        leases,
        watcher::Config::default(),
        |lease| Some(ObjectRef::new(&lease.name_any())),
    );
    let known = controller.store();
    condition_metrics::register(&context.metrics, known.clone());
    let settings = context.runner();
    let reconciler = Arc::new(SeedController {
        context,
        observations: Mutex::default(),
        known,
    });
    runner::run(controller, move |_| seeds.clone(), reconciler, settings).await;
}

impl Reconciler<Seed> for SeedController {
    const NAME: &'static str = "seed";

    async fn apply(&self, seed: Arc<Seed>) -> Result<Next> {
        // The verdicts come first, and each is written although a different write fails: a takeover waits for
        // the verdict on a dead seed.
        let judged = self.judge(&seed).await;
        let compared = self.compare_servers(&seed).await;
        self.deploy_namespace(&seed).await;
        judged.and(compared)?;
        Ok(Next::After(self.context.config.seed_sync_period()))
    }

    /// The Seed's own gardenlet removes the seed's objects; this controller must still detect a silent
    /// gardenlet.
    async fn cleanup(&self, seed: Arc<Seed>) -> Result<Next> {
        if seed.finalizers().is_empty() {
            self.observations().forget(&seed.name_any());
            return Ok(Next::Change);
        }
        self.judge(&seed).await?;
        Ok(Next::After(self.context.config.seed_sync_period()))
    }
}

impl SeedController {
    /// Applies the namespace of the seed. A failure is reported and is no error: the back-off after an error
    /// would delay the next verdict on the seed.
    async fn deploy_namespace(&self, seed: &Seed) {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let wanted = namespace::desired(seed);
        let Err(error) = MANAGER.apply(&namespaces, &wanted).await else {
            return;
        };
        let (seed_name, name) = (seed.name_any(), wanted.name_any());
        tracing::warn!(seed = seed_name, namespace = name, %error, "the namespace of a seed cannot be written");
        let note = format!(
            "namespace {name} for the credentials of the seed cannot be written: {error}; the next attempt follows by itself"
        );
        self.context
            .events
            .answer_with_warning(seed, "SeedNamespaceNotWritten", &note)
            .await;
    }

    async fn judge(&self, seed: &Seed) -> Result<()> {
        let name = seed.name_any();
        let renewed = self.renewed(&name).await?;
        let period = self.context.config.seed_monitor_period();
        let liveness = self.observations().judge(&name, renewed, period, Instant::now());
        let Liveness::Silent(silence) = liveness else {
            return Ok(());
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let message = match renewed {
            Some(_) => "The gardenlet stopped renewing the seed's Lease.",
            None => "The gardenlet never renewed the seed's Lease.",
        };
        let written = conditions::change(MANAGER, &seeds, &name, "conditions", |list| {
            mark_silent(list, message);
        })
        .await;
        if matches!(written, Ok(true)) {
            let note = format!("nothing was heard of the gardenlet for {} s", silence.as_secs());
            self.context.events.warning(seed, "GardenletSilent", &note).await;
        }
        // The Shoots are reported although the Seed cannot be written.
        let reported = self.report_shoots(&name, renewed, silence).await;
        written.and(reported)
    }

    /// When the gardenlet of a seed renewed the seed's Lease.
    async fn renewed(&self, seed: &str) -> Result<Option<Timestamp>> {
        let leases: Api<Lease> = self.context.garden.namespaced(SEED_LEASE_NAMESPACE);
        let lease = leases.get_opt(seed).await;
        let lease = lease.context(format_args!("could not read the Lease of seed {seed}"))?;
        Ok(lease.and_then(|l| l.spec).and_then(|s| s.renew_time).map(|t| t.0))
    }

    /// Sets the conditions of the seed's Shoots to `Unknown` after the second grace period.
    async fn report_shoots(&self, seed: &str, renewed: Option<Timestamp>, silence: Duration) -> Result<()> {
        let config = &self.context.config;
        let period = config.shoot_monitor_period();
        let is_due = silence > config.seed_monitor_period() + period
            && self.observations().are_shoots_due(seed, period, Instant::now());
        if !is_due {
            return Ok(());
        }
        let is_silent = || async { Ok(self.renewed(seed).await? == renewed) };
        if shoot_conditions::report_unknown(&self.context.garden, seed, is_silent).await? {
            self.observations().note_shoots(seed, Instant::now());
        }
        Ok(())
    }

    /// Reports Seeds with different DNS servers. An edit of the other Seed is noticed within the sync period.
    async fn compare_servers(&self, seed: &Seed) -> Result<()> {
        let found = owner_servers_agree::condition(seed, &self.known.state(), clock::now_k8s());
        if owner_servers_agree::is_reported(seed, found.as_ref()) {
            return Ok(());
        }
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        conditions::change(
            MANAGER,
            &seeds,
            &seed.name_any(),
            "conditions",
            |list| match &found {
                Some(found) => found.clone().merge_into(list),
                None => list.retain(|one| one.type_ != OWNER_SERVERS_AGREE),
            },
        )
        .await?;
        if let Some(found) = found.filter(|found| found.status == ConditionStatus::False) {
            self.context
                .events
                .warning(seed, "OwnerServersDisagree", &found.message)
                .await;
        }
        Ok(())
    }

    fn observations(&self) -> std::sync::MutexGuard<'_, Observations> {
        self.observations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets condition `GardenletReady` to `Unknown`. Readers take the first condition of a type, and a hostile
/// gardenlet may have written the type twice, so further conditions of the type are removed.
fn mark_silent(list: &mut Vec<Condition>, message: &str) {
    let mut is_first = true;
    list.retain(|condition| condition.type_ != GARDENLET_READY || std::mem::take(&mut is_first));
    // An unknown state stays unchanged: a repeated write would only move the times.
    if find_condition(list, GARDENLET_READY).is_some_and(|found| found.status == ConditionStatus::Unknown) {
        return;
    }
    Condition::new(
        GARDENLET_READY,
        ConditionStatus::Unknown,
        "SeedStatusUnknown",
        message,
        clock::now_k8s(),
    )
    .merge_into(list);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the Seed of a hostile gardenlet never counts as silent.
    #[test]
    fn a_condition_that_is_there_twice_becomes_unknown() {
        let condition = |status| Condition::new(GARDENLET_READY, status, "R", "m", clock::now_k8s());
        let mut list = vec![
            condition(ConditionStatus::True),
            condition(ConditionStatus::Unknown),
        ];
        mark_silent(&mut list, "silent");
        assert_eq!(list.len(), 1);
        assert_eq!(list[0].status, ConditionStatus::Unknown);
        assert_eq!(list[0].message, "silent");
        mark_silent(&mut list, "later");
        assert_eq!(list[0].message, "silent", "a repeated write only moves the times");
    }
}
