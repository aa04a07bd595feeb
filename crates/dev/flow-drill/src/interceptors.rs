//! Interceptors that disturb many tasks of a single run.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use flow::{Interceptor, TaskRef};
use tokio::sync::Notify;

/// Fails after each of these tasks that is reached.
pub(super) struct Front<E> {
    /// The error of each task. The task that fails takes the error.
    errors: std::sync::Mutex<BTreeMap<&'static str, E>>,
    failed: std::sync::Mutex<Vec<&'static str>>,
}

impl<E> Front<E> {
    pub(super) fn new(errors: BTreeMap<&'static str, E>) -> Self {
        Self {
            errors: std::sync::Mutex::new(errors),
            failed: std::sync::Mutex::default(),
        }
    }

    /// The reached tasks, in the order of the failures.
    pub(super) fn failed(self) -> Vec<&'static str> {
        self.failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Send> Interceptor<E> for Front<E> {
    fn after(&self, task: TaskRef) -> Result<(), E> {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(error) = errors.remove(task.name) else {
            return Ok(());
        };
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.push(task.name);
        Err(error)
    }
}

/// Ends a run after the first of these tasks that finishes the work. From then on no task begins until the
/// run is dropped.
pub(super) struct End<'a, E> {
    left: &'a [&'static str],
    errors: std::sync::Mutex<BTreeMap<&'static str, E>>,
    done: std::sync::Mutex<Vec<&'static str>>,
    has_come: Notify,
}

impl<'a, E> End<'a, E> {
    /// `errors`: the error of a task that begins too late.
    pub(super) fn new(errors: BTreeMap<&'static str, E>, left: &'a [&'static str]) -> Self {
        Self {
            left,
            errors: std::sync::Mutex::new(errors),
            done: std::sync::Mutex::default(),
            has_come: Notify::new(),
        }
    }

    /// Waits until a task has finished the work.
    pub(super) async fn has_come(&self) {
        self.has_come.notified().await;
    }

    /// The tasks that have finished the work; several where tasks end at the same moment.
    pub(super) fn done(&self) -> Vec<&'static str> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<E: Send> Interceptor<E> for End<'_, E> {
    fn before(&self, task: TaskRef) -> Result<(), E> {
        if self.done().is_empty() {
            return Ok(());
        }
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.remove(task.name).map_or(Ok(()), Err)
    }

    fn after(&self, task: TaskRef) -> Result<(), E> {
        if self.left.contains(&task.name) {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(task.name);
            self.has_come.notify_one();
        }
        Ok(())
    }
}
