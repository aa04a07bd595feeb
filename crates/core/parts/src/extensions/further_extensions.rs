//! Further extensions of a shoot: objects of kind `Extension`, each with the name of the extension type.
//! Their providers have no fixed task.
//!
//! `placement::Extensions` defines the extensions of a shoot, and the phase of each extension in a flow. The
//! type decides the phase of an object, independent of the creator. So no object is left out, and no object
//! is handled in two phases.

use std::time::Duration;

use api::{
    extensions::{self, DefaultSpec, ExtensionSpec},
    gardencore::LifecycleStrategy as Phase,
};
use futures::future::try_join_all;
use placement::extensions::{KIND, WantedExtension};
use runtime::Result;

use crate::{
    ExtensionResource, Facts, Residency, Wait, configuration_problem,
    extensions::kinds::{Kinds, OfKinds},
    task::{CLOUD_AND_DNS, ExternalSystems, NONE, PartTask},
    verbs::Tasks,
};

/// Upper bound of a wait for a provider, which a registration cannot extend. Shorter than the timeout of a
/// flow, so that the error of the wait names the awaited object.
pub const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// The Extensions of the shoot.
#[derive(Debug)]
pub struct FurtherExtensions;

/// All Extensions at once: for a shoot that has left the seed.
impl OfKinds for FurtherExtensions {
    const KINDS: Kinds = Kinds::Only(&[KIND]);
    const MIGRATION: Tasks = [
        "Migrating extensions",
        "Waiting until extensions have been migrated",
    ];
    const REMOVAL: Tasks = [
        "Deleting extensions",
        "Waiting until extensions have been deleted",
    ];
    const REMOVAL_TOUCHES: ExternalSystems = CLOUD_AND_DNS;
}

impl FurtherExtensions {
    /// Tasks that deploy a phase.
    #[must_use]
    pub const fn deployment(phase: Phase) -> [PartTask<Facts>; 2] {
        match phase {
            Phase::BeforeKubeAPIServer => [
                PartTask::new("Deploying extensions before kube-apiserver", CLOUD_AND_DNS, |f| {
                    Box::pin(Self::deploy_in(f, Phase::BeforeKubeAPIServer))
                }),
                PartTask::new(
                    "Waiting until extensions before kube-apiserver have been reconciled",
                    CLOUD_AND_DNS,
                    |f| Box::pin(Self::ready_in(f, Phase::BeforeKubeAPIServer)),
                ),
            ],
            Phase::AfterKubeAPIServer => [
                PartTask::new("Deploying extensions after kube-apiserver", CLOUD_AND_DNS, |f| {
                    Box::pin(Self::deploy_in(f, Phase::AfterKubeAPIServer))
                }),
                PartTask::new(
                    "Waiting until extensions after kube-apiserver have been reconciled",
                    CLOUD_AND_DNS,
                    |f| Box::pin(Self::ready_in(f, Phase::AfterKubeAPIServer)),
                ),
            ],
            Phase::AfterWorker => [
                PartTask::new("Deploying extensions after workers", CLOUD_AND_DNS, |f| {
                    Box::pin(Self::deploy_in(f, Phase::AfterWorker))
                }),
                PartTask::new(
                    "Waiting until extensions after workers have been reconciled",
                    CLOUD_AND_DNS,
                    |f| Box::pin(Self::ready_in(f, Phase::AfterWorker)),
                ),
            ],
        }
    }

    /// Tasks that migrate a phase. Each phase except `AfterKubeAPIServer` has the tasks of
    /// `BeforeKubeAPIServer`.
    #[must_use]
    pub const fn migration(phase: Phase) -> [PartTask<Facts>; 2] {
        match phase {
            Phase::AfterKubeAPIServer => [
                PartTask::new("Migrating extensions after kube-apiserver", NONE, |f| {
                    Box::pin(Self::migrate_in(f, Phase::AfterKubeAPIServer))
                }),
                PartTask::new(
                    "Waiting until extensions that should be handled after kube-apiserver have been migrated",
                    NONE,
                    |f| Box::pin(Self::migrated_in(f, Phase::AfterKubeAPIServer)),
                ),
            ],
            _ => [
                PartTask::new("Migrating extensions before kube-apiserver", NONE, |f| {
                    Box::pin(Self::migrate_in(f, Phase::BeforeKubeAPIServer))
                }),
                PartTask::new(
                    "Waiting until extensions that should be handled before kube-apiserver have been migrated",
                    NONE,
                    |f| Box::pin(Self::migrated_in(f, Phase::BeforeKubeAPIServer)),
                ),
            ],
        }
    }

    /// Tasks that delete a phase, together with the shoot. The phases are grouped as in [`Self::migration`].
    #[must_use]
    pub const fn removal(phase: Phase) -> [PartTask<Facts>; 2] {
        match phase {
            Phase::AfterKubeAPIServer => [
                PartTask::new("Deleting extensions after kube-apiserver", CLOUD_AND_DNS, |f| {
                    Box::pin(Self::destroy_in(f, Phase::AfterKubeAPIServer))
                }),
                PartTask::new(
                    "Waiting until extensions that should be handled after kube-apiserver have been deleted",
                    CLOUD_AND_DNS,
                    |f| Box::pin(Self::gone_in(f, Phase::AfterKubeAPIServer)),
                ),
            ],
            _ => [
                PartTask::new("Deleting extensions before kube-apiserver", CLOUD_AND_DNS, |f| {
                    Box::pin(Self::destroy_in(f, Phase::BeforeKubeAPIServer))
                }),
                PartTask::new(
                    "Waiting until extensions that should be handled before kube-apiserver have been deleted",
                    CLOUD_AND_DNS,
                    |f| Box::pin(Self::gone_in(f, Phase::BeforeKubeAPIServer)),
                ),
            ],
        }
    }

    /// Tasks that delete stale Extensions.
    pub const DELETE_STALE: [PartTask<Facts>; 2] = [
        PartTask::new("Deleting stale extensions", CLOUD_AND_DNS, |f| {
            Box::pin(Self::delete_stale(f))
        }),
        PartTask::new(
            "Waiting until all stale extensions have been deleted",
            CLOUD_AND_DNS,
            |f| Box::pin(Self::stale_gone(f)),
        ),
    ];

    /// Writes the Extensions of a phase.
    pub async fn deploy_in(f: &Facts, phase: Phase) -> Result<()> {
        for wanted in f.extensions.reconciled(phase) {
            object_of(&f.residency, &wanted.type_)
                .deploy(f, extension(wanted))
                .await?;
        }
        Ok(())
    }

    /// Waits until the providers have completed the requested operation.
    pub async fn ready_in(f: &Facts, phase: Phase) -> Result<()> {
        let all = f.extensions.reconciled(phase).map(|wanted| async move {
            let patience = patience(wanted, f.residency.settings.timeouts.extension)?;
            let object: ExtensionResource<'_, extensions::Extension> =
                ExtensionResource::new(&f.residency, &wanted.type_, patience);
            object.wait_until_ready().await
        });
        try_join_all(all).await.map(drop)
    }

    /// Requests that the providers of a phase release the Extensions without any change outside the seed
    /// (I9).
    pub async fn migrate_in(f: &Facts, phase: Phase) -> Result<()> {
        for object in meant(&f.residency, |type_| lets_go(f, type_, phase)).await? {
            object.migrate().await?;
        }
        Ok(())
    }

    /// Waits until the providers have released the Extensions.
    pub async fn migrated_in(f: &Facts, phase: Phase) -> Result<()> {
        let all = meant(&f.residency, |type_| lets_go(f, type_, phase)).await?;
        try_join_all(all.iter().map(ExtensionResource::wait_until_migrated))
            .await
            .map(drop)
    }

    /// Requests the deletion of the Extensions of a phase, together with the shoot, wanted or stale.
    pub async fn destroy_in(f: &Facts, phase: Phase) -> Result<()> {
        ExtensionResource::delete_all(
            &meant(&f.residency, |type_| f.extensions.deleted(type_) == phase).await?,
        )
        .await
    }

    /// Waits until the Extensions are gone.
    pub async fn gone_in(f: &Facts, phase: Phase) -> Result<()> {
        ExtensionResource::all_deleted(
            &meant(&f.residency, |type_| f.extensions.deleted(type_) == phase).await?,
        )
        .await
    }

    /// "Deleting stale extensions": the Shoot no longer names the extension, and no registration enables the
    /// extension.
    pub async fn delete_stale(f: &Facts) -> Result<()> {
        ExtensionResource::delete_all(&meant(&f.residency, |type_| f.extensions.is_stale(type_)).await?).await
    }

    /// Waits until the stale Extensions are gone.
    pub async fn stale_gone(f: &Facts) -> Result<()> {
        ExtensionResource::all_deleted(&meant(&f.residency, |type_| f.extensions.is_stale(type_)).await?)
            .await
    }
}

/// A stale Extension is deleted, not migrated.
fn lets_go(f: &Facts, type_: &str, phase: Phase) -> bool {
    f.extensions.migrated(type_) == phase && !f.extensions.is_stale(type_)
}

fn object_of<'a>(residency: &'a Residency, name: &str) -> ExtensionResource<'a, extensions::Extension> {
    ExtensionResource::new(residency, name, residency.settings.timeouts.extension)
}

fn extension(wanted: &WantedExtension) -> extensions::Extension {
    extensions::Extension::new(
        &wanted.type_,
        ExtensionSpec {
            default: DefaultSpec {
                type_: wanted.type_.clone(),
                provider_config: wanted.provider_config.clone(),
                ..DefaultSpec::default()
            },
        },
    )
}

/// Timeout of the wait: the registration's `reconcileTimeout`, or the default.
fn patience(wanted: &WantedExtension, usual: Wait) -> Result<Wait> {
    let Some(text) = &wanted.reconcile_timeout else {
        return Ok(usual);
    };
    let told = text.parse().ok();
    let told = told.and_then(|told: jiff::SignedDuration| Duration::try_from(told).ok());
    let told = told.ok_or_else(|| {
        configuration_problem(format!(
            "reconcileTimeout {text:?} of extension {:?} in its ControllerRegistration is no duration: write it like 5m",
            wanted.type_
        ))
    })?;
    let timeout = told.min(LONGEST_WAIT);
    Ok(Wait {
        severe: usual.severe.min(timeout),
        timeout,
    })
}

/// The Extensions whose type is selected.
async fn meant(
    residency: &Residency,
    is_meant: impl Fn(&str) -> bool,
) -> Result<Vec<ExtensionResource<'_, extensions::Extension>>> {
    let of_type = |object: &extensions::Extension| is_meant(&object.spec.default.type_);
    ExtensionResource::meant(residency, residency.settings.timeouts.extension, of_type).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_registration_says_how_long_its_extension_is_waited_for() {
        let usual = crate::Timeouts::default().extension;
        let patience = |text: Option<&str>| {
            let wanted = WantedExtension {
                type_: "a".into(),
                provider_config: None,
                reconcile_timeout: text.map(str::to_owned),
            };
            patience(&wanted, usual).map(|wait| (wait.severe.as_secs(), wait.timeout.as_secs()))
        };
        assert_eq!(patience(None).unwrap(), (30, 180));
        assert_eq!(patience(Some("10m")).unwrap(), (30, 600));
        assert_eq!(patience(Some("10s")).unwrap(), (10, 10));
        assert_eq!(patience(Some("24h")).unwrap(), (30, 900));
        for garbage in ["soon", "-5m", ""] {
            let error = patience(Some(garbage)).unwrap_err();
            assert_eq!(error.class(), "Config");
            assert!(error.to_string().contains("of extension \"a\""), "{error}");
        }
    }
}
