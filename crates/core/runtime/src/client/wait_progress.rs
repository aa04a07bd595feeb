//! The reason why the present task waits, for a reporter that runs beside this task.

use std::{future::Future, sync::Arc};

/// Receives the reports. The methods are called while a wait is polled, so the methods must not block.
pub trait Listener: Send + Sync {
    /// The work does not go on for this reason.
    fn awaits(&self, reason: &str);
    /// The work waits for a copy that has transferred `bytes` of `total`.
    fn has_copied(&self, bytes: i64, total: i64);
}

tokio::task_local! {
    static LISTENER: Arc<dyn Listener>;
}

/// Runs work, and passes the reports of all waits in this work ([`crate::client::wait`]) to the listener.
pub fn listen<F: Future>(listener: Arc<dyn Listener>, work: F) -> impl Future<Output = F::Output> {
    LISTENER.scope(listener, work)
}

/// Reports why the present work does not go on. Has no effect without a listener.
pub fn report_reason(reason: &str) {
    // Most work has no listener.
    let _ = LISTENER.try_with(|listener| listener.awaits(reason));
}

/// Reports the progress of the copy that blocks the present work. Has no effect without a listener.
pub fn report_copied(bytes: i64, total: i64) {
    let _ = LISTENER.try_with(|listener| listener.has_copied(bytes, total));
}
