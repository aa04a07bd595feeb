//! A thread whose output the test harness does not capture.

use std::cell::Cell;
use std::fmt::{self, Display, Formatter};
use std::thread::Builder;

/// Starts a thread whose output the test harness does not capture; `false` if the thread does not start.
///
/// A new thread inherits the capture of the test that starts the thread. The harness would report the output
/// of all scenarios with that test, or drop the output if that test passes. The standard library suspends the
/// capture while a thread prints a value, so the value itself starts the new thread.
pub(crate) fn spawn_uncaptured(thread: Builder, work: impl FnOnce() + Send + 'static) -> bool {
    let spawn = PrintedSpawn {
        pending: Cell::new(Some((thread, work))),
        has_started: Cell::new(false),
    };
    print!("{spawn}");
    spawn.has_started.get()
}

/// Starts a thread when the value is printed, and prints no text.
struct PrintedSpawn<W> {
    pending: Cell<Option<(Builder, W)>>,
    has_started: Cell<bool>,
}

impl<W: FnOnce() + Send + 'static> Display for PrintedSpawn<W> {
    fn fmt(&self, _: &mut Formatter<'_>) -> fmt::Result {
        if let Some((thread, work)) = self.pending.take() {
            self.has_started.set(thread.spawn(work).is_ok());
        }
        Ok(())
    }
}
