//! The order of tasks. A graph is only built; [`Graph::compile`] turns the graph into a [`Flow`] that can be
//! drawn and run.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Retry;
use crate::metrics::TaskMetrics;
use crate::observer::{TaskEnd, TaskObserver};
use crate::task::{Task, TaskId};

/// Numbers the graphs, so that an id can be matched with the graph.
static NEXT_GRAPH: AtomicU64 = AtomicU64::new(0);

type Predicate<E> = Box<dyn Fn(&E) -> bool + Send + Sync>;

/// Tasks and their order. `'a` is the lifetime of the tasks' borrows, usually the facts that the work needs.
pub struct Graph<'a, E> {
    id: u64,
    name: &'static str,
    tasks: Vec<Task<'a, E>>,
    retry: Option<Retry>,
    retryable: Predicate<E>,
}

impl<'a, E> Graph<'a, E> {
    /// An empty graph. The name is for logs and drawings.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            id: NEXT_GRAPH.fetch_add(1, Ordering::Relaxed),
            name,
            tasks: Vec::new(),
            retry: None,
            retryable: Box::new(|_| true),
        }
    }

    /// The retry of all tasks without a retry in the task. Without this call such tasks are tried once.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// The errors that are retried; every further error ends the task at once. Without this call all errors
    /// are retried.
    #[must_use]
    pub fn retry_only_if(mut self, retryable: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
        self.retryable = Box::new(retryable);
        self
    }

    /// Adds a task and returns the id for the dependencies of later tasks.
    ///
    /// # Panics
    /// When the task comes after a task of a different graph, or when the name is taken: both are mistakes in
    /// the flow file that the first test of that flow finds.
    pub fn add(&mut self, task: Task<'a, E>) -> TaskId {
        assert!(
            task.after.iter().all(|id| id.graph == self.id),
            "task {:?} comes after a task of another graph than {:?}",
            task.name,
            self.name
        );
        assert!(
            self.tasks.iter().all(|known| known.name != task.name),
            "graph {:?} has a task {:?} already; a task is known by its name",
            self.name,
            task.name
        );
        let id = TaskId {
            graph: self.id,
            index: self.tasks.len(),
        };
        self.tasks.push(task);
        id
    }

    /// [`Self::add`] for the usual task: the name for operators, the tasks before it, and the work.
    pub fn step<F, Fut>(
        &mut self,
        name: &'static str,
        after: impl IntoIterator<Item = TaskId>,
        work: F,
    ) -> TaskId
    where
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<(), E>> + Send + 'a,
    {
        self.step_if(true, name, after, work)
    }

    /// The same for a task that runs only if `wanted`, and counts as done otherwise ([`Task::skip_if`]).
    pub fn step_if<F, Fut>(
        &mut self,
        wanted: bool,
        name: &'static str,
        after: impl IntoIterator<Item = TaskId>,
        work: F,
    ) -> TaskId
    where
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<(), E>> + Send + 'a,
    {
        self.add(Task::new(name, work).after(after).skip_if(!wanted))
    }

    /// The leaf tasks: no other task follows so far. A task after all leaf tasks comes after all tasks.
    #[must_use]
    pub fn leaf_tasks(&self) -> Vec<TaskId> {
        let followed: HashSet<_> = self.tasks.iter().flat_map(|task| &task.after).collect();
        let all = (0..self.tasks.len()).map(|index| TaskId {
            graph: self.id,
            index,
        });
        all.filter(|id| !followed.contains(id)).collect()
    }

    /// Finishes the graph.
    #[must_use]
    pub fn compile(self) -> Flow<'a, E> {
        let Self {
            name,
            tasks,
            retry,
            retryable,
            ..
        } = self;
        let tasks = tasks
            .into_iter()
            .map(|mut task| {
                task.after.sort_unstable_by_key(|id| id.index);
                task.after.dedup();
                task.retry = task.retry.or(retry);
                task
            })
            .collect();
        Flow {
            name,
            tasks,
            retryable,
            metrics: TaskMetrics::default(),
            observer: Box::new(|_| ()),
        }
    }
}

/// A finished graph. Tasks are in the order of addition, so each task comes after the dependencies.
pub struct Flow<'a, E> {
    pub(crate) name: &'static str,
    pub(crate) tasks: Vec<Task<'a, E>>,
    pub(crate) retryable: Predicate<E>,
    pub(crate) metrics: TaskMetrics,
    pub(crate) observer: TaskObserver<E>,
}

impl<E> Flow<'_, E> {
    /// The name given to the graph.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the expected duration of each task, by the name of the task. The percentage of
    /// [`crate::Progress`] follows these durations. Without this call, or where all durations are zero, the
    /// percentage follows the number of tasks.
    #[must_use]
    pub fn expect(mut self, duration: impl Fn(&'static str) -> Duration) -> Self {
        for task in &mut self.tasks {
            task.expected = duration(task.name);
        }
        self
    }

    /// Measures the tasks with these metrics. Without this call the tasks are not measured.
    #[must_use]
    pub fn measure(mut self, metrics: &TaskMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Calls `observer` after the end of each task. `observer` must not block. A skipped task and a task that
    /// is dropped with the flow have no end. A second call replaces the observer.
    #[must_use]
    pub fn observe_tasks(mut self, observer: impl Fn(&TaskEnd<'_, E>) + Send + Sync + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Names of all tasks, in the order of addition, including skipped tasks.
    #[must_use]
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.tasks.iter().map(|task| task.name)
    }

    /// Names of the tasks that count as done without a run ([`Task::skip_if`]).
    pub fn skipped(&self) -> impl Iterator<Item = &'static str> {
        let skipped = self.tasks.iter().filter(|task| task.skipped);
        skipped.map(|task| task.name)
    }

    /// All pairs (first, then) in a stable order.
    pub fn edges(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.tasks.iter().flat_map(|task| {
            task.after
                .iter()
                .map(|before| (self.tasks[before.index].name, task.name))
        })
    }
}

impl<E> std::fmt::Debug for Flow<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow")
            .field("name", &self.name)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}
