//! The example provider of docs/understand/adding-an-actuator.md.

#[path = "../../examples/provider_example.rs"]
#[allow(dead_code)] // its `main` is for who starts it
mod provider_example;

use std::path::PathBuf;

use anyhow::Result;
use api::extensions::Infrastructure;
use extension::{ExtensionReconciler, OwnerChecks, reconciler::namespaced};
use extension_contract::Contract;
use futures::FutureExt;
use kube::Client;
use provider_example::{InfrastructureActuator, provider};
use runtime::client::{Permit, Seed};
use serde_json::json;

use crate::world::{Seeds, object, proven, set_secret, text};

const NAMESPACE: &str = "shoot--example--one";

fn names(folder: &PathBuf) -> std::io::Result<Vec<String>> {
    let files = std::fs::read_dir(folder)?;
    let mut names: Vec<_> = files
        .map(|file| Ok(file?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    names.sort();
    Ok(names)
}

pub async fn keeps_it(seeds: &Seeds) -> Result<()> {
    let cloud = tempfile::tempdir()?;
    let folder = cloud.path().to_string_lossy().into_owned();
    seeds
        .shoot(NAMESPACE, ("cloudprovider", &[("folder", folder.as_str())]))
        .await?;
    let make = |seed: &Client| {
        let seed = Seed::new(seed.clone(), &Permit::sole("a test"));
        let ours = provider(&seed, &OwnerChecks::default());
        ExtensionReconciler::new(ours, namespaced, InfrastructureActuator)
    };
    let wanted: Infrastructure = object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {"type": "example", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}},
    }))?;
    let path = cloud.path().to_owned();
    let contract = Contract::new(|| make(&seeds.a), || make(&seeds.b), [wanted.clone(), wanted])
        .outside(Box::new(move || {
            let found = names(&path).map(|names| json!(names)).map_err(|e| e.to_string());
            async move { found }.boxed()
        }))
        .refuse(Box::new(|| {
            let seed = seeds.a.clone();
            async move {
                let wrong = ("cloudprovider", &[("folder", "/nonexistent")][..]);
                set_secret(&seed, NAMESPACE, wrong).await.map_err(text)
            }
            .boxed()
        }));
    proven(contract.prove().await)
}
