//! A task of a flow, as a part declares the task: the name for operators, the work, and the external systems
//! that the work may change.
//!
//! Only this crate builds a [`PartTask`], and a flow of the gardenlet takes only such tasks. So each task of
//! a flow has a declaration of the external systems, and the part sets the value. The gardenlet checks for
//! each flow that these tasks run only while the seed is the owner (I2, I3, R17-31;
//! `gardenlet/src/shoot/flows/safety`).

use std::fmt;

use futures::future::BoxFuture;
use runtime::Result;

/// A system outside the seed and the garden. A former seed of the shoot may still change the same system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalSystem {
    /// The account at the provider. Each task that writes or deletes an extension resource counts: the
    /// gardenlet does not know the changes of a provider. A migration of an extension resource makes no
    /// change outside the seed (I9).
    Cloud,
    /// The DNS zones with the names of the shoot and the owner record.
    Dns,
    /// The object store of the backups. A task that starts or stops an etcd with backups counts, because
    /// etcd-backup-restore then stores snapshots.
    Bucket,
}

impl fmt::Display for ExternalSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cloud => "cloud",
            Self::Dns => "DNS",
            Self::Bucket => "bucket",
        })
    }
}

/// The external systems that a task may change, by the work or by a process that the work starts or stops.
/// Reads do not count.
pub type ExternalSystems = &'static [ExternalSystem];

pub(crate) const NONE: ExternalSystems = &[];
pub(crate) const CLOUD: ExternalSystems = &[ExternalSystem::Cloud];
pub(crate) const DNS: ExternalSystems = &[ExternalSystem::Dns];
pub(crate) const BUCKET: ExternalSystems = &[ExternalSystem::Bucket];
/// The systems of extension resources of all kinds.
pub(crate) const CLOUD_AND_DNS: ExternalSystems = &[ExternalSystem::Cloud, ExternalSystem::Dns];

type Independent<I> = for<'f> fn(&'f I) -> BoxFuture<'f, Result<()>>;
type Exchanging<I, S> = for<'f> fn(&'f I, &'f S) -> BoxFuture<'f, Result<()>>;

enum Work<I, S> {
    Independent(Independent<I>),
    Exchanging(Exchanging<I, S>),
}

/// A task of a flow. `I` is the input of the work: [`crate::Facts`] or [`crate::Residency`]. `S` is the
/// finding that the work exchanges with further tasks of the flow ([`crate::MoveFindings`]), `()` for none.
pub struct PartTask<I, S = ()> {
    name: &'static str,
    touches: ExternalSystems,
    work: Work<I, S>,
}

impl<I> PartTask<I> {
    /// A task whose work may change these external systems. The work exchanges no finding.
    pub(crate) const fn new(name: &'static str, touches: ExternalSystems, work: Independent<I>) -> Self {
        Self {
            name,
            touches,
            work: Work::Independent(work),
        }
    }
}

impl<I, S> PartTask<I, S> {
    /// Like [`PartTask::new`], but the work records or reads a finding.
    pub(crate) const fn exchanging(
        name: &'static str,
        touches: ExternalSystems,
        work: Exchanging<I, S>,
    ) -> Self {
        Self {
            name,
            touches,
            work: Work::Exchanging(work),
        }
    }

    /// The name for operators, and the identity of the task in `status.lastErrors`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The external systems that the work may change.
    #[must_use]
    pub const fn touches(&self) -> ExternalSystems {
        self.touches
    }

    /// Does the work. The work may run again at any time (I5), and ends within a bound.
    ///
    /// # Errors
    /// The error of the part.
    pub fn run<'f>(&self, input: &'f I, finding: &'f S) -> BoxFuture<'f, Result<()>> {
        match self.work {
            Work::Independent(work) => work(input),
            Work::Exchanging(work) => work(input, finding),
        }
    }
}

impl<I, S> fmt::Debug for PartTask<I, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartTask")
            .field("name", &self.name)
            .field("touches", &self.touches)
            .finish_non_exhaustive()
    }
}
