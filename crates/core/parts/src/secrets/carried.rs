//! Puts Secrets of the ShootState back into the shoot's namespace: first the gardenlet's own, then those of
//! extensions, as soon as every reserved Secret exists.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use runtime::{Error, Result, client::Cluster, error::Explain};

use super::{
    config::{self, Config},
    plan::{Existing, NOT_HELD, in_namespace, missing_key, with_own_keys},
};
use crate::{
    FIELD_MANAGER, Facts, Residency,
    shoot_state::{Opened, left_out},
    task::{NONE, PartTask},
};

/// Secrets that are restored at a time. The shoot has no writers meanwhile; more would only queue in the
/// seed's API.
const AT_ONCE: usize = 8;

/// The Secrets of extensions that go with the shoot to another seed (RX-21).
#[derive(Debug)]
pub struct ExtensionSecrets;

impl ExtensionSecrets {
    /// [`Self::restore`], as a task.
    pub const RESTORE: PartTask<Facts> = PartTask::new("Restoring carried Secrets", NONE, |input| {
        Box::pin(Self::restore(input))
    });

    /// "Restoring carried Secrets": puts back every Secret of the ShootState that is not the gardenlet's own.
    /// Runs after the Secrets with reserved names exist, so that a carried Secret never takes the place of a
    /// reserved Secret. Reports the content of the ShootState that no restore applies, and each Secret that
    /// the API server refuses. A later step that needs such content stops, so this step also passes without
    /// the content of lost chunks.
    pub async fn restore(f: &Facts) -> Result<()> {
        let Some(state) = f.shoot_state().await? else {
            return Ok(());
        };
        let (mut left_out, mut refused) = (state.left_out()?, Vec::new());
        let names = state.secret_names().into_iter().filter(|name| !is_own(name));
        let all = names.map(|name| put_back_or_describe(&f.residency, &state, name));
        let mut all = stream::iter(all).buffer_unordered(AT_ONCE);
        while let Some(sentence) = all.try_next().await? {
            refused.extend(sentence);
        }
        refused.sort();
        left_out.append(&mut refused);
        left_out::report_unrestored(f, &left_out).await
    }
}

/// Puts back the Secret of an extension. Returns a sentence about a Secret that the API server refuses: a
/// Secret that a hostile source has planted must not stop the restore.
async fn put_back_or_describe(residency: &Residency, state: &Opened, name: String) -> Result<Option<String>> {
    match put_back(residency, state, name.clone(), None).await {
        Ok(_) => Ok(None),
        Err(error @ Error::Config { .. }) => Ok(Some(format!(
            "Secret {name} in spec.gardener of the ShootState cannot be made: {error}"
        ))),
        Err(error) => Err(error),
    }
}

/// Fails if neither the seed nor the ShootState has a key of the shoot: then no key may be written.
pub(super) async fn check_complete(state: &Opened, table: &[Config], existing: &Existing) -> Result<()> {
    for config in table {
        let is_needed = config.carried && !config.replaceable && !existing.contains_key(config.name);
        if is_needed && state.secret(config.name).await?.is_none() {
            return Err(missing_key(config, NOT_HELD));
        }
    }
    Ok(())
}

/// Puts back the gardenlet's own Secrets that the seed lacks.
pub(super) async fn restore_own(
    residency: &Residency,
    state: &Opened,
    table: &[Config],
    existing: &mut Existing,
) -> Result<()> {
    let names = state.secret_names().into_iter().filter(|name| is_own(name));
    let all = names.map(|name| {
        let config = table.iter().find(|config| config.name == name);
        put_back(residency, state, name, config)
    });
    let mut all = stream::iter(all).buffer_unordered(AT_ONCE);
    while let Some(put_back) = all.try_next().await? {
        if let Some(secret) = put_back {
            existing.insert(secret.name_any(), secret);
        }
    }
    Ok(())
}

fn is_own(name: &str) -> bool {
    config::CARRIED.contains(&name)
}

/// The restored Secret; `None` where a Secret of this name exists: an earlier run restored that Secret, or
/// the Secret is newer.
async fn put_back(
    residency: &Residency,
    state: &Opened,
    name: String,
    config: Option<&Config>,
) -> Result<Option<Secret>> {
    let api: Api<Secret> = residency.seed.namespaced(&residency.namespace);
    let found = api.get_metadata_opt(&name).await;
    if found
        .context(format_args!("could not read Secret {name}"))?
        .is_some()
    {
        return Ok(None);
    }
    let Some(secret) = state.secret(&name).await? else {
        return Ok(None);
    };
    let secret = match config {
        Some(config) => with_own_keys(config, secret),
        None => secret,
    };
    let secret = in_namespace(secret, &residency.namespace);
    FIELD_MANAGER.apply(&api, &secret).await.map(Some)
}
