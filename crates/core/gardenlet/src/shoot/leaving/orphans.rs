//! Namespaces of shoots in this seed whose Shoot is gone from the garden.
//!
//! A namespace that the shoot had left is cleaned up, since the deletion of a Shoot does not wait for former
//! seeds. So is a namespace whose shoot was taken over and deleted while this seed was away, if the garden
//! proves both (`missed_takeover.rs`). A namespace that the seed has prepared is removed when the grant has
//! ended (`preparing/removal.rs`). All remaining namespaces are reported and never changed: a garden that
//! was restored from an old backup lacks Shoots that still run.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{
    constants::{LEFT_IN_EPOCH, ROLE, SHOOT_UID},
    gardencore::Shoot,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    runtime::{reflector::Store, watcher},
};
use parts::{Tenant, left_in, prepared_in};
use placement::names;
use runtime::{
    Result,
    client::Cluster,
    controller::{Events, Next, Reconciler, runner},
    error::Explain as _,
    process::metrics::{Metrics, ScrapedSeries},
};

use super::leave;
use crate::{
    context::{Context, MANAGER},
    seed::leftovers::is_leftover,
    shoot::{ownership::missed_takeover, preparing::removal},
};

/// How often the gardenlet checks whether the Shoot of a namespace still exists. No process waits for the
/// answer, and a deletion of a Shoot in this seed also deletes the namespace.
const NAMESPACE_CHECK_PERIOD: Duration = Duration::from_secs(600);
/// The same for a namespace that the shoot has left. Such a namespace exists for a few minutes. If the Shoot
/// goes during the clean-up, no further controller checks the namespace.
const LEFT_NAMESPACE_CHECK_PERIOD: Duration = Duration::from_secs(60);

/// Runs the controller until shutdown.
pub(crate) async fn run(context: Arc<Context>) {
    let namespaces: Api<Namespace> = context.seed.cluster_wide();
    let shoots = watcher::Config::default().labels(&format!("{ROLE}=shoot"));
    let controller = runner::controller(namespaces, shoots, |namespace| {
        runner::fingerprint((
            left_in(namespace),
            prepared_in(namespace),
            namespace.annotations().get(SHOOT_UID),
            namespace.metadata.deletion_timestamp.is_some(),
        ))
    });
    // The Events are about namespaces in the seed, so the Events are written in the seed.
    let events = Events::new(context.seed.client().clone(), MANAGER.0);
    let settings = runner::Settings {
        events: events.clone(),
        ..context.runner()
    };
    let seed = context.seed.clone();
    let missing = MissingShoots::registered(&context.metrics, controller.store());
    runner::run(
        controller,
        move |_: &Namespace| seed.cluster_wide(),
        Arc::new(Orphans {
            context,
            events,
            missing,
        }),
        settings,
    )
    .await;
}

/// Metric `shoot_missing`: control planes of this seed without a Shoot. The series of a control plane ends
/// with the namespace, also if the namespace goes while the watch is down.
#[derive(Clone, Debug)]
struct MissingShoots {
    /// The uids of the Shoots that the garden does not have.
    uids: Arc<Mutex<HashSet<String>>>,
    namespaces: Store<Namespace>,
}

impl MissingShoots {
    fn new(namespaces: Store<Namespace>) -> Self {
        Self {
            uids: Arc::default(),
            namespaces,
        }
    }

    fn registered(metrics: &Metrics, namespaces: Store<Namespace>) -> Self {
        let missing = Self::new(namespaces);
        let read = missing.clone();
        metrics.register_scraped(
            "shoot_missing",
            "1 while this seed has the control plane of a shoot, and the garden has no such Shoot",
            move || read.series(),
        );
        missing
    }

    fn set(&self, tenant: &Tenant) {
        self.uids().insert(tenant.uid.clone());
    }

    fn clear(&self, tenant: &Tenant) {
        self.uids().remove(&tenant.uid);
    }

    /// The series of the namespaces that exist. A Shoot without a namespace is forgotten.
    fn series(&self) -> Vec<ScrapedSeries> {
        let all = self.namespaces.state();
        let present = all.iter().filter_map(|namespace| leave::tenant_of(namespace));
        let mut uids = self.uids();
        let missing: Vec<_> = present.filter(|tenant| uids.contains(&tenant.uid)).collect();
        *uids = missing.iter().map(|tenant| tenant.uid.clone()).collect();
        let series = missing.iter().map(|tenant| {
            let labels = [
                ("namespace", tenant.namespace.as_str()),
                ("name", tenant.name.as_str()),
            ];
            ScrapedSeries::new(labels, 1.0)
        });
        series.collect()
    }

    fn uids(&self) -> MutexGuard<'_, HashSet<String>> {
        self.uids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Orphans {
    context: Arc<Context>,
    events: Events,
    missing: MissingShoots,
}

impl Orphans {
    /// The Shoot runs in another seed, and its status does not name this seed: for example this seed was
    /// deleted after a takeover, and has come back. The etcd may have changes that no other seed has, so the
    /// gardenlet changes no object.
    async fn report_shoot_elsewhere(&self, namespace: &Namespace, shoot: &Shoot) -> Result<()> {
        let api = self.context.seed.cluster_wide::<Namespace>();
        let present = api.get_opt(&namespace.name_any()).await;
        let present = present.context("could not read the namespace")?;
        // The entry in the status ends right after the namespace, and the cache may be behind.
        if present.is_none_or(|present| present.metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        let host = shoot
            .status
            .as_ref()
            .and_then(|status| status.seed_name.as_deref());
        let why = format!(
            "Shoot {} runs in seed {:?}, and its status.formerSeeds does not name this seed, so that this control plane is not cleaned \
             up and may still act: stop its processes, then add this seed with the epoch of its residency to status.formerSeeds",
            shoot.name_any(),
            host.unwrap_or("none")
        );
        self.events.warning(namespace, "ShootElsewhere", &why).await;
        Ok(())
    }

    /// Marks a namespace whose shoot was taken over and deleted while this seed was away. The mark wakes this
    /// controller, which then cleans up.
    async fn mark_departure(&self, namespace: &Namespace, tenant: &Tenant) -> Result<bool> {
        let residency = leave::residency(&self.context, namespace.name_any(), tenant.clone());
        let Some(proof) = missed_takeover::find_proof(&self.context, &residency).await? else {
            return Ok(false);
        };
        parts::Namespace::mark_as_left(&residency, proof.epoch).await?;
        let note = format!(
            "Shoot {}/{} was taken over by seed {} and deleted while this seed was away, as its BackupEntry proves: this seed \
             cleans up and changes nothing outside",
            tenant.namespace, tenant.name, proof.host
        );
        self.events
            .normal(namespace, "ShootDeletedElsewhere", &note)
            .await;
        Ok(true)
    }

    async fn report_shoot_missing(&self, namespace: &Namespace, tenant: &Tenant) {
        let why = format!(
            "the garden has no Shoot {}/{} with the uid {}, and no proof that the shoot has left this seed: no object is changed. \
             The Shoot was deleted or taken over while this seed was away, or the garden has lost it, for example by a restore from an \
             old backup. If the shoot has to run, restore the Shoot with its status. If the Shoot was deleted and no seed runs the \
             shoot, set the annotation {LEFT_IN_EPOCH} of this namespace to the epoch of its Cluster: this seed then cleans up, and \
             changes nothing outside",
            tenant.namespace, tenant.name, tenant.uid
        );
        self.events.warning(namespace, "ShootMissing", &why).await;
    }
}

impl Reconciler<Namespace> for Orphans {
    const NAME: &'static str = "shoot-namespace";

    async fn apply(&self, namespace: Arc<Namespace>) -> Result<Next> {
        let Some(tenant) = leave::tenant_of(&namespace) else {
            return Ok(Next::Change);
        };
        if prepared_in(&*namespace).is_some() {
            self.missing.clear(&tenant);
            let checked = removal::remove_without_grant(&self.context, namespace.name_any(), &tenant);
            return Box::pin(checked).await;
        }
        let shoots: Api<Shoot> = self.context.garden.namespaced(&tenant.namespace);
        let found = shoots.get_opt(&tenant.name).await.context(format_args!(
            "could not read Shoot {}/{}",
            tenant.namespace, tenant.name
        ))?;
        if let Some(shoot) = found.filter(|found| names::uid(found) == tenant.uid) {
            self.missing.clear(&tenant);
            // Also where a move back is wanted: the preflight refuses the seed.
            if is_leftover(&shoot, &self.context.seed_name, &tenant.uid) {
                self.report_shoot_elsewhere(&namespace, &shoot).await?;
            }
            let was_left = left_in(&namespace).is_some();
            return Ok(Next::After(if was_left {
                LEFT_NAMESPACE_CHECK_PERIOD
            } else {
                NAMESPACE_CHECK_PERIOD
            }));
        }
        if left_in(&namespace).is_some() {
            self.missing.clear(&tenant);
            Box::pin(leave::clean_up_without_shoot(&self.context, &namespace)).await?;
            return Ok(Next::Change);
        }
        if self.mark_departure(&namespace, &tenant).await? {
            return Ok(Next::Change);
        }
        self.missing.set(&tenant);
        self.report_shoot_missing(&namespace, &tenant).await;
        Ok(Next::After(NAMESPACE_CHECK_PERIOD))
    }

    async fn cleanup(&self, namespace: Arc<Namespace>) -> Result<Next> {
        if let Some(tenant) = leave::tenant_of(&namespace) {
            self.missing.clear(&tenant);
        }
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use api::constants::{SHOOT_NAME, SHOOT_NAMESPACE};
    use kube::runtime::{reflector, watcher::Event};

    use super::*;

    fn namespace() -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some("shoot--dev--demo".to_owned());
        namespace
            .annotations_mut()
            .insert(SHOOT_UID.to_owned(), "u".to_owned());
        for (key, value) in [(SHOOT_NAMESPACE, "garden-dev"), (SHOOT_NAME, "demo")] {
            namespace.labels_mut().insert(key.to_owned(), value.to_owned());
        }
        namespace
    }

    fn tenant() -> Tenant {
        Tenant {
            uid: "u".to_owned(),
            namespace: "garden-dev".to_owned(),
            name: "demo".to_owned(),
        }
    }

    #[test]
    fn a_missing_shoot_is_reported_until_the_shoot_is_back() {
        let (namespaces, mut writer) = reflector::store();
        writer.apply_watcher_event(&Event::Apply(namespace()));
        let missing = MissingShoots::new(namespaces);
        assert!(missing.series().is_empty());
        missing.set(&tenant());
        let shown = missing.series();
        let labels = |series: &ScrapedSeries| series.labels.clone();
        let expected = vec![
            ("namespace", "garden-dev".to_owned()),
            ("name", "demo".to_owned()),
        ];
        assert_eq!(shown.iter().map(labels).collect::<Vec<_>>(), [expected]);
        missing.clear(&tenant());
        assert!(missing.series().is_empty());
    }

    /// The list after an outage of the watch has no event about a namespace that is gone.
    #[test]
    fn the_report_ends_with_a_namespace_that_goes_while_the_watch_is_down() {
        let (namespaces, mut writer) = reflector::store();
        writer.apply_watcher_event(&Event::Apply(namespace()));
        let missing = MissingShoots::new(namespaces);
        missing.set(&tenant());
        assert_eq!(missing.series().len(), 1);
        for event in [Event::Init, Event::InitDone] {
            writer.apply_watcher_event(&event);
        }
        assert!(missing.series().is_empty());
        // A later control plane of the same Shoot is reported only after a check.
        writer.apply_watcher_event(&Event::Apply(namespace()));
        assert!(missing.series().is_empty());
    }
}
