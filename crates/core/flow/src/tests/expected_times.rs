//! The percentage by expected times.

use super::{Log, failing, graph, seconds};
use crate::{Graph, current_task};

/// `a` (90 s) and `b` (1 s) side by side, then `c` (10 s), and a task that is skipped.
fn one_long_task(log: &Log) -> Graph<'static, String> {
    let mut g = graph();
    let a = g.add(log.task("a", seconds(1)));
    let b = g.add(log.task("b", seconds(2)));
    g.add(failing("left out").after(a).skip_if(true));
    g.add(log.task("c", seconds(1)).after([a, b]));
    g
}

fn expected(name: &str) -> std::time::Duration {
    seconds(match name {
        "a" => 90,
        "c" => 10,
        "left out" => 1000,
        _ => 1,
    })
}

#[tokio::test(start_paused = true)]
async fn the_percentage_goes_by_the_time_of_the_longest_path() {
    let mut seen = Vec::new();
    let flow = one_long_task(&Log::default()).compile().expect(expected);
    flow.run(|p| seen.push((p.percent, p.to_string()))).await.unwrap();
    let text = |percent: u8, running: &str| (percent, running.to_owned());
    assert_eq!(
        seen,
        [text(0, "a, b"), text(89, "b"), text(90, "c"), text(100, "")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_flow_is_never_at_100_percent_before_its_end() {
    let mut g = graph();
    let a = g.add(Log::default().task("a", seconds(1)));
    g.add(Log::default().task("b", seconds(1)).after(a));
    let only_a = |name: &'static str| seconds(u64::from(name == "a"));
    let mut seen = Vec::new();
    g.compile()
        .expect(only_a)
        .run(|p| seen.push(p.percent))
        .await
        .unwrap();
    assert_eq!(seen, [0, 99, 100]);
}

#[tokio::test]
async fn the_work_of_a_task_and_the_retry_predicate_know_the_task() {
    let mut g = graph().retry_only_if(|_| {
        assert_eq!(current_task(), Some("a"));
        false
    });
    g.add(
        crate::Task::new("a", || async {
            assert_eq!(current_task(), Some("a"));
            Err("broken".to_owned())
        })
        .retry(crate::Retry::until_timeout(seconds(1), seconds(5))),
    );
    assert!(g.compile().run(|_| ()).await.is_err());
    assert_eq!(current_task(), None);
}
