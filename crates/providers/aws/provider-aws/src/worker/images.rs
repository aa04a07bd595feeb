//! The AMI of a pool's machines, from the CloudProfile, in the format of Gardener's provider for AWS.

use api::{extensions::WorkerPool, meta::RawExtension};
use extension::worker::cloud_profile_config;
use runtime::Result;
use serde::Deserialize;

use crate::problem::problem;

/// The content of `spec.providerConfig` of the CloudProfile.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CloudProfileConfig {
    machine_images: Vec<MachineImage>,
}

#[derive(Deserialize)]
struct MachineImage {
    name: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    regions: Vec<Region>,
}

#[derive(Deserialize)]
struct Region {
    name: String,
    ami: String,
    #[serde(default)]
    architecture: Option<String>,
}

/// Architecture where none is named.
const USUAL: &str = "amd64";

/// The image for a pool in a region.
///
/// # Errors
/// The CloudProfile cannot be understood, or names none.
pub(super) fn image_of(profile: Option<&RawExtension>, pool: &WorkerPool, region: &str) -> Result<String> {
    let config: CloudProfileConfig = cloud_profile_config(profile)?;
    let wanted = &pool.machine_image;
    let architecture = pool.architecture.as_deref().unwrap_or(USUAL);
    let mut regions = config
        .machine_images
        .iter()
        .filter(|image| image.name == wanted.name)
        .flat_map(|image| &image.versions)
        .filter(|version| version.version == wanted.version)
        .flat_map(|version| &version.regions);
    let found = regions
        .find(|found| found.name == region && found.architecture.as_deref().unwrap_or(USUAL) == architecture);
    found.map(|found| found.ami.clone()).ok_or_else(|| {
        problem(format!(
            "spec.providerConfig.machineImages of the CloudProfile has no ami for {} {} ({architecture}) in {region}: add it",
            wanted.name, wanted.version
        ))
    })
}
