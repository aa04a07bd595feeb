//! Watches Shoots, Seeds and their Leases; reads the inputs of a decision, and executes the decision.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use api::{
    constants::{SHOOT_FORCE_RESTORE, SHOOT_RENEW_OWNERSHIP, condition::SHOOT_TOO_LARGE},
    gardencore::{
        Seed, Shoot,
        shoot::{ApprovedBy, FormerSeed, OwnershipApproval},
    },
};
use futures::future;
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use placement::{Journey, journey};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler},
    error::{Explain as _, is_refused_for_content, is_refused_for_size},
    process::metrics::Metrics,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    change,
    decision::{self, decide, is_open},
    next_step::{Decision, Request, consent},
    obstacle::Facts,
    seen::{TakeoverObservations, lock, operation_of, progress_of, read_renewal, state_of, watch_leases},
    sightings::Silence,
    source_credentials, statement, too_large,
};
use crate::{
    Context, MANAGER,
    shoot_migration::{self, wanted_move},
};

/// Requeue interval of a takeover by silence whose destination could not read the backups.
const RECHECK_OF_CREDENTIALS: Duration = Duration::from_secs(60);

/// Requeue interval of a takeover by silence that the API server refuses for the size of the Shoot. The next
/// attempt fails the same way, unless the Shoot or the limit of etcd has changed.
const RETRY_OF_LARGE_WRITE: Duration = Duration::from_secs(600);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    by: String,
}

struct ShootTakeover {
    context: Context,
    seen: Arc<Mutex<TakeoverObservations>>,
    forced: Family<Labels, Counter>,
}

/// The counter of the process. A controller that is restarted continues this counter.
fn counter_of_process(metrics: &Metrics) -> Family<Labels, Counter> {
    static FORCED: OnceLock<Family<Labels, Counter>> = OnceLock::new();
    FORCED
        .get_or_init(|| {
            let forced = Family::<Labels, Counter>::default();
            metrics.register(|registry| {
                registry.register(
                    "forced_hand_overs",
                    "Shoots that were taken over without their seed, by who approved",
                    forced.clone(),
                );
            });
            // A rise is seen only if the series exists before the first takeover.
            for by in ["operator", "silence"] {
                drop(forced.get_or_create(&Labels { by: by.to_owned() }));
            }
            forced
        })
        .clone()
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let seen = Arc::<Mutex<TakeoverObservations>>::default();
    let forced = counter_of_process(&context.metrics);
    let controller = context.shoots.controller(|_| None);
    let known = controller.store();
    let seeds: Api<Seed> = context.garden.cluster_wide();
    // A Seed change may fulfil the condition that an approval waits for: owner checks were enabled, or the
    // destination became ready.
    let controller = controller.watches(seeds, watcher::Config::default(), move |seed| {
        let name = seed.name_any();
        let all = known.state();
        let concerned = all
            .iter()
            .filter(|shoot| wanted_move(shoot).is_some_and(|(from, to)| from == name || to == name));
        concerned
            .map(|shoot| ObjectRef::from_obj(shoot.as_ref()))
            .collect::<Vec<_>>()
    });
    let leases = watch_leases(context.clone(), Arc::clone(&seen));
    let shoots = context.run(controller, |context| ShootTakeover {
        context,
        seen,
        forced,
    });
    future::join(leases, shoots).await;
}

impl Reconciler<Shoot> for ShootTakeover {
    const NAME: &'static str = "shoot-takeover";

    /// Shoots that are to move, and Shoots with fields of a move that is not requested any more.
    fn is_responsible(&self, shoot: &Shoot) -> bool {
        let concerned = wanted_move(shoot).is_some()
            || shoot.annotations().contains_key(SHOOT_FORCE_RESTORE)
            || shoot.annotations().contains_key(SHOOT_RENEW_OWNERSHIP)
            || decision::renewed(shoot).is_some()
            || consent(shoot).is_some();
        if !concerned {
            lock(&self.seen).forget(&shoot.uid().unwrap_or_default());
        }
        concerned
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        Box::pin(self.step(&shoot)).await
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        Box::pin(self.step(&shoot)).await
    }
}

impl ShootTakeover {
    async fn step(&self, shown: &Shoot) -> Result<Next> {
        let known = self.facts(shown, self.shown_renewal(shown));
        if !is_open(&known) {
            return Ok(match decide(&known) {
                Decision::Wait(time) => Next::After(time),
                _ => Next::Change,
            });
        }
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shown.namespace().unwrap_or_default());
        let Some(shoot) = self.context.latest(shown).await? else {
            return Ok(Next::Change);
        };
        // The planned move begins without the holds that force overrides, as soon as the preflight has seen
        // the request.
        if shoot_migration::awaits_force(&shoot) {
            return Ok(Next::Change);
        }
        if let Some(seeds) = statement::stated(&shoot) {
            let silences = self.silences(&seeds).await?;
            let next = statement::decide(&shoot, seeds, &silences);
            return self.act(&shoots, &shoot, next).await;
        }
        let judged = Box::pin(shoot_migration::read(&self.context, &shoot)).await?;
        let renewed = match wanted_move(&shoot) {
            Some((from, _)) => read_renewal(&self.context, from).await?,
            None => None,
        };
        let source = match judged.source {
            Some(source) => Some(source),
            // No move is wanted: the seed that is to keep the shoot.
            None => self.hosting_seed(&shoot).await?,
        };
        let unreadable = match &judged.verdict {
            Some(verdict) if verdict.ready => {
                source_credentials::obstacle(&self.context, judged.source_bucket.as_ref()).await?
            }
            _ => None,
        };
        let facts = Facts {
            source: source.as_ref(),
            destination: judged.destination.as_ref(),
            verdict: unreadable.as_ref().or(judged.verdict.as_ref()),
            ..self.facts(&shoot, renewed)
        };
        let decision = decide(&facts);
        // A refusal and a withdrawal have an Event. A takeover by silence waits, and Secrets are not watched.
        if let (Some(unreadable), Decision::Nothing) = (&unreadable, &decision) {
            let events = &self.context.events;
            events
                .warning(&shoot, unreadable.reason, &unreadable.message)
                .await;
            return Ok(Next::After(RECHECK_OF_CREDENTIALS));
        }
        self.act(&shoots, &shoot, decision).await
    }

    async fn silences(&self, seeds: &[FormerSeed]) -> Result<Vec<Silence>> {
        let period = self.context.config.seed_monitor_period();
        let mut silences = Vec::new();
        for seed in seeds {
            let renewed = read_renewal(&self.context, &seed.name).await?;
            let leases = &mut lock(&self.seen).leases;
            silences.push(leases.silence(&seed.name, renewed, period, Instant::now()));
        }
        Ok(silences)
    }

    async fn hosting_seed(&self, shoot: &Shoot) -> Result<Option<Seed>> {
        let host = shoot
            .status
            .as_ref()
            .and_then(|status| status.seed_name.as_deref());
        let Some(name) = host.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        seeds
            .get_opt(name)
            .await
            .context(format_args!("could not read Seed {name}"))
    }

    /// When the Lease of the source was renewed, as the watch has shown it last.
    fn shown_renewal(&self, shoot: &Shoot) -> Option<Timestamp> {
        let (from, _) = wanted_move(shoot)?;
        lock(&self.seen).leases.get(from).copied().flatten()
    }

    /// The observations of a Shoot and of the Lease of its source, with the renewal time `renewed`.
    fn facts<'a>(&self, shoot: &'a Shoot, renewed: Option<Timestamp>) -> Facts<'a> {
        let (mut seen, now) = (lock(&self.seen), Instant::now());
        let uid = shoot.uid().unwrap_or_default();
        let unchanged = seen.operations.note(&uid, state_of(shoot), now);
        let (operation, progress) = (operation_of(shoot), progress_of(shoot));
        let without_progress = seen.progress.note_progress(&uid, operation, progress, now);
        let period = self.context.config.seed_monitor_period();
        let silence = match wanted_move(shoot) {
            Some((from, _)) => seen.leases.silence(from, renewed, period, now),
            None => Silence::Unknown(period),
        };
        Facts {
            shoot,
            source: None,
            destination: None,
            verdict: None,
            silence,
            unchanged,
            without_progress,
            grace: self.context.config.takeover_after(),
            now: clock::now(),
        }
    }

    async fn act(&self, shoots: &Api<Shoot>, shoot: &Shoot, next: Decision) -> Result<Next> {
        let (name, events) = (shoot.name_any(), &self.context.events);
        match next {
            Decision::Nothing => return Ok(Next::Change),
            Decision::Wait(time) => return Ok(Next::After(time)),
            Decision::Refuse(request, why) => {
                if self.consume(shoots, shoot, request).await? {
                    self.report_refusal(shoot, request, &why).await;
                }
            }
            Decision::Consume(request) => {
                self.consume(shoots, shoot, request).await?;
            }
            Decision::Approve(approval) => {
                let patch = change::consent(shoot, Some(&approval));
                if shoot_migration::write(shoots, &name, patch).await? {
                    tracing::warn!(shoot = name, why = approval.reason, "a new epoch was approved");
                    if !approval.renews() {
                        events.warning(shoot, "TakeoverApproved", &approval.reason).await;
                    }
                }
            }
            Decision::StateOff(seeds) => {
                let patch = change::state_off(shoot, &seeds);
                if shoot_migration::write(shoots, &name, patch).await? {
                    self.report_statement(shoot, &seeds).await;
                }
            }
            Decision::Withdraw(why) => {
                let patch = change::consent(shoot, None);
                if shoot_migration::write(shoots, &name, patch).await? {
                    self.report_withdrawal(shoot, &why).await;
                }
            }
            Decision::Renew { becomes, approval } => {
                let now = clock::now_k8s();
                let patch = change::renew(shoot, &becomes, approval.as_ref(), now);
                if shoot_migration::write(shoots, &name, patch).await? {
                    self.report_renewal(shoot, becomes.now.epoch, approval.as_ref())
                        .await;
                }
            }
            Decision::HandOver { becomes, approval } => {
                let travels = shoot_migration::travels(shoot)?;
                let patch = change::hand_over(shoot, &becomes, &approval, &travels, clock::now_k8s());
                match shoot_migration::write(shoots, &name, patch).await {
                    Ok(true) => self.tell(shoot, &approval).await,
                    Ok(false) => {}
                    Err(error) if is_refused_for_size(&error) => {
                        return self.report_size(shoots, shoot, &approval).await;
                    }
                    Err(error) => {
                        if is_refused_for_content(&error) {
                            self.report_failed_hand_over(shoot, &approval, &error).await;
                        }
                        return Err(error);
                    }
                }
            }
        }
        // The write, or a concurrent write, triggers this controller.
        Ok(Next::Change)
    }

    /// Removes the annotation once.
    async fn consume(&self, shoots: &Api<Shoot>, shoot: &Shoot, request: Request) -> Result<bool> {
        let body = json!({"metadata": {"annotations": {(request.annotation()): null}}});
        let written = MANAGER.try_merge_of(shoots, shoot, &body).await?;
        Ok(written.is_some())
    }

    /// Reports that the API server refuses the takeover for the size of the Shoot.
    async fn report_size(
        &self,
        shoots: &Api<Shoot>,
        shoot: &Shoot,
        approval: &OwnershipApproval,
    ) -> Result<Next> {
        let Some(patch) = too_large::report(shoot, approval, clock::now_k8s()) else {
            return Ok(Next::After(RETRY_OF_LARGE_WRITE));
        };
        if shoot_migration::write(shoots, &shoot.name_any(), patch).await? {
            let why = too_large::message(approval);
            match approval.by {
                ApprovedBy::Operator => self.report_withdrawal(shoot, &why).await,
                ApprovedBy::Silence => self.context.events.warning(shoot, SHOOT_TOO_LARGE, &why).await,
            }
        }
        Ok(Next::Change)
    }

    /// The approval stays, and each later attempt fails in the same way until a person has acted.
    async fn report_failed_hand_over(
        &self,
        shoot: &Shoot,
        approval: &OwnershipApproval,
        error: &runtime::Error,
    ) {
        // The limit of a note cuts a long refusal, and no remedy.
        let note = format!(
            "the API server refuses the takeover by seed {}; an administrator with the verb repair on shoots/ownership corrects the field \
             that the refusal names: {error}",
            approval.to
        );
        let events = &self.context.events;
        events
            .answer_with_warning(shoot, "TakeoverNotWritten", &note)
            .await;
    }

    async fn report_refusal(&self, shoot: &Shoot, request: Request, why: &str) {
        let (reason, what) = match request {
            Request::Takeover => ("ForceRestoreRefused", "the shoot is not taken over"),
            Request::Renewal => ("RenewRefused", "the ownership epoch of the shoot is not renewed"),
        };
        let note = format!("{what}: {why}; the annotation was taken away");
        tracing::warn!(shoot = shoot.name_any(), why, "{what}");
        let events = &self.context.events;
        events.answer_with_warning(shoot, reason, &note).await;
    }

    async fn report_statement(&self, shoot: &Shoot, seeds: &[FormerSeed]) {
        let seeds: Vec<_> = seeds.iter().map(|seed| seed.name.as_str()).collect();
        let note = format!(
            "an operator stated that no process of the former seeds {} runs any more; the fence asks none of their servers",
            seeds.join(", ")
        );
        tracing::warn!(
            shoot = shoot.name_any(),
            note,
            "former seeds were stated to be off"
        );
        self.context
            .events
            .warning(shoot, "FormerSeedsStatedOff", &note)
            .await;
    }

    async fn report_withdrawal(&self, shoot: &Shoot, why: &str) {
        let renews = consent(shoot).is_some_and(OwnershipApproval::renews);
        let (reason, what) = if renews {
            ("RenewRefused", "renew the ownership epoch of the shoot")
        } else {
            ("TakeoverWithdrawn", "take the shoot over")
        };
        let note = format!("the consent to {what} counts for nothing any more: {why}");
        let events = &self.context.events;
        events.answer_with_warning(shoot, reason, &note).await;
    }

    async fn report_renewal(&self, shoot: &Shoot, epoch: i64, approval: Option<&OwnershipApproval>) {
        let without_request = if journey(shoot) == Journey::Settled {
            "the seed had recorded phase Sealing without a move"
        } else {
            "the move was cancelled after its source had begun to seal"
        };
        let why = approval.map_or(without_request, |approval| approval.reason.trim_end_matches('.'));
        let note = format!("{why}: the shoot goes on in epoch {epoch} where it is, with its data");
        tracing::info!(
            shoot = shoot.name_any(),
            epoch,
            why,
            "the ownership epoch was renewed"
        );
        self.context.events.normal(shoot, "EpochRenewed", &note).await;
    }

    async fn tell(&self, shoot: &Shoot, approval: &OwnershipApproval) {
        let by = match approval.by {
            ApprovedBy::Operator => "operator",
            ApprovedBy::Silence => "silence",
        };
        self.forced.get_or_create(&Labels { by: by.to_owned() }).inc();
        let note = format!(
            "the shoot was given from seed {} to seed {} in epoch {}; what was written after the last snapshot that seed {} has \
             uploaded is lost. {}",
            approval.from,
            approval.to,
            approval.epoch + 1,
            approval.from,
            approval.reason
        );
        tracing::warn!(shoot = shoot.name_any(), note, "a shoot was taken over");
        self.context.events.warning(shoot, "TakenOver", &note).await;
    }
}
