//! A seed in trouble, and a second seed that takes the shoot over (GEP-17): the steps of an operator, and the
//! observations of users.

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
    external_changes,
    landscape::Landscape,
    lifecycle::{self, COLLECTED_WITHIN, MOVE_WITHIN, kill_gardenlet, nothing_left_within},
    open_watch::OpenWatch,
    proof,
    shoot::UserShoot,
    trouble::{Disturbed, Trouble},
    watched,
    writer::{Acknowledged, Book, Writer},
};

/// The first number of the writer with a fixed address, so that no object has two writers.
const STAYING: u64 = 1_000_000;

/// The disturbances of a shoot and the shoot's seed.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The present seed of the shoot.
    pub from: &'a str,
    /// The seed that takes the shoot over.
    pub to: &'a str,
    /// The disturbance of the present seed.
    pub trouble: Trouble,
    /// Whether the present seed has begun the hand-over by then.
    pub has_begun: bool,
    /// The progress of the restoration, in percent, at each kill of the destination's gardenlet.
    pub kills: &'a [i32],
    /// Number of the first object that is written meanwhile.
    pub first: u64,
}

/// The observations of two users during a takeover.
pub struct Takeover {
    /// When the seed was disturbed.
    pub disturbed: Instant,
    /// The time of the operator's decision.
    pub decided: Instant,
    /// The time of the change of the owner record, if the disturbance grew at that moment.
    pub changed: Option<Instant>,
    /// From the decision until the shoot was restored.
    pub restored: Duration,
    /// When the trouble of the former seed was over.
    pub over: Instant,
    /// The writes of the user with the fixed address.
    pub stayed: Book,
    /// The Events of the user with the fixed address.
    pub events: Book,
    /// The time at which the watch of the user with the fixed address ended.
    pub watch_ended: Option<Instant>,
    /// The writes of the user with a DNS query after each failure.
    pub followed: Book,
    /// The loss as reported in the status (R17-46); `None` if the final snapshot existed.
    pub told: Option<RestoredData>,
}

impl Takeover {
    /// Disturbs a seed, lets an operator request the takeover, and waits until the returning seed has cleaned
    /// up.
    ///
    /// # Errors
    /// The step that did not end in time, or the leftovers of the former seed.
    pub async fn run(landscape: &Landscape, shoot: &UserShoot, plan: Plan<'_>) -> Result<Self> {
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
        // Without this condition, no seed takes the shoot over.
        let what = "all processes of the shoot check the owner";
        shoot.wait(what, COLLECTED_WITHIN, checks_are_complete).await?;
        if plan.has_begun {
            shoot.set_seed(to).await?;
            let what = "the shoot is being handed over";
            shoot.wait(what, MOVE_WITHIN, is_being_handed_over).await?;
        }
        let owner_record = external_changes::owner_record(landscape, from, &id).await?;
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
        // All of the seed's state is as before, and the seed must not begin to serve.
        let over = Instant::now();
        trouble.end()?;
        answers(landscape, from).await?;
        // A seed without kubelet or API server first needs both back.
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

    /// The time for which the disturbed seed acknowledged writes.
    ///
    /// # Errors
    /// The seed never acknowledged a write.
    pub fn served_for(&self) -> Result<Duration> {
        Ok(self.last()?.duration_since(self.disturbed))
    }

    /// From the decision to the first write that the new seed acknowledged.
    ///
    /// # Errors
    /// The new seed has acknowledged no write, or a write before the last acknowledgement of the former seed.
    pub fn writable_after(&self) -> Result<Duration> {
        let back = self.back()?;
        ensure!(
            self.last()? < back,
            "{:?} was acknowledged at the former seed after the first write at the new one",
            self.stayed.writes.last()
        );
        Ok(back.duration_since(self.decided))
    }

    /// Acknowledged writes that are lost according to the status.
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

    /// The time of the new seed's first acknowledgement: the end of the longest time without an
    /// acknowledgement.
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

/// Removes the uploads of a returned seed, as docs/operate/runbooks.md describes. The uploads help people to
/// find lost writes (R17-46); no process reads or removes the uploads. Returns the removed names.
///
/// # Errors
/// An upload cannot be removed.
pub async fn remove_late(landscape: &Landscape, shoot: &UserShoot, seed: &str) -> Result<Vec<String>> {
    let backups = lifecycle::backup_name(shoot).await?;
    let bucket = lifecycle::bucket_name(&landscape.garden, seed).await?;
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

/// Waits until the seed's own API server answers.
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

/// Restarts of processes count as failures of the suite (hack/e2e.sh), unless the test ended the processes.
async fn forget_starts(landscape: &Landscape, seed: &str) -> Result<()> {
    let client = landscape.seed(seed)?;
    let started = ListParams::default().fields("reason=Started");
    for event in Api::<Event>::all(client.clone()).list(&started).await? {
        let api: Api<Event> = Api::namespaced(client.clone(), &event.namespace().unwrap_or_default());
        match api.delete(&event.name_any(), &DeleteParams::default()).await {
            // The server deletes old Events.
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

/// Waits until the garden has noticed the silence of the seed's gardenlet.
///
/// # Errors
/// The gardenlet still reports.
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

/// The operator's command: `kubectl annotate shoot … shoot.gardener.cloud/force-restore=true`.
///
/// # Errors
/// The Shoot cannot be written.
pub async fn force(shoot: &UserShoot) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"shoot.gardener.cloud/force-restore": "true"}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    shoot.api().patch(&shoot.name, &params, &patch).await?;
    Ok(())
}

/// Waits until no seed has objects to clean up.
async fn forgotten(shoot: &UserShoot) -> Result<()> {
    let done = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        status.is_some_and(|status| status.former_seeds.is_empty())
    };
    let what = "the source has cleaned up";
    shoot.wait(what, COLLECTED_WITHIN, done).await.map(drop)
}
