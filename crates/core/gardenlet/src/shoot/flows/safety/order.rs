//! The order of the tasks of a flow, by the names of the tasks.

use std::collections::{BTreeMap, BTreeSet};

use flow::Flow;

/// The order of the tasks of a flow, including skipped tasks.
pub struct TaskOrder {
    flow: &'static str,
    /// For each task, the tasks that the task names as its dependencies.
    dependencies: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

impl TaskOrder {
    /// Reads the order of a flow.
    #[must_use]
    pub fn read<E>(flow: &Flow<'_, E>) -> Self {
        let mut dependencies: BTreeMap<_, BTreeSet<_>> =
            flow.tasks().map(|task| (task, BTreeSet::new())).collect();
        for (first, then) in flow.edges() {
            dependencies.entry(then).or_default().insert(first);
        }
        Self {
            flow: flow.name(),
            dependencies,
        }
    }

    /// The names of all tasks.
    #[must_use]
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.dependencies.keys().copied()
    }

    /// Checks that the second task starts only after the first task has ended.
    ///
    /// # Errors
    /// A sentence: the flow lacks a task, or the second task does not wait.
    pub fn require(&self, [first, second]: [&str; 2]) -> Result<(), String> {
        let flow = self.flow;
        for task in [first, second] {
            if !self.dependencies.contains_key(task) {
                return Err(format!("{flow}: no task {task:?}"));
            }
        }
        let (mut open, mut visited) = (vec![second], BTreeSet::new());
        while let Some(task) = open.pop() {
            if task == first {
                return Ok(());
            }
            if visited.insert(task) {
                open.extend(self.dependencies.get(task).into_iter().flatten().copied());
            }
        }
        Err(format!("{flow}: {second:?} does not wait for {first:?}"))
    }
}
