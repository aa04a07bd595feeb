//! The Etcd controller: reads, decides and writes, and reports progress in the status.

use std::{sync::Arc, time::Duration};

use api::druid::{Etcd, EtcdStatus, effects};
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::{Cluster, Seed, apply::FieldManager},
    clock::now_k8s,
    controller::{Events, Next, Reconciler},
    error::{Error, Explain},
};
use serde_json::{Map, Value, json};

use crate::{
    cleanup::cleanup,
    copying,
    ensure::ensure,
    flags::Defaults,
    health,
    names::{DRUID, FINALIZER, OPERATION_ANNOTATIONS, RECONCILE, SUSPEND_ANNOTATION},
    news,
    observed::Observed,
    retry::start_afresh,
    rollout, sidecar, status,
    wanted::ValidatedEtcd,
};

const MANAGER: FieldManager = FieldManager(DRUID);
/// Requeue interval of an Etcd that is not ready, or not yet deleted. The interval is only a safety net,
/// because the watches report at once. It is longer than a reconciliation, and shorter than users wait for an
/// etcd.
const UNREADY_REQUEUE: Duration = Duration::from_secs(10);

/// How often the sidecar of a healthy Etcd is asked whether backups are taken. Shorter than the time between
/// two delta snapshots (5 minutes), so that a refusing object store is reported before much data lacks a
/// backup.
const ASK_SIDECAR: Duration = Duration::from_secs(30);

/// How often a healthy Etcd without backups is asked whether etcd refuses writes. The period is long, because
/// each question reads all objects of the Etcd, and only Events are lost until then.
const ASK_HEALTH: Duration = Duration::from_secs(5 * 60);

/// How often a copy of backups is asked for the progress, and so the shortest pause between two writes of the
/// progress.
const ASK_PROGRESS: Duration = Duration::from_secs(5);

/// The controller of Etcds in one seed.
#[derive(Clone)]
pub struct EtcdController {
    seed: Seed,
    defaults: Defaults,
    events: Events,
}

impl EtcdController {
    /// A controller of the Etcds in this seed.
    #[must_use]
    pub fn new(seed: Seed, defaults: Defaults, events: Events) -> Self {
        Self {
            seed,
            defaults,
            events,
        }
    }

    fn etcds(&self, etcd: &Etcd) -> Api<Etcd> {
        self.seed.namespaced(&etcd.namespace().unwrap_or_default())
    }

    /// Removes the operation annotation: the operation has begun when this call returns.
    async fn take_operation(&self, etcd: &Etcd) -> Result<()> {
        let asked: Map<String, Value> = OPERATION_ANNOTATIONS
            .iter()
            .filter(|key| {
                etcd.annotations()
                    .get(**key)
                    .is_some_and(|value| value == RECONCILE)
            })
            .map(|key| ((*key).to_owned(), Value::Null))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        MANAGER
            .merge(
                &self.etcds(etcd),
                &etcd.name_any(),
                &json!({"metadata": {"annotations": asked}}),
            )
            .await
            .map(|_| ())
    }

    /// Warns once for each generation about fields that are accepted and have no effect.
    async fn warn(&self, etcd: &Etcd) {
        let fields = effects::without_effect(etcd);
        let seen =
            etcd.status.as_ref().and_then(|status| status.observed_generation) == etcd.metadata.generation;
        if !fields.is_empty() && !seen {
            let note = format!("These fields have no effect yet: {}.", fields.join(", "));
            self.events.warning(etcd, "FieldsWithoutEffect", &note).await;
        }
    }

    /// Emits Events for the changes since the last status.
    async fn report(&self, etcd: &Etcd, status: &EtcdStatus) {
        for news in news::between(etcd.status.as_ref(), status) {
            if news.is_warning {
                self.events.warning(etcd, news.reason, &news.note).await;
            } else {
                self.events.normal(etcd, news.reason, &news.note).await;
            }
        }
    }

    async fn bring_about(&self, etcd: &Etcd, observed: &Observed) -> Result<()> {
        if etcd.annotations().contains_key(SUSPEND_ANNOTATION) {
            return Ok(());
        }
        let wanted = ValidatedEtcd::new(etcd, &self.defaults)?;
        ensure(&self.seed, &wanted, observed).await
    }

    /// Writes the status if the status has changed.
    async fn write_status(&self, etcd: &Etcd, status: &EtcdStatus) -> Result<()> {
        if etcd.status.as_ref() == Some(status) {
            return Ok(());
        }
        let body = serde_json::to_value(status)
            .map_err(|e| Error::bug("a status does not serialise").caused_by(e))?;
        MANAGER
            .apply_status(&self.etcds(etcd), &etcd.name_any(), &body)
            .await
            .map(|_| ())
    }
}

impl Reconciler<Etcd> for EtcdController {
    const NAME: &'static str = "etcd";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn apply(&self, etcd: Arc<Etcd>) -> Result<Next> {
        // The cache may be older than the last status; a decision on times and errors must not be.
        let Some(etcd) = self
            .etcds(&etcd)
            .get_opt(&etcd.name_any())
            .await
            .context("could not read the Etcd")?
        else {
            return Ok(Next::Change);
        };
        if etcd.metadata.deletion_timestamp.is_some() {
            // The cache will report the deletion; the controller must not recreate objects that are being
            // deleted.
            return Ok(Next::Change);
        }
        self.take_operation(&etcd).await?;
        self.warn(&etcd).await;
        let observed = Observed::read(&self.seed, &etcd).await?;
        let outcome = self.bring_about(&etcd, &observed).await;
        // The applied changes are part of the observation: a new generation of the StatefulSet is not rolled
        // out yet.
        let mut observed = Observed::read(&self.seed, &etcd).await?;
        ((observed.sidecar, observed.ownership), observed.no_space) = tokio::join!(
            sidecar::ask(&self.seed, &etcd, &observed.members),
            health::refuses_writes(&self.seed, &observed.members)
        );
        observed.copying = copying::ask_progress(&self.seed, &etcd, &observed.copies).await;
        let status = status::compute(&etcd, outcome.as_ref().copied(), &observed, &now_k8s());
        self.write_status(&etcd, &status).await?;
        self.report(&etcd, &status).await;
        outcome?;
        if !etcd.annotations().contains_key(SUSPEND_ANNOTATION) {
            let outdated = observed.outdated.as_deref().unwrap_or_default();
            rollout::replace(&self.seed, &observed.members, outdated).await?;
        }
        start_afresh(&self.seed, &etcd, &observed).await?;
        Ok(next(&etcd, &status))
    }

    async fn cleanup(&self, etcd: Arc<Etcd>) -> Result<Next> {
        let observed = Observed::read(&self.seed, &etcd).await?;
        let outcome = cleanup(&self.seed, &etcd, &observed).await;
        let observed = Observed::read(&self.seed, &etcd).await?;
        let remains = observed.remains();
        let status = status::deleting(&etcd, outcome.as_ref().err(), remains.as_deref(), &now_k8s());
        if remains.is_some() || outcome.is_err() {
            self.write_status(&etcd, &status).await?;
        }
        outcome?;
        Ok(if remains.is_none() {
            Next::Change
        } else {
            Next::After(UNREADY_REQUEUE)
        })
    }
}

/// The next requeue. Only the state of the sidecar is not reported by a watch.
fn next(etcd: &Etcd, status: &EtcdStatus) -> Next {
    if etcd.spec.backup.source_store.is_some() && status.ready != Some(true) {
        Next::After(ASK_PROGRESS)
    } else if status.ready != Some(true) || !status.last_errors.is_empty() {
        Next::After(UNREADY_REQUEUE)
    } else if etcd.spec.backup.store.is_some()
        && etcd.spec.backup.source_store.is_none()
        && etcd.spec.replicas > 0
    {
        Next::After(ASK_SIDECAR)
    } else if etcd.spec.backup.store.is_none() && etcd.spec.replicas > 0 {
        Next::After(ASK_HEALTH)
    } else {
        Next::Change
    }
}
