//! Work that is done a single time, and only while this seed owns the shoot.

use std::{future::Future, pin::pin, time::Duration};

use futures::future::{Either, pending, select};
use ownership::{Answer, OwnershipLoss, Report, Standing, Watch};
use permit::Permit;
use tokio::{sync::watch::Receiver, time::timeout};

/// The reason why the work was not begun, or was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotOwned {
    /// A different seed owns the shoot, or no seed does: final for this epoch.
    Lost(OwnershipLoss),
    /// No witness has confirmed this seed for too long. A later answer may confirm the seed again.
    Unconfirmed(String),
}

/// Runs `work` under the right `lock` and the owner's right, and drops the work when either right ends. Waits
/// for the first answer no longer than `patience`.
///
/// # Errors
/// The shoot is lost or not confirmed for this seed. Work under way was dropped.
pub fn once_owned<T, F>(
    watch: Watch,
    lock: &Permit,
    patience: Duration,
    work: impl FnOnce(Permit) -> F,
) -> impl Future<Output = Result<T, NotOwned>>
where
    F: Future<Output = T>,
{
    let reports = watch.reports();
    run_under_one_permit(reports, watch.run(), lock, patience, work)
}

async fn run_under_one_permit<T, F>(
    reports: Receiver<Report>,
    checking: impl Future<Output = OwnershipLoss>,
    lock: &Permit,
    patience: Duration,
    work: impl FnOnce(Permit) -> F,
) -> Result<T, NotOwned>
where
    F: Future<Output = T>,
{
    let checking = pin!(checking);
    let confirmed = pin!(timeout(patience, confirmed(reports.clone())));
    let (owner, checking) = match select(checking, confirmed).await {
        Either::Left((loss, _)) => return Err(NotOwned::Lost(loss)),
        Either::Right((Ok(owner), checking)) => (owner, checking),
        Either::Right((Err(_), _)) => return Err(unconfirmed(&reports)),
    };
    let right = lock.and(&owner);
    // The check is polled first, so that a loss takes effect before the next step of the work.
    match select(checking, pin!(right.guard(work(right.clone())))).await {
        Either::Left((loss, _)) => Err(NotOwned::Lost(loss)),
        Either::Right((Ok(done), _)) => Ok(done),
        Either::Right((Err(refused), _)) if owner.is_valid() => {
            Err(NotOwned::Unconfirmed(refused.to_string()))
        }
        Either::Right((Err(_), _)) => Err(unconfirmed(&reports)),
    }
}

/// Waits for a valid right of the owner.
async fn confirmed(mut reports: Receiver<Report>) -> Permit {
    loop {
        if let Standing::Owner(owner) = &reports.borrow_and_update().standing
            && owner.is_valid()
        {
            return owner.clone();
        }
        if reports.changed().await.is_err() {
            return pending().await;
        }
    }
}

fn unconfirmed(reports: &Receiver<Report>) -> NotOwned {
    let report = reports.borrow();
    NotOwned::Unconfirmed(match report.last.as_ref().map(|last| &last.answer) {
        Some(Answer::Unknown(why)) => why.clone(),
        Some(_) => "the last confirmation is too old".to_owned(),
        None => "nobody has answered yet".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use permit::{Clock, Issuer};
    use tokio::{
        sync::{oneshot, watch},
        time::Instant,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(15);

    struct FakeCheck {
        reports: watch::Sender<Report>,
        lose: Option<oneshot::Sender<OwnershipLoss>>,
        checking: Option<oneshot::Receiver<OwnershipLoss>>,
    }

    impl FakeCheck {
        fn new() -> Self {
            let (reports, _) = watch::channel(Report {
                standing: Standing::Unconfirmed,
                last: None,
            });
            let (lose, checking) = oneshot::channel();
            Self {
                reports,
                lose: Some(lose),
                checking: Some(checking),
            }
        }

        fn owned(&self) -> Issuer {
            let clock = Clock::default();
            let issuer = Issuer::new("a test", clock.clone(), clock.now() + Duration::from_secs(600));
            let permit = issuer.permit();
            self.reports
                .send_modify(|report| report.standing = Standing::Owner(permit));
            issuer
        }

        fn run<T, F: Future<Output = T>>(
            &mut self,
            work: impl FnOnce(Permit) -> F,
        ) -> impl Future<Output = Result<T, NotOwned>> {
            let checking = self.checking.take().unwrap();
            let (reports, lock) = (self.reports.subscribe(), Permit::sole("a test"));
            async move {
                let checking = async move { checking.await.unwrap() };
                run_under_one_permit(reports, checking, &lock, PATIENCE, work).await
            }
        }
    }

    #[tokio::test]
    async fn it_is_done_under_the_right_of_the_owner() {
        let mut check = FakeCheck::new();
        let owner = check.owned();
        let done = check.run(|right| async move {
            assert!(right.is_valid());
            owner.end("a test");
            assert!(!right.is_valid());
            7
        });
        assert_eq!(done.await, Ok(7));
    }

    /// R17-49, R17-60: no work begins before the first answer.
    #[tokio::test(start_paused = true)]
    async fn without_an_answer_nothing_is_begun() {
        let mut check = FakeCheck::new();
        let begun = Instant::now();
        let refused = check.run(|_| async { unreachable!() }).await;
        assert_eq!(
            refused,
            Err::<(), _>(NotOwned::Unconfirmed("nobody has answered yet".into()))
        );
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    /// R17-47, R17-60.
    #[tokio::test]
    async fn what_is_under_way_ends_with_the_right() {
        let mut check = FakeCheck::new();
        let owner = check.owned();
        let run = check.run(|_| async move {
            owner.end("not confirmed");
            pending::<()>().await;
        });
        assert!(matches!(run.await, Err(NotOwned::Unconfirmed(_))));
        for before in [true, false] {
            let mut check = FakeCheck::new();
            let owner = (!before).then(|| check.owned());
            let lose = check.lose.take().unwrap();
            if before {
                lose.send(OwnershipLoss::LaterEpoch(9)).unwrap();
                let refused = check.run(|_| async { unreachable!() }).await;
                assert_eq!(
                    refused,
                    Err::<(), _>(NotOwned::Lost(OwnershipLoss::LaterEpoch(9)))
                );
            } else {
                let run = check.run(|_| async move {
                    lose.send(OwnershipLoss::LaterEpoch(9)).unwrap();
                    pending::<()>().await;
                });
                assert_eq!(run.await, Err(NotOwned::Lost(OwnershipLoss::LaterEpoch(9))));
            }
            drop(owner);
        }
    }
}
