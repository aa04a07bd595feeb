//! Shared rules of the graphs of all flows: errors that are retried, number and duration of retries, and the
//! tasks for each verb of a part.
//!
//! A graph takes only the tasks of parts. So each task of a flow has a declaration of the external systems
//! that the task may change, and `safety` checks the order of these tasks.

use std::time::Duration;

use flow::{Flow, Graph, Retry, Task, TaskId};
use parts::{Deploy, Destroy, ExternalSystems, Facts, Migrate, PartTask, Residency, Sleep};
use runtime::{Error, client::wait_progress};

/// Pause between two attempts of a task. Shorter than a stall that a user notices.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Time for all attempts of a task, in flows that can be repeated (create, reconcile, restore, leave,
/// delete). Longer than the longest wait of a single part: the copy of backups, 15 minutes.
pub(crate) const RETRY_LIMIT: Duration = Duration::from_secs(16 * 60);

/// The graph of a flow of a shoot.
pub struct ShootGraph<'a> {
    graph: Graph<'a, Error>,
    /// The external systems of each task, in the order of the tasks.
    touches: Vec<ExternalSystems>,
}

/// An empty graph. Tasks are retried every two seconds after errors that may pass, and not longer than
/// `limit`.
pub(crate) fn graph<'a>(name: &'static str, limit: Duration) -> ShootGraph<'a> {
    let graph = Graph::new(name)
        .retry(Retry::until_timeout(RETRY_INTERVAL, limit))
        .retry_only_if(|error: &Error| {
            // Called for each failed attempt, in the context of the task.
            wait_progress::report_reason(&error.to_string());
            error.is_retryable()
        });
    ShootGraph {
        graph,
        touches: Vec::new(),
    }
}

impl<'a> ShootGraph<'a> {
    /// Adds a task; `limit`: time for all attempts, where the time differs from the limit of the graph.
    fn add(&mut self, task: Task<'a, Error>, limit: Option<Duration>, touches: ExternalSystems) -> TaskId {
        self.touches.push(touches);
        self.graph.add(match limit {
            Some(limit) => task.retry(Retry::until_timeout(RETRY_INTERVAL, limit)),
            None => task,
        })
    }

    /// The leaf tasks: no other task follows so far. A task after all leaf tasks comes after all tasks.
    pub(crate) fn leaf_tasks(&self) -> Vec<TaskId> {
        self.graph.leaf_tasks()
    }

    /// Finishes the graph.
    pub(crate) fn compile(self) -> ShootFlow<'a> {
        ShootFlow {
            flow: self.graph.compile(),
            touches: self.touches,
        }
    }
}

/// A flow of a shoot, with the external systems of each task.
#[derive(Debug)]
pub struct ShootFlow<'a> {
    flow: Flow<'a, Error>,
    touches: Vec<ExternalSystems>,
}

impl<'a> ShootFlow<'a> {
    /// The tasks and their order.
    #[must_use]
    pub fn flow(&self) -> &Flow<'a, Error> {
        &self.flow
    }

    /// The flow, to be run.
    #[must_use]
    pub fn into_flow(self) -> Flow<'a, Error> {
        self.flow
    }

    /// The name of each task, with the external systems that the task may change, in the order of addition.
    /// Skipped tasks are included.
    pub fn touches(&self) -> impl Iterator<Item = (&'static str, ExternalSystems)> {
        self.flow.tasks().zip(self.touches.iter().copied())
    }

    /// The flow as a Mermaid flowchart. A second line in the box of a task names the external systems.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        self.flow.to_mermaid_with(|task| {
            let (_, systems) = self.touches().find(|(name, _)| *name == task)?;
            let names: Vec<_> = systems.iter().map(ToString::to_string).collect();
            (!names.is_empty()).then(|| names.join(", "))
        })
    }
}

/// Tasks that run only if `wanted`. A skipped task counts as done and keeps its dependencies: later tasks
/// still wait for the tasks before the skipped task.
pub(crate) fn when<'g, 'a>(graph: &'g mut ShootGraph<'a>, wanted: bool) -> When<'g, 'a> {
    When {
        graph,
        wanted,
        limit: None,
    }
}

/// See [`when`].
pub(crate) struct When<'g, 'a> {
    graph: &'g mut ShootGraph<'a>,
    wanted: bool,
    limit: Option<Duration>,
}

impl<'a> When<'_, 'a> {
    /// The same tasks with a time limit for all attempts together. After the limit the task fails.
    pub(crate) fn within(&mut self, limit: Option<Duration>) -> When<'_, 'a> {
        When {
            graph: &mut *self.graph,
            wanted: self.wanted,
            limit,
        }
    }
}

/// A verb of a part, as two tasks: `g.deploy::<Etcds>(f, after)` adds the work and the wait, and returns the
/// end of the wait.
pub(crate) trait Steps<'a> {
    /// The graph that gets the tasks, and whether the tasks are wanted.
    fn target(&mut self) -> (&mut ShootGraph<'a>, bool);

    /// Time limit of all attempts of a task, where the limit differs from the limit of the graph.
    fn limit(&self) -> Option<Duration> {
        None
    }

    /// Adds a task of a part.
    fn step<I: Sync>(
        &mut self,
        task: PartTask<I>,
        input: &'a I,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        self.exchange(task, (input, &()), after)
    }

    /// Adds a task of a part that exchanges a finding with further tasks.
    fn exchange<I: Sync, S: Sync>(
        &mut self,
        task: PartTask<I, S>,
        (input, finding): (&'a I, &'a S),
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let limit = self.limit();
        let (graph, wanted) = self.target();
        let (name, touches) = (task.name(), task.touches());
        let work = Task::new(name, move || task.run(input, finding));
        graph.add(work.after(after).skip_if(!wanted), limit, touches)
    }

    /// Adds two tasks, the second after the first.
    fn steps<I: Sync>(
        &mut self,
        [work, wait]: [PartTask<I>; 2],
        input: &'a I,
        after: impl IntoIterator<Item = TaskId>,
    ) -> [TaskId; 2] {
        let requested = self.step(work, input, after);
        [requested, self.step(wait, input, requested)]
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
        self.steps(P::deploy_tasks(), f, after)
    }

    /// The part stops, and the data stay.
    fn sleep<P: Sleep>(&mut self, f: &'a Facts, after: impl IntoIterator<Item = TaskId>) -> TaskId {
        let [_, asleep] = self.steps(P::sleep_tasks(), f, after);
        asleep
    }

    /// The part is deleted.
    fn destroy<P: Destroy>(
        &mut self,
        residency: &'a Residency,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let [_, gone] = self.steps(P::destroy_tasks(), residency, after);
        gone
    }

    /// The provider of the part releases the part.
    fn migrate<P: Migrate>(
        &mut self,
        residency: &'a Residency,
        after: impl IntoIterator<Item = TaskId>,
    ) -> TaskId {
        let [_, migrated] = self.steps(P::migrate_tasks(), residency, after);
        migrated
    }

    /// Adds work that no part declares, for tests of the time limits.
    #[cfg(test)]
    fn step_without_part(&mut self, task: Task<'a, Error>) -> TaskId {
        let limit = self.limit();
        let (graph, wanted) = self.target();
        graph.add(task.skip_if(!wanted), limit, &[])
    }
}

impl<'a> Steps<'a> for ShootGraph<'a> {
    fn target(&mut self) -> (&mut ShootGraph<'a>, bool) {
        (self, true)
    }
}

impl<'a> Steps<'a> for When<'_, 'a> {
    fn target(&mut self) -> (&mut ShootGraph<'a>, bool) {
        (self.graph, self.wanted)
    }

    fn limit(&self) -> Option<Duration> {
        self.limit
    }
}
