//! The shoot is lost while an actuator works (R17-60..62, RX-41): the call must end, all work must stop, and
//! a second call must not begin (R17-03).
//!
//! The test loses the shoot early and late in the work, between two steps and during a wait, each time in a
//! new reconciler. A request that had left by then may still arrive; afterwards the outside systems must not
//! change. So the test detects work in a detached task, because such work continues.

use std::{
    fmt::Debug,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use api::{constants::operation::RECONCILE, extensions::ExtensionObject};
use extension::{Actuator, Operation, owner::concerns};
use futures::future::{Either, join, select};
use kube::ResourceExt;
use runtime::{Error, controller::Next};
use tokio::time::{sleep, timeout};

use crate::{
    Contract,
    fake_ownership::{EPOCH, FakeOwnership},
    protocol::{annotate, create, written_in},
};

/// Timeout for the end of a call after the loss. The call is dropped at once; the timeout is longer than a
/// busy machine delays a task.
const ENDS_WITHIN: Duration = Duration::from_secs(90);
/// Minimum time for the arrival of a request that had left before the loss.
const LANDS_WITHIN: Duration = Duration::from_secs(1);
/// Successive reads before the outside systems must not change: more requests than a fake manager of machines
/// makes for a change. With a busy API server, the reads take longer than [`LANDS_WITHIN`].
const LANDS_AFTER_READS: usize = 60;
/// Duration for which the outside systems must not change.
const STANDS_STILL: Duration = Duration::from_millis(1500);
/// The moments of the losses: from the first step to far beyond the last step of any operation.
const FROM: [When; 8] = [
    When::Steps(1),
    When::Time(Duration::from_millis(20)),
    When::Steps(8),
    When::Time(Duration::from_millis(80)),
    When::Steps(64),
    When::Time(Duration::from_millis(320)),
    When::Steps(512),
    When::Steps(4096),
];
/// Maximum number of calls that ask to be repeated without a loss.
const MOST_CALLS: usize = 20;

/// The moment of a loss, counted from the first confirmed permit.
#[derive(Clone, Copy, Debug)]
enum When {
    /// After this number of steps.
    Steps(usize),
    /// After this time, in any state of the work.
    Time(Duration),
}

/// The end of a call.
enum Ended {
    /// The operation is complete.
    Through,
    /// The shoot was lost during the call.
    Lost,
    /// The operation must be called again.
    Again,
}

impl<K, A> Contract<'_, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    /// Creates the object in the source, and loses the shoot at each moment until the operation completes.
    pub(super) async fn make_and_lose(&self) -> Result<(), String> {
        let step = "reconcile while the shoot is lost";
        let api = (self.source)().api_of(&self.source_object);
        create(&api, &self.source_object, RECONCILE).await?;
        if !concerns(&self.source_object, Operation::Reconcile) {
            return Ok(());
        }
        self.wait_for_its_epoch(step).await?;
        let (mut calls, mut lost) = (0, false);
        for when in FROM {
            loop {
                match self.lose(when, step).await? {
                    // The first step of an operation cannot do all the work.
                    Ended::Through if !lost => {
                        return Err(format!(
                            "{step}: it was lost at once, and all was done nevertheless (R17-60)"
                        ));
                    }
                    Ended::Through => return self.begin_without_right(step).await,
                    Ended::Lost => {
                        lost = true;
                        break;
                    }
                    Ended::Again if calls < MOST_CALLS => calls += 1,
                    Ended::Again => {
                        return Err(format!(
                            "{step}: it was called {MOST_CALLS} times, and has to be again"
                        ));
                    }
                }
            }
        }
        // The operation takes longer than the last moment: complete the operation without a loss.
        self.once(&(self.source)(), &self.source_object, step).await?;
        self.begin_without_right(step).await
    }

    async fn lose(&self, when: When, step: &str) -> Result<Ended, String> {
        let ownership = FakeOwnership::owner();
        let reconciler = (self.source)().owned_by(ownership.checks());
        let mut work = pin!(reconciler.run(&self.source_object));
        if let Some(ended) = until(when, &ownership, work.as_mut()).await {
            return match ended {
                Ok(Next::Change) => Ok(Ended::Through),
                Ok(Next::After(_)) | Err(Error::Transient(_) | Error::NotReady { .. }) => Ok(Ended::Again),
                Err(error) => Err(format!("{step}: {error}")),
            };
        }
        ownership.lose();
        let lost = format!("{step}: at {when:?} it was lost, and");
        let ended = timeout(ENDS_WITHIN, work).await;
        match ended.map_err(|_| format!("{lost} the call goes on (R17-60): its permit must stop it"))? {
            // The operation was complete before the loss.
            Ok(Next::Change) => return Ok(Ended::Through),
            // Transient: a write of the protocol conflicted with an earlier write.
            Ok(Next::After(_)) | Err(Error::NotOwner(_) | Error::Transient(_)) => {}
            Err(error) => return Err(format!("{lost} it ended with: {error}")),
        }
        // The pauses below, once per moment of type `Time`, also cover the work that a step has started.
        if matches!(when, When::Steps(_)) {
            return Ok(Ended::Lost);
        }
        let api = reconciler.api_of(&self.source_object);
        let reads = async {
            for _ in 0..LANDS_AFTER_READS {
                self.there(&api, &self.source_object, step).await?;
            }
            Ok::<_, String>(())
        };
        let ((), read) = join(sleep(LANDS_WITHIN), reads).await;
        read?;
        let then = self.read_outside(step).await?;
        sleep(STANDS_STILL).await;
        let goes_on = format!("{lost} something goes on (R17-60..62)");
        self.unchanged(&then, &goes_on).await?;
        Ok(Ended::Lost)
    }

    /// Requests of an earlier and of a later epoch than the present epoch must wait, before any resource
    /// exists. The same request with the present epoch is carried out.
    async fn wait_for_its_epoch(&self, step: &str) -> Result<(), String> {
        let reconciler = (self.source)().owned_by(FakeOwnership::owner().checks());
        let api = reconciler.api_of(&self.source_object);
        let before = self.read_outside(step).await?;
        for other in [EPOCH - 1, EPOCH + 1] {
            written_in(&api, &self.source_object, other).await?;
            match reconciler.run(&self.source_object).await {
                Err(Error::NotReady { why, .. }) if why.contains("it was written in ownership epoch") => {}
                other => {
                    return Err(format!(
                        "{step}: a request of another epoch ended with {other:?} (R17-03)"
                    ));
                }
            }
            self.unchanged(&before, &format!("{step}: a request of another epoch (R17-03)"))
                .await?;
        }
        written_in(&api, &self.source_object, EPOCH).await
    }

    /// A request that still stands after the loss, for example after an outage of the seed's API server.
    async fn begin_without_right(&self, step: &str) -> Result<(), String> {
        let reconciler = (self.source)().owned_by(FakeOwnership::lost().checks());
        let api = reconciler.api_of(&self.source_object);
        annotate(&api, &self.source_object, RECONCILE).await?;
        let (made, before) = (
            self.read_outside(step).await?,
            self.there(&api, &self.source_object, step).await?,
        );
        match reconciler.run(&self.source_object).await {
            Err(Error::NotOwner(_)) => {}
            other => {
                return Err(format!(
                    "{step}: a second call began, and ended with {other:?} (R17-03)"
                ));
            }
        }
        let after = self.there(&api, &self.source_object, step).await?;
        if after.resource_version() != before.resource_version() {
            return Err(format!("{step}: a second call has written the object (R17-03)"));
        }
        self.unchanged(&made, &format!("{step}: a second call (R17-03)"))
            .await
    }
}

/// Polls the work until the moment of the loss. Returns the output if the work ends before.
async fn until<F: Future>(when: When, ownership: &FakeOwnership, mut work: Pin<&mut F>) -> Option<F::Output> {
    match when {
        When::Steps(mut left) => {
            poll_fn(|context| {
                if ownership.has_told() {
                    if left == 0 {
                        return Poll::Ready(None);
                    }
                    left -= 1;
                }
                work.as_mut().poll(context).map(Some)
            })
            .await
        }
        When::Time(time) => {
            let late = pin!(async {
                ownership.wait_for_confirmation().await;
                sleep(time).await;
            });
            match select(work, late).await {
                Either::Left((ended, _)) => Some(ended),
                Either::Right(((), _)) => None,
            }
        }
    }
}
