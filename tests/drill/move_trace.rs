//! A collector of OpenTelemetry receives one trace of a move, with the spans of both gardenlets.
//!
//! Two whole gardenlets and garden-controller-manager move a Shoot, as in `journeys`, and no process dies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{CollectedSpan, OtelCollector, eventually};

use crate::journeys::journey::{Journey, Stage};
use crate::journeys::mortals::Mortals;
use crate::journeys::witness::Witness;
use crate::rights;
use crate::world::World;

/// Longer than the last span needs to the collector, on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// Moves a Shoot from the first seed to the second, and checks the trace.
pub async fn check() -> Result<()> {
    let collector = OtelCollector::start(None).await?;
    let mut world = World::for_journeys().await?;
    for seed in &mut world.seeds {
        seed.traces.otlp_endpoint = Some(collector.endpoint.clone());
    }
    let world = Arc::new(world);
    let stage = Stage {
        world: &world,
        mortals: Mortals::start(&world, rights::manager(&world.garden).await?, &[])?,
        witness: Witness::watch(&world),
    };
    stage.is_set().await?;
    let journey = Journey::new(&stage);
    Box::pin(journey.begin()).await?;
    ensure!(collector.spans()?.is_empty(), "a creation is not part of a move");
    journey.send_to("seed-b").await?;
    Box::pin(journey.settled(1)).await?;
    eventually("the collector has the trace of the move", WITHIN, || async {
        check_trace(&collector.spans()?, &journey.name)
    })
    .await
}

fn named<'s>(spans: &'s [CollectedSpan], name: &str) -> Option<&'s CollectedSpan> {
    spans.iter().find(|span| span.name == name)
}

fn text<'s>(span: &'s CollectedSpan, key: &str) -> &'s str {
    let attributes = [&span.attributes, &span.resource];
    let mut found = attributes
        .into_iter()
        .filter_map(|attributes| attributes.get(key));
    found.next().map_or("", String::as_str)
}

/// Whether a run of the task has succeeded, with this external system in the span.
fn has_succeeded(tasks: &[CollectedSpan], task: &str, system: &str) -> bool {
    tasks.iter().any(|span| {
        span.name == task
            && text(span, "gardener.task.outcome") == "succeeded"
            && text(span, "gardener.task.external_systems").contains(system)
    })
}

fn check_trace(spans: &[CollectedSpan], shoot: &str) -> Result<()> {
    let migrate = named(spans, "Migrate").context("no span of the source")?;
    let restore = named(spans, "Restore").context("no span of the destination")?;
    for span in spans {
        ensure!(span.trace_id == migrate.trace_id, "a second trace: {span:?}");
        ensure!(text(span, "gardener.shoot.name") == shoot, "{span:?}");
    }
    ensure!(migrate.parent_id.is_empty(), "{migrate:?}");
    ensure!(restore.parent_id == migrate.id, "{restore:?}");
    let tasks_of = |operation: &CollectedSpan, seed: &str| -> Result<Vec<CollectedSpan>> {
        let tasks = spans
            .iter()
            .filter(|span| span.parent_id == operation.id && span.name != "Restore");
        let tasks: Vec<_> = tasks.cloned().collect();
        for span in tasks.iter().chain([operation]) {
            ensure!(text(span, "gardener.seed.name") == seed, "{span:?}");
            ensure!(
                operation.start <= span.start && span.end <= operation.end,
                "{span:?}"
            );
        }
        Ok(tasks)
    };
    let (first, second) = (tasks_of(migrate, "seed-a")?, tasks_of(restore, "seed-b")?);
    ensure!(
        first.len() + second.len() + 2 == spans.len(),
        "a span without a parent: {spans:#?}"
    );
    for (tasks, task, system) in [
        (&first, "Creating ETCD Snapshot", "bucket"),
        (&second, "Waiting until etcd backups are copied", "bucket"),
        (&second, "Waiting until Kubernetes API server rolled out", ""),
    ] {
        ensure!(has_succeeded(tasks, task, system), "no task {task:?}: {tasks:#?}");
    }
    // The destination begins after the hand-over.
    for before in &first {
        for after in &second {
            ensure!(before.end <= after.start, "{before:?} and {after:?}");
        }
    }
    Ok(())
}
