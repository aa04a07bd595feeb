//! Checks the ownership of a shoot repeatedly, and grants and ends the right to act.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{Either, select};
use permit::{Clock, Moment};
use tokio::sync::{
    Notify,
    watch::{self, Receiver, Sender},
};
use tokio::time::{Instant, sleep_until, timeout};

use crate::authorities::{Authorities, AuthoritiesError};
use crate::claim::OwnershipClaim;
use crate::judgement::{self, Answer, OwnEpoch};
use crate::lookup::Lookup;
use crate::mutation::Mutation;
use crate::record_verdict::OwnershipLoss;
use crate::settings::Terms;
use crate::tracker::{Checked, OwnershipTracker, Standing};
use crate::wire::Wire;
use crate::witness::{SecondWitness, Testimony};

/// Minimum time between the starts of two checks, also with frequent prompts.
const AT_LEAST: Duration = Duration::from_secs(1);

/// The report of a watch, for a condition, a probe, or a process that starts work.
#[derive(Clone, Debug)]
pub struct Report {
    /// The standing of the seed for the shoot. The permit expires by the clock, also before this field
    /// changes: the watch may report the end a moment later.
    pub standing: Standing,
    /// The last check; `None` before the end of the first check.
    pub last: Option<Checked>,
}

/// The witnesses to ask.
#[derive(Clone)]
pub struct Witnesses {
    /// The authorities of the owner record's zone.
    pub authorities: Arc<Authorities>,
    /// The network path to the authorities.
    pub wire: Arc<dyn Wire>,
    /// The second witness, asked where the authorities give no valid answer.
    pub second: Arc<dyn SecondWitness>,
}

/// Watches the ownership of a single shoot in a single epoch.
///
/// A process has one watch for each shoot and epoch, shared by all work for the shoot. The watch spawns no
/// task: all work happens while [`Watch::run`] is polled, and dropping that future ends the permit.
pub struct Watch {
    claim: OwnershipClaim,
    terms: Terms,
    witnesses: Witnesses,
    clock: Clock,
    tracker: OwnershipTracker,
    reports: Sender<Report>,
    prompt: Arc<Notify>,
    /// The moment at which this watch first saw its own epoch in the record.
    epoch_seen: Arc<OnceLock<Moment>>,
    pub(crate) mutation: Option<Mutation>,
}

impl Watch {
    /// A watch of this claim. The watch grants no right before the first check has said Owned. Validity is
    /// judged by `clock`, a clock that counts suspension.
    pub fn new(
        claim: OwnershipClaim,
        terms: Terms,
        witnesses: Witnesses,
        clock: Clock,
    ) -> Result<Self, AuthoritiesError> {
        witnesses.authorities.check(&claim)?;
        let by = format!(
            "ownership of {} in epoch {}",
            claim.owner_name.to_ascii().trim_end_matches('.'),
            claim.epoch
        );
        let (reports, _) = watch::channel(Report {
            standing: Standing::Unconfirmed,
            last: None,
        });
        Ok(Self {
            tracker: OwnershipTracker::new(by, clock.clone(), terms),
            claim,
            terms,
            witnesses,
            clock,
            reports,
            prompt: Arc::default(),
            epoch_seen: Arc::default(),
            mutation: None,
        })
    }

    /// A caller that expects a change notifies `prompt`, and the next check does not wait for the interval.
    /// An early check is always safe: validity counts from the sending of the question.
    #[must_use]
    pub fn prompted_by(self, prompt: Arc<Notify>) -> Self {
        Self { prompt, ..self }
    }

    /// Reports of this watch: the latest report, then each change of the standing and each finished check.
    #[must_use]
    pub fn reports(&self) -> Receiver<Report> {
        self.reports.subscribe()
    }

    /// Checks until the shoot is lost; the loss is final in this epoch.
    pub async fn run(mut self) -> OwnershipLoss {
        let mut next = Instant::now();
        let mut soonest = next;
        loop {
            let (checked, started) = self.check_from(next, soonest).await;
            let changed = self.tracker.apply_answer(&checked);
            if changed {
                tracing::info!(
                    owner = %self.claim.owner_name,
                    epoch = self.claim.epoch,
                    answer = ?checked.answer,
                    "ownership state changed"
                );
            }
            self.tell(Some(checked));
            if let Standing::Lost(loss) = self.tracker.standing() {
                return loss;
            }
            next = started + self.terms.settings().interval;
            soonest = started + AT_LEAST;
        }
    }

    /// Waits for `moment`, or for a prompt and then for `soonest`, and checks. If the permit expires
    /// meanwhile, the watch reports that at once.
    async fn check_from(&mut self, moment: Instant, soonest: Instant) -> (Checked, Instant) {
        let checker = Checker {
            claim: self.claim.clone(),
            terms: self.terms,
            witnesses: self.witnesses.clone(),
            clock: self.clock.clone(),
            epoch_seen: Arc::clone(&self.epoch_seen),
            mutation: self.mutation,
        };
        let prompt = Arc::clone(&self.prompt);
        let mut work = Box::pin(async move {
            let prompted = async {
                prompt.notified().await;
                sleep_until(soonest).await;
            };
            select(Box::pin(sleep_until(moment)), Box::pin(prompted)).await;
            let started = Instant::now();
            (checker.check().await, started)
        });
        loop {
            // The expiry is polled first: an answer that arrives at the same moment is too late for this
            // permit.
            match select(Box::pin(self.tracker.wait_for_expiry()), work).await {
                Either::Left(((), unfinished)) => work = unfinished,
                Either::Right((done, _)) => return done,
            }
            if self.tracker.expire() {
                tracing::warn!(
                    owner = %self.claim.owner_name,
                    epoch = self.claim.epoch,
                    "ownership was not confirmed in time: nothing is done for the shoot until it is"
                );
                self.tell(None);
            }
        }
    }

    fn tell(&self, checked: Option<Checked>) {
        let standing = self.tracker.standing();
        self.reports.send_modify(|report| {
            report.standing = standing;
            if checked.is_some() {
                report.last = checked;
            }
        });
    }
}

/// A single check.
struct Checker {
    claim: OwnershipClaim,
    terms: Terms,
    witnesses: Witnesses,
    clock: Clock,
    epoch_seen: Arc<OnceLock<Moment>>,
    mutation: Option<Mutation>,
}

impl Checker {
    async fn check(&self) -> Checked {
        let mut asked = self.clock.now();
        let settings = self.terms.settings();
        let lookup = Lookup {
            wire: &*self.witnesses.wire,
            authorities: &self.witnesses.authorities,
            claim: &self.claim,
            attempt: settings.timeout,
            compares_epochs: !self.breaks(Mutation::EpochIgnored),
            asks_earlier_owner: false,
        };
        let (dns, shows_own_epoch) = lookup.ask().await;
        let own = OwnEpoch {
            sealing_was_reported: self.witnesses.second.sealing_was_reported(self.claim.epoch)
                || self.breaks(Mutation::DeletionAlone),
            may_show_previous_epoch: self.may_show_previous_epoch(asked),
        };
        if shows_own_epoch {
            self.epoch_seen.get_or_init(|| self.clock.now());
        }
        let mut unconfirmed = None;
        let mut answer = match judgement::by_record(dns, own) {
            Ok(answer) => answer,
            Err(silent) if self.breaks(Mutation::OneWitness) => Answer::Unknown(silent),
            Err(silent) => {
                asked = self.clock.now();
                let testimony = timeout(settings.store_timeout, self.witnesses.second.ask())
                    .await
                    .unwrap_or_else(|_| {
                        Testimony::Silent(format!("no answer within {:?}", settings.store_timeout))
                    });
                let answer = judgement::by_second_witness(&self.claim, &silent, testimony);
                unconfirmed = Some(silent);
                answer
            }
        };
        if self.breaks(Mutation::UnknownExtends) && matches!(answer, Answer::Unknown(_)) {
            answer = Answer::Owned { at_most: None };
        }
        if self.breaks(Mutation::TimeFromAnswer) {
            asked = self.clock.now();
        }
        let silent = unconfirmed.filter(|_| matches!(answer, Answer::Owned { .. }));
        Checked {
            asked,
            answer,
            silent,
        }
    }

    /// Whether the answer to a question at `asked` may still show the owner of the previous epoch. A replica
    /// may be in the middle of the update that began this epoch, or a cache on the path may still have the
    /// state before that update.
    fn may_show_previous_epoch(&self, asked: Moment) -> bool {
        let settings = self.terms.settings();
        let behind = settings.propagation.saturating_add(settings.dns_cache_ttl);
        let seen = self.epoch_seen.get();
        !behind.is_zero() && seen.is_none_or(|seen| asked <= *seen + behind)
    }

    fn breaks(&self, rule: Mutation) -> bool {
        self.mutation == Some(rule)
    }
}
