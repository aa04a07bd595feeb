//! The note of a seed that its gardenlet has chosen the data of an epoch. The note is in the seed, where the
//! certificate of a gardenlet for the garden gives no rights. A thief of that certificate can record phases
//! `Opening`, `Held` and `Leaving` in the Shoot, and the gardenlet would skip the fence of the source.
//!
//! The gardenlet writes the note before phase `Opening`, so that an interruption in between repeats the
//! fence and skips nothing. A gardenlet of a former version has written no note. There, Etcd etcd-main of
//! the epoch stands for the note: a flow writes that Etcd only after the choice of the data.

use std::sync::Arc;

use api::{
    constants::{ETCD_MAIN, OPENED_IN_EPOCH, OWNERSHIP_EPOCH, opened_epoch},
    druid::Etcd,
    gardencore::Shoot,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use mutation::Mutation;
use ownership::Ownership;
use placement::{Operation, ownership_status};
use runtime::{Error, Result, client::Cluster, error::Explain};
use serde_json::json;

use crate::{FIELD_MANAGER, Residency, configuration_problem};

/// The note.
#[derive(Debug)]
pub struct OpenedEpoch;

impl OpenedEpoch {
    /// Notes the epoch of a shoot that a gardenlet of a former version has restored. Such a shoot loses the
    /// proof with Etcd etcd-main.
    pub async fn keep(residency: &Residency, shoot: &Shoot) -> Result<()> {
        let relies = |recorded: &Ownership<String>| *recorded != recorded.as_noted(false);
        match ownership_status::ownership(shoot) {
            Ok(recorded) if relies(&recorded) => Self::note(residency, recorded.now.epoch).await,
            _ => Ok(()),
        }
    }

    /// Notes that the gardenlet has chosen the data of this epoch.
    pub(crate) async fn note(residency: &Residency, epoch: i64) -> Result<()> {
        let Some(namespace) = residency.read_namespace().await? else {
            return Err(Error::transient(format!(
                "namespace {} is gone: the gardenlet notes the choice of the data there",
                residency.namespace
            )));
        };
        if opened_epoch(&namespace) == Some(epoch) {
            return Ok(());
        }
        // The uid refuses a namespace that was created since.
        let body = json!({"metadata": {"uid": namespace.uid(), "annotations": {OPENED_IN_EPOCH: epoch.to_string()}}});
        let api = residency.seed.cluster_wide::<Namespace>();
        FIELD_MANAGER
            .merge(&api, &residency.namespace, &body)
            .await
            .map(|_| ())
    }

    /// Whether the seed shows that its gardenlet has chosen the data of this epoch.
    pub(crate) async fn is_shown(
        residency: &Residency,
        namespace: Option<&Namespace>,
        epoch: i64,
    ) -> Result<bool> {
        if Mutation::UnnotedPhaseTrusted.is_active() {
            return Ok(true);
        }
        if namespace.is_some_and(|namespace| opened_epoch(namespace) == Some(epoch)) {
            return Ok(true);
        }
        let found = residency.etcds().get_opt(ETCD_MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        Ok(found.is_some_and(|etcd| is_opened_etcd(&etcd, epoch)))
    }
}

/// The Shoot on which a flow relies. A restoration claims the shoot again where the seed does not show the
/// recorded phase. Providers and all steps of the flow receive this Shoot. The record in the garden stays,
/// because no phase leads back to `Claiming`.
///
/// # Errors
/// The operation would act on a phase that the seed does not show. Only a restoration can fence the source.
pub(crate) async fn rely_on(
    residency: &Residency,
    namespace: Option<&Namespace>,
    shoot: Arc<Shoot>,
    operation: Operation,
) -> Result<Arc<Shoot>> {
    let is_concerned = operation.deploys() || operation == Operation::Migrate;
    let Ok(recorded) = ownership_status::ownership(&shoot) else {
        return Ok(shoot);
    };
    let relied_on = recorded.as_noted(false);
    if !is_concerned || relied_on == recorded {
        return Ok(shoot);
    }
    let epoch = recorded.now.epoch;
    if OpenedEpoch::is_shown(residency, namespace, epoch).await? {
        return Ok(shoot);
    }
    if operation == Operation::Restore {
        return Ok(Arc::new(with_record(&shoot, &relied_on)));
    }
    Err(configuration_problem(format!(
        "status.ownership says that seed {} has opened the shoot in epoch {epoch}, and the seed does not show that: namespace {} has \
         no annotation {OPENED_IN_EPOCH}={epoch}, and there is no Etcd {ETCD_MAIN} of this epoch. Nothing is changed. See \"A phase that the \
         seed does not show\" in docs/operate/runbooks.md",
        recorded.now.seed, residency.namespace
    )))
}

fn with_record(shoot: &Shoot, relied_on: &Ownership<String>) -> Shoot {
    let mut shoot = shoot.clone();
    let record = shoot.status.as_mut().and_then(|status| status.ownership.as_mut());
    if let Some(record) = record {
        let wanted = ownership_status::recorded(relied_on);
        (record.phase, record.drained, record.chain) = (wanted.phase, wanted.drained, wanted.chain);
    }
    shoot
}

/// Whether the Etcd serves the shoot in this epoch. The Etcd that copies backups exists before the choice.
fn is_opened_etcd(etcd: &Etcd, epoch: i64) -> bool {
    let own = etcd.annotations().get(OWNERSHIP_EPOCH);
    etcd.spec.backup.source_store.is_none() && own.and_then(|own| own.parse().ok()) == Some(epoch)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    fn etcd(epoch: &str, backup: &Value) -> Etcd {
        crate::from_json(json!({
            "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
            "metadata": {"name": "etcd-main", "annotations": {(OWNERSHIP_EPOCH): epoch}},
            "spec": {"labels": {}, "etcd": {}, "replicas": 1, "backup": backup},
        }))
        .unwrap()
    }

    /// Upgrade: a shoot that was restored before is neither fenced nor opened again.
    #[test]
    fn an_etcd_of_the_epoch_stands_for_the_note_and_a_copy_does_not() {
        let store = json!({"store": {"prefix": "p"}});
        assert!(is_opened_etcd(&etcd("3", &store), 3));
        for other in ["2", "4", "three"] {
            assert!(!is_opened_etcd(&etcd(other, &store), 3), "{other}");
        }
        let copies = json!({"store": {"prefix": "p"}, "sourceStore": {"prefix": "p"}});
        assert!(!is_opened_etcd(&etcd("3", &copies), 3));
    }

    #[test]
    fn a_note_counts_in_its_epoch_alone() {
        let noted = |annotations: &Value| {
            let namespace: Namespace =
                crate::from_json(json!({"metadata": {"name": "n", "annotations": annotations}})).unwrap();
            opened_epoch(&namespace)
        };
        assert_eq!(noted(&json!({(OPENED_IN_EPOCH): "3"})), Some(3));
        assert_eq!(noted(&json!({(OPENED_IN_EPOCH): "three"})), None);
        assert_eq!(noted(&Value::Null), None);
    }

    /// The flow and the providers see a takeover: also where the source has handed the shoot over.
    #[test]
    fn a_phase_that_the_seed_does_not_show_becomes_a_claim() {
        for phase in ["Opening", "Held", "Leaving"] {
            let source = json!({"name": "a", "epoch": 1});
            let shoot: Shoot = crate::from_json(json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
                "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
                "status": {"seedName": "b", "ownership": {"epoch": 2, "phase": phase, "drained": true,
                    "chain": "Last", "source": source}},
            }))
            .unwrap();
            let recorded = ownership_status::ownership(&shoot).unwrap();
            let changed = with_record(&shoot, &recorded.as_noted(false));
            let record = json!(changed.status.unwrap().ownership);
            assert_eq!(
                record,
                json!({"epoch": 2, "phase": "Claiming", "source": source}),
                "{phase}"
            );
        }
    }
}
