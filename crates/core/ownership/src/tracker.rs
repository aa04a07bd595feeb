//! The consequence of answers: a permit for each uninterrupted confirmation. Owned extends the permit,
//! Unknown does not, Lost ends the permit for ever.

use std::future::pending;

use futures::future::{Either, select};
use permit::{Clock, Issuer, Moment, Permit, Settling};
use tokio::time::sleep_until;

use crate::claim_state::ClaimState;
use crate::judgement::Answer;
use crate::record_verdict::OwnershipLoss;
use crate::settings::Terms;

/// Reason of a permit's end by the clock.
const NOT_CONFIRMED_IN_TIME: &str = "ownership was not confirmed in time";

/// An answer, and the time of its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The moment before the question was sent. Validity counts from this moment: a destination counts its
    /// fence from a state of the witnesses that this question could not have seen yet.
    pub asked: Moment,
    /// The answer.
    pub answer: Answer,
    /// The reason, by server, why the owner record confirmed no owner, where the second witness alone
    /// confirmed the owner.
    pub silent: Option<String>,
}

/// The standing of a seed for a shoot.
#[derive(Clone, Debug)]
pub enum Standing {
    /// No work may be done: the seed was not confirmed yet, or not recently enough. A later answer may
    /// confirm the seed (R17-47, R17-48).
    Unconfirmed,
    /// The seed is the owner, and may act under this permit.
    Owner(Permit),
    /// The seed is not the owner any more, in this epoch for ever (R17-49).
    Lost(OwnershipLoss),
}

/// The state of a seed's claim. `state` holds the pure part; this type adds the permit.
pub(crate) struct OwnershipTracker {
    by: String,
    clock: Clock,
    terms: Terms,
    state: ClaimState<Moment>,
    /// Present exactly while `state` is `Owner`.
    issued: Option<Box<IssuedPermit>>,
}

struct IssuedPermit {
    issuer: Issuer,
    settling: Settling,
}

impl OwnershipTracker {
    pub(crate) fn new(by: String, clock: Clock, terms: Terms) -> Self {
        Self {
            by,
            clock,
            terms,
            state: ClaimState::Unconfirmed,
            issued: None,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match (&self.state, &self.issued) {
            (ClaimState::Lost(loss), _) => Standing::Lost(loss.clone()),
            (ClaimState::Owner { .. }, Some(issued)) => Standing::Owner(issued.issuer.permit()),
            (ClaimState::Owner { .. }, None) | (ClaimState::Unconfirmed, _) => Standing::Unconfirmed,
        }
    }

    /// Applies an answer. True if the standing has changed.
    pub(crate) fn apply_answer(&mut self, checked: &Checked) -> bool {
        let expired = self.expire();
        let before = self.state.clone();
        let now = self.clock.now();
        self.state = before
            .clone()
            .apply_answer(now, checked.asked, &checked.answer, &self.terms);
        match &self.state {
            ClaimState::Owner { until } => self.own(*until) || expired,
            ClaimState::Lost(loss) => {
                if let Some(issued) = self.issued.take() {
                    issued.issuer.end(&loss.to_string());
                }
                before != self.state
            }
            ClaimState::Unconfirmed => {
                // The validity ended between two reads of the clock.
                let over = self.issued.take();
                if let Some(issued) = &over {
                    issued.issuer.end(NOT_CONFIRMED_IN_TIME);
                }
                over.is_some() || expired
            }
        }
    }

    /// Ends a permit whose validity is over. True if there was such a permit. A permit expires by the clock
    /// also without this call.
    pub(crate) fn expire(&mut self) -> bool {
        let over = self.issued.take_if(|issued| !issued.issuer.in_time());
        if let Some(issued) = &over {
            issued.issuer.end(NOT_CONFIRMED_IN_TIME);
            self.state = ClaimState::Unconfirmed;
        }
        over.is_some()
    }

    /// Waits until the permit expires, or for ever without a permit. Meanwhile settles the effects of the
    /// permit's work.
    pub(crate) async fn wait_for_expiry(&mut self) {
        let Some(issued) = &mut self.issued else {
            return pending().await;
        };
        while issued.issuer.in_time() {
            let alarm = Box::pin(sleep_until(issued.issuer.valid_until()));
            match select(alarm, Box::pin(issued.settling.go_on())).await {
                Either::Left(((), _)) => {}
                Either::Right((never, _)) => match never {},
            }
        }
    }

    /// Grants or extends the right until `until`. True if the standing has changed.
    fn own(&mut self, until: Moment) -> bool {
        if let Some(issued) = &self.issued
            && issued.issuer.extend(until)
        {
            return false;
        }
        // There was no permit, or the permit expired at this moment. An ended permit is never revived, so a
        // new permit is issued.
        let issuer = Issuer::new(self.by.clone(), self.clock.clone(), until);
        let settling = issuer.settling();
        self.issued = Some(Box::new(IssuedPermit { issuer, settling }));
        true
    }
}
