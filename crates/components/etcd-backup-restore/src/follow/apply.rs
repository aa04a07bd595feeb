//! Applies revisions at the local etcd, and proves from a watch of the local etcd that the result is equal.

use super::progress::FollowProgress;
use super::refusals::explain;
use super::revision_watch::RevisionWatch;
use super::window::{Divergence, Window, WindowLimits};
use crate::error::{Class, Error, Result};
use crate::etcd::Etcd;
use crate::revisions::{Change, Group};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// Longest wait for a revision of the source that the local etcd has already: etcd may apply a transaction of
/// an earlier process late.
const STRAGGLER: Duration = Duration::from_secs(10);

/// Applies the revisions after `reached`, until the revision `until` is proved and each transaction is
/// answered. A transaction that is answered later could change an etcd that has different clients by then.
pub(super) async fn apply(
    etcd: &Etcd,
    (reached, until): (i64, Option<i64>),
    limits: WindowLimits,
    mut revisions: Receiver<Group<Change>>,
    progress: &FollowProgress,
) -> Result<()> {
    let (mut window, mut sent) = (Window::new(reached, limits), FuturesUnordered::new());
    let (mut proved, mut checks) = (progress.proved(), progress.checks());
    loop {
        while let Some((id, request)) = window.next() {
            sent.push(async move { (id, etcd.txn_request(request).await) });
        }
        let is_checked = checks.borrow_and_update().are_complete();
        let has_ended = until.is_some_and(|until| *proved.borrow_and_update() >= until);
        if has_ended && is_checked && window.is_idle() {
            return Ok(());
        }
        let has_room = progress.has_room() && window.has_room();
        tokio::select! {
            Some((number, changes)) = revisions.recv(), if has_room => {
                // An earlier session has applied the revisions up to `reached`.
                if number > reached {
                    window.push(number, &changes);
                }
            }
            Some((id, answer)) = sent.next(), if !sent.is_empty() => {
                let revision = answer.map_err(|error| explain(error, window.size(id)))?;
                window.answered(id, revision).map_err(diverged)?;
            }
            // The room for the proof may have changed, or the end may be reached.
            Ok(()) = proved.changed(), if !has_room || until.is_some() => {}
            Ok(()) = checks.changed(), if until.is_some() => {}
            else => return Err(Error::new(Class::Etcd, "the source of the changes has ended")),
        }
    }
}

fn diverged(divergence: Divergence) -> Error {
    let what = match divergence {
        Divergence::Refused(number) => format!("the local etcd refuses revision {number} of the source"),
        Divergence::Foreign(number) => {
            format!("the local etcd is at revision {number}, which the follower did not write")
        }
    };
    let sentence = format!("{what}; remove the data directory and prepare the etcd again");
    Error::new(Class::Diverged, sentence)
}

/// Compares each revision of the local etcd after `proved` with the source's revision. `reached`: the local
/// etcd's revision when the session began.
pub(super) async fn prove(
    etcd: &Etcd,
    (proved, reached): (i64, i64),
    progress: &FollowProgress,
) -> Result<Infallible> {
    let mut watch = RevisionWatch::after(etcd, proved).await?;
    loop {
        for (number, changes) in watch.next().await?.revisions {
            let received = progress.wait_for_source(number);
            if number <= reached {
                received.await;
            } else if timeout(STRAGGLER, received).await.is_err() {
                tracing::warn!(number, "the source does not have a revision of the local etcd");
            }
            progress.prove(number, &changes)?;
        }
    }
}
