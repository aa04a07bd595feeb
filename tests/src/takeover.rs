//! A seed in trouble, and another one that takes its shoot over (GEP-17): what an operator does, and what
//! users saw.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use api::{
    constants::condition::OWNER_CHECKS_COMPLETE,
    gardencore::{Seed, Shoot, shoot::RestoredData},
    meta::{ConditionStatus, LastOperationState, LastOperationType, find_condition},
};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    landscape::Landscape,
    lifecycle::{self, COLLECTED_WITHIN, MOVE_WITHIN, kill_gardenlet, nothing_left_within},
    open_watch::OpenWatch,
    proof, record,
    shoot::UserShoot,
    trouble::{Disturbed, Trouble},
    watched,
    writer::{Acknowledged, Book, Writer},
};

/// Numbers of the writer that stays begin here, so that no object has two writers.
const STAYING: u64 = 1_000_000;

/// What is done to a shoot and its seed.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Where the shoot is.
    pub from: &'a str,
    /// Where it is to go on.
    pub to: &'a str,
    /// What befalls the former.
    pub trouble: Trouble,
    /// Whether the former has begun to hand the shoot over by then.
    pub has_begun: bool,
    /// How far the restoration is, in percent, each time the gardenlet of the latter is killed.
    pub kills: &'a [i32],
    /// Number of the first object that is written meanwhile.
    pub first: u64,
}

/// A shoot that went on elsewhere, as two users saw it.
pub struct Takeover {
    /// When the seed was disturbed.
    pub disturbed: Instant,
    /// When the operator gave his word.
    pub decided: Instant,
    /// When the owner record changed, where the trouble grew in that moment.
    pub changed: Option<Instant>,
    /// From the decision until the shoot was restored.
    pub restored: Duration,
    /// When the trouble of the former seed was over.
    pub over: Instant,
    /// Of who stayed with the address that he had.
    pub stayed: Book,
    /// Events of who stayed with the address.
    pub events: Book,
    /// When the watch of the user who stayed with the address was broken off.
    pub watch_ended: Option<Instant>,
    /// Of who asked DNS after each failure.
    pub followed: Book,
    /// What the status tells of the loss (R17-46); nothing where the final snapshot was there.
    pub told: Option<RestoredData>,
}

impl Takeover {
    /// A seed is disturbed, an operator has its shoot taken over, and the seed comes back and cleans up.
    ///
    /// # Errors
    /// What did not end in time, or what the former seed still has.
    pub async fn of(landscape: &Landscape, shoot: &UserShoot, plan: Plan<'_>) -> Result<Self> {
        let Plan { from, to, first, .. } = plan;
        let id = proof::technical_id(shoot).await?;
        let mut staying = Writer::staying(shoot.client().await?, STAYING + first);
        let user = UserShoot::new(landscape, &shoot.namespace, &shoot.name);
        let mut following = Writer::start(user, first);
        let mut events = Writer::of_events(shoot.client().await?, STAYING + first);
        let watch = OpenWatch::begin(shoot.client().await?).await?;
        staying.has_begun().await?;
        following.has_begun().await?;
        events.has_begun().await?;
        // Without it no seed takes the shoot over.
        let what = "all processes of the shoot check the owner";
        shoot.wait(what, COLLECTED_WITHIN, checks_are_complete).await?;
        if plan.has_begun {
            shoot.set_seed(to).await?;
            let what = "the shoot is being handed over";
            shoot.wait(what, MOVE_WITHIN, is_being_handed_over).await?;
        }
        let owner_record = record::owner_record(landscape, from, &id).await?;
        let mut trouble = Disturbed::by(plan.trouble, landscape, from)?;
        let disturbed = Instant::now();
        is_silent(landscape, from).await?;
        shoot.set_seed(to).await?;
        force(shoot).await?;
        let decided = Instant::now();
        let changed = trouble.race(landscape, &owner_record, MOVE_WITHIN).await?;
        for percent in plan.kills {
            let what = format!("{percent} % are restored");
            let far = |shoot: &Shoot| is_restored(shoot, *percent);
            shoot.wait(&what, MOVE_WITHIN, far).await?;
            kill_gardenlet(landscape.seed(to)?).await?;
        }
        shoot.wait_until_on(to, MOVE_WITHIN).await?;
        let restored = decided.elapsed();
        // All is as before there, and it must not begin to serve.
        let over = Instant::now();
        trouble.end()?;
        answers(landscape, from).await?;
        // A seed whose kubelet or API server was away has that to come back first.
        nothing_left_within(MOVE_WITHIN, landscape, from, &id).await?;
        forgotten(shoot).await?;
        if plan.trouble.ends_processes() {
            forget_starts(landscape, from).await?;
        }
        println!(
            "{from} has cleaned up {:.1} s after its trouble was over",
            over.elapsed().as_secs_f64()
        );
        let ownership = shoot.get().await?.status.and_then(|status| status.ownership);
        let told = ownership.and_then(|ownership| {
            let of_this = |restored: &RestoredData| restored.epoch == ownership.epoch;
            ownership.restored.filter(of_this)
        });
        Ok(Self {
            disturbed,
            decided,
            changed,
            restored,
            over,
            stayed: staying.stop().await?,
            watch_ended: watch.ended(),
            events: events.stop().await?,
            followed: following.stop().await?,
            told,
        })
    }

    /// How long the disturbed seed acknowledged writes.
    ///
    /// # Errors
    /// It never did.
    pub fn served_for(&self) -> Result<Duration> {
        Ok(self.last()?.duration_since(self.disturbed))
    }

    /// From the word to the first write that the new seed acknowledged.
    ///
    /// # Errors
    /// It has acknowledged none, or one before the former seed had acknowledged its last.
    pub fn writable_after(&self) -> Result<Duration> {
        let back = self.back()?;
        ensure!(
            self.last()? < back,
            "{:?} was acknowledged at the former seed after the first write at the new one",
            self.stayed.writes.last()
        );
        Ok(back.duration_since(self.decided))
    }

    /// Acknowledged writes that are lost, by what the status tells.
    ///
    /// # Errors
    /// As [`Self::writable_after`].
    pub fn lost_as_told(&self) -> Result<Vec<u64>> {
        let Some(told) = &self.told else {
            return Ok(Vec::new());
        };
        let back = self.back()?;
        let revision = told
            .last_revision
            .with_context(|| format!("no revision is told: {told:?}"))?;
        let revision = u64::try_from(revision)?;
        let later = |write: &&Acknowledged| write.at < back && write.version > revision;
        let lost = self.followed.writes.iter().filter(later);
        Ok(lost.map(|write| write.number).collect())
    }

    /// When the new seed acknowledged its first write: the end of the longest time without one.
    fn back(&self) -> Result<Instant> {
        let gap = self.followed.longest_gap_between();
        let (_, back) = gap.context("nothing was written")?;
        ensure!(back > self.decided, "nothing was written after the decision");
        Ok(back)
    }

    fn last(&self) -> Result<Instant> {
        let last = self
            .stayed
            .writes
            .last()
            .context("the former seed acknowledged nothing")?;
        Ok(last.at)
    }
}

/// Removes what a seed has uploaded since it returned, as docs/operate/runbooks.md says: it is for people
/// who look for what was lost (R17-46), nobody else reads it, and nobody else removes it. Returns what it
/// was.
///
/// # Errors
/// It cannot be removed.
pub async fn remove_late(landscape: &Landscape, shoot: &UserShoot, seed: &str) -> Result<Vec<String>> {
    let backups = lifecycle::backup_name(shoot).await?;
    let bucket = lifecycle::place(&landscape.garden, seed).await?;
    let place = Path::new(landscape.variable("S3_DATA")?)
        .join(bucket)
        .join(&backups);
    let found = lifecycle::snapshots(&place, &backups);
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    Ok(found)
}

fn is_restored(shoot: &Shoot, percent: i32) -> bool {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.is_some_and(|last| last.type_ == LastOperationType::Restore && last.progress >= percent)
}

fn is_being_handed_over(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.is_some_and(|last| {
        last.type_ == LastOperationType::Migrate && last.state == LastOperationState::Processing
    })
}

/// Waits until the seed's own API server does.
async fn answers(landscape: &Landscape, seed: &str) -> Result<()> {
    let client = landscape.seed(seed)?;
    proof::until_nothing(COLLECTED_WITHIN, || async {
        client.apiserver_version().await?;
        Ok(Vec::new())
    })
    .await
    .with_context(|| format!("{seed} does not answer again"))?;
    Ok(())
}

/// Processes that begin again count against the suite (hack/e2e.sh), unless it was the test that ended them.
async fn forget_starts(landscape: &Landscape, seed: &str) -> Result<()> {
    let client = landscape.seed(seed)?;
    let started = ListParams::default().fields("reason=Started");
    for event in Api::<Event>::all(client.clone()).list(&started).await? {
        let api: Api<Event> = Api::namespaced(client.clone(), &event.namespace().unwrap_or_default());
        match api.delete(&event.name_any(), &DeleteParams::default()).await {
            // The server lets old ones go.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Whether a flow has ended with the present owner terms, and every manager checks the owner.
#[must_use]
pub fn checks_are_complete(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let told = status.and_then(|status| find_condition(&status.conditions, OWNER_CHECKS_COMPLETE));
    told.is_some_and(|told| told.status == ConditionStatus::True)
}

/// Waits until the garden has noticed that the seed's gardenlet is not heard of.
///
/// # Errors
/// The gardenlet is still heard of.
pub async fn is_silent(landscape: &Landscape, seed: &str) -> Result<()> {
    let seeds: Api<Seed> = Api::all(landscape.garden.clone());
    let unknown = |seed: Option<&Seed>| {
        let status = seed.and_then(|seed| seed.status.as_ref());
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|one| one.type_ == "GardenletReady" && one.status == ConditionStatus::Unknown)
    };
    watched::until(&seeds, seed, COLLECTED_WITHIN, unknown)
        .await
        .with_context(|| format!("{seed} is heard of although it is in trouble"))?;
    Ok(())
}

/// What an operator does: `kubectl annotate shoot … shoot.gardener.cloud/force-restore=true`.
///
/// # Errors
/// The Shoot cannot be written.
pub async fn force(shoot: &UserShoot) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"shoot.gardener.cloud/force-restore": "true"}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    shoot.api().patch(&shoot.name, &params, &patch).await?;
    Ok(())
}

/// Waits until no seed has anything to clean up.
async fn forgotten(shoot: &UserShoot) -> Result<()> {
    let done = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        status.is_some_and(|status| status.former_seeds.is_empty())
    };
    let what = "the source has cleaned up";
    shoot.wait(what, COLLECTED_WITHIN, done).await.map(drop)
}
