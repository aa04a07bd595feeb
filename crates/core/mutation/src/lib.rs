//! Mutations of production code: safety rules that a test switches off, to prove that the tests of a rule
//! fail without that rule.
//!
//! Production code asks [`Mutation::is_active`]. Without the feature `switches` the answer is the constant
//! `false`, so that a release and `make demo` have no switch. Only dev-dependencies enable the feature.
//!
//! With the feature, a mutation is active
//! - in the thread of a test, while an [`Active`] is alive there. A `#[tokio::test]` with a single-threaded
//!   runtime runs all tasks on that thread; of a runtime with several threads only the body of the test runs
//!   there, so that a spawned task does not see the mutation. Tests that run side by side have separate
//!   threads. Code that a mutation does not reach keeps the rule: then the test passes, and
//!   [`Mutation::assert_killed_by`] fails.
//! - in a whole process whose environment has `REPOT_MUTATION`. [`pass_on`] gives a child process the
//!   mutation of the thread.
//!
//! In mutation testing, a test that fails under a mutation *kills* that mutation.

#[cfg(all(feature = "switches", not(debug_assertions)))]
compile_error!(
    "a release has no switches for safety rules; build without the feature `switches` of crate `mutation`"
);

#[cfg(feature = "switches")]
mod switch;

#[cfg(feature = "switches")]
pub use switch::{Active, VARIABLE, pass_on};

macro_rules! mutations {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule of production code that a test can switch off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        #[cfg(feature = "switches")]
        impl Mutation {
            /// Every mutation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

mutations! {
    /// `parts`: a fence is over as soon as it has begun.
    FencePassesAtOnce,
    /// `parts`: the fence begins before the provider has claimed the source's bucket.
    FenceBeforeClaim,
    /// `parts`: the etcd condition takes every chain for complete, whatever the copy has read and hashed.
    CopyEvidenceIgnored,
    /// `parts`: a copy for an earlier epoch counts as the copy for the present epoch.
    CopyOfEarlierEpochCounts,
    /// `parts`: a planned move goes on with an incomplete copy that nobody accepted.
    IncompleteCopyAccepted,
    /// `parts`: a planned hand-over counts although the owner record still names the source.
    HandOverNotConfirmed,
    /// `parts`: a destination relies on phases that the destination has not noted in its own seed.
    UnnotedPhaseTrusted,
    /// `parts`: a destination that wakes up late goes on in an epoch that is over.
    EndedEpochContinued,
    /// `extension`: an actuator acts although the Cluster names a different seed.
    RoleIgnored,
    /// `extension`: an operation begins before the owner of the shoot is confirmed.
    OwnerNotConfirmed,
    /// `extension`: an operation goes on after its permit has ended.
    PermitIgnored,
    /// `cloud-local`: an update of the owner record does not name the text that was read.
    RecordUpdatedWithoutTest,
    /// `provider-local`: a DNSRecord replaces the owner record of a later epoch or of a different owner.
    OwnerRecordReplaced,
    /// `provider-local`: a BackupEntry takes a place in the bucket that is of a later epoch.
    PlaceOfLaterEpochTaken,
    /// `provider-local`: `ownership.json` is written without a condition on the content that was read.
    PlaceTakenWithoutCondition,
    /// `etcd-backup-restore`: the gate checks the permit when it accepts a connection, and not while bytes
    /// pass.
    BytesWithoutPermit,
    /// `etcd-backup-restore`: a process opens the gate without having read whether the epoch was sealed.
    SealNotRead,
    /// `etcd-backup-restore`: the final snapshot begins before the seal is on the volume and in the bucket.
    FinalSnapshotBeforeSeal,
    /// `etcd-backup-restore`: a copy takes any chain for one that reaches the end of the source's epoch.
    SealedRevisionIgnored,
    /// `etcd-backup-restore`: the transactions of a follower have no conditions.
    RevisionOrderUnchecked,
    /// `etcd-backup-restore`: a follower deletes a key while the transaction that creates the key is under
    /// way.
    DeletionSentBesideCreation,
    /// `etcd-backup-restore`: a follower sends a revision without a trace beside further revisions.
    TracelessRevisionNotAlone,
    /// `etcd-backup-restore`: a follower takes any history of the etcd for the source's history.
    DigestsNotCompared,
}

#[cfg(not(feature = "switches"))]
impl Mutation {
    /// Whether the rule is switched off: never in this build.
    #[must_use]
    pub const fn is_active(self) -> bool {
        false
    }
}
