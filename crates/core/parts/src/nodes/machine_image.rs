//! The machine image of a pool: the image that the Shoot names, checked against the CloudProfile. Pure.

use api::{
    gardencore::{CloudProfile, shoot::Worker},
    meta::PackedExtension,
};
use kube::ResourceExt;
use runtime::Result;

use crate::configuration_problem;

/// An operating system in a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MachineImage {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) provider_config: Option<PackedExtension>,
}

/// The image that the pool names. This function chooses no open version: a different profile would give a
/// different choice, and so different machines.
pub(super) fn select_image(pool: &Worker, profile: &CloudProfile) -> Result<MachineImage> {
    let offered = || {
        let all = profile.spec.machine_images.iter();
        let all = all.flat_map(|image| {
            image
                .versions
                .iter()
                .map(|v| format!("{} {}", image.name, v.version.version))
        });
        all.collect::<Vec<_>>().join(", ")
    };
    let wanted = pool.machine.image.as_ref();
    let Some((image, version)) = wanted.and_then(|image| Some((image, image.version.as_deref()?))) else {
        return Err(configuration_problem(format!(
            "machine.image of worker pool {} names no name and version: CloudProfile {} offers {}",
            pool.name,
            profile.name_any(),
            offered()
        )));
    };
    Ok(MachineImage {
        name: image.name.clone(),
        version: version.to_owned(),
        provider_config: image.provider_config.clone(),
    })
}
