//! The ResourceQuota of each project. Without a quota, a hostile seed with one shoot of the project could
//! fill the garden's etcd with InternalSecrets, which RBAC cannot limit by name. A member with role `admin`
//! of Kubernetes could run Pods beside the processes of the garden, and fill etcd with ConfigMaps.

use std::{collections::BTreeMap, error::Error as _, time::Duration};

use api::gardencore::Project;
use k8s_openapi::{
    api::core::v1::{ResourceQuota, ResourceQuotaSpec},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::Api;
use runtime::{Error, Result, client::Cluster, controller::Next};

use crate::{Context, MANAGER, config::ProjectQuota};

/// Name of the ResourceQuota in the namespace of each project, as in Gardener.
const NAME: &str = "gardener";

/// Between two applies. The ResourceQuota is not watched, and an interrupted watch of namespaces reports no
/// deletion.
pub(super) const RESYNC_PERIOD: Duration = Duration::from_secs(600);
/// Between two attempts to write a refused ResourceQuota, which is not watched.
const REQUEUE_ON_REFUSAL: Duration = Duration::from_secs(60);

/// Applies the ResourceQuota, if the configuration bounds anything. A refusal is reported, and does not stop
/// the project. Returns the time of the next check of the namespace and the ResourceQuota.
pub(super) async fn deploy(context: &Context, project: &Project, namespace: &str) -> Result<Next> {
    let home = &context.config.lease.leader_elect_resource_namespace;
    let Some(quota) = quota(&context.config.project_quota, namespace == home) else {
        return Ok(Next::After(RESYNC_PERIOD));
    };
    let quotas: Api<ResourceQuota> = context.garden.namespaced(namespace);
    match MANAGER.apply(&quotas, &quota).await {
        Ok(_) => Ok(Next::After(RESYNC_PERIOD)),
        Err(error) if is_refusal(&error) => {
            tracing::warn!(namespace, %error, "the bounds of a project are refused");
            let note = format!("the namespace {namespace} of the project is not bounded: {error}");
            context
                .events
                .answer_with_warning(project, "QuotaRefused", &note)
                .await;
            Ok(Next::After(REQUEUE_ON_REFUSAL))
        }
        Err(error) => Err(error),
    }
}

/// Whether a policy, a role or the definition of the kind refuses the write.
fn is_refusal(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref());
    matches!(source, Some(kube::Error::Api(answer)) if answer.is_forbidden() || answer.is_invalid())
}

/// The bounds of a project. `is_home`: the namespace has the Pods of this process, and a bound of zero Pods
/// would stop the process.
fn quota(bounds: &[ProjectQuota], is_home: bool) -> Option<ResourceQuota> {
    let hard: BTreeMap<_, _> = bounds
        .iter()
        .filter(|bound| !is_home || !bound.is_for_kubernetes())
        .map(|bound| (bound.resource.clone(), Quantity(bound.number.to_string())))
        .collect();
    (!hard.is_empty()).then(|| ResourceQuota {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(ResourceQuotaSpec {
            hard: Some(hard),
            ..ResourceQuotaSpec::default()
        }),
        ..ResourceQuota::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_quota_has_the_configured_bounds() {
        assert_eq!(quota(&[], false), None);
        let bound = |resource: &str, number: u32| ProjectQuota {
            resource: resource.to_owned(),
            number,
        };
        let bounds = [bound("count/shoots.core.gardener.cloud", 20), bound("pods", 0)];
        let hard = |is_home: bool| quota(&bounds, is_home).unwrap().spec.unwrap().hard.unwrap();
        assert_eq!(hard(false)["count/shoots.core.gardener.cloud"].0, "20");
        assert_eq!(hard(false)["pods"].0, "0");
        assert_eq!(hard(false).len(), 2);
        let own: Vec<_> = hard(true).into_keys().collect();
        assert_eq!(own, ["count/shoots.core.gardener.cloud"]);
    }
}
