//! Ownership is lost while an actuator works (R17-60..62, RX-41): its call ends, and nothing is done any more; a second one does
//! not begin (R17-03).
//!
//! It is lost after one step of the work, after two, four and so on, each time in a new reconciler. What had left at that moment
//! may still land; after that the world outside has to stand still. A call that was handed to a task of its own goes on, and is
//! seen so.

use std::{
    fmt::Debug,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use api::{constants::operation::RECONCILE, extensions::ExtensionObject};
use kube::ResourceExt;
use runtime::{Error, Next};
use tokio::time::{Sleep, sleep};

use super::{
    Contract,
    played::Played,
    protocol::{annotate, create},
};
use crate::{Actuator, Operation, owner::concerns};

/// An actuator has no time to end in: it is dropped. Long enough for a machine on which nobody gets a turn for a while.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// For how long a request may land that had left.
const LANDS_WITHIN: Duration = Duration::from_millis(300);
/// For how long it is looked whether something goes on.
const STANDS_STILL: Duration = Duration::from_millis(700);
/// Many more steps than any operation has.
const MOST_STEPS: usize = 4096;
/// How often an operation may have to be called again by itself.
const MOST_CALLS: usize = 20;

/// Work whose owner's right is lost after some steps, counted from when it was given.
struct LosesAfter<F> {
    work: Pin<Box<F>>,
    steps: usize,
    played: Arc<Played>,
    /// Since it was lost: when the work has to have ended.
    end: Option<Pin<Box<Sleep>>>,
}

/// How it ended.
struct Outcome<T> {
    /// None: not at all.
    output: Option<T>,
    lost: bool,
}

impl<F: Future> Future for LosesAfter<F> {
    type Output = Outcome<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.end.is_none() && self.played.has_told() {
            if self.steps == 0 {
                self.played.lose();
                self.end = Some(Box::pin(sleep(ENDS_WITHIN)));
            }
            self.steps = self.steps.saturating_sub(1);
        }
        let done = self.work.as_mut().poll(context);
        let late = |end: &mut Pin<Box<Sleep>>| end.as_mut().poll(context).is_ready();
        let is_late = self.end.as_mut().is_some_and(late);
        let lost = self.end.is_some();
        match done {
            Poll::Pending if !is_late => Poll::Pending,
            done => Poll::Ready(Outcome {
                output: match done {
                    Poll::Ready(output) => Some(output),
                    Poll::Pending => None,
                },
                lost,
            }),
        }
    }
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
        let (mut steps, mut calls) = (1, 0);
        while steps < MOST_STEPS {
            match self.lose_after(steps, step).await? {
                Ended::Through => return self.begin_without_right(step).await,
                Ended::Lost => steps *= 2,
                Ended::Again if calls < MOST_CALLS => calls += 1,
                Ended::Again => return Err(format!("{step}: it was called {MOST_CALLS} times, and has to be again")),
            }
        }
        Err(format!("{step}: it did not get through in {MOST_STEPS} steps"))
    }

    async fn lose_after(&self, steps: usize, step: &str) -> Result<Ended, String> {
        let played = Played::owner();
        let reconciler = (self.source)().owned_by(played.checks());
        let work = LosesAfter {
            work: Box::pin(reconciler.run(&self.source_object)),
            steps,
            played: Arc::clone(&played),
            end: None,
        };
        let outcome = work.await;
        let lost = format!("{step}: {steps} steps in it was lost, and");
        let Some(ended) = outcome.output else {
            return Err(format!("{lost} the call goes on (R17-60): its permit must stop it"));
        };
        if !outcome.lost {
            return match ended {
                Ok(Next::Change) => Ok(Ended::Through),
                Ok(Next::After(_)) | Err(Error::Transient(_) | Error::NotReady { .. }) => Ok(Ended::Again),
                Err(error) => Err(format!("{step}: {error}")),
            };
        }
        match ended {
            // It had all been done.
            Ok(Next::Change) => return Ok(Ended::Through),
            // Also a write of the protocol that came too late for another one.
            Ok(Next::After(_)) | Err(Error::NotOwner(_) | Error::Transient(_)) => {}
            Err(error) => return Err(format!("{lost} it ended with: {error}")),
        }
        sleep(LANDS_WITHIN).await;
        let then = self.look(step).await?;
        sleep(STANDS_STILL).await;
        let goes_on = format!("{lost} something goes on (R17-60..62)");
        self.unchanged(&then, &goes_on).await?;
        Ok(Ended::Lost)
    }

    /// A request that nobody has taken back, as when the seed's API server has returned.
    async fn begin_without_right(&self, step: &str) -> Result<(), String> {
        let reconciler = (self.source)().owned_by(Played::lost().checks());
        let api = reconciler.api_of(&self.source_object);
        annotate(&api, &self.source_object, RECONCILE).await?;
        let (made, before) = (
            self.look(step).await?,
            self.there(&api, &self.source_object, step).await?,
        );
        match reconciler.run(&self.source_object).await {
            Err(Error::NotOwner(_)) => {}
            other => return Err(format!("{step}: a second call began, and ended with {other:?} (R17-03)")),
        }
        let after = self.there(&api, &self.source_object, step).await?;
        if after.resource_version() != before.resource_version() {
            return Err(format!("{step}: a second call has written the object (R17-03)"));
        }
        self.unchanged(&made, &format!("{step}: a second call (R17-03)"))
            .await
    }
}

enum Ended {
    Through,
    Lost,
    Again,
}
