//! Writes the Seed that this gardenlet stands for, from the manifest it was given.

use std::path::Path;

use api::gardencore::Seed;
use kube::{Api, ResourceExt};
use runtime::{Error, Result, clusters::Cluster, error::Explain as _};

use crate::{Context, MANAGER};

/// Registers the Seed. Nothing else of the gardenlet works without it.
pub async fn register(context: &Context) -> Result<()> {
    let path = &context.config.seed_config;
    let text = tokio::fs::read_to_string(path)
        .await
        .map_err(|e| Error::transient(format!("--seed-config {} cannot be read: {e}", path.display())))?;
    let seed = parse(&text, path, &context.seed_name)?;
    let seeds: Api<Seed> = context.garden.cluster_wide();
    MANAGER
        .apply(&seeds, &seed)
        .await
        .context("the seed could not be registered in the garden")?;
    tracing::info!(seed = context.seed_name, "the seed is registered");
    Ok(())
}

/// Reads a manifest and checks that it is the right one.
pub fn parse(text: &str, path: &Path, seed_name: &str) -> Result<Seed> {
    let refuse = |why: String| {
        Error::config(
            api::meta::ErrorCode::ErrConfigurationProblem,
            format!("--seed-config {}: {why}", path.display()),
        )
    };
    let value: serde_json::Value =
        serde_yaml_ng::from_str(text).map_err(|e| refuse(format!("this is no YAML: {e}")))?;
    let kind = (
        value["apiVersion"].as_str().unwrap_or_default(),
        value["kind"].as_str().unwrap_or_default(),
    );
    if kind != ("core.gardener.cloud/v1beta1", "Seed") {
        return Err(refuse(format!(
            "a core.gardener.cloud/v1beta1 Seed is needed, this is a {} {}",
            kind.0, kind.1
        )));
    }
    let seed: Seed = serde_json::from_value(value).map_err(|e| refuse(format!("this is no Seed: {e}")))?;
    if seed.name_any() != seed_name {
        return Err(refuse(format!(
            "it is Seed {:?}, and --seed-name is {seed_name:?}",
            seed.name_any()
        )));
    }
    Ok(seed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MANIFEST: &str = "
apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: a}
spec:
  dns: {}
  networks: {pods: 10.1.0.0/16, services: 10.2.0.0/16}
  provider: {type: local, region: here}
";

    fn refused(text: &str, words: &str) {
        let error = parse(text, Path::new("/seed.yaml"), "a").unwrap_err().to_string();
        assert!(error.contains("/seed.yaml") && error.contains(words), "{error}");
    }

    #[test]
    fn the_manifest_must_be_a_seed_of_the_right_name() {
        assert_eq!(
            parse(MANIFEST, Path::new("/s"), "a")
                .unwrap()
                .spec
                .provider
                .region,
            "here"
        );
        refused(&MANIFEST.replace("name: a", "name: b"), "--seed-name is \"a\"");
        refused(
            &MANIFEST.replace("Seed", "Shoot"),
            "this is a core.gardener.cloud/v1beta1 Shoot",
        );
        refused(&MANIFEST.replace("pods: 10.1.0.0/16, ", ""), "pods");
        refused("a: [", "no YAML");
    }
}
