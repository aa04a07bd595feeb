//! Checks the ownership of one shoot again and again, and gives and takes the right to act.

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
use crate::claim::Claim;
use crate::judgement::{self, Answer, OwnEpoch};
use crate::lookup::Lookup;
use crate::mutation::Mutation;
use crate::saying::Loss;
use crate::settings::Terms;
use crate::tenure::{Checked, Standing, Tenure};
use crate::wire::Wire;
use crate::witness::{SecondWitness, Testimony};

/// Two checks begin at least so far apart, however often somebody asks for one.
const AT_LEAST: Duration = Duration::from_secs(1);

/// What a watch tells: for a condition, a probe, or whoever starts work.
#[derive(Clone, Debug)]
pub struct Report {
    /// How the seed stands to the shoot. The permit in it is judged by the clock whenever it is looked at;
    /// this may be told a moment later.
    pub standing: Standing,
    /// The last check; none before the first one has ended.
    pub last: Option<Checked>,
}

/// Whom to ask.
#[derive(Clone)]
pub struct Witnesses {
    /// The authorities of the owner record's zone.
    pub authorities: Arc<Authorities>,
    /// The way to them.
    pub wire: Arc<dyn Wire>,
    /// Who is asked where they say nothing.
    pub second: Arc<dyn SecondWitness>,
}

/// Watches the ownership of one shoot in one epoch.
///
/// One for each shoot and epoch in a process, shared by all that act for the shoot. It starts nothing by
/// itself: it does what it does while [`Watch::run`] is polled, and its permit ends when that is dropped.
pub struct Watch {
    claim: Claim,
    terms: Terms,
    witnesses: Witnesses,
    clock: Clock,
    tenure: Tenure,
    reports: Sender<Report>,
    prompt: Arc<Notify>,
    /// When this watch first knew that the record shows its own epoch.
    epoch_seen: Arc<OnceLock<Moment>>,
    pub(crate) mutation: Option<Mutation>,
}

impl Watch {
    /// A watch of this claim. It gives no right before the first check has said Owned. `clock` is what
    /// validity is judged by; it counts suspension.
    pub fn new(
        claim: Claim,
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
            tenure: Tenure::new(by, clock.clone(), terms),
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

    /// Whoever expects a change notifies this one, and the next check does not wait for the interval. To ask
    /// early is always safe: an answer is good from when it was asked for.
    #[must_use]
    pub fn prompted_by(self, prompt: Arc<Notify>) -> Self {
        Self { prompt, ..self }
    }

    /// Reports of this watch, the latest one and each change: of the standing, and after each check.
    #[must_use]
    pub fn reports(&self) -> Receiver<Report> {
        self.reports.subscribe()
    }

    /// Checks until the shoot is lost, which it then is for ever in this epoch.
    pub async fn run(mut self) -> Loss {
        let mut next = Instant::now();
        let mut soonest = next;
        loop {
            let (checked, started) = self.check_from(next, soonest).await;
            let changed = self.tenure.hear(&checked);
            if changed {
                tracing::info!(
                    owner = %self.claim.owner_name,
                    epoch = self.claim.epoch,
                    answer = ?checked.answer,
                    "the seed stands otherwise to the shoot"
                );
            }
            self.tell(Some(checked));
            if let Standing::Lost(loss) = self.tenure.standing() {
                return loss;
            }
            next = started + self.terms.settings().interval;
            soonest = started + AT_LEAST;
        }
    }

    /// Waits for the moment, or for somebody who does not want to and then for the `soonest`, and checks.
    /// What ends meanwhile is told meanwhile.
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
            // The end first: an answer that is there at the same moment comes too late for this permit.
            match select(Box::pin(self.tenure.runs_out()), work).await {
                Either::Left(((), unfinished)) => work = unfinished,
                Either::Right((done, _)) => return done,
            }
            if self.tenure.expire() {
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
        let standing = self.tenure.standing();
        self.reports.send_modify(|report| {
            report.standing = standing;
            if checked.is_some() {
                report.last = checked;
            }
        });
    }
}

/// One check.
struct Checker {
    claim: Claim,
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
            attempt: settings.attempt,
            compares_epochs: !self.breaks(Mutation::EpochIgnored),
        };
        let (dns, shows_own_epoch) = lookup.ask().await;
        let own = OwnEpoch {
            has_passed_sealing: self.witnesses.second.has_passed_sealing(self.claim.epoch)
                || self.breaks(Mutation::DeletionAlone),
            is_fresh: self.is_fresh(asked),
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
                let testimony = timeout(settings.second_witness, self.witnesses.second.ask())
                    .await
                    .unwrap_or_else(|_| {
                        Testimony::Silent(format!("no answer within {:?}", settings.second_witness))
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

    /// Whether a replica that was asked at this moment may still be in the middle of the update that began
    /// this epoch, or a cache on the path may still answer with the state before that update.
    fn is_fresh(&self, asked: Moment) -> bool {
        let settings = self.terms.settings();
        let behind = settings.propagation.saturating_add(settings.caches);
        let seen = self.epoch_seen.get();
        !behind.is_zero() && seen.is_none_or(|seen| asked <= *seen + behind)
    }

    fn breaks(&self, rule: Mutation) -> bool {
        self.mutation == Some(rule)
    }
}
