//! Scenarios of a test program that share servers. Each scenario is a test with a separate name.
//!
//! [`scenarios!`](crate::scenarios) declares the scenarios. The first test that the test harness begins
//! starts a thread. The thread
//! 1. lists the tests that the command line selects,
//! 2. starts the servers once,
//! 3. runs the selected scenarios in the declared order, or at the same time where declared,
//! 4. ends the servers, and removes the folders, before the last scenario reports an outcome.
//!
//! Every test waits for the outcome of the scenario with the same name. A failure or a panic of a scenario
//! cancels no further scenario. The text that a scenario prints is not captured: the text is in the output of
//! the program, before the line with the name and the time of the scenario.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use futures::FutureExt;
use futures::future::{LocalBoxFuture, select_all};

use crate::uncaptured::spawn_uncaptured;

/// The usual stack of the threads that run scenarios, in bytes. Futures of a debug build are large, and the
/// stack of 2 MiB of a test thread does not hold the largest.
pub const STACK: usize = 16 << 20;

/// The most scenarios that run at the same time. Scenarios mostly wait; more scenarios would wait for the two
/// cores of the machine.
const AT_ONCE: usize = 18;

/// The order of the scenarios of a section.
#[derive(Clone, Copy, Debug)]
pub enum SectionOrder {
    /// A single scenario at a time, in the declared order.
    InSequence,
    /// Up to 18 scenarios at the same time: for scenarios that mostly wait.
    AtOnce,
}

/// The result of a test.
pub type TestResult = Result<()>;

/// The result of a scenario function: `()`, or a `Result` with the error of the scenario.
pub trait IntoOutcome {
    /// Converts to an error with the whole text.
    ///
    /// # Errors
    /// The scenario failed.
    fn into_outcome(self) -> Result<()>;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Result<()> {
        Ok(())
    }
}

impl<E: Debug> IntoOutcome for Result<(), E> {
    fn into_outcome(self) -> Result<()> {
        self.map_err(|error| anyhow!("{error:?}"))
    }
}

/// A scenario on an environment of type `E`.
pub struct ScenarioTest<E> {
    /// The name of the test below the module of the scenarios.
    pub name: &'static str,
    /// Runs the scenario.
    pub run: for<'a> fn(&'a E) -> LocalBoxFuture<'a, Result<()>>,
}

/// Scenarios that run after the scenarios of the former section have ended.
pub struct ScenarioSection<E> {
    /// The order of the scenarios.
    pub order: SectionOrder,
    /// The scenarios in the declared order.
    pub scenarios: Vec<ScenarioTest<E>>,
}

/// The scenarios of a module, and the environment that the scenarios share.
pub struct ScenarioPlan<E> {
    /// The path of the module, from `module_path!`.
    pub module: &'static str,
    /// The stack of each thread that runs scenarios, in bytes.
    pub stack: usize,
    /// Starts the environment.
    pub start: fn() -> LocalBoxFuture<'static, Result<E>>,
    /// Cleans the environment after each scenario. An error fails the scenario.
    pub after_each: for<'a> fn(&'a E) -> LocalBoxFuture<'a, Result<()>>,
    /// Ends the environment. An error fails the scenario that ended last.
    pub end: fn(E) -> LocalBoxFuture<'static, Result<()>>,
    /// The sections in the declared order.
    pub sections: Vec<ScenarioSection<E>>,
}

/// The outcomes of a module's scenarios, for the tests that wait.
#[derive(Debug)]
pub struct ScenarioOutcomes {
    begun: Once,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ended: BTreeMap<&'static str, Result<()>>,
    /// The thread has ended: no further outcome follows.
    closed: bool,
}

impl Default for ScenarioOutcomes {
    fn default() -> Self {
        Self::new()
    }
}

impl ScenarioOutcomes {
    /// No scenario has begun.
    #[must_use]
    pub const fn new() -> Self {
        let state = State {
            ended: BTreeMap::new(),
            closed: false,
        };
        Self {
            begun: Once::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits for the outcome of the scenario `name`. The first call starts the thread that runs all selected
    /// scenarios of the plan.
    ///
    /// # Errors
    /// The scenario failed, the environment did not start, or the command line does not select the scenario.
    pub fn wait<E: 'static>(&'static self, name: &str, plan: fn() -> ScenarioPlan<E>) -> Result<()> {
        self.begun.call_once(|| {
            let (plan, begun) = (plan(), name.to_owned());
            let stack = plan.stack;
            let work = move || {
                let selected = selected(plan.module, &plan.names(), &begun);
                plan.run(&selected, self);
            };
            self.start_thread(stack, work);
        });
        let mut state = self.lock();
        loop {
            if let Some(outcome) = state.ended.remove(name) {
                return outcome;
            }
            ensure!(
                !state.closed,
                "scenario {name} did not run: the thread of the scenarios has ended"
            );
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn start_thread(&'static self, stack: usize, work: impl FnOnce() + Send + 'static) {
        let work = move || {
            // A panic must not leave tests that wait for ever. The panic's text is in the output.
            let _ = std::panic::catch_unwind(AssertUnwindSafe(work));
            self.close();
        };
        let thread = std::thread::Builder::new().name("scenarios".into());
        if !spawn_uncaptured(thread.stack_size(stack), work) {
            self.close();
        }
    }

    fn record(&self, name: &'static str, outcome: Result<()>) {
        self.lock().ended.insert(name, outcome);
        self.changed.notify_all();
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> ScenarioPlan<E> {
    fn names(&self) -> Vec<&'static str> {
        let scenarios = self.sections.iter().flat_map(|section| &section.scenarios);
        scenarios.map(|scenario| scenario.name).collect()
    }

    /// Runs the scenarios with these names, and records each outcome. The last outcome is recorded after the
    /// end of the environment, so that a test program that ends leaves no process and no folder.
    fn run(mut self, selected: &[&str], outcomes: &ScenarioOutcomes) {
        for section in &mut self.sections {
            section
                .scenarios
                .retain(|scenario| selected.contains(&scenario.name));
        }
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime
            .worker_threads(2)
            .thread_stack_size(self.stack)
            .enable_all();
        match runtime.build() {
            Ok(runtime) => {
                let last = runtime.block_on(self.run_all(outcomes));
                // Tasks that no environment owns may hold folders.
                drop(runtime);
                if let Some((name, outcome)) = last {
                    outcomes.record(name, outcome);
                }
            }
            Err(error) => self.fail_all(&format!("no async runtime: {error}"), outcomes),
        }
    }

    /// Returns the last outcome, which is not recorded yet.
    async fn run_all(self, outcomes: &ScenarioOutcomes) -> Option<(&'static str, Result<()>)> {
        let environment = match caught((self.start)()).await {
            Ok(environment) => environment,
            Err(error) => {
                self.fail_all(
                    &format!("the shared environment does not start: {error:?}"),
                    outcomes,
                );
                return None;
            }
        };
        let mut last = None;
        for section in &self.sections {
            let at_once = match section.order {
                SectionOrder::InSequence => 1,
                SectionOrder::AtOnce => AT_ONCE,
            };
            let (environment, after_each) = (&environment, self.after_each);
            let module = self.module;
            let mut waiting = section.scenarios.iter().map(|scenario| {
                let run = async move {
                    let begun = tokio::time::Instant::now();
                    let outcome = outcome_of(scenario, environment).await;
                    // A closed standard error fails no scenario.
                    let (name, seconds) = (scenario.name, begun.elapsed());
                    let _ = writeln!(std::io::stderr(), "{module}::{name}: {seconds:.1?}");
                    let cleaned = caught(after_each(environment)).await;
                    (scenario.name, outcome.and(cleaned))
                };
                run.boxed_local()
            });
            // As in `join!`, each wake polls all scenarios: drills that interrupt work at a poll get more
            // polls.
            let mut running: Vec<_> = waiting.by_ref().take(at_once).collect();
            while !running.is_empty() {
                let (ended, _, others) = select_all(running).await;
                running = others;
                running.extend(waiting.next());
                if let Some((name, outcome)) = last.replace(ended) {
                    outcomes.record(name, outcome);
                }
            }
        }
        let end = caught((self.end)(environment)).await;
        let end = end.context("the shared environment does not end");
        last.map(|(name, outcome)| (name, outcome.and(end)))
    }

    fn fail_all(&self, why: &str, outcomes: &ScenarioOutcomes) {
        for name in self.names() {
            outcomes.record(name, Err(anyhow!("{why}")));
        }
    }
}

/// The names of the scenarios that the command line of this program selects. The test harness
/// interprets filters and flags: the program is called again with the same arguments and `--list`. All
/// scenarios if the list has an unknown format.
fn selected(module: &str, names: &[&'static str], begun: &str) -> Vec<&'static str> {
    let list = list_tests().unwrap_or_default();
    // Names of tests do not contain the name of the crate.
    let below = module.split_once("::").map_or("", |(_, below)| below);
    let is_listed = |name: &str| {
        let line = format!("{below}::{name}: test");
        list.lines().any(|listed| listed == line.trim_start_matches("::"))
    };
    let listed: Vec<_> = names.iter().copied().filter(|name| is_listed(name)).collect();
    if listed.contains(&begun) {
        listed
    } else {
        names.to_vec()
    }
}

fn list_tests() -> Result<String> {
    let mut program = Command::new(std::env::current_exe()?);
    program.arg("--list").args(std::env::args_os().skip(1));
    let listed = program.stdin(Stdio::null()).output()?;
    Ok(String::from_utf8(listed.stdout)?)
}

tokio::task_local! {
    /// Recorded failures of the running scenario.
    static GAPS: RefCell<Vec<String>>;
}

/// Fails the running scenario without an end of the run: a single run shows every failure of the scenario.
///
/// # Panics
/// No scenario runs in this task.
pub fn record_gap(gap: &str) {
    let recorded = GAPS.try_with(|gaps| gaps.borrow_mut().push(gap.to_owned()));
    assert!(recorded.is_ok(), "{gap}");
}

async fn outcome_of<E>(scenario: &ScenarioTest<E>, environment: &E) -> Result<()> {
    let run = async {
        let outcome = caught((scenario.run)(environment)).await;
        let mut failures = GAPS.with(RefCell::take);
        if failures.is_empty() {
            return outcome;
        }
        failures.extend(outcome.err().map(|error| format!("{error:?}")));
        Err(anyhow!("{}", failures.join("\n")))
    };
    GAPS.scope(RefCell::default(), run).await
}

thread_local! {
    /// The text and the line of the last panic in this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Turns a panic of this future into an error with the text and the line of the panic.
async fn caught<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    keep_texts_of_panics();
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    ended.unwrap_or_else(|payload| {
        let kept = PANIC.with_borrow_mut(Option::take);
        Err(anyhow!("{}", kept.unwrap_or_else(|| text_of(payload.as_ref()))))
    })
}

/// The line of a panic is known to the hook of the process only.
fn keep_texts_of_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANIC.with_borrow_mut(|kept| *kept = Some(panic.to_string()));
            former(panic);
        }));
    });
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".to_owned())
}

/// Declares tests that share an environment: a test for each scenario.
///
/// The first line names the module of the tests, the type of the environment, and an expression with a future
/// that starts the environment. `, after each function` names an async function of the environment that runs
/// after each scenario. `, stack bytes` replaces the usual [`STACK`](crate::STACK). `=> function` names an
/// async function that ends the environment; without such a function the environment is dropped.
///
/// Sections follow, and run in sequence. `in_sequence` runs a single scenario at a time in the declared
/// order, `at_once` runs up to 18 scenarios of the section at the same time. A scenario is an async function
/// of the environment, in this module or in a child module, without a result or with a `Result`.
///
/// `cargo test` with the name of a test starts the environment and runs only this scenario. Hence no
/// scenario may need the objects of a different scenario.
///
/// ```no_run
/// # mod lists { pub async fn are_read(plane: &testkit::ControlPlane) { drop(plane.admin()); } }
/// # async fn an_object_is_written(_: &testkit::ControlPlane) -> anyhow::Result<()> { Ok(()) }
/// testkit::scenarios! {
///     mod objects for testkit::ControlPlane = testkit::ControlPlane::start("objects");
///     in_sequence:
///     an_object_is_written,
///     lists::{are_read};
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! scenarios {
    (
        mod $module:ident for $environment:ty = $start:expr
            $(, stack $stack:expr)? $(, after each $after:path)? $(=> $end:path)?;
        $($order:ident: $($first:ident $(:: { $($second:ident),+ $(,)? })?),+ $(,)?;)+
    ) => {
        mod $module {
            #[allow(unused_imports, clippy::wildcard_imports)]
            use super::*;

            static OUTCOMES: $crate::ScenarioOutcomes = $crate::ScenarioOutcomes::new();

            fn plan() -> $crate::ScenarioPlan<$environment> {
                let mut sections: Vec<$crate::ScenarioSection<$environment>> = Vec::new();
                $({
                    let mut scenarios: Vec<$crate::ScenarioTest<$environment>> = Vec::new();
                    $($crate::scenarios!(@list scenarios, $first $(:: { $($second),+ })?);)+
                    let order = $crate::scenarios!(@order $order);
                    sections.push($crate::ScenarioSection { order, scenarios });
                })+
                $crate::ScenarioPlan {
                    module: module_path!(),
                    stack: $crate::scenarios!(@stack $($stack)?),
                    start: || Box::pin($start),
                    after_each: |_environment| {
                        Box::pin($crate::scenarios!(@after _environment $(, $after)?))
                    },
                    end: |environment| {
                        Box::pin($crate::scenarios!(@end environment $(, $end)?))
                    },
                    sections,
                }
            }

            $($($crate::scenarios!(@test $first $(:: { $($second),+ })?);)+)+
        }
    };
    (@stack) => { $crate::STACK };
    (@stack $stack:expr) => { $stack };
    (@order in_sequence) => { $crate::SectionOrder::InSequence };
    (@order at_once) => { $crate::SectionOrder::AtOnce };
    (@after $environment:ident) => { async { Ok(()) } };
    (@after $environment:ident, $after:path) => { $after($environment) };
    (@end $environment:ident) => {
        async move {
            drop($environment);
            Ok(())
        }
    };
    (@end $environment:ident, $end:path) => { $end($environment) };
    (@list $list:ident, $name:ident) => {
        $list.push($crate::ScenarioTest {
            name: stringify!($name),
            run: |environment| Box::pin(async move {
                $crate::IntoOutcome::into_outcome(Box::pin(super::$name(environment)).await)
            }),
        })
    };
    (@list $list:ident, $child:ident :: { $($name:ident),+ }) => {
        $($list.push($crate::ScenarioTest {
            name: concat!(stringify!($child), "::", stringify!($name)),
            run: |environment| Box::pin(async move {
                $crate::IntoOutcome::into_outcome(Box::pin(super::$child::$name(environment)).await)
            }),
        });)+
    };
    (@test $name:ident) => {
        #[test]
        fn $name() -> $crate::TestResult {
            OUTCOMES.wait(stringify!($name), plan)
        }
    };
    (@test $child:ident :: { $($name:ident),+ }) => {
        mod $child {
            $(
                #[test]
                fn $name() -> $crate::TestResult {
                    super::OUTCOMES.wait(
                        concat!(stringify!($child), "::", stringify!($name)),
                        super::plan,
                    )
                }
            )+
        }
    };
}

#[cfg(test)]
#[path = "scenarios_tests.rs"]
mod tests;
