//! Termination of instances. A termination that hangs is repeated with EC2's own options of force. The option
//! with less possible harm to data comes first.

use std::time::Duration;

use crate::Call;

/// How long an instance may shut down before [`Termination::Forced`]. EC2 needs a minute as a rule.
const FORCED_AFTER: Duration = Duration::from_secs(2 * 60);
/// How long an instance may shut down before [`Termination::WithoutShutdown`]. A Machine of an isolated zone
/// has five minutes. Both options are tried in this time, before the zone is closed around the instance.
const WITHOUT_SHUTDOWN_AFTER: Duration = Duration::from_secs(4 * 60);

/// How an instance is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// The operating system shuts down.
    Graceful,
    /// The operating system shuts down. EC2 ends a hanging instance without a flush of the caches.
    Forced,
    /// EC2 ends the instance without a shutdown of the operating system.
    WithoutShutdown,
}

impl Termination {
    /// The kind of termination for an instance, by the time since EC2 accepted the first termination.
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
