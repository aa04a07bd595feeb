//! The ResourceQuota of each project. Without a quota, a hostile seed with one shoot of the project could
//! fill the garden's etcd with InternalSecrets, which RBAC cannot limit by name.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ResourceQuota, ResourceQuotaSpec},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::Api;
use runtime::{Result, client::Cluster};

use crate::{Context, MANAGER, config::ProjectQuota};

/// Name of the ResourceQuota in the namespace of each project, as in Gardener.
const NAME: &str = "gardener";

/// Applies the ResourceQuota, if the configuration bounds anything.
pub(super) async fn deploy(context: &Context, namespace: &str) -> Result<()> {
    let Some(quota) = quota(&context.config.project_quota) else {
        return Ok(());
    };
    let quotas: Api<ResourceQuota> = context.garden.namespaced(namespace);
    MANAGER.apply(&quotas, &quota).await.map(drop)
}

fn quota(bounds: &[ProjectQuota]) -> Option<ResourceQuota> {
    let hard: BTreeMap<_, _> = bounds
        .iter()
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
        assert_eq!(quota(&[]), None);
        let bound = ProjectQuota {
            resource: "count/shoots.core.gardener.cloud".to_owned(),
            number: 20,
        };
        let hard = quota(&[bound]).unwrap().spec.unwrap().hard.unwrap();
        assert_eq!(hard["count/shoots.core.gardener.cloud"].0, "20");
        assert_eq!(hard.len(), 1);
    }
}
