//! `kubectl repot version`: the versions of the plugin and of the garden, as reported. Commands that plan or
//! change a shoot warn if the versions differ.

use api::gardencore::Seed;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::client::Cluster;
use serde::Serialize;

use crate::{
    answer::Answer,
    failure::Failure,
    flags::{Command, Takeover},
    session::Session,
};

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

/// A warning before a command, if the gardenlet of the seed that the command names has a different minor
/// version. `None` also where the caller may not read the Seed: a version is no obstacle.
pub async fn warn_of_skew(session: &Session, command: &Command) -> Option<String> {
    let reading = Box::pin(session.seed(named_seed(command)?)).await.ok()?;
    describe_skew(&gardenlet(reading.seed()?))
}

/// The seed with the gardenlet that decides on the effect of the command.
fn named_seed(command: &Command) -> Option<&str> {
    match command {
        Command::Plan { seed, .. } | Command::Move { seed, .. } => Some(seed),
        Command::Drain(drain) => Some(&drain.seed),
        Command::Takeover(Takeover { seed, to, .. }) => seed.as_deref().or(to.as_deref()),
        _ => None,
    }
}

fn describe_skew(gardenlet: &GardenletVersion) -> Option<String> {
    let version = gardenlet.version.as_deref().filter(|_| gardenlet.differs)?;
    Some(format!(
        "warning: the gardenlet of seed {} has version {version}, and this plugin has version {PLUGIN}: the plugin may not know all states \
         and fields. Use the plugin of the garden's version",
        gardenlet.seed
    ))
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
    use clap::Parser;

    use super::*;
    use crate::flags::Flags;

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
        let warning = describe_skew(&versions.gardenlets[0]).unwrap();
        assert!(
            warning.contains("seed a has version v99.1.0") && warning.contains(PLUGIN),
            "{warning}"
        );
        assert_eq!(describe_skew(&versions.gardenlets[1]), None);
        let text = render(&versions);
        assert!(
            text.contains("seed a: v99.1.0 (differs from the plugin"),
            "{text}"
        );
        assert!(text.contains(&format!("seed a: v{PLUGIN}\n")), "{text}");
        assert!(text.ends_with("unknown: no right\n"), "{text}");
    }

    #[test]
    fn commands_that_change_a_shoot_name_the_seed_whose_version_counts() {
        for (line, seed) in [
            ("kubectl-repot move demo seed-b", Some("seed-b")),
            ("kubectl-repot plan demo seed-b", Some("seed-b")),
            ("kubectl-repot drain seed-a --to seed-b", Some("seed-a")),
            ("kubectl-repot takeover demo seed-b", Some("seed-b")),
            ("kubectl-repot takeover --seed seed-a --to seed-b", Some("seed-b")),
            ("kubectl-repot status", None),
        ] {
            let flags = Flags::try_parse_from(line.split_whitespace()).unwrap();
            assert_eq!(named_seed(&flags.command), seed, "{line}");
        }
    }
}
