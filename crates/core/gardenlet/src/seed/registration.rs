//! Writes the Seed of this gardenlet from the manifest in `--seed-config`.
//!
//! An edit that the garden refuses must not end the process. Without Lease and controllers the seed would
//! become Unknown, and the shoots of the seed might be taken over.

use std::path::Path;

use api::{gardencore::Seed, meta::ErrorCode};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use runtime::{Error, Result, client::Cluster, error::Explain as _};

use crate::{Context, MANAGER};

/// Reason of the Event on a Seed that keeps the earlier registered configuration.
const SEED_CONFIG_REFUSED: &str = "SeedConfigRefused";
/// Reason of the Event on a Seed that belongs to a different cluster.
const CLUSTER_IDENTITY_DIFFERS: &str = "ClusterIdentityDiffers";

/// Registers the Seed. The rest of the gardenlet does not work without the Seed. A registered Seed stays
/// unchanged if the garden refuses the manifest.
pub async fn register(context: &Context) -> Result<()> {
    let path = &context.config.seed_config;
    let text = tokio::fs::read_to_string(path).await.map_err(|e| {
        Error::transient(format!("--seed-config {} cannot be read", path.display())).caused_by(e)
    })?;
    let mut seed = parse(&text, path, &context.seed_name)?;
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let registered = seeds.get_opt(&context.seed_name).await;
    let registered = registered.context(format_args!("could not read Seed {}", context.seed_name))?;
    keep_taints(&mut seed, registered.as_ref());
    let Err(error) = apply(&seeds, &seed).await else {
        tracing::info!(seed = context.seed_name, "the seed is registered");
        return Ok(());
    };
    let registered = if is_refusal(&error) {
        let found = seeds.get_opt(&context.seed_name).await;
        found.context(format_args!("could not read Seed {}", context.seed_name))?
    } else {
        None
    };
    let refused = Err(error).context("the seed could not be registered in the garden");
    let (Some(registered), Err(error)) = (registered, &refused) else {
        return refused;
    };
    let note = format!(
        "{error}; the gardenlet goes on with the registered Seed: correct the value seedConfig of the gardenlet's chart"
    );
    tracing::error!(seed = context.seed_name, note, "the garden refuses --seed-config");
    let events = &context.garden_events;
    events
        .answer_with_warning(&registered, SEED_CONFIG_REFUSED, &note)
        .await;
    Ok(())
}

/// Refuses to run in a cluster that is not the cluster of the registered Seed. The owner records of the
/// shoots name the other cluster, whose processes may still run. The garden lets no gardenlet change the
/// identity (policy `gardenlet-seed`).
///
/// # Errors
/// The Seed has the identity of a different cluster, or the garden or the seed does not answer.
pub async fn check_cluster(context: &Context) -> Result<()> {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let seed = seeds.get(&context.seed_name).await;
    let seed = seed.context(format_args!("could not read Seed {}", context.seed_name))?;
    let namespaces: Api<Namespace> = context.seed.cluster_wide();
    let system = namespaces.get("kube-system").await;
    let system = system.context("could not read the seed's namespace kube-system")?;
    let uid = system.uid().unwrap_or_default();
    let status = seed.status.as_ref();
    let identity = status.and_then(|status| status.cluster_identity.as_deref());
    let Some(identity) = identity.filter(|identity| !identity.is_empty() && *identity != uid) else {
        return Ok(());
    };
    let note = format!(
        "status.clusterIdentity of Seed {} is {identity}, and namespace kube-system of this cluster has uid {uid}: the gardenlet runs for no \
         cluster but the registered cluster. If the cluster of the seed was built anew, stop the former cluster, and let an administrator of \
         the garden remove status.clusterIdentity of the Seed (docs/operate/runbooks.md)",
        context.seed_name
    );
    let events = &context.garden_events;
    events
        .answer_with_warning(&seed, CLUSTER_IDENTITY_DIFFERS, &note)
        .await;
    Err(Error::config(ErrorCode::ErrConfigurationProblem, note))
}

/// Keeps the taints of the registered Seed. Server-side apply replaces the list of taints as a whole, so that
/// a manifest would remove the taint of `kubectl repot cordon` at each start. Policy `gardenlet-seed` lets
/// only administrators remove taints, and would refuse the whole manifest.
fn keep_taints(seed: &mut Seed, registered: Option<&Seed>) {
    for taint in registered.iter().flat_map(|registered| &registered.spec.taints) {
        if !seed.spec.taints.contains(taint) {
            tracing::info!(
                key = taint.key,
                "a taint of the Seed that --seed-config does not have stays: an administrator of the garden removes taints"
            );
            seed.spec.taints.push(taint.clone());
        }
    }
}

async fn apply(seeds: &Api<Seed>, seed: &Seed) -> kube::Result<()> {
    let mut typed = serde_json::to_value(seed).map_err(kube::Error::SerdeError)?;
    typed["apiVersion"] = Seed::api_version(&()).into();
    typed["kind"] = Seed::kind(&()).into();
    let params = PatchParams::apply(MANAGER.0).force();
    let written = seeds.patch(&seed.name_any(), &params, &Patch::Apply(typed)).await;
    written.map(drop)
}

/// Whether the garden refuses the manifest, by a policy or by the definition of the kind.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(answer) if answer.is_forbidden() || answer.is_invalid())
}

/// Parses a manifest and checks the kind and the name.
pub fn parse(text: &str, path: &Path, seed_name: &str) -> Result<Seed> {
    let refuse = |why: String| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
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

    #[test]
    fn a_manifest_with_taints_keeps_a_seed_cordoned() {
        let tainted = |keys: &str| {
            let text = MANIFEST.replace("  dns: {}", &format!("  dns: {{}}\n  taints: [{keys}]"));
            parse(&text, Path::new("/s"), "a").unwrap()
        };
        let cordoned = tainted("{key: migration.gardener.cloud/cordoned}");
        for (registered, is_cordoned) in [
            (Some(&cordoned), true),
            (Some(&tainted("")), false),
            (None, false),
        ] {
            let mut seed = tainted("{key: protected}");
            keep_taints(&mut seed, registered);
            assert_eq!(seed.spec.is_cordoned(), is_cordoned, "{:?}", seed.spec.taints);
            assert_eq!(seed.spec.taints[0].key, "protected");
        }
        let mut twice = cordoned.clone();
        keep_taints(&mut twice, Some(&cordoned));
        assert_eq!(twice.spec.taints.len(), 1);
    }

    /// The garden would refuse the whole manifest, because only an administrator removes taints.
    #[test]
    fn a_manifest_removes_no_taint() {
        let registered = parse(
            &MANIFEST.replace(
                "  dns: {}",
                "  dns: {}\n  taints: [{key: tier, value: gold}, {key: x}]",
            ),
            Path::new("/s"),
            "a",
        );
        let registered = registered.unwrap();
        let mut seed = parse(MANIFEST, Path::new("/s"), "a").unwrap();
        keep_taints(&mut seed, Some(&registered));
        assert_eq!(seed.spec.taints, registered.spec.taints);
    }

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
