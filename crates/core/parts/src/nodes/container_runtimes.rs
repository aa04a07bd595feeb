//! ContainerRuntime: a further container runtime on the nodes of a pool, with an object for each runtime that
//! a pool names. The provider installs the runtime on existing nodes, so the object is deployed after the
//! machines. The object is deleted when the pool no longer names the runtime.

use std::collections::BTreeMap;

use api::{
    extensions::{self, ContainerRuntimeSpec, ContainerRuntimeWorkerPool, DefaultSpec},
    gardencore::shoot::Worker,
};
use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use runtime::Result;

use super::pools::POOL;
use crate::{
    ExtensionResource, Facts, Residency, configuration_problem,
    task::{CLOUD, ExternalSystems, PartTask},
    verbs::{Deploy, Tasks},
};

/// Folder for the runtime's programs on nodes.
const BINARY_PATH: &str = "/var/bin/containerruntimes";

/// The further container runtimes of all pools.
#[derive(Debug)]
pub struct ContainerRuntimes;

impl Deploy for ContainerRuntimes {
    const TASKS: Tasks = [
        "Deploying container runtime resources",
        "Waiting until container runtime resources have been reconciled",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        for (name, object) in wanted(&f.shoot.spec.provider.workers)? {
            object_of(&f.residency, &name).deploy(f, object).await?;
        }
        Ok(())
    }

    async fn ready(f: &Facts) -> Result<()> {
        let all = wanted(&f.shoot.spec.provider.workers)?;
        let waits = all
            .keys()
            .map(|name| async move { object_of(&f.residency, name).wait_until_ready().await });
        try_join_all(waits).await.map(drop)
    }
}

impl ContainerRuntimes {
    /// Tasks that delete stale objects.
    pub const DELETE_STALE: [PartTask<Facts>; 2] = [
        PartTask::new("Deleting stale container runtime resources", CLOUD, |f| {
            Box::pin(Self::delete_stale(f))
        }),
        PartTask::new(
            "Waiting until stale container runtime resources have been deleted",
            CLOUD,
            |f| Box::pin(Self::stale_gone(f)),
        ),
    ];

    /// "Deleting stale container runtime resources": the pool is gone, or no longer names the runtime.
    pub async fn delete_stale(f: &Facts) -> Result<()> {
        ExtensionResource::delete_all(&stale(f).await?).await
    }

    /// "Waiting until stale container runtime resources have been deleted".
    pub async fn stale_gone(f: &Facts) -> Result<()> {
        ExtensionResource::all_deleted(&stale(f).await?).await
    }
}

impl Facts {
    /// Whether a pool names a further container runtime.
    #[must_use]
    pub fn has_container_runtimes(&self) -> bool {
        self.shoot.spec.provider.workers.iter().any(has_some)
    }
}

fn has_some(pool: &Worker) -> bool {
    pool.cri
        .as_ref()
        .is_some_and(|cri| !cri.container_runtimes.is_empty())
}

fn object_of<'a>(
    residency: &'a Residency,
    name: &str,
) -> ExtensionResource<'a, extensions::ContainerRuntime> {
    ExtensionResource::new(residency, name, residency.settings.timeouts.extension)
}

/// The objects by name. A name joins a type and a pool's name. Two different pairs may give the same name:
/// then no object is written.
fn wanted(pools: &[Worker]) -> Result<BTreeMap<String, extensions::ContainerRuntime>> {
    let mut all = BTreeMap::new();
    for pool in pools {
        for runtime in pool.cri.iter().flat_map(|cri| &cri.container_runtimes) {
            let name = format!("{}-{}", runtime.type_, pool.name);
            let spec = ContainerRuntimeSpec {
                default: DefaultSpec {
                    type_: runtime.type_.clone(),
                    provider_config: runtime.provider_config.clone(),
                    ..DefaultSpec::default()
                },
                binary_path: BINARY_PATH.to_owned(),
                worker_pool: ContainerRuntimeWorkerPool {
                    name: pool.name.clone(),
                    selector: LabelSelector {
                        match_labels: Some(BTreeMap::from([(POOL.to_owned(), pool.name.clone())])),
                        ..LabelSelector::default()
                    },
                },
            };
            let object = extensions::ContainerRuntime::new(&name, spec);
            if all.insert(name.clone(), object).is_some() {
                return Err(configuration_problem(format!(
                    "two container runtimes of worker pools would both be called {name:?}: take one of them away, or name a \
                     pool otherwise"
                )));
            }
        }
    }
    Ok(all)
}

async fn stale(f: &Facts) -> Result<Vec<ExtensionResource<'_, extensions::ContainerRuntime>>> {
    let wanted = wanted(&f.shoot.spec.provider.workers)?;
    let is_stale = |object: &extensions::ContainerRuntime| !wanted.contains_key(&object.name_any());
    ExtensionResource::meant(&f.residency, f.residency.settings.timeouts.extension, is_stale).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn pool(name: &str, runtimes: &[&str]) -> Worker {
        let runtimes: Vec<_> = runtimes
            .iter()
            .map(|type_| json!({"type": type_, "providerConfig": {"of": type_}}))
            .collect();
        serde_json::from_value(
            json!({"name": name, "machine": {"type": "m"}, "minimum": 1, "maximum": 1,
            "cri": {"name": "containerd", "containerRuntimes": runtimes}}),
        )
        .unwrap()
    }

    #[test]
    fn each_runtime_of_each_pool_is_an_object() {
        let pools = [
            pool("one", &["gvisor", "kata"]),
            pool("two", &["gvisor"]),
            pool("three", &[]),
        ];
        let all = wanted(&pools).unwrap();
        let names: Vec<_> = all.keys().map(String::as_str).collect();
        assert_eq!(names, ["gvisor-one", "gvisor-two", "kata-one"]);
        let spec = serde_json::to_value(&all["gvisor-two"].spec).unwrap();
        let expected = json!({
            "type": "gvisor", "providerConfig": {"of": "gvisor"}, "binaryPath": "/var/bin/containerruntimes",
            "workerPool": {"name": "two", "selector": {"matchLabels": {"worker.gardener.cloud/pool": "two"}}},
        });
        assert_eq!(spec, expected);
    }

    #[test]
    fn one_name_is_not_given_twice() {
        let error = wanted(&[pool("b-c", &["a"]), pool("c", &["a-b"])]).unwrap_err();
        assert!(error.to_string().contains("\"a-b-c\""), "{error}");
    }
}
