//! A hook around every task, for tests that disturb a flow. Production runs are [`Undisturbed`].

/// The task that a hook is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRef {
    /// Place in the graph.
    pub index: usize,
    /// The task's name, unique in its graph.
    pub name: &'static str,
}

/// Called around every task that is not skipped. A hook is outside of the task's retries: an error that it
/// returns fails the task at once.
pub trait Interceptor<E>: Sync {
    /// Before the first attempt. An error fails the task before it did anything.
    fn before(&self, _task: TaskRef) -> Result<(), E> {
        Ok(())
    }

    /// How often the task's work is done, one time after the other.
    fn times(&self, _task: TaskRef) -> u32 {
        1
    }

    /// After the work succeeded. An error fails the task though its work is done.
    fn after(&self, _task: TaskRef) -> Result<(), E> {
        Ok(())
    }
}

/// Lets the flow run as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undisturbed;

impl<E> Interceptor<E> for Undisturbed {}
