//! Shared rules of the graphs of all flows: errors that are retried, number and duration of retries, and the
//! tasks for each verb of a part.

use std::{future::Future, time::Duration};

use flow::{Graph, Retry, Task, TaskId};
use parts::{Deploy, Destroy, Facts, Migrate, Sleep, Stay};
use runtime::{Error, Result, awaited};

/// Pause between two attempts of a task. Shorter than a stall that a user notices.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Time for all attempts of a task, in flows that can be repeated (create, reconcile, restore, leave,
/// delete). Longer than the longest wait of a single part: the copy of backups, 15 minutes.
pub(super) const RETRY_LIMIT: Duration = Duration::from_secs(16 * 60);

/// An empty graph. Tasks are retried every two seconds after errors that may pass, and not longer than
/// `limit`.
pub(super) fn graph<'a>(name: &'static str, limit: Duration) -> Graph<'a, Error> {
    Graph::new(name)
        .retry(Retry::until_timeout(RETRY_INTERVAL, limit))
        .retry_only_if(|error: &Error| {
            // Called for each failed attempt, in the context of the task.
            awaited::report_reason(&error.to_string());
            error.is_retryable()
        })
}

/// Tasks that run only if `wanted`. A skipped task counts as done and keeps its dependencies: later tasks
/// still wait for the tasks before the skipped task.
pub(super) fn when<'g, 'a>(graph: &'g mut Graph<'a, Error>, wanted: bool) -> When<'g, 'a> {
    When {
        graph,
        wanted,
        limit: None,
    }
}

/// See [`when`].
pub(super) struct When<'g, 'a> {
    graph: &'g mut Graph<'a, Error>,
    wanted: bool,
    limit: Option<Duration>,
}

impl<'a> When<'_, 'a> {
    /// The same tasks with a time limit for all attempts together. After the limit the task fails.
    pub(super) fn within(&mut self, limit: Option<Duration>) -> When<'_, 'a> {
        When {
            graph: &mut *self.graph,
            wanted: self.wanted,
            limit,
        }
    }
}

/// A verb of a part, as two tasks: `g.deploy::<Etcds>(f, after)` adds the work and the wait, and returns the
/// end of the wait.
pub(super) trait Steps<'a> {
    /// The graph that gets the tasks, and whether the tasks are wanted.
    fn target(&mut self) -> (&mut Graph<'a, Error>, bool);

    /// Time limit of all attempts of a task, where the limit differs from the limit of the graph.
    fn limit(&self) -> Option<Duration> {
        None
    }

    /// Adds a task.
    fn step<F, Fut>(&mut self, name: &'static str, after: impl IntoIterator<Item = TaskId>, work: F) -> TaskId
    where
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<()>> + Send + 'a,
    {
        let limit = self.limit();
        let (graph, wanted) = self.target();
        let task = Task::new(name, work).after(after).skip_if(!wanted);
        graph.add(match limit {
            Some(limit) => task.retry(Retry::until_timeout(RETRY_INTERVAL, limit)),
            None => task,
        })
    }

    /// The part comes up.
    fn deploy<P: Deploy>(&mut self, f: &'a Facts, after: impl IntoIterator<Item = TaskId>) -> TaskId {
        let [_, ready] = self.deploy_in_two::<P>(f, after);
        ready
    }

    /// Like `deploy`, but returns both tasks: some steps follow the work, and some steps follow the wait.
    fn deploy_in_two<P: Deploy>(
        &mut self,
        f: &'a Facts,
        after: impl IntoIterator<Item = TaskId>,
    ) -> [TaskId; 2] {
        let [work, wait] = P::TASKS;
        let deployed = self.step(work, after, move || P::deploy(f));
        [deployed, self.step(wait, deployed, move || P::ready(f))]
    }

    /// The part stops, and the data stay.
    fn sleep<P: Sleep>(&mut self, f: &'a Facts, after: impl IntoIterator<Item = TaskId>) -> TaskId {
        let [work, wait] = P::TASKS;
        let told = self.step(work, after, move || P::sleep(f));
        self.step(wait, told, move || P::asleep(f))
    }

    /// The part is deleted.
    fn destroy<P: Destroy>(&mut self, stay: &'a Stay, after: impl IntoIterator<Item = TaskId>) -> TaskId {
        let [work, wait] = P::TASKS;
        let asked = self.step(work, after, move || P::destroy(stay));
        self.step(wait, asked, move || P::gone(stay))
    }

    /// The provider of the part releases the part.
    fn migrate<P: Migrate>(&mut self, stay: &'a Stay, after: impl IntoIterator<Item = TaskId>) -> TaskId {
        let [work, wait] = P::TASKS;
        let told = self.step(work, after, move || P::migrate(stay));
        self.step(wait, told, move || P::migrated(stay))
    }
}

impl<'a> Steps<'a> for Graph<'a, Error> {
    fn target(&mut self) -> (&mut Graph<'a, Error>, bool) {
        (self, true)
    }
}

impl<'a> Steps<'a> for When<'_, 'a> {
    fn target(&mut self) -> (&mut Graph<'a, Error>, bool) {
        (self.graph, self.wanted)
    }

    fn limit(&self) -> Option<Duration> {
        self.limit
    }
}
