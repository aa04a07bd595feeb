//! Flows on paused time. No test here waits in real time.

#![allow(clippy::unwrap_used, clippy::panic)]

mod expected_times;
mod order;
mod retries;
mod task_ends;
mod task_metrics;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::{Graph, Task};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A log of the tasks' work, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// A task that takes `duration` and logs its start and end.
    fn task(&self, name: &'static str, duration: Duration) -> Task<'static, String> {
        let log = self.clone();
        Task::new(name, move || {
            let log = log.clone();
            async move {
                log.add(format!("{name} starts"));
                tokio::time::sleep(duration).await;
                log.add(format!("{name} ends"));
                Ok(())
            }
        })
    }
}

fn failing(name: &'static str) -> Task<'static, String> {
    Task::new(name, move || async move { Err(format!("{name} is broken")) })
}

fn graph() -> Graph<'static, String> {
    Graph::new("test flow")
}
