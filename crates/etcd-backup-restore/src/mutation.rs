//! Rules that a unit test switches off, to prove that the tests of a rule fail without that rule. A shipped binary has no switch: there
//! [`breaks`] is a constant.

/// A rule that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// The gate checks the permit when it accepts a connection, and not while bytes pass.
    BytesWithoutPermit,
    /// A copy takes any chain for one that reaches the end of the source's epoch.
    SealedRevisionIgnored,
}

#[cfg(not(test))]
pub(crate) const fn breaks(_: Mutation) -> bool {
    false
}

#[cfg(test)]
pub(crate) use switch::{Broken, breaks};

#[cfg(test)]
mod switch {
    use super::Mutation;
    use std::cell::Cell;

    thread_local! {
        /// Of one test: each test has a thread and a runtime of its own.
        static BROKEN: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    pub(crate) fn breaks(rule: Mutation) -> bool {
        BROKEN.get() == Some(rule)
    }

    /// A rule is off until this is dropped.
    pub(crate) struct Broken(());

    impl Broken {
        pub(crate) fn rule(rule: Mutation) -> Self {
            BROKEN.set(Some(rule));
            Self(())
        }
    }

    impl Drop for Broken {
        fn drop(&mut self) {
            BROKEN.set(None);
        }
    }
}
