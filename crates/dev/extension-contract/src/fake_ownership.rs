//! A fake owner check with answers that the test sets.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::extensions::Cluster as ClusterObject;
use extension::OwnerChecks;
use owner_checks::{CheckSource, OwnerClaim, RunningCheck};
use ownership::{OwnershipLoss, Report, Standing, Terms};
use permit::{Clock, Issuer};
use runtime::{Result, client::Seed};
use tokio::sync::{
    Notify,
    watch::{self, Sender},
};

/// Longer than a test lasts: no permit expires here.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// The epoch of the seed that owns every shoot.
pub(super) const EPOCH: i64 = 2;

/// This seed owns every shoot until the test sets the loss; then a different seed owns all shoots for ever.
#[derive(Default)]
pub(crate) struct FakeOwnership {
    state: Mutex<State>,
    /// Signals the first confirmed permit.
    first: Notify,
}

#[derive(Default)]
struct State {
    lost: bool,
    /// The permits and reports that confirmed the ownership of this seed.
    told: Vec<(Issuer, Sender<Report>)>,
}

impl FakeOwnership {
    /// The seed has every shoot.
    pub fn owner() -> Arc<Self> {
        Arc::default()
    }

    /// The seed owns no shoot.
    pub fn lost() -> Arc<Self> {
        let ownership = Self::owner();
        ownership.lose();
        ownership
    }

    /// Checks of a process that ask here.
    pub fn checks(self: &Arc<Self>) -> OwnerChecks {
        OwnerChecks::asking(Arc::<Self>::clone(self))
    }

    /// Waits until the ownership of a shoot was confirmed.
    pub async fn wait_for_confirmation(&self) {
        self.first.notified().await;
    }

    /// Whether an ownership was confirmed.
    pub fn has_told(&self) -> bool {
        !self.state().told.is_empty()
    }

    /// From now on, a different seed owns all shoots.
    pub fn lose(&self) {
        let mut state = self.state();
        state.lost = true;
        for (issuer, reports) in &state.told {
            issuer.end(&loss().to_string());
            reports.send_modify(|report| report.standing = Standing::Lost(loss()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn loss() -> OwnershipLoss {
    OwnershipLoss::AnotherIdentity("another-seed".to_owned())
}

impl CheckSource for FakeOwnership {
    fn wanted(&self, _: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        Ok(Some(OwnerClaim {
            shoot_uid: String::new(),
            name: "owner.test".to_owned(),
            identity: "this-seed".to_owned(),
            zone: "test".to_owned(),
            authorities: Vec::new(),
            epoch: EPOCH,
            terms: Terms::default(),
        }))
    }

    fn begin(&self, _: &OwnerClaim, _: &Seed, _: &str) -> Result<RunningCheck> {
        let clock = Clock::default();
        let until = clock.now() + LONG;
        let issuer = Issuer::new("the owner of a test", clock, until);
        let mut state = self.state();
        let standing = if state.lost {
            Standing::Lost(loss())
        } else {
            Standing::Owner(issuer.permit())
        };
        let (sender, reports) = watch::channel(Report { standing, last: None });
        if !state.lost {
            state.told.push((issuer, sender));
            self.first.notify_one();
        }
        let mut heard = reports.clone();
        let run = Box::pin(async move {
            let is_lost = |report: &Report| matches!(report.standing, Standing::Lost(_));
            if heard.wait_for(is_lost).await.is_err() {
                std::future::pending::<()>().await;
            }
            loss()
        });
        Ok(RunningCheck { reports, run })
    }
}
