//! Both locks, in order: the main lock first, then the migration lock.

use std::future::pending;

use permit::Permit;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use lease::{Elector, Ended, Lost};

/// Runs `main_work` under the main lock and `migrated_work` under the migration lock. The process requests
/// the migration lock only while holding the main lock. So two processes of a manager can never hold one lock
/// each (upstream's order).
///
/// `migration` is `None` where leader migration is off, or where [`super::Migration::takes_lock`] is false;
/// then `migrated_work` never begins.
///
/// The two works end together: on `shutdown`, when either work ends, and when either lock is lost.
/// Migrated work takes no step after the end of the main lock's permit, also where the migration lock is
/// held for longer. Main work begins only after the migration lock was read, and shows no holder that
/// would do a part of the main work a second time. All work is dropped first, and the locks that were not
/// lost are released after that. While a process holds the main lock and waits for the migration lock,
/// `main_work` runs.
///
/// # Errors
/// A lock was lost, or the migration lock is held for a different list of controllers and the terms do not
/// allow to wait: the process must exit (RK-33). Of two losses the loss of the main lock is returned.
pub async fn run_with_leader_migration<M, N>(
    main: &Elector,
    migration: Option<&Elector>,
    shutdown: CancellationToken,
    main_work: impl FnOnce(Permit) -> M,
    migrated_work: impl FnOnce(Permit) -> N,
) -> Result<(), Lost>
where
    M: Future<Output = ()>,
    N: Future<Output = ()>,
{
    let Some(migration) = migration else {
        return Box::pin(main.with_lease(shutdown, main_work)).await.map(|_| ());
    };
    // A separate token, since the end of a work is not a shutdown of the whole process.
    let stop = shutdown.child_token();
    let (won, main_is_held) = oneshot::channel();
    let (checked, is_checked) = oneshot::channel();
    // Boxed: the futures of elections are large, and callers would carry both.
    let under_main = Box::pin(main.with_lease(stop.clone(), |held: Permit| {
        let work = main_work(held.clone());
        stopping(stop.clone(), async move {
            // Sent with the first step of the work: a lock that expired before that step gives no right. The
            // receiver is dropped only after `stop`, and `stop` ends this work too.
            let _ = won.send(held);
            // Without the message the election of the migration lock has ended, and ends this work too.
            if is_checked.await.is_err() {
                pending::<()>().await;
            }
            work.await;
        })
    }));
    let under_migration = async {
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(Ended::Shutdown),
            Ok(main_held) = main_is_held => {
                let work = |held: Permit| {
                    let work = migrated_work(held.and(&main_held));
                    stopping(stop.clone(), async move {
                        // The election of the main lock reports why the main lock is not held.
                        let _ = main_held.guard(work).await;
                    })
                };
                let ended = Box::pin(migration.with_checked_lease(checked, stop.clone(), work)).await;
                if ended.is_err() {
                    // Also where the migration lock was never won: the main work must not continue beside a
                    // process with a different list.
                    stop.cancel();
                }
                ended
            }
        }
    };
    let (main_ended, migration_ended) = tokio::join!(under_main, under_migration);
    main_ended?;
    migration_ended?;
    Ok(())
}

/// Runs the work and cancels `stop` at the end. A drop counts as an end too, also before the first step: the
/// work of a lost lock is dropped at once, and the second work must not continue while the lost lock is
/// cleaned up.
fn stopping(stop: CancellationToken, work: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let at_the_end = stop.drop_guard();
    async move {
        let _at_the_end = at_the_end;
        work.await;
    }
}
