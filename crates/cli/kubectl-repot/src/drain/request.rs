//! The request of a drain.

use std::time::Duration;

/// The longest time that a delayed move counts for the bound of the moves under way, without the wait for a
/// slot. The garden gives the slot of a move to a different shoot after the same time (`migration_slots` of
/// garden-controller-manager).
pub const SLOT_WITHIN: Duration = Duration::from_secs(900);

/// A drain of a seed.
#[derive(Clone, Copy, Debug)]
pub struct DrainRequest<'a> {
    /// Name of the Seed that is to lose all shoots.
    pub from: &'a str,
    /// Names of the destination Seeds.
    pub to: &'a [String],
    /// Shoots that move at a time.
    pub parallel: usize,
    /// Shoots that are left out, as `NAMESPACE/NAME`.
    pub excluded: &'a [String],
    /// The name that approves the drain, where the caller approved in advance.
    pub approval: Option<&'a str>,
    /// The longest time since the request that a move holds a lane ([`crate::takeover::LANE_WITHIN`]).
    pub lane_within: Duration,
    /// The longest time since the delay that a delayed move holds up further projects ([`SLOT_WITHIN`]).
    pub slot_within: Duration,
    /// The bound of the wait for the approval of each move, and of each move after the approval.
    pub within: Duration,
}
