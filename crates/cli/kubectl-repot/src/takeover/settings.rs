//! The settings of a takeover.

use std::time::Duration;

/// The longest time that a takeover with progress is the trial, or that a takeover or a move of a drain holds
/// a lane. Several times the duration for a small shoot. A shoot with large backups takes longer.
pub const LANE_WITHIN: Duration = Duration::from_secs(240);

/// The settings of a takeover of a single shoot, or of all shoots of a seed.
#[derive(Clone, Copy, Debug)]
pub struct TakeoverSettings<'a> {
    /// Name of the Seed that takes over.
    pub to: &'a str,
    /// The caller states that no process of the old seed runs any more.
    pub source_is_off: bool,
    /// The name that approves the loss, where the caller gave the name in advance.
    pub approval: Option<&'a str>,
    /// Shoots of the seed that are left out, as `NAMESPACE/NAME`.
    pub excluded: &'a [String],
    /// The longest time since the request that a takeover of a seed's shoot holds a lane ([`LANE_WITHIN`]).
    pub lane_within: Duration,
    /// The bound of the wait for the end of each takeover, if the caller waits.
    pub wait: Option<Duration>,
}
