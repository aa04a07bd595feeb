//! SubnetIsolation: while the object exists, the network of a zone is closed (GEP-21, RZ-30..35). A shoot
//! has at most a single SubnetIsolation, so that never two zones are closed: the object of a different
//! zone is created only after the former object is gone.

use std::time::Duration;

use api::extensions::{self, SubnetIsolationSpec};
use kube::{Api, ResourceExt, api::ListParams};
use placement::{Isolation, isolation};
use runtime::{Error, Result, client::Cluster, error::Explain};

use crate::{
    ExtensionResource, Facts, Infrastructure, Residency,
    task::{CLOUD, ExternalSystems, PartTask},
    verbs::{Deploy, Destroy, Tasks},
};

/// Requeue interval while a former object is being deleted.
const DELETION_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The shoot's SubnetIsolation.
#[derive(Debug)]
pub struct SubnetIsolation;

impl Deploy for SubnetIsolation {
    const TASKS: Tasks = [
        "Deploying isolation of the zone that is cut off",
        "Waiting until the zone that is cut off has been isolated",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        let Some(zone) = zone_to_close(f).await? else {
            return Ok(());
        };
        // An apply on an object that is being deleted would be lost with the object.
        if Self::object(&f.residency)
            .get()
            .await?
            .is_some_and(|object| is_deleted(&object))
        {
            return Err(Error::not_ready(
                DELETION_POLL_INTERVAL,
                format!(
                    "SubnetIsolation {} is being deleted, and is made anew when gone",
                    f.residency.tenant.name
                ),
            ));
        }
        let mut object = subnet_isolation(f, zone).await?;
        f.close_deadline.annotate(&mut object);
        Self::object(&f.residency).deploy(f, object).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        match zone_to_close(f).await? {
            Some(_) => Self::object(&f.residency).wait_until_ready().await,
            None => Ok(()),
        }
    }
}

/// With the shoot: after the machines, and before the network of the machines.
impl Destroy for SubnetIsolation {
    const TASKS: Tasks = [
        "Destroying isolation of zones",
        "Waiting until isolation of zones has been destroyed",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn destroy(residency: &Residency) -> Result<()> {
        ExtensionResource::delete_all(&those(residency, |_| true).await?).await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        ExtensionResource::all_deleted(&those(residency, |_| true).await?).await
    }
}

impl SubnetIsolation {
    /// Tasks that open a zone after the end of the isolation.
    pub const DESTROY_STALE: [PartTask<Facts>; 2] = [
        PartTask::new("Destroying stale isolation of zones", CLOUD, |f| {
            Box::pin(Self::destroy_stale(f))
        }),
        PartTask::new(
            "Waiting until stale isolation of zones has been destroyed",
            CLOUD,
            |f| Box::pin(Self::stale_gone(f)),
        ),
    ];

    /// The object in the seed.
    #[must_use]
    pub fn object(residency: &Residency) -> ExtensionResource<'_, extensions::SubnetIsolation> {
        ExtensionResource::new(
            residency,
            &residency.tenant.name,
            residency.settings.timeouts.subnet_isolation,
        )
    }

    /// Whether any zone of the shoot is closed, closing or opening.
    pub async fn is_there(residency: &Residency) -> Result<bool> {
        Ok(!those(residency, |_| true).await?.is_empty())
    }

    /// Whether the seed has a SubnetIsolation of a zone that must be open.
    pub async fn is_stale(f: &Facts) -> Result<bool> {
        Ok(!stale(f).await?.is_empty())
    }

    /// "Destroying stale isolation of zones": the isolation has ended, or a different zone is isolated.
    pub async fn destroy_stale(f: &Facts) -> Result<()> {
        ExtensionResource::delete_all(&stale(f).await?).await
    }

    /// "Waiting until stale isolation of zones has been destroyed".
    pub async fn stale_gone(f: &Facts) -> Result<()> {
        ExtensionResource::all_deleted(&stale(f).await?).await
    }

    /// The zone that must have no machines (RZ-10). A zone that the source has closed stays closed.
    pub(crate) async fn zone_to_leave(f: &Facts) -> Result<Option<String>> {
        match &f.isolation {
            Isolation::Carried { zone, is_left: true } => Ok(Some(zone.clone())),
            _ => zone_to_close(f).await,
        }
    }
}

/// The zone with the closed network. For a shoot from a different seed, the carried state names the zone;
/// after a cancelled move, the object in this seed names the zone.
async fn zone_to_close(f: &Facts) -> Result<Option<String>> {
    match &f.isolation {
        Isolation::CutOff(zone) => Ok(Some(zone.clone())),
        Isolation::Carried { zone, .. } => {
            let is_closed =
                is_carried(f).await? || SubnetIsolation::object(&f.residency).get().await?.is_some();
            Ok(is_closed.then(|| zone.clone()))
        }
        Isolation::Nothing | Isolation::Refused(_) => Ok(None),
    }
}

async fn is_carried(f: &Facts) -> Result<bool> {
    let Some(state) = f.shoot_state().await? else {
        return Ok(false);
    };
    let found = state
        .extension(isolation::KIND, &f.residency.tenant.name, None)
        .await?;
    Ok(found.is_some())
}

async fn stale(f: &Facts) -> Result<Vec<ExtensionResource<'_, extensions::SubnetIsolation>>> {
    those(&f.residency, |object| is_stale(object, &f.isolation)).await
}

/// Whether the object is of a zone that is not to be closed, or is being deleted: a deletion that has begun
/// opens the zone, also where the same zone is isolated again.
fn is_stale(object: &extensions::SubnetIsolation, isolation: &Isolation) -> bool {
    match isolation {
        Isolation::CutOff(zone) => object.spec.isolated_zone_id != *zone || is_deleted(object),
        Isolation::Carried { .. } => false,
        Isolation::Nothing | Isolation::Refused(_) => true,
    }
}

fn is_deleted(object: &extensions::SubnetIsolation) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

async fn those(
    residency: &Residency,
    is_meant: impl Fn(&extensions::SubnetIsolation) -> bool,
) -> Result<Vec<ExtensionResource<'_, extensions::SubnetIsolation>>> {
    let api: Api<extensions::SubnetIsolation> = residency.seed.namespaced(&residency.namespace);
    let found = match api.list(&ListParams::default()).await {
        // An older seed does not serve the kind, so there are none.
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(Vec::new()),
        found => found.context("could not list objects of kind SubnetIsolation")?,
    };
    let wait = residency.settings.timeouts.subnet_isolation;
    let meant = found.iter().filter(|object| is_meant(object));
    Ok(meant
        .map(|object| ExtensionResource::new(residency, object.name_any(), wait))
        .collect())
}

async fn subnet_isolation(f: &Facts, zone: String) -> Result<extensions::SubnetIsolation> {
    let infrastructure = Infrastructure::object(&f.residency).get().await?;
    Ok(extensions::SubnetIsolation::new(
        &f.shoot.name_any(),
        SubnetIsolationSpec {
            default: f.default_spec(None),
            infrastructure_provider_status: infrastructure
                .and_then(|infrastructure| infrastructure.status?.default.provider_status),
            region: f.shoot.spec.region.clone(),
            secret_ref: f.cloud_provider_ref(),
            isolated_zone_id: zone,
        },
    ))
}

#[cfg(test)]
mod tests {
    use placement::isolation::IsolationRefusal;
    use runtime::clock;

    use super::*;

    #[test]
    fn a_zone_is_opened_unless_it_is_to_be_closed() {
        let mut object = extensions::SubnetIsolation::default();
        object.spec.isolated_zone_id = "a".into();
        let refused = Isolation::Refused(IsolationRefusal {
            reason: "NoOtherZone",
            message: String::new(),
        });
        let carried = |zone: &str| Isolation::Carried {
            zone: zone.into(),
            is_left: false,
        };
        for (isolation, stale) in [
            (Isolation::Nothing, true),
            (refused, true),
            (Isolation::CutOff("b".into()), true),
            (Isolation::CutOff("a".into()), false),
            (carried("a"), false),
            (carried("b"), false),
        ] {
            assert_eq!(is_stale(&object, &isolation), stale, "{isolation:?}");
        }
        object.metadata.deletion_timestamp = Some(clock::now_k8s());
        assert!(is_stale(&object, &Isolation::CutOff("a".into())));
    }
}
