//! What disturbs many tasks of one run.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::intercept::{Interceptor, TaskRef};

/// Fails after each of these tasks that is reached.
pub(super) struct Front<E> {
    /// What they fail with. It is taken by the one that does.
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

    /// The tasks that were reached, in this order.
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

/// Ends a run after the first of these tasks that does its work. Nothing is begun from then on until the run
/// is dropped.
pub(super) struct End<'a, E> {
    left: &'a [&'static str],
    errors: std::sync::Mutex<BTreeMap<&'static str, E>>,
    done: std::sync::Mutex<Vec<&'static str>>,
    has_come: Notify,
}

impl<'a, E> End<'a, E> {
    /// `errors`: what a task fails with that is begun too late.
    pub(super) fn new(errors: BTreeMap<&'static str, E>, left: &'a [&'static str]) -> Self {
        Self {
            left,
            errors: std::sync::Mutex::new(errors),
            done: std::sync::Mutex::default(),
            has_come: Notify::new(),
        }
    }

    /// Waits until one of them has done its work.
    pub(super) async fn has_come(&self) {
        self.has_come.notified().await;
    }

    /// Those that have done their work; several, where they end at one moment.
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
