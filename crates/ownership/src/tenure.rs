//! What follows from answers: one permit a tenure. Owned extends it, Unknown does not, Lost ends it for ever.

use std::future::pending;

use futures::future::{Either, select};
use permit::{Clock, Issuer, Moment, Permit, Settling};
use tokio::time::sleep_until;

use crate::judgement::Answer;
use crate::saying::Loss;
use crate::settings::Terms;
use crate::stance::Stance;

/// An answer, and when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Before the question was sent that brought the answer. It is what validity counts from: others count
    /// from when they saw what the question could not have seen yet.
    pub asked: Moment,
    /// The answer.
    pub answer: Answer,
    /// Why the owner record confirmed nothing, by server, where the second witness alone confirmed the owner.
    pub silent: Option<String>,
}

/// How a seed stands to a shoot.
#[derive(Clone, Debug)]
pub enum Standing {
    /// Nothing may be done: the seed was not confirmed yet, or not for too long. It may be again (R17-47,
    /// R17-48).
    Unconfirmed,
    /// It is the owner, and may act under this permit.
    Owner(Permit),
    /// It is not the owner any more, in this epoch for ever (R17-49).
    Lost(Loss),
}

/// The state of one seed's claim. What follows from what is in `stance`; here is the permit that goes with
/// it.
pub(crate) struct Tenure {
    by: String,
    clock: Clock,
    terms: Terms,
    stance: Stance<Moment>,
    /// There is one in every stance of an owner.
    held: Option<Box<Held>>,
}

struct Held {
    issuer: Issuer,
    settling: Settling,
}

impl Tenure {
    pub(crate) fn new(by: String, clock: Clock, terms: Terms) -> Self {
        Self {
            by,
            clock,
            terms,
            stance: Stance::Unconfirmed,
            held: None,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        match (&self.stance, &self.held) {
            (Stance::Lost(loss), _) => Standing::Lost(loss.clone()),
            (Stance::Owner { .. }, Some(held)) => Standing::Owner(held.issuer.permit()),
            (Stance::Owner { .. }, None) | (Stance::Unconfirmed, _) => Standing::Unconfirmed,
        }
    }

    /// Draws the consequence of an answer. True if the standing is another one now.
    pub(crate) fn hear(&mut self, checked: &Checked) -> bool {
        let expired = self.expire();
        let before = self.stance.clone();
        let now = self.clock.now();
        self.stance = before
            .clone()
            .hear(now, checked.asked, &checked.answer, &self.terms);
        match &self.stance {
            Stance::Owner { until } => self.own(*until) || expired,
            Stance::Lost(loss) => {
                if let Some(held) = self.held.take() {
                    held.issuer.end(&loss.to_string());
                }
                before != self.stance
            }
            Stance::Unconfirmed => {
                // Its time was over between two looks at the clock.
                let was_owner = self.held.take().is_some();
                was_owner || expired
            }
        }
    }

    /// Takes notice of a permit whose time is over. True if there was one. What has ended by the clock is
    /// over also where nobody has called this.
    pub(crate) fn expire(&mut self) -> bool {
        let over = self.held.take_if(|held| !held.issuer.in_time());
        if let Some(held) = &over {
            held.issuer.end("ownership was not confirmed in time");
            self.stance = Stance::Unconfirmed;
        }
        over.is_some()
    }

    /// Waits until the permit's time is over, or for ever, and does meanwhile what its work has left to do.
    pub(crate) async fn runs_out(&mut self) {
        let Some(held) = &mut self.held else {
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

    /// Gives the right that is good until then. True if the standing is another one now.
    fn own(&mut self, until: Moment) -> bool {
        if let Some(held) = &self.held
            && held.issuer.extend(until)
        {
            return false;
        }
        // Either there was none, or its time was over at this moment: what has ended stays so, and there is a
        // new one.
        let issuer = Issuer::new(self.by.clone(), self.clock.clone(), until);
        let settling = issuer.settling();
        self.held = Some(Box::new(Held { issuer, settling }));
        true
    }
}
