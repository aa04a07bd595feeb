//! The switches, and the proof that a test fails under a mutation.

use std::{
    any::Any,
    cell::Cell,
    env,
    fmt::Debug,
    future::{Future, poll_fn},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    sync::LazyLock,
    task::Poll,
};

use crate::Mutation;

/// Names the mutation of a whole process.
pub const VARIABLE: &str = "REPOT_MUTATION";

thread_local! {
    static OF_THREAD: Cell<Option<Mutation>> = const { Cell::new(None) };
}

static OF_PROCESS: LazyLock<Option<Mutation>> = LazyLock::new(|| {
    let name = env::var(VARIABLE).ok()?;
    let mutation = Mutation::named(&name).expect("REPOT_MUTATION must name a mutation; unset the variable");
    eprintln!("{VARIABLE}: this process runs without a safety rule ({name})");
    Some(mutation)
});

/// A mutation that is active in this thread until this is dropped.
#[must_use]
pub struct Active {
    before: Option<Mutation>,
    /// The guard must be dropped in the thread that created the guard.
    thread: PhantomData<*const ()>,
}

impl Drop for Active {
    fn drop(&mut self) {
        OF_THREAD.set(self.before);
    }
}

/// Makes a child process run under the mutation of this thread.
pub fn pass_on(command: &mut Command) {
    if let Some(mutation) = OF_THREAD.get() {
        command.env(VARIABLE, mutation.name());
    }
}

impl Mutation {
    /// Whether the rule is switched off in this thread or in this process.
    #[must_use]
    pub fn is_active(self) -> bool {
        OF_THREAD.get() == Some(self) || *OF_PROCESS == Some(self)
    }

    /// Switches the rule off in this thread.
    pub fn activate(self) -> Active {
        Active {
            before: OF_THREAD.replace(Some(self)),
            thread: PhantomData,
        }
    }

    /// Fails unless `test` fails under the mutation with a message that contains `failure`.
    ///
    /// # Panics
    /// The test passes, or fails with a message that shows a different cause.
    #[track_caller]
    pub fn assert_killed_by(self, test: fn(), failure: &str) {
        let active = self.activate();
        let ended = catch_unwind(test).map_err(|panic| message(panic.as_ref()));
        drop(active);
        self.check(ended, failure);
    }

    /// The same for a part of an asynchronous test. The mutation is active while `scenario` itself is polled.
    ///
    /// # Panics
    /// The scenario succeeds, or fails with a message that shows a different cause.
    pub fn assert_killed_by_scenario<T, E: Debug>(
        self,
        scenario: impl Future<Output = Result<T, E>>,
        failure: &str,
    ) -> impl Future<Output = ()> {
        // The futures of scenarios are large.
        let mut scenario = Box::pin(scenario);
        let ended = poll_fn(move |context| {
            let _active = self.activate();
            match catch_unwind(AssertUnwindSafe(|| scenario.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(Ok(_))) => Poll::Ready(Ok(())),
                Ok(Poll::Ready(Err(error))) => Poll::Ready(Err(format!("{error:?}"))),
                Err(panic) => Poll::Ready(Err(message(panic.as_ref()))),
            }
        });
        async move { self.check(ended.await, failure) }
    }

    #[track_caller]
    fn check(self, ended: Result<(), String>, failure: &str) {
        let message = ended.expect_err(&format!("no test notices {self:?}"));
        assert!(
            message.contains(failure),
            "under {self:?} the test failed for a cause other than {failure:?}: {message}"
        );
    }

    fn name(self) -> String {
        format!("{self:?}")
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|mutation| mutation.name() == name).copied()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Mutation = Mutation::FencePassesAtOnce;

    fn keeps_its_rule() {
        assert!(!RULE.is_active(), "the rule is off");
    }

    #[test]
    fn a_mutation_is_active_in_the_thread_of_its_test_until_the_guard_is_dropped() {
        let active = RULE.activate();
        assert!(RULE.is_active() && !Mutation::FenceBeforeClaim.is_active());
        let elsewhere = std::thread::spawn(|| RULE.is_active()).join();
        assert!(!elsewhere.expect("the thread ends"));
        drop(Mutation::FenceBeforeClaim.activate());
        assert!(RULE.is_active(), "the guard within has given it back");
        drop(active);
        keeps_its_rule();
    }

    #[test]
    fn a_test_kills_a_mutation_by_the_expected_failure_alone() {
        RULE.assert_killed_by(keeps_its_rule, "the rule is off");
        keeps_its_rule();
        let survives = || RULE.assert_killed_by(|| {}, "");
        let panic = catch_unwind(survives).expect_err("the test passed");
        assert!(message(panic.as_ref()).contains("no test notices FencePassesAtOnce"));
        let strange = || RULE.assert_killed_by(keeps_its_rule, "a different failure");
        let panic = catch_unwind(strange).expect_err("the failure has a different cause");
        assert!(message(panic.as_ref()).contains("the rule is off"));
    }

    #[test]
    fn a_child_process_is_given_the_mutation_of_the_thread_and_no_other() {
        let given = || {
            let mut command = Command::new("true");
            pass_on(&mut command);
            let found = command.get_envs().find(|(name, _)| *name == VARIABLE);
            found.and_then(|(_, value)| Mutation::named(value?.to_str()?))
        };
        for mutation in Mutation::ALL {
            let active = mutation.activate();
            assert_eq!(given(), Some(*mutation));
            drop(active);
        }
        assert_eq!(given(), None);
        assert_eq!(Mutation::named("fence"), None);
    }
}
