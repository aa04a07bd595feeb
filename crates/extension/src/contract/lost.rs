//! Ownership is lost while an actuator works (R17-60..62, RX-41): its call ends, and nothing is done any
//! more; a second one does not begin (R17-03).
//!
//! It is lost early and late in the work, between two steps of it and while it waits, each time in a new
//! reconciler. What had left at that moment may still land; after that the world outside has to stand still.
//! A call that was handed to a task of its own goes on, and is seen so.

use std::{
    fmt::Debug,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use api::{constants::operation::RECONCILE, extensions::ExtensionObject};
use futures::future::{Either, select};
use kube::ResourceExt;
use runtime::{Error, Next};
use tokio::time::{sleep, timeout};

use super::{
    Contract,
    played::{EPOCH, Played},
    protocol::{annotate, create, written_in},
};
use crate::{Actuator, Operation, owner::concerns};

/// An actuator has no time to end in: it is dropped. Long enough for a machine on which nobody gets a turn
/// for a while.
const ENDS_WITHIN: Duration = Duration::from_secs(90);
/// For how long a request may land that had left.
const LANDS_WITHIN: Duration = Duration::from_secs(1);
/// For how long it is looked whether something goes on.
const STANDS_STILL: Duration = Duration::from_millis(1500);
/// From the first step to far beyond the last one of any operation.
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
/// How often an operation may have to be called again by itself.
const MOST_CALLS: usize = 20;

/// When it is lost, counted from when the right was given.
#[derive(Clone, Copy, Debug)]
enum When {
    /// Before the work takes one more step.
    Steps(usize),
    /// Whatever it does or waits for then.
    Time(Duration),
}

/// How a call ended.
enum Ended {
    /// All was done.
    Through,
    /// It was lost on the way.
    Lost,
    /// It has to be called again.
    Again,
}

impl<K, A> Contract<'_, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    /// Makes the object in the source, and loses the shoot on the way until there is no way left.
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
                    // After its first step nothing had been done.
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
        // It takes longer than that: then it gets through by itself.
        self.once(&(self.source)(), &self.source_object, step).await?;
        self.begin_without_right(step).await
    }

    async fn lose(&self, when: When, step: &str) -> Result<Ended, String> {
        let played = Played::owner();
        let reconciler = (self.source)().owned_by(played.checks());
        let mut work = pin!(reconciler.run(&self.source_object));
        if let Some(ended) = until(when, &played, work.as_mut()).await {
            return match ended {
                Ok(Next::Change) => Ok(Ended::Through),
                Ok(Next::After(_)) | Err(Error::Transient(_) | Error::NotReady { .. }) => Ok(Ended::Again),
                Err(error) => Err(format!("{step}: {error}")),
            };
        }
        played.lose();
        let lost = format!("{step}: at {when:?} it was lost, and");
        let ended = timeout(ENDS_WITHIN, work).await;
        match ended.map_err(|_| format!("{lost} the call goes on (R17-60): its permit must stop it"))? {
            // It had all been done.
            Ok(Next::Change) => return Ok(Ended::Through),
            // Also a write of the protocol that came too late for another one.
            Ok(Next::After(_)) | Err(Error::NotOwner(_) | Error::Transient(_)) => {}
            Err(error) => return Err(format!("{lost} it ended with: {error}")),
        }
        // What a step has set off acts within the time of one of these.
        if matches!(when, When::Steps(_)) {
            return Ok(Ended::Lost);
        }
        sleep(LANDS_WITHIN).await;
        let then = self.read_outside(step).await?;
        sleep(STANDS_STILL).await;
        let goes_on = format!("{lost} something goes on (R17-60..62)");
        self.unchanged(&then, &goes_on).await?;
        Ok(Ended::Lost)
    }

    /// A request of another epoch than the shoot is in, before anything is there. As the gardenlet of this
    /// epoch writes it, it is acted on.
    async fn wait_for_its_epoch(&self, step: &str) -> Result<(), String> {
        let reconciler = (self.source)().owned_by(Played::owner().checks());
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

    /// A request that nobody has taken back, as when the seed's API server has returned.
    async fn begin_without_right(&self, step: &str) -> Result<(), String> {
        let reconciler = (self.source)().owned_by(Played::lost().checks());
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

/// Works until it is to be lost; something if the work ends before.
async fn until<F: Future>(when: When, played: &Played, mut work: Pin<&mut F>) -> Option<F::Output> {
    match when {
        When::Steps(mut left) => {
            poll_fn(|context| {
                if played.has_told() {
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
                played.wait_for_confirmation().await;
                sleep(time).await;
            });
            match select(work, late).await {
                Either::Left((ended, _)) => Some(ended),
                Either::Right(((), _)) => None,
            }
        }
    }
}
