//! A hook around every task, for tests that disturb a flow. Production runs use [`Undisturbed`].

/// The task that a hook is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRef {
    /// Index of the task in the graph.
    pub index: usize,
    /// The task's name, unique in the graph.
    pub name: &'static str,
}

/// Called around every task that is not skipped. A hook is outside the task's retries: an error from a hook
/// fails the task at once.
pub trait Interceptor<E>: Sync {
    /// Called before the first attempt. An error fails the task before any work.
    fn before(&self, _task: TaskRef) -> Result<(), E> {
        Ok(())
    }

    /// Number of consecutive executions of the task's work.
    fn times(&self, _task: TaskRef) -> u32 {
        1
    }

    /// Called after the work succeeded. An error fails the task although the work is done.
    fn after(&self, _task: TaskRef) -> Result<(), E> {
        Ok(())
    }
}

/// Lets the flow run without disturbance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undisturbed;

impl<E> Interceptor<E> for Undisturbed {}
