//! The secrets manager: keys and certificates of a control plane (R7-10, R7-11, R7-40).
//!
//! Promises: an existing carried Secret is never created again. On each seed a carried Secret is the same
//! byte for byte (I7). A carried Secret that is missing in the ShootState is an error that names the Secret,
//! and no new Secret takes the place. Derived Secrets are created again only when a Secret is missing, when
//! the inputs have changed, or shortly before expiry. A second run changes no Secret.
//!
//! | file | content |
//! |---|---|
//! | `config` | the table of all Secrets, and whether a Secret moves |
//! | `plan` | the action for each line of the table, and when a Secret is renewed |
//! | `issue` | creates keys, certificates, tokens and files, with the validity |
//! | `signing_key` | the key for tokens of service accounts |
//! | `carried` | puts Secrets of the ShootState back |
//! | `prepared` | the keys that a preparation shares with the destination; `etcd_serial`: a serial number |
//! | `expiry` | the end of validity as a metric |

mod carried;
pub mod config;
pub(crate) mod etcd_serial;
mod expiry;
pub(crate) mod issue;
mod plan;
#[cfg(test)]
mod policy_tests;
pub(crate) mod prepared;
#[cfg(test)]
mod prepared_tests;
mod signing_key;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::{constants, meta::LastOperationType};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{Error, Result, client::Cluster, clock, error::Explain};

pub use carried::ExtensionSecrets;
pub use expiry::{FirstExpiry, first_expiry, forget_first_expiry};
pub(crate) use plan::RENEW_BEFORE;

use self::{
    config::{Config, IDENTITY},
    issue::Validity,
    plan::{Action, Existing, Missing},
};
use crate::{
    FIELD_MANAGER, Facts, Operation, Residency,
    shoot_state::Opened,
    task::{NONE, PartTask},
};

/// All Secrets of the control plane. The names of these Secrets are reserved: data keys of other writers are
/// removed.
#[derive(Debug)]
pub struct Secrets;

impl Secrets {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Facts> = PartTask::new("Initializing secrets management", NONE, |input| {
        Box::pin(Self::deploy(input))
    });

    /// "Initializing secrets management": makes sure that all Secrets exist. Missing carried Secrets come
    /// from the ShootState, derived Secrets are created from the carried Secrets (R7-40).
    pub async fn deploy(f: &Facts) -> Result<()> {
        let api: Api<Secret> = f.residency.seed.namespaced(&f.residency.namespace);
        let mut existing = f.residency.managed_secrets().await?;
        let table = config::table(&f.names);
        let lacks = table
            .iter()
            .any(|config| config.carried && !existing.contains_key(config.name));
        let mut carried = None;
        if f.operation == Operation::Restore || lacks {
            // A preparation that ran beside the first step of this flow may have made a Secret since.
            prepared::remove_share(&f.residency).await?;
            let state = f.shoot_state().await?;
            if f.operation == Operation::Restore
                && let Some(state) = &state
            {
                carried::check_complete(state, &table, &existing).await?;
                carried::restore_own(&f.residency, state, &table, &mut existing).await?;
            }
            carried = missing_in_seed(state.as_deref(), &table, &existing).await?;
        }
        let missing = missing_carried(f);
        for config in table {
            let secret = match plan::decide(&config, &existing, carried.as_ref(), missing, clock::now())? {
                Action::Keep => {
                    if let Some(secret) = existing.get(config.name) {
                        let keys = config.recipe.keys();
                        FIELD_MANAGER
                            .remove_foreign_keys(&api, secret, |key| keys.contains(&key))
                            .await?;
                    }
                    continue;
                }
                Action::Restore(secret) => *secret,
                Action::Issue => make(&config, &existing)?,
            };
            let written = FIELD_MANAGER
                .apply_secret(&api, &plan::in_namespace(secret, &f.residency.namespace))
                .await?;
            existing.insert(config.name.to_owned(), written);
        }
        expiry::record(&f.residency.namespace, &existing);
        Ok(())
    }
}

impl Residency {
    /// All Secrets in the shoot's namespace that move with the shoot. These are carried Secrets of this
    /// manager, and Secrets with the label `persist=true` from extensions (RX-21).
    pub async fn carried_secrets(&self) -> Result<Vec<Secret>> {
        let api: Api<Secret> = self.seed.namespaced(&self.namespace);
        let selector = format!("{}=true", constants::PERSIST);
        Ok(api
            .list(&ListParams::default().labels(&selector))
            .await
            .context("could not list carried Secrets")?
            .items)
    }

    /// The data of a managed Secret.
    pub(crate) async fn secret_data(&self, name: &str) -> Result<issue::Data> {
        let api: Api<Secret> = self.seed.namespaced(&self.namespace);
        let secret = api
            .get_opt(name)
            .await
            .context(format_args!("could not read Secret {name}"))?;
        secret
            .as_ref()
            .map(plan::data_of)
            .ok_or_else(|| Error::transient(format!("Secret {name} is not there yet")))
    }

    async fn managed_secrets(&self) -> Result<Existing> {
        let api: Api<Secret> = self.seed.namespaced(&self.namespace);
        let selector = format!("{}={IDENTITY}", constants::MANAGER_IDENTITY);
        let list = api
            .list(&ListParams::default().labels(&selector))
            .await
            .context("could not list Secrets")?;
        Ok(list
            .items
            .into_iter()
            .map(|secret| (secret.name_any(), secret))
            .collect())
    }
}

/// The Secrets of the table that the ShootState holds and the seed lacks; `None` without a ShootState.
async fn missing_in_seed(
    state: Option<&Opened>,
    table: &[Config],
    existing: &Existing,
) -> Result<Option<Existing>> {
    let Some(state) = state else { return Ok(None) };
    let mut missing = Existing::new();
    for config in table {
        if config.carried
            && !existing.contains_key(config.name)
            && let Some(secret) = state.secret(config.name).await?
        {
            missing.insert(config.name.to_owned(), secret);
        }
    }
    Ok(Some(missing))
}

/// A missing carried Secret may be created only before the first creation of the shoot has ended, or during
/// the deletion.
fn missing_carried(f: &Facts) -> Missing {
    let last = f
        .shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let is_new = !placement::has_earlier_epoch(&f.shoot)
        && last.is_none_or(|last| last.type_ == LastOperationType::Create);
    match f.operation {
        Operation::Delete | Operation::ForceDelete => Missing::Issue,
        Operation::Create | Operation::Reconcile if is_new => Missing::Issue,
        Operation::Create | Operation::Reconcile | Operation::Restore | Operation::Migrate => {
            Missing::FromShootState
        }
    }
}

fn make(config: &Config, existing: &Existing) -> Result<Secret> {
    let authorities = plan::data_by_name(existing);
    let validity = Validity::Years(if config.carried {
        issue::CARRIED_YEARS
    } else {
        issue::DERIVED_YEARS
    });
    let issued = issue::issue(config.name, &config.recipe, validity, |name| {
        authorities.get(name)
    })?;
    let mut labels: BTreeMap<String, String> = [
        (constants::SECRET_NAME, config.name.to_owned()),
        (constants::MANAGED_BY, constants::SECRETS_MANAGER.to_owned()),
        (constants::MANAGER_IDENTITY, IDENTITY.to_owned()),
        (constants::CHECKSUM_OF_CONFIG, plan::checksum(config, existing)),
        (constants::ISSUED_AT_TIME, clock::now().as_second().to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if config.carried {
        labels.insert(constants::PERSIST.into(), "true".into());
    }
    if let Some(valid_until) = issued.valid_until {
        labels.insert(
            constants::VALID_UNTIL_TIME.into(),
            valid_until.as_second().to_string(),
        );
    }
    let mut secret = Secret {
        data: Some(
            issued
                .data
                .into_iter()
                .map(|(key, value)| (key, ByteString(value)))
                .collect(),
        ),
        type_: Some("Opaque".into()),
        immutable: config.carried.then_some(true),
        ..Secret::default()
    };
    secret.metadata.name = Some(config.name.to_owned());
    secret.metadata.labels = Some(labels);
    Ok(secret)
}
