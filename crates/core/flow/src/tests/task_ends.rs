//! The ends of tasks, as an observer gets the ends.

use std::sync::{Arc, Mutex};

use super::{Log, failing, graph, seconds};
use crate::{Retry, TaskFailure};

#[tokio::test(start_paused = true)]
async fn the_end_of_each_task_is_observed_with_outcome_attempts_and_error() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ends);
    let mut g = graph();
    g.add(Log::default().task("slow", seconds(20)));
    g.add(failing("broken"));
    // Attempts after 0, 5 and 10 seconds; the limit cuts off the pause after that.
    g.add(failing("tried").retry(Retry::until_timeout(seconds(5), seconds(12))));
    g.add(failing("left out").skip_if(true));
    let flow = g.compile().observe_tasks(move |end| {
        let error = end.failure.and_then(TaskFailure::error).cloned();
        let took = end.took.as_secs();
        let end = (end.task, end.outcome(), end.attempts, took, error);
        seen.lock().unwrap().push(end);
    });
    assert!(flow.run(|_| ()).await.is_err());
    let error = |text: &str| Some(text.to_owned());
    assert_eq!(
        *ends.lock().unwrap(),
        [
            ("broken", "failed", 1, 0, error("broken is broken")),
            ("tried", "timed_out", 3, 12, error("tried is broken")),
            ("slow", "succeeded", 1, 20, None),
        ]
    );
}
