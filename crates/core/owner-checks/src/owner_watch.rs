//! Runs work while this seed owns the shoot.

use std::{future::Future, pin::pin};

use futures::future::{Either, pending, select};
use ownership::{OwnershipLoss, Report, Standing, Watch};
use permit::Permit;
use tokio::sync::watch::Receiver;

/// An owner check that runs beside the work under the check.
pub struct OwnerWatch {
    watch: Watch,
}

impl OwnerWatch {
    pub(crate) fn new(watch: Watch) -> Self {
        Self { watch }
    }
}

/// Runs `work` while the right `lock` is valid and, with `watch`, while the check confirms that this seed
/// owns the shoot. Each new right starts the work again, until the work ends without being dropped. A loss is
/// final: from then on no work runs, and this function stays pending until the caller drops the future.
pub async fn while_owned<W, F, T>(watch: Option<OwnerWatch>, lock: Permit, mut work: W) -> T
where
    W: FnMut(Permit) -> F,
    F: Future<Output = T>,
{
    let Some(OwnerWatch { watch }) = watch else {
        return work(lock).await;
    };
    let reports = watch.reports();
    let checking = async {
        let loss: OwnershipLoss = watch.run().await;
        tracing::error!(%loss, "the shoot is lost: nothing is done for it by this process any more");
        pending::<T>().await
    };
    let working = run_under_each_permit(reports, lock, work);
    match select(pin!(checking), pin!(working)).await {
        Either::Left((ended, _)) | Either::Right((ended, _)) => ended,
    }
}

async fn run_under_each_permit<W, F, T>(mut reports: Receiver<Report>, lock: Permit, mut work: W) -> T
where
    W: FnMut(Permit) -> F,
    F: Future<Output = T>,
{
    loop {
        let standing = reports.borrow_and_update().standing.clone();
        if let Standing::Owner(owner) = standing
            && owner.is_valid()
        {
            let right = lock.and(&owner);
            match right.guard(work(right.clone())).await {
                Ok(ended) => return ended,
                Err(refused) => tracing::warn!(%refused, "what is done for the shoot has ended"),
            }
            if lock.is_valid() {
                continue;
            }
            // The holder of the lock drops this future.
            return pending().await;
        }
        if reports.changed().await.is_err() {
            return pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use futures::FutureExt;
    use permit::{Clock, Issuer};
    use tokio::{sync::watch, time::sleep};

    use super::*;

    struct FakeReports {
        sender: watch::Sender<Report>,
        begun: Arc<AtomicUsize>,
        under_way: Arc<AtomicUsize>,
    }

    impl FakeReports {
        fn new() -> Self {
            let (sender, _) = watch::channel(Report {
                standing: Standing::Unconfirmed,
                last: None,
            });
            Self {
                sender,
                begun: Arc::default(),
                under_way: Arc::default(),
            }
        }

        fn report(&self, standing: Standing) {
            self.sender.send_modify(|report| report.standing = standing);
        }

        fn owned(&self) -> Issuer {
            let clock = Clock::default();
            let until = clock.now() + Duration::from_secs(12);
            let issuer = Issuer::new("a test", clock, until);
            self.report(Standing::Owner(issuer.permit()));
            issuer
        }

        fn run(&self, lock: Permit) -> impl Future<Output = ()> + use<> {
            let (begun, under_way) = (Arc::clone(&self.begun), Arc::clone(&self.under_way));
            run_under_each_permit(self.sender.subscribe(), lock, move |right| {
                let (begun, under_way) = (Arc::clone(&begun), Arc::clone(&under_way));
                async move {
                    assert!(right.is_valid());
                    begun.fetch_add(1, Ordering::SeqCst);
                    let _running = RunningCount::new(under_way);
                    pending::<()>().await;
                }
            })
        }

        fn counts(&self) -> (usize, usize) {
            (
                self.begun.load(Ordering::SeqCst),
                self.under_way.load(Ordering::SeqCst),
            )
        }
    }

    struct RunningCount(Arc<AtomicUsize>);

    impl RunningCount {
        fn new(count: Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Ordering::SeqCst);
            Self(count)
        }
    }

    impl Drop for RunningCount {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// R17-47..49, R17-60: no work before the first answer or between two rights, a single run at a time, and
    /// no work after a loss.
    #[tokio::test(start_paused = true)]
    async fn work_begins_with_a_right_and_ends_with_it() {
        let fake = FakeReports::new();
        let mut running = Box::pin(fake.run(Permit::sole("a test")));
        let mut go_on = async || {
            for _ in 0..3 {
                assert!((&mut running).now_or_never().is_none());
                sleep(Duration::from_millis(1)).await;
            }
        };
        go_on().await;
        assert_eq!(fake.counts(), (0, 0));
        let first = fake.owned();
        go_on().await;
        assert_eq!(fake.counts(), (1, 1));
        // A repeated Owned has no effect.
        fake.report(Standing::Owner(first.permit()));
        go_on().await;
        assert_eq!(fake.counts(), (1, 1));
        first.end("not confirmed");
        fake.report(Standing::Unconfirmed);
        go_on().await;
        assert_eq!(fake.counts(), (1, 0));
        let second = fake.owned();
        go_on().await;
        assert_eq!(fake.counts(), (2, 1));
        second.end("lost");
        fake.report(Standing::Lost(OwnershipLoss::LaterEpoch(9)));
        go_on().await;
        assert_eq!(fake.counts(), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_lock_nothing_is_done_whoever_has_the_shoot() {
        let fake = FakeReports::new();
        let clock = Clock::default();
        let until = clock.now() + Duration::from_secs(60);
        let lock = Issuer::new("a lock", clock, until);
        let mut running = Box::pin(fake.run(lock.permit()));
        let _owned = fake.owned();
        assert!((&mut running).now_or_never().is_none());
        assert_eq!(fake.counts(), (1, 1));
        lock.end("given back");
        sleep(Duration::from_millis(1)).await;
        assert!((&mut running).now_or_never().is_none());
        assert_eq!(fake.counts(), (1, 0));
    }

    #[tokio::test]
    async fn where_nobody_is_asked_the_lock_is_enough() {
        assert_eq!(
            while_owned(None, Permit::sole("a test"), |_| async { 7 }).await,
            7
        );
    }
}
