//! A watch of all keys, as complete revisions.

use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, Watch};
use crate::revisions::{Change, Group, Grouping};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of the begin of a watch. etcd confirms a watch before etcd reads the history.
const WATCH_BEGIN_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct RevisionWatch {
    watch: Watch,
    revisions: Grouping<Change>,
}

/// What a response of the watch completes.
pub(super) struct Watched {
    pub(super) revisions: Vec<Group<Change>>,
    /// etcd's revision when the response was made.
    pub(super) header: i64,
}

impl RevisionWatch {
    /// Watches the revisions after `reached`.
    pub(super) async fn after(etcd: &Etcd, reached: i64) -> Result<Self> {
        let begun = timeout(WATCH_BEGIN_TIMEOUT, etcd.watch(reached + 1)).await;
        let late = || {
            Error::new(
                Class::Etcd,
                format!("etcd did not begin a watch within {WATCH_BEGIN_TIMEOUT:?}"),
            )
        };
        Ok(Self {
            watch: begun.map_err(|_| late())??,
            revisions: Grouping::after(reached),
        })
    }

    /// Waits for the next response. May be dropped: no response is lost.
    pub(super) async fn next(&mut self) -> Result<Watched> {
        let response = self.watch.next().await?;
        let (mut complete, fragment) = (Vec::new(), response.fragment);
        let header = response.header.unwrap_or_default().revision;
        for event in response.events {
            let Some(kv) = event.kv else { continue };
            let number = kv.mod_revision;
            let change = Change::check(i64::from(event.kind), kv).map_err(|what| gap(&what))?;
            complete.extend(self.revisions.push(number, change).map_err(|what| gap(&what))?);
        }
        // The last revision of a response continues in the next fragment alone.
        if !fragment {
            complete.extend(self.revisions.finish().map_err(|what| gap(&what))?);
        }
        Ok(Watched {
            revisions: complete,
            header,
        })
    }
}

fn gap(what: &str) -> Error {
    let sentence = format!(
        "the watch of etcd skips history ({what}), as after a restore of that etcd; remove the data directory of the \
         follower and prepare the etcd again"
    );
    Error::new(Class::Diverged, sentence)
}
