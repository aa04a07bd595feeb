//! The invariants of a state.

use super::super::forwarding::GateRoute;
use super::rules::CutScenario;
use super::state::{CIRCLE, CutState, TWO_WRITERS};

/// More hops than any request of this model needs.
const MOST_HOPS: u8 = 3;

impl CutState {
    /// The broken invariant, if any.
    pub(super) fn fault(&self, scenario: &CutScenario) -> Option<&'static str> {
        if self.broken.is_some() {
            return self.broken;
        }
        let by_source = self.source_acknowledges(scenario);
        // The source acknowledges writes of the second epoch by forwarding.
        let forwards = matches!(self.route_at_source(scenario), GateRoute::Peer { .. });
        let by_forwarding = forwards && scenario.timed;
        let by_destination = self.destination.acknowledges();
        let third_is_open = self.next.is_some_and(|next| next.has_opened);
        if self.was_opened && by_source || third_is_open && (by_source || by_forwarding || by_destination) {
            return Some(TWO_WRITERS);
        }
        let hops = self.write.map_or(0, |write| write.hops);
        (hops > MOST_HOPS).then_some(CIRCLE)
    }

    /// A seed serves, and no request waits.
    pub(super) fn is_available(&self, scenario: &CutScenario) -> bool {
        let is_served = self.source_acknowledges(scenario)
            || self.destination.acknowledges()
            || self.next.is_some_and(|next| next.has_opened);
        self.write.is_none() && is_served
    }
}
