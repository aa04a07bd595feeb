//! Measures the bounded waits of tests. `docs/understand/testing.md` states how a bound follows from the
//! measured values.

use std::env;
use std::fs::OpenOptions;
use std::future::Future;
use std::io::{self, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// The environment variable with the absolute name of the file for the measured waits.
const WAITS: &str = "REPOT_WAITS";

/// The bound of a wait, and the line of the test that sets the bound.
///
/// Only a wait that ends in time is reported. A wait that times out fails the test, or proves that an event
/// does not come.
pub struct WaitBound {
    what: String,
    bound: Duration,
    set_at: &'static Location<'static>,
    measured_waits: Option<PathBuf>,
}

impl WaitBound {
    /// The bound of a wait for `what`, set by the caller.
    #[track_caller]
    #[must_use]
    pub fn new(what: impl Into<String>, bound: Duration) -> Self {
        Self {
            what: what.into(),
            bound,
            set_at: Location::caller(),
            measured_waits: env::var_os(WAITS).map(PathBuf::from),
        }
    }

    /// Waits for `work` until the bound, and reports the wait.
    pub fn timeout<F: IntoFuture>(self, work: F) -> impl Future<Output = Result<F::Output, Elapsed>> {
        // Boxed: the futures of operations are large.
        let work = Box::pin(work.into_future());
        async move {
            let begun = Instant::now();
            let output = tokio::time::timeout(self.bound, work).await?;
            self.report(begun.elapsed());
            Ok(output)
        }
    }

    /// Waits for `work`, and reports a success. `work` ends at the bound.
    pub fn measure<T, E>(
        self,
        work: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, E>> {
        // Boxed: the futures of operations are large.
        let work = Box::pin(work);
        async move {
            let begun = Instant::now();
            let output = work.await?;
            self.report(begun.elapsed());
            Ok(output)
        }
    }

    /// Reports a wait that ended in time: to the file of measured waits, if there is one. A wait of more than
    /// half of the bound is also printed, because a bound is about twice the longest measured wait.
    pub fn report(&self, waited: Duration) {
        if let Some(file) = &self.measured_waits
            && let Err(error) = append(file, &self.line(waited))
        {
            print(&format!("{WAITS}: cannot append to {}: {error}", file.display()));
        }
        if self.is_slow(waited) {
            let Self {
                what, bound, set_at, ..
            } = self;
            print(&format!("slow: {what} took {waited:.1?} of {bound:?} ({set_at})"));
        }
    }

    /// `seconds<TAB>bound<TAB>file:line<TAB>what`.
    fn line(&self, waited: Duration) -> String {
        let what: String = self.what.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(
            "{:.3}\t{:.3}\t{}:{}\t{what}\n",
            waited.as_secs_f64(),
            self.bound.as_secs_f64(),
            self.set_at.file(),
            self.set_at.line(),
        )
    }

    fn is_slow(&self, waited: Duration) -> bool {
        2 * waited > self.bound
    }
}

/// [`tokio::time::timeout`] that reports the wait.
#[track_caller]
pub fn timeout<F: IntoFuture>(bound: Duration, work: F) -> impl Future<Output = Result<F::Output, Elapsed>> {
    WaitBound::new("a future", bound).timeout(work)
}

/// Passes the bound to a wait that ends at the bound, and reports a success.
#[track_caller]
pub fn measured<T, E, F>(
    what: &str,
    bound: Duration,
    wait: impl FnOnce(Duration) -> F,
) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    WaitBound::new(what, bound).measure(wait(bound))
}

/// A single write, because the test programs of a run share the file.
fn append(file: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(line.as_bytes())
}

/// To the output of the program: the test harness drops the captured output of a test that passes.
fn print(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used)]

    use std::convert::Infallible;
    use std::fs::read_to_string;
    use std::future::{pending, ready};

    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A bound of ten seconds with a file of measured waits.
    fn bound(folder: &Path) -> WaitBound {
        WaitBound {
            measured_waits: Some(folder.join("waits")),
            ..WaitBound::new("a Pod\tis\nready", 10 * SECOND)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_that_ends_in_time_is_a_line_with_the_caller() {
        let folder = tempfile::tempdir().unwrap();
        bound(folder.path()).timeout(sleep(2 * SECOND)).await.unwrap();
        let work = ready(Ok::<_, Infallible>(()));
        bound(folder.path()).measure(work).await.unwrap();
        let text = read_to_string(folder.path().join("waits")).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        let [first, second] = &lines[..] else {
            panic!("{lines:?}")
        };
        // The clock of tokio has a resolution of a millisecond.
        assert!(first[0].starts_with("2.00"), "{first:?}");
        assert_eq!((first[1], first[3]), ("10.000", "a Pod is ready"));
        assert!(first[2].contains("testkit/src/wait_bound.rs:"), "{first:?}");
        assert_eq!(second[0], "0.000");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_fails_is_not_measured() {
        let folder = tempfile::tempdir().unwrap();
        bound(folder.path()).timeout(pending::<()>()).await.unwrap_err();
        let refused = ready(Err::<(), _>("refused"));
        bound(folder.path()).measure(refused).await.unwrap_err();
        assert!(!folder.path().join("waits").exists());
    }

    #[test]
    fn a_wait_of_more_than_half_of_the_bound_is_slow() {
        let bound = WaitBound::new("a Pod is ready", 10 * SECOND);
        assert!(!bound.is_slow(5 * SECOND));
        assert!(bound.is_slow(6 * SECOND));
    }

    #[test]
    fn a_wrapper_with_track_caller_passes_the_line_of_its_caller_on() {
        #[track_caller]
        fn wrapper() -> impl Future<Output = Result<(), Elapsed>> {
            let bound = WaitBound::new("", SECOND);
            assert_eq!(bound.set_at.line(), line!() + 4);
            bound.timeout(ready(()))
        }

        drop(wrapper());
    }
}
