//! How EC2 is asked to end an instance. A termination that hangs is asked for again with EC2's own options of
//! force, in the order of the harm that each may do to data.

use std::time::Duration;

use crate::Call;

/// How long an instance may shut down before [`Termination::Forced`]. EC2 needs a minute as a rule.
const FORCED_AFTER: Duration = Duration::from_secs(2 * 60);
/// How long an instance may shut down before [`Termination::WithoutShutdown`]. Within the five minutes that a
/// Machine of an isolated zone has, so that both options are tried before the zone is closed around the
/// instance.
const WITHOUT_SHUTDOWN_AFTER: Duration = Duration::from_secs(4 * 60);

/// How an instance is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// The operating system shuts down.
    Graceful,
    /// The operating system shuts down, and where that does not end EC2 ends the instance without its caches.
    Forced,
    /// EC2 ends the instance without a shutdown of the operating system.
    WithoutShutdown,
}

impl Termination {
    /// For an instance whose termination EC2 has accepted so long ago.
    #[must_use]
    pub fn after(ending_for: Duration) -> Self {
        if ending_for >= WITHOUT_SHUTDOWN_AFTER {
            Self::WithoutShutdown
        } else if ending_for >= FORCED_AFTER {
            Self::Forced
        } else {
            Self::Graceful
        }
    }

    /// The call.
    #[must_use]
    pub fn call(self, id: &str) -> Call {
        let call = Call::new("TerminateInstances").with("InstanceId.1", id);
        match self {
            Self::Graceful => call,
            Self::Forced => call.with("Force", "true"),
            Self::WithoutShutdown => call.with("Force", "true").with("SkipOsShutdown", "true"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_termination_that_hangs_is_forced_and_then_skips_the_shutdown() {
        for (seconds, options) in [
            (0, ""),
            (119, ""),
            (120, "&Force=true"),
            (239, "&Force=true"),
            (240, "&Force=true&SkipOsShutdown=true"),
            (86_400, "&Force=true&SkipOsShutdown=true"),
        ] {
            let form = Termination::after(Duration::from_secs(seconds))
                .call("i-1")
                .form();
            let expected = format!("Action=TerminateInstances&Version=2016-11-15&InstanceId.1=i-1{options}");
            assert_eq!(form, expected, "after {seconds} s");
        }
    }
}
