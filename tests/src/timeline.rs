//! The times of a move's steps, read from the Shoot's `lastOperation` during the move, so that the unwritable
//! time can be explained step by step.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::task::JoinHandle;

use crate::shoot::UserShoot;

/// First and last observation of a step.
#[derive(Clone, Copy, Debug)]
struct Seen {
    first: Instant,
    last: Instant,
    order: usize,
}

/// Records steps until dropped.
pub struct Timeline {
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    work: JoinHandle<()>,
}

impl Timeline {
    /// Starts to watch.
    #[must_use]
    #[allow(clippy::disallowed_methods)] // a test program, outside of any guard
    pub fn start(shoot: &UserShoot) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::<String, Seen>::new()));
        let (api, record) = (shoot.api(), Arc::clone(&seen));
        let config = watcher::Config::default().fields(&format!("metadata.name={}", shoot.name));
        let work = tokio::spawn(async move {
            let mut changes = watcher(api, config).default_backoff().applied_objects().boxed();
            let mut running: Vec<String> = Vec::new();
            while let Some(change) = changes.next().await {
                let Ok(object) = change else { continue };
                let Some(last) = object.status.and_then(|status| status.last_operation) else {
                    continue;
                };
                let now = Instant::now();
                let mut seen = record.lock().unwrap_or_else(PoisonError::into_inner);
                for step in &running {
                    if let Some(entry) = seen.get_mut(step) {
                        entry.last = now;
                    }
                }
                running = last
                    .description
                    .split(", ")
                    .map(|task| format!("{}: {task}", last.type_))
                    .collect();
                for step in &running {
                    let order = seen.len();
                    seen.entry(step.clone()).or_insert(Seen {
                        first: now,
                        last: now,
                        order,
                    });
                }
            }
        });
        Self { seen, work }
    }

    /// The steps between the two moments, with the begin relative to the first moment and the duration, in
    /// seconds.
    #[must_use]
    pub fn between(&self, from: Instant, to: Instant) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps: Vec<_> = seen
            .iter()
            .filter(|(_, s)| s.last >= from && s.first <= to)
            .collect();
        steps.sort_by_key(|(_, s)| (s.first, s.order));
        let seconds = |duration: Duration| duration.as_secs_f64();
        let mut text = String::new();
        for (step, s) in steps {
            let began = s.first.saturating_duration_since(from);
            let took = s.last.duration_since(s.first);
            let _ = writeln!(
                text,
                "  {:>6.1} s  +{:>5.1} s  {step}",
                seconds(began),
                seconds(took)
            );
        }
        text
    }
}

impl Drop for Timeline {
    fn drop(&mut self) {
        self.work.abort();
    }
}
