//! An isolated zone of a shoot (GEP-21): the user's request, and the packets that the cloud's network lets
//! pass.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_CLOSE_NOW, condition::ZONE_ISOLATION},
    gardencore::{
        Shoot,
        shoot::{ZoneIsolation, ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
    meta::find_condition,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::sync::Notify;

use crate::{landscape::Landscape, nodes::Probe, shoot::UserShoot};

/// The ID of the isolated zone in all accounts of the local cloud.
pub const ZONE_ID: &str = "az-a";
/// The account's name of the isolated zone.
pub const ZONE: &str = "a";
/// The condition's report that the provider has confirmed the closed network. Also the wait before names the
/// closing of the network, and the cause.
const CLOSED: &str = "SubnetIsolation: the network is closed";
/// Bounds a failover while processes are killed: a new machine elsewhere, the drain, the end of a machine and
/// a closing.
pub const CUT_OFF_WITHIN: Duration = Duration::from_secs(600);
/// Bounds a failback while processes are killed: an opening and a new machine.
pub const BACK_WITHIN: Duration = Duration::from_secs(400);
/// Bounds a failover while no process is killed. About twice the longest time on two busy cores, 78.1 s
/// (docs/understand/testing.md).
const UNDISTURBED_CUT_OFF_WITHIN: Duration = Duration::from_secs(180);
/// Bounds a failback while no process is killed. Three times the longest time on two busy cores, 36.0 s
/// (docs/understand/testing.md), because a failback that follows a failed failover was not measured.
const UNDISTURBED_BACK_WITHIN: Duration = Duration::from_secs(120);

/// Sets or removes the annotation.
///
/// # Errors
/// The API refuses the change.
pub async fn ask(shoot: &UserShoot, id: Option<&str>) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {SHOOT_ISOLATED_ZONE: id}}});
    shoot
        .api()
        .patch(&shoot.name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// Isolates the zone, and waits until the failover has ended.
///
/// # Errors
/// The failover did not end within [`UNDISTURBED_CUT_OFF_WITHIN`], or failed.
pub async fn cut_off(shoot: &UserShoot) -> Result<ZoneIsolation> {
    ask(shoot, Some(ZONE_ID)).await?;
    done(shoot, Phase::Failover, UNDISTURBED_CUT_OFF_WITHIN).await
}

/// Spends the rest of the budget, and waits until the condition names the cause why the closed zone is not
/// empty.
///
/// # Errors
/// The condition does not name the cause in time.
pub async fn close_now(shoot: &UserShoot, cause: &str, within: Duration) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {SHOOT_ISOLATED_ZONE_CLOSE_NOW: "true"}}});
    shoot
        .api()
        .patch(&shoot.name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    let what = format!("the network is closed, and {cause} is named");
    let is_told = |shoot: &Shoot| {
        let conditions = shoot.status.as_ref().map_or(&[][..], |status| &status.conditions);
        let message = find_condition(conditions, ZONE_ISOLATION).map(|condition| condition.message.as_str());
        message.is_some_and(|message| message.contains(CLOSED) && message.contains(cause))
    };
    shoot.wait(&what, within, is_told).await.map(drop)
}

/// Takes the zone back, and waits until the failback has ended.
///
/// # Errors
/// The failback did not end within [`UNDISTURBED_BACK_WITHIN`], or failed.
pub async fn take_back(shoot: &UserShoot) -> Result<ZoneIsolation> {
    ask(shoot, None).await?;
    done(shoot, Phase::Failback, UNDISTURBED_BACK_WITHIN).await
}

/// Waits until the Shoot reports this phase and status of the zone.
///
/// # Errors
/// The Shoot does not report both in time.
pub async fn tells(shoot: &UserShoot, phase: Phase, status: Status, within: Duration) -> Result<Shoot> {
    let what = format!("{phase:?} {status:?}");
    let is_told =
        |shoot: &Shoot| get_status(shoot).is_some_and(|told| (told.phase, told.status) == (phase, status));
    shoot.wait(&what, within, is_told).await
}

/// Requests a change, and waits until the Shoot reports this phase and status, even if only for a moment: the
/// watch begins before the request.
///
/// # Errors
/// The Shoot does not report both in time.
pub async fn tells_when_asked(
    shoot: &UserShoot,
    id: Option<&str>,
    is: (Phase, Status),
    within: Duration,
) -> Result<()> {
    let (what, looked) = (format!("{is:?}"), Notify::new());
    let seen = shoot.wait(&what, within, |shoot: &Shoot| {
        looked.notify_one();
        get_status(shoot).is_some_and(|told| (told.phase, told.status) == is)
    });
    let asks = async {
        looked.notified().await;
        ask(shoot, id).await
    };
    tokio::try_join!(seen, asks).map(drop)
}

/// Waits until this phase has succeeded.
///
/// # Errors
/// The phase did not end in time, or failed.
pub async fn done(shoot: &UserShoot, phase: Phase, within: Duration) -> Result<ZoneIsolation> {
    let what = format!("{phase:?} has ended");
    let has_ended = |shoot: &Shoot| {
        get_status(shoot)
            .is_some_and(|told| told.phase == phase && matches!(told.status, Status::Done | Status::Failed))
    };
    let ended = shoot.wait(&what, within, has_ended).await?;
    let conditions = ended.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let why = find_condition(conditions, ZONE_ISOLATION);
    let told = get_status(&ended).filter(|told| told.status == Status::Done);
    told.cloned()
        .ok_or_else(|| anyhow::anyhow!("{what}, and not well: {why:?}"))
}

fn get_status(shoot: &Shoot) -> Option<&ZoneIsolation> {
    shoot.status.as_ref()?.zone_isolation.as_ref()
}

/// Pods that the cloud treats as machines: in the isolated zone, in that zone for a second cluster, and
/// elsewhere for a third cluster.
pub struct Probes {
    left: Probe,
    same: Probe,
    peer: Probe,
}

impl Probes {
    /// Starts the probes.
    ///
    /// # Errors
    /// A probe does not start.
    pub async fn start(landscape: &Landscape, technical_id: &str) -> Result<Self> {
        // A failed test leaves probes behind, and the next test must not reuse these probes.
        let start = async |name: &str, cluster, zone| {
            Probe::start(landscape, &format!("{name}-{technical_id}"), cluster, zone).await
        };
        Ok(Self {
            left: start("probe-left", technical_id, ZONE).await?,
            same: start("probe-same", "shoot--dev--same", ZONE).await?,
            peer: start("probe-peer", "shoot--dev--peer", "b").await?,
        })
    }

    /// Fails unless the zone is closed, or open, for this cluster, and open for the second cluster.
    ///
    /// # Errors
    /// The failed expectation.
    pub async fn find_the_zone_closed(&self, closed: bool) -> Result<()> {
        if closed {
            let passed = self.left.exchanges_with(&self.peer).await?;
            ensure!(!passed, "packets of the zone pass");
        } else {
            self.left.meets(&self.peer).await.context("the zone is cut off")?;
        }
        self.same
            .meets(&self.peer)
            .await
            .context("another cluster is cut off")
    }

    /// Removes the probes.
    ///
    /// # Errors
    /// A probe does not end.
    pub async fn remove(self) -> Result<()> {
        for probe in [self.left, self.same, self.peer] {
            probe.remove().await?;
        }
        Ok(())
    }
}

/// Fails if the account still has an object of a cluster's zones.
///
/// # Errors
/// The name of that object.
pub async fn nothing_in_account(landscape: &Landscape, technical_id: &str) -> Result<()> {
    let objects: Api<ConfigMap> = Api::namespaced(landscape.cloud().await?, "cloud");
    let objects = objects.list(&ListParams::default()).await?.items;
    let mut left = objects.iter().map(ResourceExt::name_any);
    let left = left.find(|name| name.contains(technical_id));
    ensure!(left.is_none(), "left in the account: {left:?}");
    Ok(())
}
