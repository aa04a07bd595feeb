//! Worker: the machines of all pools.

use api::extensions::{self, WorkerSpec};
use k8s_openapi::ByteString;
use kube::ResourceExt;
use runtime::{Error, Result};

use super::{operating_system_config, pools};
use crate::{
    ExtensionResource, Facts, Infrastructure, Stay, SubnetIsolation,
    secrets::config::SSH_KEY_PAIR,
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

    async fn deploy(f: &Facts) -> Result<()> {
        let object = worker(f).await?;
        Self::object(f).deploy(f, object).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        Self::object(f).wait_until_ready().await
    }
}

impl Workers {
    /// The object in the seed.
    #[must_use]
    pub fn object(stay: &Stay) -> ExtensionResource<'_, extensions::Worker> {
        ExtensionResource::new(stay, &stay.tenant.name, stay.settings.timeouts.worker)
    }
}

async fn worker(f: &Facts) -> Result<extensions::Worker> {
    let spec = &f.shoot.spec;
    let given = pools::Given {
        profile: &f.cloud_profile,
        kubernetes_version: &f.kubernetes_version,
        kubelet: spec.kubernetes.kubelet.as_ref(),
    };
    let mut all = Vec::new();
    for worker in &spec.provider.workers {
        let first = operating_system_config::object_of(f, worker);
        let first = first
            .get()
            .await?
            .ok_or_else(|| Error::transient(format!("OperatingSystemConfig {} is gone", first.name())))?;
        all.push(pools::pool(worker, &first, &given)?);
    }
    let infrastructure = Infrastructure::object(f).get().await?;
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
                .secret_data(SSH_KEY_PAIR)
                .await?
                .remove("id_rsa.pub")
                .map(ByteString),
            pools: all,
        },
    ))
}
