#![allow(clippy::panic, clippy::unwrap_used)]
//! Plans of scenarios without servers.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Number of scenarios that are running.
type Shared = AtomicUsize;

fn passes(_: &Shared) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async { Ok(()) })
}

fn fails(_: &Shared) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async { Err(anyhow!("no lease").context("the lock")) })
}

fn panics(_: &Shared) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async { panic!("a wrong revision") })
}

fn has_gaps(shared: &Shared) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async move {
        record_gap("first gap");
        record_gap("second gap");
        fails(shared).await
    })
}

/// Ends when two scenarios run.
fn meets(shared: &Shared) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async move {
        shared.fetch_add(1, Ordering::SeqCst);
        while shared.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        Ok(())
    })
}

/// Fails while a different scenario runs.
fn is_alone(shared: &Shared) -> LocalBoxFuture<'_, Result<()>> {
    Box::pin(async move {
        ensure!(shared.fetch_add(1, Ordering::SeqCst) == 0, "two scenarios run");
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        shared.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    })
}

fn ensure_first(shared: &Shared) -> Result<()> {
    ensure!(shared.fetch_add(1, Ordering::SeqCst) == 0, "a Node is left");
    Ok(())
}

type Run = for<'a> fn(&'a Shared) -> LocalBoxFuture<'a, Result<()>>;

fn plan(scenarios: &[(&'static str, Run)]) -> ScenarioPlan<Shared> {
    ScenarioPlan {
        module: "program::shared",
        stack: STACK,
        start: || Box::pin(async { Ok(Shared::new(0)) }),
        after_each: |_| Box::pin(async { Ok(()) }),
        end: |_| Box::pin(async { Ok(()) }),
        sections: vec![section(SectionOrder::InSequence, scenarios)],
    }
}

fn section(order: SectionOrder, scenarios: &[(&'static str, Run)]) -> ScenarioSection<Shared> {
    let scenarios = scenarios.iter().map(|&(name, run)| ScenarioTest { name, run });
    ScenarioSection {
        order,
        scenarios: scenarios.collect(),
    }
}

/// The errors by name; an empty text where a scenario passed.
fn outcomes(plan: ScenarioPlan<Shared>, selected: &[&str]) -> BTreeMap<&'static str, String> {
    let outcomes = ScenarioOutcomes::new();
    plan.run(selected, &outcomes);
    let ended = std::mem::take(&mut outcomes.lock().ended);
    let text = |outcome: Result<()>| {
        outcome
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default()
    };
    ended
        .into_iter()
        .map(|(name, outcome)| (name, text(outcome)))
        .collect()
}

#[test]
fn a_failed_scenario_cancels_no_other_scenario() {
    let plan = plan(&[("a", fails), ("b", panics), ("c", passes)]);
    let ended = outcomes(plan, &["a", "b", "c"]);
    assert!(ended["a"].contains("the lock") && ended["a"].contains("no lease"));
    // The line belongs to the text: the test that waits has a different line.
    assert!(
        ended["b"].contains("a wrong revision") && ended["b"].contains("scenarios_tests.rs:"),
        "{ended:?}"
    );
    assert_eq!(ended["c"], "");
}

#[test]
fn every_gap_of_a_scenario_is_reported_with_that_scenario() {
    let ended = outcomes(plan(&[("a", has_gaps), ("b", passes)]), &["a", "b"]);
    for part in ["first gap", "second gap", "no lease"] {
        assert!(ended["a"].contains(part), "{ended:?}");
    }
    assert_eq!(ended["b"], "");
}

#[test]
fn only_selected_scenarios_run() {
    let ended = outcomes(plan(&[("a", panics), ("b", passes)]), &["b"]);
    assert_eq!(ended, BTreeMap::from([("b", String::new())]));
}

#[test]
fn scenarios_run_in_sequence_or_at_once() {
    let alone = section(SectionOrder::InSequence, &[("a", is_alone), ("b", is_alone)]);
    let at_once = section(SectionOrder::AtOnce, &[("c", meets), ("d", meets)]);
    let plan = ScenarioPlan {
        sections: vec![alone, at_once],
        ..plan(&[])
    };
    let ended = outcomes(plan, &["a", "b", "c", "d"]);
    assert_eq!(ended.len(), 4);
    assert!(ended.values().all(String::is_empty), "{ended:?}");
}

#[test]
fn an_environment_that_does_not_start_fails_every_scenario() {
    let plan = ScenarioPlan {
        start: || Box::pin(async { Err(anyhow!("no etcd")) }),
        ..plan(&[("a", passes), ("b", passes)])
    };
    let ended = outcomes(plan, &["a", "b"]);
    assert_eq!(ended.len(), 2);
    assert!(ended.values().all(|why| why.contains("no etcd")), "{ended:?}");
}

#[test]
fn an_environment_that_is_not_cleaned_fails_the_scenario_before() {
    let plan = ScenarioPlan {
        after_each: |shared| Box::pin(async move { ensure_first(shared) }),
        ..plan(&[("a", passes), ("b", passes)])
    };
    let ended = outcomes(plan, &["a", "b"]);
    assert_eq!(ended["a"], "");
    assert!(ended["b"].contains("a Node is left"), "{ended:?}");
}

#[test]
fn an_environment_that_does_not_end_fails_the_last_scenario() {
    let plan = ScenarioPlan {
        end: |_| Box::pin(async { panic!("a manager is stuck") }),
        ..plan(&[("a", passes), ("b", passes)])
    };
    let ended = outcomes(plan, &["a", "b"]);
    assert_eq!(ended["a"], "");
    assert!(ended["b"].contains("a manager is stuck"), "{ended:?}");
}

#[test]
fn a_test_that_no_scenario_answers_ends() {
    static OUTCOMES: ScenarioOutcomes = ScenarioOutcomes::new();
    let error = OUTCOMES.wait("unknown", || plan(&[("a", passes)])).unwrap_err();
    assert!(error.to_string().contains("unknown"), "{error}");
}
