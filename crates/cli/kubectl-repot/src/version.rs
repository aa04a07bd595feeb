//! `kubectl repot version`: the versions of the plugin and of the garden, as reported.

use api::gardencore::Seed;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::client::Cluster;
use serde::Serialize;

use crate::{answer::Answer, failure::Failure, session::Session};

/// The version of this plugin.
pub const PLUGIN: &str = env!("CARGO_PKG_VERSION");

/// The versions of the plugin and of the garden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    plugin: String,
    kubernetes: Option<String>,
    gardenlets: Vec<GardenletVersion>,
    /// Reasons why a version is not known.
    unknown: Vec<String>,
}

/// The version of the gardenlet of a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GardenletVersion {
    seed: String,
    version: Option<String>,
    /// Whether the minor version differs from the minor version of the plugin.
    differs: bool,
}

/// Reads the versions. A version that the caller may not read is reported as unknown.
pub async fn version(session: &Session) -> Answer {
    let client = session.garden().client();
    let mut versions = Versions {
        plugin: PLUGIN.to_owned(),
        kubernetes: None,
        gardenlets: Vec::new(),
        unknown: Vec::new(),
    };
    let doing = "the version of the garden's Kubernetes cannot be read";
    match session.request(doing, client.apiserver_version()).await {
        Ok(info) => versions.kubernetes = Some(info.git_version),
        Err(failure) => versions.unknown.push(failure.to_string()),
    }
    match Box::pin(gardenlets(session)).await {
        Ok(gardenlets) => versions.gardenlets = gardenlets,
        Err(failure) => versions.unknown.push(failure.to_string()),
    }
    Answer::new(render(&versions), &versions)
}

async fn gardenlets(session: &Session) -> Result<Vec<GardenletVersion>, Failure> {
    let seeds: Api<Seed> = session.garden().cluster_wide();
    let all = ListParams::default();
    let seeds = Box::pin(session.request("Seeds cannot be listed", seeds.list(&all))).await?;
    Ok(seeds.items.iter().map(gardenlet).collect())
}

fn gardenlet(seed: &Seed) -> GardenletVersion {
    let gardener = seed.status.as_ref().and_then(|status| status.gardener.as_ref());
    let version = gardener.map(|gardener| gardener.version.clone());
    GardenletVersion {
        seed: seed.name_any(),
        differs: version.as_deref().is_some_and(|version| !is_same_minor(version)),
        version,
    }
}

/// Whether the version has the major and minor version of this plugin.
#[must_use]
pub fn is_same_minor(version: &str) -> bool {
    minor(version) == minor(PLUGIN)
}

/// Major and minor version, without a leading `v`.
fn minor(version: &str) -> Vec<&str> {
    version.trim_start_matches('v').split('.').take(2).collect()
}

fn render(versions: &Versions) -> String {
    let mut lines = vec![format!("plugin: {}", versions.plugin)];
    if let Some(kubernetes) = &versions.kubernetes {
        lines.push(format!("Kubernetes of the garden: {kubernetes}"));
    }
    for gardenlet in &versions.gardenlets {
        let version = gardenlet.version.as_deref().unwrap_or("not reported");
        let skew = if gardenlet.differs {
            " (differs from the plugin: use the plugin of the garden's version)"
        } else {
            ""
        };
        lines.push(format!("gardenlet of seed {}: {version}{skew}", gardenlet.seed));
    }
    lines.extend(versions.unknown.iter().map(|why| format!("unknown: {why}")));
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_gardenlet_of_a_different_minor_version_is_named() {
        let seed = |version: &str| -> Seed {
            serde_yaml_ng::from_str(&format!(
                "metadata: {{name: a}}\nspec: {{dns: {{}}, networks: {{pods: p, services: s}}, provider: {{type: t, region: r}}}}\n\
                 status: {{gardener: {{id: i, name: n, version: {version}}}}}\n"
            ))
            .unwrap()
        };
        let versions = Versions {
            plugin: PLUGIN.to_owned(),
            kubernetes: Some("v1.34.4".to_owned()),
            gardenlets: vec![
                gardenlet(&seed("v99.1.0")),
                gardenlet(&seed(&format!("v{PLUGIN}"))),
            ],
            unknown: vec!["no right".to_owned()],
        };
        let text = render(&versions);
        assert!(
            text.contains("seed a: v99.1.0 (differs from the plugin"),
            "{text}"
        );
        assert!(text.contains(&format!("seed a: v{PLUGIN}\n")), "{text}");
        assert!(text.ends_with("unknown: no right\n"), "{text}");
    }
}
