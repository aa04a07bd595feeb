//! The checks of a process: one for each shoot and epoch for which something is done, shared by all that do it.
//!
//! Nothing is spawned (invariant 4): a check is one future that everybody polls who works under it, beside his work. It ends
//! with the last of them.

use std::{fmt, sync::Arc, time::Duration};

use api::extensions::{Cluster as ClusterObject, ExtensionObject};
use futures::FutureExt;
use owner_checks::OwnerClaim;
use ownership::{Report, Standing};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use runtime::{Result, Seed, metrics::Metrics};
use tokio::time::timeout;

use super::{
    asking::{Ask, Asking},
    book::{Book, Known},
    scope::concerns,
    tenure::{Hold, Refusal, Tenure},
};
use crate::{Operation, kind};

/// Who may act for which shoot, as their owner records say. A process makes one and gives it to all of its controllers. Cheap to
/// clone.
#[derive(Clone)]
pub struct OwnerChecks {
    asks: Arc<dyn Ask>,
    book: Arc<Book>,
    refusals: Family<Labels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    kind: String,
    why: String,
}

/// How long it may take to be confirmed.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// Until the first answer, whatever it is.
    FirstAnswer,
    /// Until an answer that decides, but no longer than this.
    Decision(Duration),
}

/// A first answer comes sooner: each check has bounds of its own. Where they are long, twice as long as a check may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

impl OwnerChecks {
    /// Of a process with these metrics.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self::asking(Arc::new(Asking::default())).counted(metrics)
    }

    /// The same where the processes beside etcd answer somewhere else, at a URL with `{namespace}` in it.
    #[must_use]
    pub fn with_sidecars_at(url: &str, metrics: &Metrics) -> Self {
        let sidecars = url.to_owned();
        Self::asking(Arc::new(Asking { sidecars })).counted(metrics)
    }

    /// As somebody else asks.
    pub(crate) fn asking(asks: Arc<dyn Ask>) -> Self {
        Self {
            asks,
            book: Arc::default(),
            refusals: Family::default(),
        }
    }

    fn counted(self, metrics: &Metrics) -> Self {
        metrics.register(|registry| {
            registry.register(
                "extension_owner_refusals",
                "Operations that were not begun, or ended, since this seed was not confirmed as the shoot's owner",
                self.refusals.clone(),
            );
        });
        self
    }

    /// What has to be confirmed before, and while, this is done; none where nothing has to.
    pub(crate) fn wanted<K: ExtensionObject>(
        &self,
        object: &K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<OwnerClaim>> {
        if concerns(object, operation) {
            self.asks.wanted(cluster)
        } else {
            Ok(None)
        }
    }

    /// The right to act for a shoot: that of the check that is under way, or else of a new one.
    pub(crate) async fn confirm(
        &self,
        seed: &Seed,
        namespace: &str,
        wanted: OwnerClaim,
        patience: Patience,
    ) -> Result<Tenure, Refusal> {
        let first_answer = FIRST_ANSWER.max(wanted.terms.settings().check_takes() * 2);
        let hold = self.hold(seed, namespace, wanted)?;
        let (within, insist) = match patience {
            Patience::FirstAnswer => (first_answer, false),
            Patience::Decision(within) => (within, true),
        };
        let is_decided = |report: &Report| match report.standing {
            Standing::Unconfirmed => report.last.is_some() && !insist,
            Standing::Owner(_) | Standing::Lost(_) => true,
        };
        let mut reports = hold.reports.clone();
        // Whatever came of it is looked at below.
        let awaited = async { drop(timeout(within, reports.wait_for(is_decided)).await) };
        hold.beside(awaited).await;
        let standing = hold.reports.borrow().standing.clone();
        match standing {
            Standing::Owner(permit) if permit.is_valid() => Ok(Tenure { permit, hold }),
            _ => Err(hold.refusal()),
        }
    }

    /// A part in the check of the shoot.
    fn hold(&self, seed: &Seed, namespace: &str, wanted: OwnerClaim) -> Result<Hold, Refusal> {
        let begin = || {
            let begun = self.asks.begin(&wanted, seed, namespace);
            let begun = begun.map_err(Refusal::Impossible)?;
            Ok((begun.reports, begun.run.shared()))
        };
        match self.book.find(namespace, &wanted, begin)? {
            Known::Lost(why) => Err(Refusal::Lost(why)),
            Known::Asked(reports, run) => Ok(Hold {
                book: Arc::clone(&self.book),
                namespace: namespace.to_owned(),
                wanted,
                reports,
                run: Some(run),
            }),
        }
    }

    /// Counts what was refused.
    pub(crate) fn count<K: ExtensionObject>(&self, refusal: &Refusal) {
        let why = match refusal {
            Refusal::Lost(_) => "Lost",
            Refusal::OtherEpoch(_) => "OtherEpoch",
            Refusal::Unconfirmed(_) | Refusal::Impossible(_) => "Unconfirmed",
        };
        let labels = Labels {
            kind: kind::name::<K>().into_owned(),
            why: why.to_owned(),
        };
        self.refusals.get_or_create(&labels).inc();
    }

    /// Whether this is the first time that the loss of a shoot is told of this object.
    pub(crate) fn is_news(&self, namespace: &str, object: String) -> bool {
        self.book.is_news(namespace, object)
    }

    /// Of how many shoots something is known.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.book.len()
    }
}

/// For who runs one controller, and counts nothing.
impl Default for OwnerChecks {
    fn default() -> Self {
        Self::asking(Arc::new(Asking::default()))
    }
}

impl fmt::Debug for OwnerChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerChecks")
    }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
