//! Both locks, in order: the main lock first, then the migration lock.

use permit::Permit;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use lease::{Elector, Ended, Lost};

/// Runs `main_work` under the main lock and `migrated_work` under the migration lock. The migration lock is
/// asked for only once the main lock is held, so that of several processes of a manager no two can have one
/// lock each (upstream's order).
///
/// `migration` is none where leader migration is off, or where [`super::Migration::takes_lock`] says that
/// nothing is migrated; then `migrated_work` never begins.
///
/// The two works end together: on `shutdown`, when one of them ends by itself, and when one of the locks is
/// lost. Migrated work takes no step once the time of the main lock is over, also where the migration lock is
/// held for longer. All work is dropped first, and the locks that were not lost are given back after that.
/// Where a process holds its main lock and waits for the migration lock, its `main_work` runs.
///
/// # Errors
/// One of the locks was lost, or the migration lock is held for another list of controllers: the process must
/// exit (RK-33). Of two losses the one of the main lock is told.
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
    // Of its own, as an end of one work is no shutdown of the whole process.
    let stop = shutdown.child_token();
    let (won, main_is_held) = oneshot::channel();
    // Boxed: the futures of elections are large, and callers would carry both.
    let under_main = Box::pin(main.with_lease(stop.clone(), |held: Permit| {
        let work = main_work(held.clone());
        stopping(stop.clone(), async move {
            // With the first step of the work: a lock whose time was over before it stands for nothing.
            // Nobody listens any more only after `stop`, which ends this work too.
            let _ = won.send(held);
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
                        // Why the main lock is not held is told by its own election.
                        let _ = main_held.guard(work).await;
                    })
                };
                let ended = Box::pin(migration.with_lease(stop.clone(), work)).await;
                if ended.is_err() {
                    // Also where the lock was never got: the main work must not go on beside another idea of
                    // who runs what.
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

/// Does the work and cancels `stop` at its end. Being dropped is an end, too, also before its first step:
/// with a lock that is lost its work is dropped at once, and the other work must not go on until all of that
/// lock's business is done.
fn stopping(stop: CancellationToken, work: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let at_the_end = stop.drop_guard();
    async move {
        let _at_the_end = at_the_end;
        work.await;
    }
}
