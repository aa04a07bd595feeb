//! The parts that a provider wants beside a control plane, as values.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use runtime::{Error, Result, workload::Workload};

/// The wanted objects in the shoot's namespace.
#[derive(Default)]
pub struct Parts {
    /// Files, for these processes or for further readers.
    pub config_maps: Vec<ConfigMap>,
    /// The processes. The gardenlet or [`super::ControlPlaneParts::secrets`] writes the Secrets of the
    /// processes; the rollout waits for these Secrets.
    pub processes: Vec<Workload>,
}

impl Parts {
    /// Refuses an object that no cleanup would remove.
    pub(super) fn check(&self, processes: &[&str], config_maps: &[&str]) -> Result<()> {
        let maps = self.config_maps.iter().map(ResourceExt::name_any);
        let maps = maps.filter(|name| !config_maps.contains(&name.as_str()));
        let runs = self.processes.iter().map(|one| one.name);
        let runs = runs.filter(|name| !processes.contains(name)).map(str::to_owned);
        runs.chain(maps).next().map_or(Ok(()), |name| {
            Err(Error::bug(format!(
                "a ControlPlane wants {name}, which its provider does not list: it would never be taken away"
            )))
        })
    }

    /// The names in these lists that are not wanted.
    pub(super) fn stale(
        &self,
        processes: &[&'static str],
        config_maps: &[&'static str],
    ) -> [Vec<&'static str>; 2] {
        let runs = |name: &&str| self.processes.iter().any(|one| one.name == *name);
        let is_there = |name: &&str| self.config_maps.iter().any(|one| one.name_any() == *name);
        [
            processes.iter().copied().filter(|name| !runs(name)).collect(),
            config_maps
                .iter()
                .copied()
                .filter(|name| !is_there(name))
                .collect(),
        ]
    }
}
