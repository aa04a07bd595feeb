//! Further extensions of a shoot: objects of kind `Extension`, each named like its type, whose providers do
//! what they like.
//!
//! Which there are, and when in a flow each is handled, is `placement::Extensions`'s to say. An object is
//! handled at the time of its own type, whoever made it; so no object is left out, and none is handled at two
//! times.

use std::time::Duration;

use api::{
    extensions::{self, DefaultSpec, ExtensionSpec},
    gardencore::LifecycleStrategy as Phase,
};
use futures::future::try_join_all;
use placement::extensions::{KIND, Wanted};
use runtime::Result;

use crate::{
    ExtensionResource, Facts, Stay, Wait, configuration_problem,
    extension_kinds::{Kinds, OfKinds},
    verbs::Tasks,
};

/// No provider is waited for longer, whatever its registration says. Shorter than the patience of a flow, so
/// that the wait ends with the name of what was awaited.
pub const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// The shoot's Extensions.
#[derive(Debug)]
pub struct FurtherExtensions;

/// All of them at once: where a shoot has left.
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
}

impl FurtherExtensions {
    /// Tasks by which those of a phase come up.
    #[must_use]
    pub const fn deployment(phase: Phase) -> Tasks {
        match phase {
            Phase::BeforeKubeAPIServer => [
                "Deploying extensions before kube-apiserver",
                "Waiting until extensions before kube-apiserver have been reconciled",
            ],
            Phase::AfterKubeAPIServer => [
                "Deploying extensions after kube-apiserver",
                "Waiting until extensions after kube-apiserver have been reconciled",
            ],
            Phase::AfterWorker => [
                "Deploying extensions after workers",
                "Waiting until extensions after workers have been reconciled",
            ],
        }
    }

    /// Tasks by which those of a phase let go.
    #[must_use]
    pub const fn migration(phase: Phase) -> Tasks {
        match phase {
            Phase::AfterKubeAPIServer => [
                "Migrating extensions after kube-apiserver",
                "Waiting until extensions that should be handled after kube-apiserver have been migrated",
            ],
            _ => [
                "Migrating extensions before kube-apiserver",
                "Waiting until extensions that should be handled before kube-apiserver have been migrated",
            ],
        }
    }

    /// Tasks by which those of a phase go with their shoot.
    #[must_use]
    pub const fn removal(phase: Phase) -> Tasks {
        match phase {
            Phase::AfterKubeAPIServer => [
                "Deleting extensions after kube-apiserver",
                "Waiting until extensions that should be handled after kube-apiserver have been deleted",
            ],
            _ => [
                "Deleting extensions before kube-apiserver",
                "Waiting until extensions that should be handled before kube-apiserver have been deleted",
            ],
        }
    }

    /// Tasks by which those go that nobody wants any more.
    pub const REMOVAL_OF_STALE: Tasks = [
        "Deleting stale extensions",
        "Waiting until all stale extensions have been deleted",
    ];

    /// Writes those of a phase.
    pub async fn deploy_in(f: &Facts, phase: Phase) -> Result<()> {
        for wanted in f.extensions.reconciled(phase) {
            object_of(f, &wanted.type_).deploy(f, extension(wanted)).await?;
        }
        Ok(())
    }

    /// Waits until their providers have done what they were told.
    pub async fn ready_in(f: &Facts, phase: Phase) -> Result<()> {
        let all = f.extensions.reconciled(phase).map(|wanted| async move {
            let patience = patience(wanted, f.settings.timeouts.extension)?;
            let object: ExtensionResource<'_, extensions::Extension> =
                ExtensionResource::new(f, &wanted.type_, patience);
            object.wait_until_ready().await
        });
        try_join_all(all).await.map(drop)
    }

    /// Tells the providers of those of a phase to let go without touching anything outside (I9).
    pub async fn migrate_in(f: &Facts, phase: Phase) -> Result<()> {
        for object in meant(f, |type_| lets_go(f, type_, phase)).await? {
            object.migrate().await?;
        }
        Ok(())
    }

    /// Waits until they have let go.
    pub async fn migrated_in(f: &Facts, phase: Phase) -> Result<()> {
        let all = meant(f, |type_| lets_go(f, type_, phase)).await?;
        try_join_all(all.iter().map(ExtensionResource::wait_until_migrated))
            .await
            .map(drop)
    }

    /// Asks for those of a phase to go with their shoot, wanted or not.
    pub async fn destroy_in(f: &Facts, phase: Phase) -> Result<()> {
        ExtensionResource::delete_all(&meant(f, |type_| f.extensions.deleted(type_) == phase).await?).await
    }

    /// Waits until they are gone.
    pub async fn gone_in(f: &Facts, phase: Phase) -> Result<()> {
        ExtensionResource::all_deleted(&meant(f, |type_| f.extensions.deleted(type_) == phase).await?).await
    }

    /// "Deleting stale extensions": the Shoot does not name them any more, and no registration enables them.
    pub async fn delete_stale(f: &Facts) -> Result<()> {
        ExtensionResource::delete_all(&meant(f, |type_| f.extensions.is_stale(type_)).await?).await
    }

    /// Waits until they are gone.
    pub async fn stale_gone(f: &Facts) -> Result<()> {
        ExtensionResource::all_deleted(&meant(f, |type_| f.extensions.is_stale(type_)).await?).await
    }
}

/// One that is stale goes, and is not handed over.
fn lets_go(f: &Facts, type_: &str, phase: Phase) -> bool {
    f.extensions.migrated(type_) == phase && !f.extensions.is_stale(type_)
}

fn object_of<'a>(stay: &'a Stay, name: &str) -> ExtensionResource<'a, extensions::Extension> {
    ExtensionResource::new(stay, name, stay.settings.timeouts.extension)
}

fn extension(wanted: &Wanted) -> extensions::Extension {
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

/// How long it is waited for: as long as the registration says, if it says something.
fn patience(wanted: &Wanted, usual: Wait) -> Result<Wait> {
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

/// The objects whose type is meant.
async fn meant(
    stay: &Stay,
    is_meant: impl Fn(&str) -> bool,
) -> Result<Vec<ExtensionResource<'_, extensions::Extension>>> {
    let of_type = |object: &extensions::Extension| is_meant(&object.spec.default.type_);
    ExtensionResource::meant(stay, stay.settings.timeouts.extension, of_type).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_registration_says_how_long_its_extension_is_waited_for() {
        let usual = crate::Timeouts::default().extension;
        let patience = |text: Option<&str>| {
            let wanted = Wanted {
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
