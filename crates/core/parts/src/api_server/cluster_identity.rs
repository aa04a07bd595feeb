//! The shoot's identity: a name that is unique among the clusters of all gardens.

use api::gardencore::Shoot;
use kube::{Api, ResourceExt};
use placement::names;
use runtime::{Result, client::Cluster};
use serde_json::json;

use crate::{
    FIELD_MANAGER, Facts,
    task::{NONE, PartTask},
};

/// The shoot's identity, in its status.
#[derive(Debug)]
pub struct ClusterIdentity;

impl ClusterIdentity {
    /// [`Self::ensure`], as a task.
    pub const ENSURE: PartTask<Facts> = PartTask::new("Ensuring Shoot cluster identity", NONE, |input| {
        Box::pin(Self::ensure(input))
    });

    /// "Ensuring Shoot cluster identity". An existing identity never changes.
    pub async fn ensure(f: &Facts) -> Result<()> {
        if f.shoot
            .status
            .as_ref()
            .is_some_and(|status| status.cluster_identity.is_some())
        {
            return Ok(());
        }
        let identity = cluster_identity(
            &f.residency.namespace,
            &names::uid(&f.shoot),
            &f.residency.settings.garden_identity,
        );
        let api: Api<Shoot> = f.garden.namespaced(&f.shoot_namespace());
        FIELD_MANAGER
            .merge_status(&api, &f.shoot.name_any(), &json!({"clusterIdentity": identity}))
            .await
            .map(|_| ())
    }
}

fn cluster_identity(technical_id: &str, uid: &str, garden: &str) -> String {
    format!("{technical_id}-{uid}-{garden}")
}
