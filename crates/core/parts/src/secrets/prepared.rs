//! The keys for the destination of a preparation: the share that the source issues, and the Secrets that the
//! destination makes of the share (`prepared_share` in `config.rs`).
//!
//! Promises: no key of an authority is in a share. Each certificate in a share has a key of its own, and ends
//! with the grant. A Secret of a preparation is immutable and has label `PREPARED_BY_GRANT`, so no flow of an
//! owner takes such a Secret for a Secret of the shoot. No Secret of a preparation goes into a ShootState.
//! The certificate for etcd has the mark and the serial number by which the gate in front of etcd refuses the
//! destination after the end of the grant.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    constants::{MANAGER_IDENTITY, PREPARED_BY_GRANT, SECRET_NAME},
    gardencore::shoot::MigrationPreparation,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
};
use placement::Names;
use runtime::{Error, Result, client::Cluster, error::Explain};

use super::{
    config::{Config, ETCD_CLIENT, IDENTITY, PreparedShare, prepared_keys, prepared_names, table},
    etcd_serial::EtcdSerial,
    issue::{Validity, issue},
    plan::{Existing, data_by_name},
};
use crate::{FIELD_MANAGER, configuration_problem, residency::Residency};

/// The content of a share, by [`data_key`].
pub(crate) type ShareData = BTreeMap<String, ByteString>;

/// The key of a value in a share. No name of a Secret has an underscore.
fn data_key(secret: &str, key: &str) -> String {
    format!("{secret}_{key}")
}

/// All keys of a share.
pub(crate) fn share_keys() -> impl Iterator<Item = String> {
    prepared_names().flat_map(|name| prepared_keys(name).iter().map(move |key| data_key(name, key)))
}

/// The share for the destination of a grant. The certificates of the share end with the grant.
pub(super) fn issue_share(
    table: &[Config],
    existing: &Existing,
    granted: &MigrationPreparation,
) -> Result<ShareData> {
    if let Some(missing) = table
        .iter()
        .find(|config| config.carried && !existing.contains_key(config.name))
    {
        return Err(Error::transient(format!(
            "Secret {} is not there yet",
            missing.name
        )));
    }
    let all = data_by_name(existing);
    let mut share = ShareData::new();
    for config in table {
        let data = match config.prepared {
            PreparedShare::Nothing => continue,
            PreparedShare::Authority | PreparedShare::Content => {
                all.get(config.name).cloned().unwrap_or_default()
            }
            PreparedShare::OwnCertificate => {
                let until = granted.expiry.0;
                let validity = if config.name == ETCD_CLIENT {
                    Validity::WhileListed(until, EtcdSerial::from_grant(granted))
                } else {
                    Validity::Until(until)
                };
                issue(config.name, &config.recipe, validity, |name| all.get(name))?.data
            }
        };
        for key in prepared_keys(config.name) {
            let value = data.get(*key).ok_or_else(|| {
                configuration_problem(format!(
                    "Secret {} has no data under {key}: put the former content back",
                    config.name
                ))
            })?;
            share.insert(data_key(config.name, key), ByteString(value.clone()));
        }
    }
    Ok(share)
}

/// The share of the shoot in the seed of the source.
pub(crate) async fn issue_for_destination(
    residency: &Residency,
    names: &Names,
    granted: &MigrationPreparation,
) -> Result<ShareData> {
    let existing = residency.managed_secrets().await?;
    issue_share(&table(names), &existing, granted)
}

/// The Secrets of a share, for a namespace. `grant`: the grant of the share.
pub(super) fn secrets_of_share(share: &ShareData, namespace: &str, grant: &str) -> Result<Vec<Secret>> {
    let all = prepared_names().map(|name| {
        let data = prepared_keys(name).iter().map(|key| {
            let value = share.get(&data_key(name, key)).cloned();
            let value = value.ok_or_else(|| {
                configuration_problem(format!(
                    "the source seed has left {} out of the keys for the preparation",
                    data_key(name, key)
                ))
            })?;
            Ok(((*key).to_owned(), value))
        });
        let mut secret = Secret {
            data: Some(data.collect::<Result<_>>()?),
            type_: Some("Opaque".into()),
            immutable: Some(true),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.namespace = Some(namespace.to_owned());
        let labels = [(SECRET_NAME, name), (PREPARED_BY_GRANT, grant)];
        secret.metadata.labels = Some(
            labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        );
        Ok(secret)
    });
    all.collect()
}

/// Makes the Secrets of a share in a prepared namespace. Secrets of an earlier grant go first, and a Secret
/// of a different writer is an error.
pub(crate) async fn deploy_share(residency: &Residency, share: &ShareData, grant: &str) -> Result<()> {
    let api: Api<Secret> = residency.seed.namespaced(&residency.namespace);
    let mut present = BTreeSet::new();
    for secret in list(&api).await? {
        if secret.labels().get(PREPARED_BY_GRANT).map(String::as_str) == Some(grant) {
            present.insert(secret.name_any());
        } else {
            remove_exactly(&api, &secret).await?;
        }
    }
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.0.to_owned()),
        ..PostParams::default()
    };
    for secret in secrets_of_share(share, &residency.namespace, grant)? {
        let name = secret.name_any();
        if !present.contains(&name) {
            // Never an apply: a flow of an owner may have begun, and has made the Secret of this name.
            let created = api.create(&params, &secret).await;
            created.context(format_args!("could not make Secret {name}"))?;
        }
    }
    Ok(())
}

/// Removes all Secrets of a preparation.
pub(crate) async fn remove_share(residency: &Residency) -> Result<()> {
    let api: Api<Secret> = residency.seed.namespaced(&residency.namespace);
    for secret in list(&api).await? {
        remove_exactly(&api, &secret).await?;
    }
    Ok(())
}

/// The Secrets of a preparation. A Secret of the secrets manager is a key of an owner, whatever further label
/// the Secret has.
async fn list(api: &Api<Secret>) -> Result<Vec<Secret>> {
    let selector = format!("{PREPARED_BY_GRANT},{MANAGER_IDENTITY}!={IDENTITY}");
    let found = api.list(&ListParams::default().labels(&selector)).await;
    let found = found.context("could not list Secrets of a preparation")?;
    Ok(found.items)
}

async fn remove_exactly(api: &Api<Secret>, secret: &Secret) -> Result<()> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: secret.uid(),
            resource_version: secret.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let name = secret.name_any();
    match api.delete(&name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error).context(format_args!("could not delete Secret {name}")),
    }
}
