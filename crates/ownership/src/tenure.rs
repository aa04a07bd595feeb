//! What follows from answers: one permit a tenure. Owned extends it, Unknown does not, Lost ends it for ever.

use std::future::pending;
use std::time::Duration;

use futures::future::{Either, select};
use permit::{Clock, Issuer, Moment, Permit, Settling};
use tokio::time::sleep_until;

use crate::judgement::Answer;
use crate::saying::Loss;
use crate::settings::{Silence, Terms};

/// Ten years: the validity of a permit that only a loss ends ([`Silence::Tolerate`]).
const UNTIL_LOST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// An answer, and when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Before the question was sent that brought the answer. It is what validity counts from: others count from when they saw
    /// what the question could not have seen yet.
    pub asked: Moment,
    /// The answer.
    pub answer: Answer,
}

/// How a seed stands to a shoot.
#[derive(Clone, Debug)]
pub enum Standing {
    /// Nothing may be done: the seed was not confirmed yet, or not for too long. It may be again (R17-47, R17-48).
    Unconfirmed,
    /// It is the owner, and may act under this permit.
    Owner(Permit),
    /// It is not the owner any more, in this epoch for ever (R17-49).
    Lost(Loss),
}

/// The state of one seed's claim.
pub(crate) struct Tenure {
    by: String,
    clock: Clock,
    terms: Terms,
    state: State,
}

enum State {
    Unconfirmed,
    Owner(Box<Held>),
    Lost(Loss),
}

struct Held {
    issuer: Issuer,
    until: Moment,
    settling: Settling,
}

impl Tenure {
    pub(crate) fn new(by: String, clock: Clock, terms: Terms) -> Self {
        Self {
            by,
            clock,
            terms,
            state: State::Unconfirmed,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match &self.state {
            State::Unconfirmed => Standing::Unconfirmed,
            State::Owner(held) => Standing::Owner(held.issuer.permit()),
            State::Lost(loss) => Standing::Lost(loss.clone()),
        }
    }

    /// Draws the consequence of an answer. True if the standing is another one now.
    pub(crate) fn hear(&mut self, checked: &Checked) -> bool {
        let expired = self.expire();
        match &checked.answer {
            _ if matches!(self.state, State::Lost(_)) => false,
            Answer::Unknown(_) => expired,
            Answer::Lost(loss) => {
                if let State::Owner(held) = &self.state {
                    held.issuer.end(&loss.to_string());
                }
                self.state = State::Lost(loss.clone());
                true
            }
            Answer::Owned { at_most } => self.own(self.until(checked.asked, *at_most)) || expired,
        }
    }

    /// Takes notice of a permit whose time is over. True if there was one. What has ended by the clock is over also where nobody
    /// has called this.
    pub(crate) fn expire(&mut self) -> bool {
        let over = matches!(&self.state, State::Owner(held) if !held.issuer.in_time());
        if over {
            if let State::Owner(held) = &self.state {
                held.issuer.end("ownership was not confirmed in time");
            }
            self.state = State::Unconfirmed;
        }
        over
    }

    /// Waits until the permit's time is over, or for ever, and does meanwhile what its work has left to do.
    pub(crate) async fn runs_out(&mut self) {
        let State::Owner(held) = &mut self.state else {
            return pending().await;
        };
        while held.issuer.in_time() {
            let alarm = Box::pin(sleep_until(held.issuer.valid_until()));
            match select(alarm, Box::pin(held.settling.go_on())).await {
                Either::Left(((), _)) => {}
                Either::Right((never, _)) => match never {},
            }
        }
    }

    fn until(&self, asked: Moment, at_most: Option<Duration>) -> Moment {
        let settings = self.terms.settings();
        match settings.silence {
            Silence::Tolerate => asked + UNTIL_LOST,
            Silence::Deactivate => asked + at_most.unwrap_or(settings.validity).min(settings.validity),
        }
    }

    /// True if the standing is another one now.
    fn own(&mut self, until: Moment) -> bool {
        if let State::Owner(held) = &mut self.state {
            // An answer never takes back what an earlier one gave.
            let until = held.until.max(until);
            if held.issuer.extend(until) {
                held.until = until;
                return false;
            }
        }
        // Either there was none, or its time was over at this moment: what has ended stays so, and there is a new one if the
        // answer is still good for anything.
        let was_owner = matches!(self.state, State::Owner(_));
        if self.clock.now() >= until {
            self.state = State::Unconfirmed;
            return was_owner;
        }
        let issuer = Issuer::new(self.by.clone(), self.clock.clone(), until);
        let settling = issuer.settling();
        self.state = State::Owner(Box::new(Held {
            issuer,
            until,
            settling,
        }));
        true
    }
}
