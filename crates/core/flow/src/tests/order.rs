//! Order of the tasks, and the reported progress.

use super::{Log, failing, graph, seconds};
use crate::{FlowError, Graph, Progress, Report, Task};

#[tokio::test(start_paused = true)]
async fn a_task_starts_when_all_before_it_ended_and_independent_ones_overlap() {
    let log = Log::default();
    let mut g = graph();
    let a = g.add(log.task("a", seconds(1)));
    let b = g.add(log.task("b", seconds(2)));
    g.add(log.task("c", seconds(1)).after([a, b]));
    let report = g.compile().run(|_| ()).await.unwrap();
    assert_eq!(
        log.lines(),
        ["a starts", "b starts", "a ends", "b ends", "c starts", "c ends"]
    );
    assert_eq!(
        report,
        Report {
            succeeded: vec!["a", "b", "c"],
            ..Report::default()
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_does_not_wait_for_a_slow_one_it_does_not_depend_on() {
    let log = Log::default();
    let mut g = graph();
    g.add(log.task("slow", seconds(60)));
    let fast = g.add(log.task("fast", seconds(1)));
    g.add(log.task("next", seconds(1)).after(fast));
    let report = g.compile().run(|_| ()).await.unwrap();
    assert_eq!(report.succeeded, ["fast", "next", "slow"]);
}

#[tokio::test(start_paused = true)]
async fn independent_tasks_go_on_after_a_failure_and_later_ones_do_not_run() {
    let log = Log::default();
    let mut g = graph();
    let broken = g.add(failing("broken"));
    let fine = g.add(log.task("fine", seconds(1)));
    g.add(log.task("after fine", seconds(1)).after(fine));
    let never = g.add(log.task("after broken", seconds(1)).after([broken, fine]));
    g.add(log.task("last", seconds(1)).after(never));
    let error = g.compile().run(|_| ()).await.unwrap_err();
    assert_eq!(error.failures.len(), 1);
    assert_eq!(error.failures[0].task, "broken");
    assert_eq!(error.failures[0].error().unwrap(), "broken is broken");
    assert_eq!(error.report.succeeded, ["fine", "after fine"]);
    assert_eq!(error.report.not_run, ["after broken", "last"]);
    assert_eq!(
        error.to_string(),
        r#"flow "test flow": task "broken" failed: broken is broken"#
    );
}

#[tokio::test(start_paused = true)]
async fn each_failed_task_is_reported() {
    let mut g = graph();
    g.add(failing("x"));
    g.add(failing("y"));
    let FlowError { failures, .. } = g.compile().run(|_| ()).await.unwrap_err();
    assert_eq!(failures.iter().map(|f| f.task).collect::<Vec<_>>(), ["x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn a_skipped_task_counts_as_done_and_keeps_the_order_of_its_neighbours() {
    let log = Log::default();
    let mut g = graph();
    let a = g.add(log.task("a", seconds(1)));
    let b = g.add(log.task("b", seconds(1)).after(a).skip_if(true));
    let c = g.add(log.task("c", seconds(1)).after(b).skip_if(true).skip_if(false));
    g.add(log.task("d", seconds(1)).after(c));
    let report = g.compile().run(|_| ()).await.unwrap();
    assert_eq!(log.lines(), ["a starts", "a ends", "d starts", "d ends"]);
    assert_eq!(report.skipped, ["b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_skipped_task_after_a_failed_one_is_neither_done_nor_a_way_around_it() {
    let mut g = graph();
    let a = g.add(failing("a"));
    let b = g.add(failing("b").after(a).skip_if(true));
    g.add(failing("c").after(b));
    let error = g.compile().run(|_| ()).await.unwrap_err();
    assert!(error.report.skipped.is_empty());
    assert_eq!(error.report.not_run, ["b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported_at_every_start_and_end() {
    let log = Log::default();
    let mut seen: Vec<Progress> = Vec::new();
    let mut g = graph();
    let a = g.add(log.task("a", seconds(1)));
    let b = g.add(log.task("b", seconds(2)));
    g.add(failing("left out").after(a).skip_if(true));
    g.add(log.task("c", seconds(1)).after([a, b]));
    g.compile().run(|p| seen.push(p)).await.unwrap();
    let lines: Vec<String> = seen
        .iter()
        .map(|p| format!("{} [{p}] {}", p.percent, p.succeeded.len()))
        .collect();
    assert_eq!(lines, ["0 [a, b] 0", "50 [b] 1", "75 [c] 2", "100 [] 3"]);
    assert!(seen.iter().all(|p| p.total == 4));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_unfinished_until_it_succeeds_or_is_skipped() {
    let log = Log::default();
    let mut seen: Vec<String> = Vec::new();
    let mut g = graph();
    let a = g.add(log.task("a", seconds(1)));
    let b = g.add(failing("b").after(a));
    g.add(failing("left out").after(a).skip_if(true));
    g.add(log.task("c", seconds(1)).after(b));
    let ended = g.compile().run(|p| seen.push(p.unfinished.join(", "))).await;
    assert!(ended.is_err());
    // The progress after the success of `a` equals the progress at the start of `b`.
    assert_eq!(seen, ["a, b, left out, c", "b, c", "b, c"]);
}

#[tokio::test]
async fn an_empty_flow_is_done() {
    let mut last = None;
    graph().compile().run(|p| last = Some(p.percent)).await.unwrap();
    assert_eq!(last, Some(100));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_flow_stops_all_its_work() {
    let log = Log::default();
    let mut g = graph();
    g.add(log.task("a", seconds(10)));
    g.add(log.task("b", seconds(10)));
    assert!(
        tokio::time::timeout(seconds(5), g.compile().run(|_| ()))
            .await
            .is_err()
    );
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(log.lines(), ["a starts", "b starts"]);
}

#[tokio::test]
async fn tasks_may_borrow_what_does_their_work() {
    struct Part(std::sync::atomic::AtomicU32);
    impl Part {
        async fn deploy(&self) -> Result<(), String> {
            tokio::task::yield_now().await;
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }
    }
    let part = Part(0.into());
    let mut g = Graph::new("borrows");
    let one = g.add(Task::new("one", || part.deploy()));
    g.add(Task::new("two", || async { part.deploy().await }).after(one));
    g.compile().run(|_| ()).await.unwrap();
    assert_eq!(part.0.into_inner(), 2);
}

#[test]
fn a_running_flow_can_be_sent_to_another_thread() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let mut g = graph();
    g.add(failing("a"));
    drop(sendable(g.compile().run(|_| ())));
}

#[test]
#[should_panic(expected = "task of another graph")]
fn an_id_of_another_graph_is_refused() {
    let mut other = graph();
    let foreign = other.add(failing("a"));
    graph().add(failing("b").after(foreign));
}

#[test]
#[should_panic(expected = "a task is known by its name")]
fn a_name_is_given_once() {
    let mut g = graph();
    g.add(failing("a"));
    g.add(failing("a"));
}

#[test]
fn the_drawing_leaves_out_what_a_longer_path_says() {
    let mut g = graph();
    let a = g.add(failing("a \"quoted\""));
    let b = g.add(failing("b").after(a));
    let c = g.add(failing("c").after([b, a, b]).skip_if(true));
    g.add(failing("d").after([a, c]));
    let flow = g.compile();
    assert_eq!(flow.tasks().len(), 4);
    assert_eq!(flow.edges().count(), 5);
    let expected = "flowchart TD
  t0[\"a #quot;quoted#quot;\"]
  t1[\"b\"]
  t2[\"c\"]:::skipped
  t3[\"d\"]
  t0 --> t1
  t1 --> t2
  t2 --> t3
  classDef skipped stroke-dasharray: 4 4
";
    assert_eq!(flow.to_mermaid(), expected);
    assert_eq!(flow.skipped().collect::<Vec<_>>(), ["c"]);
    let drawing = flow.to_mermaid_with(|task| (task == "c").then(|| "a note".to_owned()));
    let noted = expected.replace("t2[\"c\"]", "t2[\"c<br/>a note\"]");
    assert_eq!(drawing, noted);
}
