//! Reads the inputs of the preflight, and writes the verdict.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{
        MIGRATION_DRY_RUN,
        condition::{READY_FOR_MIGRATION, TAKEOVER_POSSIBLE},
    },
    gardencore::{
        BackupBucket, BackupEntry, CloudProfile, ControllerInstallation, ControllerRegistration, Seed, Shoot,
    },
};
use futures::{
    StreamExt as _,
    channel::mpsc::{self, UnboundedSender},
    stream::iter,
};
use kube::{
    Api, ResourceExt,
    runtime::{
        Controller,
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::{Journey, journey};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
    error::{Explain as _, is_refused_for_size},
};

use super::{
    approval::{Decision, decide, report_refused_hand_on},
    capacity,
    change::change,
    dry_run, former_seeds,
    migration_slots::{self, MigrationSlots, NoSlot},
    move_metrics, planned_move_checks,
    preflight::{BUSY, FULL, Verdict, wanted_move},
    reading::{SOURCE, backup_entry_name, read, write},
    slot_uses::SlotUses,
    too_large,
};
use crate::{Context, controller_registration::seed_of};

/// Number of successive write conflicts before an error. A gardenlet that reconciles the shoot writes its
/// progress once a second, a long time compared to a read and a write.
const ATTEMPTS: usize = 5;

/// Requeue interval of a move that waits for a slot or for the begin by the source, if no other event
/// triggers a check.
const SLOT_REQUEUE: Duration = Duration::from_secs(60);

/// The constraints that end with the wish for a move.
const OF_MOVES: [&str; 2] = [READY_FOR_MIGRATION, TAKEOVER_POSSIBLE];

struct ShootMigration {
    context: Context,
    slots: MigrationSlots,
    slot_uses: SlotUses,
    /// The cache of all Shoots.
    known: Store<Shoot>,
    /// Sends Shoots that may have waited for a slot.
    places: UnboundedSender<Shoot>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context.shoots.controller(|_| None);
    let (of_seed, of_bucket, of_entry) = (controller.store(), controller.store(), controller.store());
    // A change of a Seed triggers the shoots that are about to move to or from that seed.
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let controller = controller.watches(seeds, watcher::Config::default(), move |seed| {
        let name = seed.name_any();
        concerned(&of_seed, |shoot| concerns_move(shoot, &name))
    });
    // The end of a Seed triggers the shoots that left that seed.
    let ends = former_seeds::ends_of_seeds(context.garden.cluster_wide());
    let of_end = controller.store();
    let controller = controller.reconcile_on(ends.flat_map(move |name| {
        iter(concerned(&of_end, |shoot| {
            former_seeds::names(shoot).any(|former| former == name)
        }))
    }));
    let buckets: Api<BackupBucket> = context.garden.cluster_wide();
    let controller = controller.watches(buckets, watcher::Config::default(), move |bucket| {
        concerned(&of_bucket, |shoot| {
            moves(shoot, |from, to| {
                let seed = bucket.spec.seed_name.as_deref();
                seed == Some(from) || seed == Some(to)
            })
        })
    });
    let entries: Api<BackupEntry> = context.garden.all();
    let controller = controller.watches(entries, watcher::Config::default(), move |entry| {
        concerned(&of_entry, |shoot| {
            moves(shoot, |_, _| {
                let name = entry.name_any();
                let name = name.strip_prefix(SOURCE).unwrap_or(&name);
                entry.namespace() == shoot.namespace() && backup_entry_name(shoot).as_deref() == Some(name)
            })
        })
    });
    let controller = with_extensions(&context, controller);
    let (known, (places, freed)) = (controller.store(), mpsc::unbounded());
    move_metrics::register(&context.metrics, &known);
    // The mapper returns the Shoot itself: a Shoot that is sent here is reconciled.
    let controller = controller.watches_stream(freed.map(Ok), |waiting| [ObjectRef::from_obj(&waiting)]);
    context
        .run(controller, |context| ShootMigration {
            slots: MigrationSlots::new(context.config.concurrent_migrations.into()),
            slot_uses: SlotUses::default(),
            context,
            known,
            places,
        })
        .await;
}

/// An installation triggers the shoots that are about to move to its seed; a registration or a CloudProfile
/// triggers all shoots that are about to move.
fn with_extensions(context: &Context, controller: Controller<Shoot>) -> Controller<Shoot> {
    let (of_installation, of_registration) = (controller.store(), controller.store());
    let (of_profile, profiles) = (controller.store(), context.garden.cluster_wide::<CloudProfile>());
    let installations: Api<ControllerInstallation> = context.garden.cluster_wide();
    let registrations: Api<ControllerRegistration> = context.garden.cluster_wide();
    controller
        .watches(profiles, watcher::Config::default(), move |_| {
            concerned(&of_profile, |shoot| moves(shoot, |_, _| true))
        })
        .watches(installations, runner::few_at_a_time(), move |installation| {
            concerned(&of_installation, |shoot| {
                moves(shoot, |_, to| seed_of(&installation) == Some(to))
            })
        })
        .watches(registrations, watcher::Config::default(), move |_| {
            concerned(&of_registration, |shoot| moves(shoot, |_, _| true))
        })
}

/// The shoots that match the predicate.
fn concerned(shoots: &Store<Shoot>, holds: impl Fn(&Shoot) -> bool) -> Vec<ObjectRef<Shoot>> {
    let all = shoots.state();
    let concerned = all.iter().filter(|shoot| holds(shoot));
    concerned
        .map(|shoot| ObjectRef::from_obj(shoot.as_ref()))
        .collect()
}

/// Whether a change of the Seed can change the verdict about the move of the shoot.
fn concerns_move(shoot: &Shoot, seed: &str) -> bool {
    moves(shoot, |from, to| from == seed || to == seed)
}

fn moves(shoot: &Shoot, between: impl Fn(&str, &str) -> bool) -> bool {
    wanted_move(shoot).is_some_and(|(from, to)| between(from, to))
}

impl Reconciler<Shoot> for ShootMigration {
    const NAME: &'static str = "shoot-migration";

    /// Ignores Shoots without a requested move, without fields of a move and without a use of slots.
    fn is_responsible(&self, shoot: &Shoot) -> bool {
        let marked = shoot
            .status
            .as_ref()
            .is_some_and(|s| s.migration.is_some() || OF_MOVES.iter().any(|c| s.constraint(c).is_some()));
        let asks = shoot.annotations().contains_key(MIGRATION_DRY_RUN);
        let has_moved = former_seeds::names(shoot).next().is_some();
        marked || asks || has_moved || wanted_move(shoot).is_some() || self.slot_uses.is_recorded(shoot)
    }

    /// The judged objects are read from the API server, never from a cache, and the write is conditional on
    /// the judged version.
    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        if let Some(destination) = self.slot_uses.record(&shoot, clock::now()) {
            self.wake_next(&shoot, &destination);
        }
        let name = shoot.name_any();
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        // Reported after the verdict: a write beside the move keeps no shoot from the verdict.
        let mut failed = None;
        for _ in 0..ATTEMPTS {
            let Some(shoot) = self.context.latest(&shoot).await? else {
                return Ok(Next::Change);
            };
            if failed.is_none() {
                match self.prepare(&shoots, &shoot).await {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
            }
            let judged = Box::pin(read(&self.context, &shoot)).await?;
            let verdict = planned_move_checks::apply(&shoot, &judged);
            let verdict =
                verdict.map(|verdict| self.with_place(&shoot, judged.destination.as_ref(), verdict));
            let verdict = verdict.map(|verdict| report_refused_hand_on(&shoot, verdict));
            let ready = verdict.as_ref().is_some_and(|verdict| verdict.ready);
            let decision = decide(&shoot, ready)?;
            let recorded = Box::pin(self.record(&shoots, &shoot, verdict, decision)).await?;
            let Some((verdict, decision)) = recorded else {
                continue;
            };
            if let Some(error) = failed {
                return Err(error);
            }
            let waits = verdict.is_some_and(|verdict| [BUSY, FULL].contains(&verdict.reason));
            let awaits_begin = decision.approval.is_some() && journey(&shoot) == Journey::Settled;
            return Ok(if waits || awaits_begin {
                Next::After(SLOT_REQUEUE)
            } else {
                Next::Change
            });
        }
        Err(Error::transient(format!(
            "Shoot {name} was changed {ATTEMPTS} times while its move was judged"
        )))
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        Box::pin(self.apply(shoot)).await
    }
}

impl ShootMigration {
    /// Writes verdict and decision, and returns both as written. `None` after a concurrent write: the Shoot
    /// must be read again. If the API server refuses the approval for the size of the Shoot, the verdict
    /// reports that in a write without the approval.
    async fn record(
        &self,
        shoots: &Api<Shoot>,
        shoot: &Shoot,
        verdict: Option<Verdict>,
        decision: Decision,
    ) -> Result<Option<(Option<Verdict>, Decision)>> {
        let written = self.write(shoots, shoot, verdict.as_ref(), &decision).await;
        match (written, wanted_move(shoot)) {
            (Err(error), Some((source, destination))) if is_refused_for_size(&error) => {
                let verdict = Some(too_large::verdict(source, destination));
                let decision = decide(shoot, false)?;
                let written = self.write(shoots, shoot, verdict.as_ref(), &decision).await?;
                Ok(written.then_some((verdict, decision)))
            }
            (written, _) => Ok(written?.then_some((verdict, decision))),
        }
    }

    /// Writes and reports a decision. `false` after a concurrent write. A failed write releases the slot that
    /// this pass has reserved: the next attempt reserves a slot again.
    async fn write(
        &self,
        shoots: &Api<Shoot>,
        shoot: &Shoot,
        verdict: Option<&Verdict>,
        decision: &Decision,
    ) -> Result<bool> {
        let Some(change) = change(shoot, verdict, decision, clock::now_k8s()) else {
            return Ok(true);
        };
        let written = write(shoots, &shoot.name_any(), change.patch).await;
        if !matches!(written, Ok(true)) {
            self.slots.cancel(shoot);
            return written;
        }
        self.let_in(shoot, decision);
        if change.tells || decision.hand_on.is_some() {
            self.tell(shoot, verdict, decision).await;
        }
        Ok(true)
    }

    /// Removes former seeds without a Seed, and answers a dry run. Returns whether the Shoot must be read
    /// again.
    async fn prepare(&self, shoots: &Api<Shoot>, shoot: &Shoot) -> Result<bool> {
        if let Some(patch) = former_seeds::without(shoot, &self.gone(shoot).await?) {
            write(shoots, &shoot.name_any(), patch).await?;
            return Ok(true);
        }
        let Some(seed) = dry_run::asked(shoot) else {
            return Ok(false);
        };
        let known = self.known.state();
        Box::pin(dry_run::answer(&self.context, shoots, shoot, seed, &known)).await?;
        Ok(true)
    }

    /// The verdict on a move that would begin now, changed if the destination has no free slot, or if the
    /// source has not begun the approved move in time.
    fn with_place(&self, shoot: &Shoot, seed: Option<&Seed>, verdict: Verdict) -> Verdict {
        match wanted_move(shoot) {
            Some((source, destination)) if verdict.ready && self.slots.is_withdrawn(shoot, clock::now()) => {
                migration_slots::not_begun(source, destination)
            }
            Some((source, destination)) if migration_slots::needs_slot(shoot, &verdict) => {
                let (known, room) = (self.known.state(), seed.and_then(capacity::room));
                match self.slots.reserve(shoot, destination, room, &known, clock::now()) {
                    Ok(()) => verdict,
                    Err(NoSlot::Busy(others)) => migration_slots::busy(source, destination, others),
                    Err(NoSlot::LeftToOthers(others)) => {
                        migration_slots::left_to_others(source, destination, others)
                    }
                    Err(NoSlot::Full { room, taken }) => capacity::full(source, destination, room, taken),
                }
            }
            _ => verdict,
        }
    }

    /// If a shoot is not on its way to a seed any more, another shoot may start.
    fn let_in(&self, shoot: &Shoot, decision: &Decision) {
        let old = shoot.status.as_ref().and_then(|status| status.migration.as_ref());
        let Some(old) = old else { return };
        if decision
            .approval
            .as_ref()
            .is_some_and(|new| new.destination == old.destination)
        {
            return;
        }
        self.slots.release(shoot, clock::now());
        self.wake_next(shoot, &old.destination);
    }

    /// Wakes the waiting shoots that may take a free slot, also the slot of a deleted Shoot. `left`: the
    /// shoot that has left the slots of this destination.
    fn wake_next(&self, left: &Shoot, destination: &str) {
        let mut destinations = self.slot_uses.drop_deleted(|| self.known.state());
        destinations.insert(destination.to_owned());
        let known = self.known.state();
        for destination in &destinations {
            for next in self.slots.next(left, destination, &known, clock::now()) {
                // The channel is closed when the process ends.
                let _ = self.places.unbounded_send(next.as_ref().clone());
            }
        }
    }

    /// The former seeds of the shoot whose Seed does not exist any more.
    async fn gone(&self, shoot: &Shoot) -> Result<Vec<String>> {
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let mut gone = Vec::new();
        for name in former_seeds::names(shoot) {
            let found = seeds.get_metadata_opt(name).await;
            if found
                .context(format_args!("could not read seed {name}"))?
                .is_none()
            {
                gone.push(name.to_owned());
            }
        }
        Ok(gone)
    }

    async fn tell(&self, shoot: &Shoot, verdict: Option<&Verdict>, decision: &Decision) {
        let events = &self.context.events;
        if let Some(hand_on) = &decision.hand_on {
            let from = wanted_move(shoot).map(|(from, _)| from).unwrap_or_default();
            let note = format!(
                "seed {from}, which had begun nothing, hands the shoot on to seed {}",
                hand_on.to
            );
            events.normal(shoot, "HandedOn", &note).await;
        } else if let Some(verdict) = verdict.filter(|verdict| !verdict.ready) {
            events
                .warning(shoot, "NotReadyForMigration", &verdict.message)
                .await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// A hostile seed writes its own Seed at any rate.
    #[test]
    fn a_report_of_a_former_seed_wakes_no_shoot() {
        let shoot = |wanted: &str| -> Shoot {
            serde_json::from_value(json!({
                "metadata": {"name": "web"},
                "spec": {"region": "r", "seedName": wanted, "provider": {"type": "t"}, "kubernetes": {}},
                "status": {"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 1}]},
            }))
            .unwrap()
        };
        assert!(!concerns_move(&shoot("b"), "a"));
        for (seed, expected) in [("a", false), ("b", true), ("c", true)] {
            assert_eq!(concerns_move(&shoot("c"), seed), expected, "{seed}");
        }
    }
}
