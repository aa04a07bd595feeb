//! Worker: the machines of a pool in the local cloud, and the machine-controller-manager.
//! [`extension::worker`] manages the machine objects.
//!
//! Machines have the disk and the processors of their host. The garden's policy `fields-without-effect` warns
//! about settings of disk and processors. An encrypted disk is refused, as is a pool's `providerConfig`.

use std::collections::BTreeSet;

use api::{
    extensions::{Worker, WorkerPool},
    meta::{ErrorCode, RawExtension},
};
use cloud_local::{ProviderSpec, zones};
use extension::{
    Context,
    worker::{Class, Machines, Manager, cloud_profile_config},
};
use runtime::{Error, Result};
use serde::Deserialize;

use crate::{TYPE, unread};

/// Machines in the local cloud.
pub struct LocalMachines {
    /// Image of the machine-controller-manager, with tag.
    pub manager_image: String,
}

/// The `spec.providerConfig` of the CloudProfile.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CloudProfileConfig {
    machine_images: Vec<MachineImage>,
}

#[derive(Deserialize)]
struct MachineImage {
    name: String,
    versions: Vec<MachineImageVersion>,
}

#[derive(Deserialize)]
struct MachineImageVersion {
    version: String,
    image: String,
}

impl Machines for LocalMachines {
    fn class(&self, context: &Context<Worker>, pool: &WorkerPool, zone: &str) -> Result<Class> {
        if zone.is_empty() {
            return Err(problem(format!(
                "worker pool {} names no zones: the local cloud needs to know where its machines are to be",
                pool.name
            )));
        }
        unread::refuse(
            &format!("providerConfig of worker pool {}", pool.name),
            pool.provider_config.as_ref(),
        )?;
        refuse_encrypted(pool)?;
        let image = image_of(context, pool)?;
        let spec = ProviderSpec::new(
            &context.namespace()?,
            [&context.object.spec.region, zone],
            &pool.machine_type,
            &image,
        );
        let encoded = RawExtension::encode(&spec)
            .map_err(|e| Error::bug("a machine's specification does not serialise").caused_by(e))?;
        Ok(Class {
            provider: TYPE.into(),
            provider_spec: encoded,
            node_labels: [(zones::ID_LABEL.to_owned(), zones::id_of(zone))].into(),
            ..Class::default()
        })
    }

    fn zone_of(&self, context: &Context<Worker>, id: &str) -> Result<String> {
        used(&context.object.spec.pools, zones::name_of(id)?)
    }

    fn manager(&self, context: &Context<Worker>) -> Result<Manager> {
        let program = "/machine-controller-manager-local";
        Ok(Manager::of_suite(
            &self.manager_image,
            program,
            &context.namespace()?,
        ))
    }
}

/// A zone without a pool cannot be isolated: the ID is a mistake of the user.
fn used(pools: &[WorkerPool], zone: &str) -> Result<String> {
    let all: BTreeSet<_> = pools.iter().flat_map(|pool| &pool.zones).collect();
    if all.contains(&zone.to_owned()) {
        return Ok(zone.to_owned());
    }
    let ids: Vec<_> = all.into_iter().map(|name| zones::id_of(name)).collect();
    Err(problem(format!(
        "no worker pool has the zone {zone}: name one of the zones that the shoot uses, which have the IDs {}",
        ids.join(", ")
    )))
}

/// A user would rely on an encryption that does not exist.
fn refuse_encrypted(pool: &WorkerPool) -> Result<()> {
    let root = pool.volume.iter().map(|volume| ("volume", volume.encrypted));
    let further = pool.data_volumes.iter();
    let further = further.map(|volume| (volume.name.as_str(), volume.encrypted));
    match root
        .chain(further)
        .find(|(_, encrypted)| *encrypted == Some(true))
    {
        None => Ok(()),
        Some((disk, _)) => Err(problem(format!(
            "disk {disk} of worker pool {} is to be encrypted, and the local cloud encrypts none: take `encrypted` out",
            pool.name
        ))),
    }
}

/// The system image of a pool's machines: the CloudProfile maps the pool's image to an image of the cloud.
fn image_of(context: &Context<Worker>, pool: &WorkerPool) -> Result<String> {
    let profile = context
        .cluster
        .as_ref()
        .map(|cluster| &cluster.spec.cloud_profile);
    let config: CloudProfileConfig = cloud_profile_config(profile)?;
    let wanted = &pool.machine_image;
    let versions = config
        .machine_images
        .iter()
        .filter(|image| image.name == wanted.name)
        .flat_map(|image| &image.versions);
    let found = versions
        .into_iter()
        .find(|version| version.version == wanted.version);
    found.map(|version| version.image.clone()).ok_or_else(|| {
        problem(format!(
            "spec.providerConfig.machineImages of the CloudProfile maps {} {} to no image of the local cloud: add it",
            wanted.name, wanted.version
        ))
    })
}

fn problem(message: String) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_zone_is_left_that_a_pool_has() {
        let pool = |zones: &[&str]| WorkerPool {
            zones: zones.iter().map(|zone| (*zone).to_owned()).collect(),
            ..WorkerPool::default()
        };
        let pools = [pool(&["a", "b"]), pool(&["b", "c"])];
        assert_eq!(used(&pools, "c"), Ok("c".into()));
        let told = used(&pools, "d").unwrap_err();
        assert_eq!(told.codes(), [ErrorCode::ErrConfigurationProblem]);
        let ids = ["a", "b", "c"].map(zones::id_of).join(", ");
        assert!(told.to_string().ends_with(&ids), "{told}");
    }

    #[test]
    fn an_encrypted_disk_is_refused_by_its_name() {
        let disk = |encrypted| json!({"name": "d", "size": "1Gi", "encrypted": encrypted});
        let told = |volume, further: &[serde_json::Value]| {
            let pool = WorkerPool {
                volume: serde_json::from_value(volume).unwrap(),
                data_volumes: serde_json::from_value(json!(further)).unwrap(),
                ..WorkerPool::default()
            };
            refuse_encrypted(&pool).map_err(|error| error.to_string())
        };
        assert_eq!(told(json!(null), &[]), Ok(()));
        assert_eq!(told(disk(json!(false)), &[disk(json!(null))]), Ok(()));
        let root = told(disk(json!(true)), &[]).unwrap_err();
        assert!(root.contains("disk volume of"), "{root}");
        let further = told(disk(json!(null)), &[disk(json!(false)), disk(json!(true))]).unwrap_err();
        assert!(further.contains("disk d of"), "{further}");
    }
}
