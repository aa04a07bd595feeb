//! The courses of a Shoot.

use anyhow::{Result, ensure};
use api::constants::{OPERATION, SHOOT_RENEW_OWNERSHIP, operation};
use api::gardencore::Shoot;
use fastrand::Rng;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use testkit::eventually;

use super::journey::{Journey, Moment, obstacle};
use super::rules::{epoch, host, last};
use super::witness::SEEN_WITHIN;
use crate::evidence::Evidence;
use crate::garden;
use crate::world::DOMAIN;

/// The seeds' indices and names.
const A: usize = 0;
const B: usize = 1;
const NAME_OF_A: &str = "seed-a";
const NAME_OF_B: &str = "seed-b";
/// A Seed without a gardenlet.
const SILENT: &str = "seed-c";

/// The course of a Shoot.
#[derive(Clone, Copy, Debug)]
pub enum Plot {
    /// The Shoot moves, moves back, and is deleted.
    ThereAndBack,
    /// The version is edited at this moment of a move.
    Edited(Moment),
    /// The move is cancelled at this moment.
    CalledOff(Moment),
    /// The move is cancelled after the hand-over.
    CalledOffTooLate,
    /// The Shoot is deleted at this moment of a move.
    Deleted(Moment),
    /// The owner record was forged, so that the seed stops all work for the Shoot. The record is repaired,
    /// and a person requests a new epoch. After that, a new epoch is requested for a healthy Shoot.
    Renewed,
    /// The Shoot is sent to a seed that cannot take the Shoot, before a move and at this moment of a move.
    Misled(Moment),
}

impl Plot {
    /// All plots: early and late moments of each flow.
    pub fn all(random: &mut Rng) -> Vec<Self> {
        vec![
            Self::ThereAndBack,
            Self::ThereAndBack,
            Self::Edited(Moment::Migrate(random.i32(0..100))),
            Self::Edited(Moment::Restore(random.i32(0..100))),
            Self::CalledOff(Moment::Migrate(random.i32(0..45))),
            Self::CalledOff(Moment::Migrate(random.i32(45..100))),
            Self::CalledOffTooLate,
            Self::Deleted(Moment::Migrate(random.i32(0..45))),
            Self::Deleted(Moment::Migrate(random.i32(45..100))),
            Self::Deleted(Moment::HandedOver),
            Self::Deleted(Moment::Restore(random.i32(0..100))),
            Self::Misled(Moment::Migrate(random.i32(0..80))),
            Self::Renewed,
        ]
    }

    /// Whether `only` contains the name; an empty `only` contains all names.
    pub fn is_wanted(self, only: &str) -> bool {
        let name = format!("{self:?}");
        let name = name.split('(').next().unwrap_or_default();
        only.is_empty() || only.split(',').any(|wanted| wanted == name)
    }

    pub async fn play(self, journey: Journey<'_>) -> Result<()> {
        match self {
            Self::ThereAndBack => journey.there_and_back().await,
            Self::Edited(moment) => journey.edited(moment).await,
            Self::CalledOff(moment) => journey.called_off(moment).await,
            Self::CalledOffTooLate => journey.called_off_too_late().await,
            Self::Deleted(moment) => journey.deleted(moment).await,
            Self::Misled(moment) => journey.misled(moment).await,
            Self::Renewed => journey.renewed().await,
        }
    }
}

impl Journey<'_> {
    async fn there_and_back(&self) -> Result<()> {
        let evidence = self.begin().await?;
        for (seed, name) in [(B, NAME_OF_B), (A, NAME_OF_A)] {
            self.send_to(name).await?;
            self.settled(seed).await?;
            self.is_complete_on(seed, &evidence).await?;
        }
        self.delete().await?;
        self.is_nowhere().await
    }

    /// The move continues with the approved version, and only then the shoot is upgraded.
    async fn edited(&self, moment: Moment) -> Result<()> {
        let evidence = self.begin().await?;
        self.send_to(NAME_OF_B).await?;
        self.reaches(moment, 1).await?;
        let edited = self
            .edit(json!({"kubernetes": {"version": garden::NEWER_VERSION}}))
            .await?;
        self.settled(B).await?;
        self.is_complete_on(B, &evidence).await?;
        let versions = [garden::VERSION, garden::NEWER_VERSION];
        let expected = versions.map(|version| format!("kube-apiserver:v{version}"));
        let what = format!(
            "edited at {moment} (seen {:?}), it first ran what was approved",
            last(&edited)
        );
        eventually(&what, SEEN_WITHIN, || async {
            let images = self.stage.witness.images(&self.name, NAME_OF_B);
            if images == expected {
                Ok(())
            } else {
                Err(format!("it ran {images:?}"))
            }
        })
        .await
    }

    async fn called_off(&self, moment: Moment) -> Result<()> {
        let evidence = self.begin().await?;
        self.send_to(NAME_OF_B).await?;
        self.reaches(moment, 1).await?;
        if self.is_too_late_to_call_off().await? {
            return self.goes_on_after_all(&evidence).await;
        }
        let settled = self.settled(A).await?;
        // If etcd will not serve again in an epoch, the shoot continues in the next epoch;
        // garden-controller-manager grants the next epoch.
        ensure!(
            epoch(&settled) <= 2,
            "a move that was called off made several epochs"
        );
        self.is_complete_on(A, &evidence).await?;
        // A second attempt meets no obstacle.
        self.send_to(NAME_OF_B).await?;
        self.settled(B).await?;
        self.is_complete_on(B, &evidence).await
    }

    /// The destination has begun no operation yet: the gardenlet is dead.
    async fn called_off_too_late(&self) -> Result<()> {
        let evidence = self.begin().await?;
        self.send_to(NAME_OF_B).await?;
        self.reaches(Moment::Migrate(60), 1).await?;
        let dead = self.stage.mortals.kill_gardenlet(B).await;
        self.reaches(Moment::HandedOver, 1).await?;
        let too_late = self.is_too_late_to_call_off().await?;
        drop(dead);
        ensure!(too_late, "a move was called off after its hand-over");
        self.goes_on_after_all(&evidence).await
    }

    /// Cancels the move, and returns whether the cancellation was too late: the destination has the Shoot.
    async fn is_too_late_to_call_off(&self) -> Result<bool> {
        match self.send_to(NAME_OF_A).await {
            Ok(shoot) => Ok(host(&shoot) == NAME_OF_B),
            // The destination is restoring the Shoot, and a policy refuses the change.
            Err(error) if format!("{error:#}").contains("restores the shoot") => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The former seed cannot take the Shoot back while the former seed holds the data that the destination
    /// needs. The user gets a report, and names the destination again.
    async fn goes_on_after_all(&self, evidence: &Evidence) -> Result<()> {
        let told = |shoot: &Shoot| obstacle(shoot) == Some("DestinationSeedNotCleanedUp");
        let wanted = self.shoots().get(&self.name).await?.spec.seed_name;
        if wanted.as_deref() == Some(NAME_OF_A) {
            self.until("it is told that it is too late", told).await?;
            self.send_to(NAME_OF_B).await?;
        }
        self.settled(B).await?;
        self.is_complete_on(B, evidence).await
    }

    async fn deleted(&self, moment: Moment) -> Result<()> {
        self.begin().await?;
        self.send_to(NAME_OF_B).await?;
        if matches!(moment, Moment::HandedOver) {
            // The destination is dead and has begun no operation. The dependents of the Shoot are deleted at
            // once, as some tools do.
            self.reaches(Moment::Migrate(60), 1).await?;
            let dead = self.stage.mortals.kill_gardenlet(B).await;
            self.reaches(moment, 1).await?;
            self.delete_with(&DeleteParams::foreground()).await?;
            drop(dead);
        } else {
            self.reaches(moment, 1).await?;
            self.delete().await?;
        }
        self.is_nowhere().await
    }

    async fn renewed(&self) -> Result<()> {
        let evidence = self.begin().await?;
        // In a later epoch: every process that asks has lost the shoot.
        self.dns_says(Some("somebody"), Some("2")).await?;
        self.annotate(OPERATION, operation::RECONCILE).await?;
        let lost = |shoot: &Shoot| {
            let mut errors = shoot.status.iter().flat_map(|status| &status.last_errors);
            errors.any(|error| {
                error
                    .description
                    .contains("has lost the shoot in ownership epoch 1")
            })
        };
        self.until("its seed has lost it", lost).await?;
        self.dns_says(None, None).await?;
        for wanted in [2, 3] {
            self.annotate(SHOOT_RENEW_OWNERSHIP, "true").await?;
            self.until("its epoch is a new one", |shoot| epoch(shoot) == wanted)
                .await?;
            self.settled(A).await?;
            self.is_complete_on(A, &evidence).await?;
        }
        // A move meets no obstacle.
        self.send_to(NAME_OF_B).await?;
        self.settled(B).await?;
        self.is_complete_on(B, &evidence).await
    }

    /// Writes the content of the owner record, bypassing all writers.
    async fn dns_says(&self, owner: Option<&str>, epoch: Option<&str>) -> Result<()> {
        let name = self.owner_name();
        let of_epoch = format!("epoch.{name}");
        let (owner, epoch) = (Vec::from_iter(owner), Vec::from_iter(epoch));
        let names: [(&str, &[&str]); 2] = [(&name, &owner), (&of_epoch, &epoch)];
        self.world.dns.write_texts(DOMAIN, &names).await
    }

    async fn annotate(&self, annotation: &str, value: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {annotation: value}}}));
        self.shoots()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    async fn misled(&self, moment: Moment) -> Result<()> {
        let evidence = self.begin().await?;
        garden::apply(
            &self.world.garden(),
            garden::seed(SILENT, &self.world.dns.address),
        )
        .await?;
        let told = |shoot: &Shoot| {
            let errors = shoot.status.iter().flat_map(|status| &status.last_errors);
            let told = errors.filter(|error| error.description.contains(SILENT)).count() > 0;
            obstacle(shoot) == Some("DestinationSeedNotReady") && told
        };
        self.send_to(SILENT).await?;
        self.until("it is told why it stays", told).await?;
        // The Shoot is reconciled regardless.
        let edited = self.edit(json!({"purpose": "testing"})).await?;
        let reconciled = |shoot: &Shoot| {
            let observed = shoot
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            observed == edited.metadata.generation && host(shoot) == NAME_OF_A
        };
        self.until("it is reconciled where it is", reconciled).await?;
        self.send_to(NAME_OF_B).await?;
        self.reaches(moment, 1).await?;
        if self.send_to(SILENT).await.is_ok() {
            let waits = |shoot: &Shoot| obstacle(shoot).is_some();
            self.until("it is told why it waits", waits).await?;
            self.send_to(NAME_OF_B).await?;
        }
        self.settled(B).await?;
        self.is_complete_on(B, &evidence).await
    }
}
