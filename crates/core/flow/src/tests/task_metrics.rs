//! Durations and retries of tasks, as a scrape shows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::{Log, failing, graph, seconds};
use crate::{Graph, Retry, Task, TaskMetrics};

/// Runs the graphs in turn with the same metrics, and returns the scraped lines of the metrics.
async fn scrape_after(graphs: Vec<Graph<'_, String>>) -> Vec<String> {
    let (metrics, mut registry) = (TaskMetrics::default(), Registry::default());
    metrics.register(&mut registry);
    for g in graphs {
        let _ = g.compile().measure(&metrics).run(|_| ()).await;
    }
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Whether a series with this name and these labels, in any order, has this value. Timers round up to a
/// millisecond.
fn has(lines: &[String], name: &str, labels: &[(&str, &str)], value: f64) -> bool {
    lines.iter().any(|line| {
        let Some((series, shown)) = line.rsplit_once(' ') else {
            return false;
        };
        let has_label = |(label, text): &(&str, &str)| series.contains(&format!("{label}=\"{text}\""));
        series.starts_with(&format!("{name}{{"))
            && labels.iter().all(has_label)
            && shown
                .parse::<f64>()
                .is_ok_and(|shown| (shown - value).abs() < 0.01)
    })
}

fn labels<'a>(task: &'a str, outcome: &'a str) -> [(&'a str, &'a str); 3] {
    [("flow", "test flow"), ("task", task), ("outcome", outcome)]
}

/// A task that fails once and then succeeds.
fn second_attempt_succeeds() -> Task<'static, String> {
    let attempts = Arc::new(AtomicU32::new(0));
    Task::new("flaky", move || {
        let is_first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if is_first {
                Err("the first attempt".to_owned())
            } else {
                Ok(())
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn the_duration_of_each_task_is_measured_with_flow_task_and_outcome() {
    let mut g = graph();
    g.add(Log::default().task("slow", seconds(20)));
    g.add(failing("broken"));
    g.add(Log::default().task("hanging", seconds(100)).timeout(seconds(7)));
    g.add(failing("left out").skip_if(true));
    let lines = scrape_after(vec![g]).await;
    for (task, outcome, took) in [
        ("slow", "succeeded", 20.0),
        ("broken", "failed", 0.0),
        ("hanging", "timed_out", 7.0),
    ] {
        let labels = labels(task, outcome);
        assert!(
            has(&lines, "flow_task_duration_seconds_sum", &labels, took),
            "{lines:#?}"
        );
        assert!(
            has(&lines, "flow_task_duration_seconds_count", &labels, 1.0),
            "{lines:#?}"
        );
    }
    let buckets = |le, count| {
        let [flow, task, outcome] = labels("slow", "succeeded");
        let labels = [flow, task, outcome, ("le", le)];
        has(&lines, "flow_task_duration_seconds_bucket", &labels, count)
    };
    assert!(buckets("15.0", 0.0) && buckets("60.0", 1.0), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("left out")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_counted_when_the_attempt_begins() {
    let retry = Retry::until_timeout(seconds(5), seconds(12));
    let mut g = graph();
    g.add(second_attempt_succeeds().retry(retry));
    // Attempts after 0, 5 and 10 seconds; no attempt begins after the pause that the limit cuts off.
    g.add(failing("broken").retry(retry));
    g.add(Log::default().task("sound", seconds(1)).retry(retry));
    let lines = scrape_after(vec![g]).await;
    for (task, outcome, retries) in [("flaky", "succeeded", 1.0), ("broken", "timed_out", 2.0)] {
        let [flow, task, outcome] = labels(task, outcome);
        assert!(
            has(&lines, "flow_task_retries_total", &[flow, task], retries),
            "{lines:#?}"
        );
        let labels = [flow, task, outcome];
        assert!(
            has(&lines, "flow_task_duration_seconds_count", &labels, 1.0),
            "{lines:#?}"
        );
    }
    let is_sound = |line: &String| line.starts_with("flow_task_retries") && line.contains("sound");
    assert!(!lines.iter().any(is_sound), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_series_of_a_task_stay_within_the_bound_over_many_runs() {
    let graphs = (0..20).map(|_| {
        let mut g = graph().retry(Retry::until_timeout(seconds(1), seconds(3)));
        g.add(failing("broken"));
        g
    });
    let lines = scrape_after(graphs.collect()).await;
    let count = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!(
        (count("flow_task_duration_seconds"), count("flow_task_retries")),
        (9, 1),
        "{lines:#?}"
    );
}
