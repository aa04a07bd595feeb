//! Worker: the machines of all pools.

use api::{
    constants::ISOLATED_ZONE_CLOSE_DEADLINE,
    extensions::{self, WorkerSpec},
};
use k8s_openapi::ByteString;
use kube::ResourceExt;
use runtime::{Error, Result};
use serde_json::json;

use super::{operating_system_config, pools};
use crate::{
    ExtensionResource, Facts, Infrastructure, Residency, SubnetIsolation,
    secrets::config::SSH_KEY_PAIR,
    task::{CLOUD, ExternalSystems},
    verbs::{Deploy, Tasks},
};

/// The shoot's Worker.
#[derive(Debug)]
pub struct Workers;

impl Deploy for Workers {
    const TASKS: Tasks = [
        "Configuring shoot worker pools",
        "Waiting until shoot worker nodes have been reconciled",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        let mut object = worker(f).await?;
        f.close_deadline.annotate(&mut object);
        let zone_returns = object.spec.isolated_zone_id.is_none() && Self::is_leaving(&f.residency).await?;
        // `isolatedZoneID` was written by a merge patch, so server-side apply does not own the field and
        // cannot remove the field.
        if zone_returns {
            let whole = json!({"isolatedZoneID": null});
            Self::object(&f.residency).change(f, &whole).await?;
        }
        if zone_returns || f.isolation.cuts_off() {
            Self::publish_deadline(f).await?;
        }
        Self::object(&f.residency).deploy(f, object).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        Self::object(&f.residency).wait_until_ready().await
    }
}

impl Workers {
    /// The object in the seed.
    #[must_use]
    pub fn object(residency: &Residency) -> ExtensionResource<'_, extensions::Worker> {
        ExtensionResource::new(
            residency,
            &residency.tenant.name,
            residency.settings.timeouts.worker,
        )
    }

    /// Copies the deadline to the Worker and the SubnetIsolation that are there, or removes a former
    /// deadline.
    ///
    /// # Errors
    /// The seed does not answer.
    pub async fn publish_deadline(f: &Facts) -> Result<()> {
        let deadline = f.close_deadline.annotation();
        let (worker, isolation) = (Self::object(&f.residency), SubnetIsolation::object(&f.residency));
        worker
            .annotate(ISOLATED_ZONE_CLOSE_DEADLINE, deadline.as_deref())
            .await?;
        isolation
            .annotate(ISOLATED_ZONE_CLOSE_DEADLINE, deadline.as_deref())
            .await
    }

    /// Whether the Worker that is there leaves a zone.
    async fn is_leaving(residency: &Residency) -> Result<bool> {
        let worker = Self::object(residency).get().await?;
        Ok(worker.is_some_and(|worker| worker.spec.isolated_zone_id.is_some()))
    }

    /// Requests that the Worker leaves the isolated zone before a flow runs [`Workers::deploy`].
    ///
    /// # Errors
    /// The seed does not answer.
    pub async fn leave_zone(f: &Facts) -> Result<()> {
        let Some(zone) = SubnetIsolation::zone_to_leave(f).await? else {
            return Ok(());
        };
        let object = Self::object(&f.residency);
        match object.get().await? {
            Some(worker) if worker.spec.isolated_zone_id.as_ref() != Some(&zone) => {
                object.change(f, &json!({"isolatedZoneID": zone})).await
            }
            _ => Ok(()),
        }
    }
}

async fn worker(f: &Facts) -> Result<extensions::Worker> {
    let spec = &f.shoot.spec;
    let given = pools::PoolInputs {
        profile: &f.cloud_profile,
        kubernetes_version: &f.kubernetes_version,
        kubelet: spec.kubernetes.kubelet.as_ref(),
    };
    let mut all = Vec::new();
    for worker in &spec.provider.workers {
        let first = operating_system_config::object_of(&f.residency, worker);
        let first = first
            .get()
            .await?
            .ok_or_else(|| Error::transient(format!("OperatingSystemConfig {} is gone", first.name())))?;
        all.push(pools::pool(worker, &first, &given)?);
    }
    let infrastructure = Infrastructure::object(&f.residency).get().await?;
    Ok(extensions::Worker::new(
        &f.shoot.name_any(),
        WorkerSpec {
            default: f.default_spec(None),
            isolated_zone_id: SubnetIsolation::zone_to_leave(f).await?,
            infrastructure_provider_status: infrastructure
                .and_then(|infrastructure| infrastructure.status?.default.provider_status),
            region: spec.region.clone(),
            secret_ref: f.cloud_provider_ref(),
            ssh_public_key: f
                .residency
                .secret_data(SSH_KEY_PAIR)
                .await?
                .remove("id_rsa.pub")
                .map(ByteString),
            pools: all,
        },
    ))
}
