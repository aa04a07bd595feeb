//! Which system the machines of a pool start with: as the Shoot names it, held against what its CloudProfile
//! offers. Pure.

use api::{
    gardencore::{CloudProfile, shoot::Worker},
    meta::PackedExtension,
};
use kube::ResourceExt;
use runtime::Result;

use crate::configuration_problem;

/// A system in a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MachineImage {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) provider_config: Option<PackedExtension>,
}

/// What the pool names. A version that is left open is not chosen here: another profile would be another
/// choice, and with it other machines.
pub(super) fn of(pool: &Worker, profile: &CloudProfile) -> Result<MachineImage> {
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
