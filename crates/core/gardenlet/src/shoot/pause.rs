//! Holds back new reconciliations while the user of a Shoot or the operator of the seed requests a pause. The
//! Shoot reports the pause (constraint `ReconciliationPossible` and Events).

use api::{
    constants::condition::RECONCILIATION_POSSIBLE,
    gardencore::{Seed, Shoot},
    meta::{Condition, ConditionStatus},
};
use futures::{Stream, StreamExt as _, future};
use kube::{
    Api, ResourceExt,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt as _, watcher},
};
use placement::{Pause, Role, pause, role};
use runtime::{
    Result,
    client::{Cluster, Garden},
    clock,
    controller::conditions,
    error::Explain as _,
};
use tokio::sync::watch;

use super::dispatch::ShootAction;
use crate::context::{Context, MANAGER};

/// Whether the emergency stop of the own Seed is on; `None` until the watch has answered first.
#[derive(Clone, Debug)]
pub(crate) struct EmergencyStop(watch::Sender<Option<bool>>);

impl EmergencyStop {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Watches the own Seed, and yields when all Shoots have to be checked again.
    pub(crate) fn changes(
        &self,
        garden: &Garden,
        seed: &str,
    ) -> impl Stream<Item = ()> + Send + 'static + use<> {
        let known = self.0.clone();
        let own = watcher::Config::default().fields(&format!("metadata.name={seed}"));
        let seeds: Api<PartialObjectMeta<Seed>> = garden.cluster_wide();
        watcher(seeds, own)
            .default_backoff()
            .applied_objects()
            .filter_map(move |seed| {
                let stopped = seed
                    .ok()
                    .map(|seed| placement::pause::is_stopped(seed.annotations()));
                future::ready(stopped.filter(|stopped| record(&known, *stopped)).map(|_| ()))
            })
    }

    async fn is_on(&self, context: &Context) -> Result<bool> {
        let known = *self.0.borrow();
        if let Some(known) = known {
            return Ok(known);
        }
        // A flow must not begin in the moment before the watch answers.
        let seeds: Api<PartialObjectMeta<Seed>> = context.garden.cluster_wide();
        let seed = seeds.get_opt(&context.seed_name).await;
        let seed = seed.context(format_args!("could not read Seed {}", context.seed_name))?;
        Ok(seed.is_some_and(|seed| placement::pause::is_stopped(seed.annotations())))
    }
}

/// Whether Shoots may have been decided on with a different value.
fn record(known: &watch::Sender<Option<bool>>, stopped: bool) -> bool {
    known.send_replace(Some(stopped)) != Some(stopped)
}

/// The pause of a Shoot that this seed has. A pause never stops the clean-up of a former seed.
pub(crate) async fn find(context: &Context, stop: &EmergencyStop, shoot: &Shoot) -> Result<Option<Pause>> {
    if role(shoot, &context.seed_name) != Role::Owner {
        return Ok(None);
    }
    Ok(pause(shoot, stop.is_on(context).await?))
}

/// Reports the pause, or the end of a pause. A report that fails does not stop work that no pause holds back.
pub(crate) async fn report(
    context: &Context,
    shoot: &Shoot,
    found: Option<Pause>,
    duty: ShootAction,
) -> Result<()> {
    if role(shoot, &context.seed_name) != Role::Owner {
        return Ok(());
    }
    match write(context, shoot, found).await {
        Err(error) if !matches!(duty, ShootAction::Paused(_)) => {
            tracing::warn!(
                shoot = shoot.name_any(),
                error = format_args!("{error:#}"),
                "could not report a pause of the Shoot"
            );
            Ok(())
        }
        written => written,
    }
}

async fn write(context: &Context, shoot: &Shoot, found: Option<Pause>) -> Result<()> {
    let wanted = found.map(|pause| constraint(pause, &context.seed_name));
    let reported = shoot
        .status
        .as_ref()
        .and_then(|status| status.constraint(RECONCILIATION_POSSIBLE));
    let text = |condition: &Condition| (condition.reason.clone(), condition.message.clone());
    if reported.map(text) == wanted.as_ref().map(text) {
        return Ok(());
    }
    let shoots: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let written = conditions::change(
        MANAGER,
        &shoots,
        &shoot.name_any(),
        "constraints",
        |list| match wanted.clone() {
            Some(constraint) => constraint.merge_into(list),
            None => list.retain(|constraint| constraint.type_ != RECONCILIATION_POSSIBLE),
        },
    )
    .await?;
    if written {
        let events = &context.garden_events;
        if let Some(pause) = found {
            let sentence = pause.sentence(&context.seed_name);
            events.warning(shoot, "ReconciliationPaused", &sentence).await;
        } else {
            let note = "new reconciliations and moves are no longer held back";
            events.normal(shoot, "ReconciliationResumed", note).await;
        }
    }
    Ok(())
}

fn constraint(pause: Pause, seed: &str) -> Condition {
    Condition::new(
        RECONCILIATION_POSSIBLE,
        ConditionStatus::False,
        pause.reason(),
        &pause.sentence(seed),
        clock::now_k8s(),
    )
}
