//! The owner checks of a provider's process, and the count of refusals.

use std::{fmt, sync::Arc};

use api::extensions::{Cluster as ClusterObject, ExtensionObject};
use owner_checks::{CheckSource, OwnerClaim, OwnershipError, OwnershipRight, Patience, SharedChecks};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use runtime::{Result, client::Seed, process::metrics::Metrics};

use super::scope::concerns;
use crate::{Operation, kind};

/// Permits for shoots, derived from the owner records. A process creates a single value for all controllers.
/// Cheap to clone.
#[derive(Clone, Default)]
pub struct OwnerChecks {
    checks: SharedChecks,
    refusals: Family<Labels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    kind: String,
    why: String,
}

impl OwnerChecks {
    /// Of a process with these metrics.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self::default().counted(metrics)
    }

    /// As [`Self::new`], with a different URL for the processes beside etcd; the URL contains `{namespace}`.
    #[must_use]
    pub fn with_sidecars_at(url: &str, metrics: &Metrics) -> Self {
        Self::from_checks(SharedChecks::with_sidecars_at(url)).counted(metrics)
    }

    /// With a different source of answers, for tests.
    #[must_use]
    pub fn asking(asks: Arc<dyn CheckSource>) -> Self {
        Self::from_checks(SharedChecks::with_source(asks))
    }

    fn from_checks(checks: SharedChecks) -> Self {
        Self {
            checks,
            refusals: Family::default(),
        }
    }

    fn counted(self, metrics: &Metrics) -> Self {
        metrics.register(|registry| {
            registry.register(
                "extension_owner_refusals",
                "Operations that were not begun, or ended, since this seed was not confirmed as the shoot's owner",
                self.refusals.clone(),
            );
        });
        self
    }

    /// The claim that must be confirmed before, and during, the operation; `None` if the operation needs no
    /// claim.
    pub(crate) fn wanted<K: ExtensionObject>(
        &self,
        object: &K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<OwnerClaim>> {
        if concerns(object, operation) {
            self.checks.wanted(cluster)
        } else {
            Ok(None)
        }
    }

    /// The right to act for a shoot.
    pub(crate) async fn confirm(
        &self,
        seed: &Seed,
        namespace: &str,
        wanted: OwnerClaim,
        patience: Patience,
    ) -> Result<OwnershipRight, OwnershipError> {
        self.checks.confirm(seed, namespace, wanted, patience).await
    }

    /// Counts a refusal.
    pub(crate) fn count<K: ExtensionObject>(&self, refusal: &OwnershipError) {
        let why = match refusal {
            OwnershipError::Lost(_) => "Lost",
            OwnershipError::OtherEpoch(_) => "OtherEpoch",
            OwnershipError::Unconfirmed(_) | OwnershipError::Impossible(_) => "Unconfirmed",
        };
        let labels = Labels {
            kind: kind::name::<K>().into_owned(),
            why: why.to_owned(),
        };
        self.refusals.get_or_create(&labels).inc();
    }

    /// Whether this is the first report of the loss for this object.
    pub(crate) fn is_first_report(&self, namespace: &str, object: String) -> bool {
        self.checks.is_first_report(namespace, object)
    }
}

impl fmt::Debug for OwnerChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerChecks")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn where_a_seed_does_not_check_owners_nothing_is_confirmed() {
        let cluster: ClusterObject = serde_json::from_value(json!({
            "metadata": {"name": "shoot--dev--web"},
            "spec": {"cloudProfile": {}, "seed": {"metadata": {"name": "a"}}, "shoot": {}},
        }))
        .unwrap();
        let object: api::extensions::Infrastructure = serde_json::from_value(json!({
            "metadata": {"name": "i", "namespace": "shoot--dev--web"},
            "spec": {"type": "local", "region": "r", "secretRef": {"name": "s"}},
        }))
        .unwrap();
        let checks = OwnerChecks::default();
        for operation in [Operation::Create, Operation::Reconcile, Operation::Delete] {
            assert_eq!(checks.wanted(&object, operation, Some(&cluster)), Ok(None));
        }
    }

    #[test]
    fn what_was_refused_is_counted() {
        let metrics = Metrics::default();
        let checks = OwnerChecks::new(&metrics);
        checks.count::<api::extensions::Infrastructure>(&OwnershipError::Lost(String::new()));
        let text = metrics.encode();
        assert!(
            text.contains(r#"extension_owner_refusals_total{kind="Infrastructure",why="Lost"} 1"#),
            "{text}"
        );
    }
}
