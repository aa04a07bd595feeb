//! Traces of moves, as a real collector of OpenTelemetry receives the spans.

#![allow(clippy::unwrap_used)]

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use api::gardencore::Shoot;
use gardenlet::{config::MoveTraceFlags, move_trace::MoveTraces};
use placement::Operation;
use runtime::process::Process;
use serde_json::json;
use testkit::{Authority, OtelCollector, eventually, free_port};

/// Longer than the collector needs for a span, or the exporter for the attempts of a batch, on a busy
/// machine.
const WITHIN: Duration = Duration::from_secs(60);

/// A Shoot on the way from seed `a` to seed `b`.
fn shoot() -> Result<Shoot> {
    let shoot = json!({
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u"},
        "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}},
        "status": {
            "uid": "u", "seedName": "a", "retryCycleStartTime": "2026-01-01T00:00:00Z", "ownership": {"epoch": 2},
            "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}},
        },
    });
    Ok(serde_json::from_value(shoot)?)
}

/// A gardenlet of seed `a` that exports traces.
fn start(endpoint: &str, ca_file: Option<PathBuf>) -> Result<(Process, MoveTraces)> {
    let flags = MoveTraceFlags {
        otlp_endpoint: Some(endpoint.to_owned()),
        otlp_ca_file: ca_file,
    };
    let mut process = Process::new("a test");
    let traces = MoveTraces::start(&mut process, &flags, "a", "pod").map_err(anyhow::Error::msg)?;
    Ok((process, traces))
}

/// Waits until this number of spans has this result.
async fn counted(process: &Process, result: &str, spans: u32) -> Result<()> {
    let line = format!("move_trace_spans_total{{result=\"{result}\"}} {spans}");
    eventually(format!("{spans} spans are {result}"), WITHIN, || async {
        let shown = process.metrics.encode();
        ensure!(shown.lines().any(|shown| shown == line), "{shown}");
        anyhow::Ok(())
    })
    .await
}

async fn collected(collector: &OtelCollector, names: &[&str]) -> Result<()> {
    eventually(format!("the collector has {names:?}"), WITHIN, || async {
        let spans = collector.spans()?;
        let found: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        ensure!(found == names, "{found:?}");
        anyhow::Ok(())
    })
    .await
}

#[tokio::test]
async fn a_collector_receives_spans_over_tls_alone_from_the_named_authority() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (own, foreign) = (Authority::new("own")?, Authority::new("foreign")?);
    let collector = OtelCollector::start(Some(&own.server(&["127.0.0.1"])?)).await?;
    let file = |name: &str, authority: &Authority| -> Result<PathBuf> {
        let file = folder.path().join(name);
        fs::write(&file, authority.certificate())?;
        Ok(file)
    };
    let (process, traces) = start(&collector.endpoint, Some(file("foreign.crt", &foreign)?))?;
    traces.operation_succeeded(&shoot()?, Operation::Migrate, "a");
    counted(&process, "failed", 1).await?;

    let (process, traces) = start(&collector.endpoint, Some(file("own.crt", &own)?))?;
    // No part of a move.
    traces.operation_succeeded(&shoot()?, Operation::Reconcile, "a");
    traces.operation_succeeded(&shoot()?, Operation::Migrate, "a");
    counted(&process, "exported", 1).await?;
    collected(&collector, &["Migrate"]).await?;
    let spans = collector.spans()?;
    let resource = |key: &str| spans[0].resource.get(key).map(String::as_str);
    assert_eq!(resource("service.name"), Some("gardenlet"));
    assert_eq!(resource("service.instance.id"), Some("pod"));
    assert_eq!(resource("gardener.seed.name"), Some("a"));
    Ok(())
}

#[tokio::test]
async fn a_collector_that_is_away_costs_a_gardenlet_a_counter() -> Result<()> {
    let away = format!("http://127.0.0.1:{}", free_port()?);
    let (process, traces) = start(&away, None)?;
    let shoot = shoot()?;
    // The export runs on the thread of this test, and so not before the next wait.
    for _ in 0..1025 {
        traces.operation_succeeded(&shoot, Operation::Migrate, "a");
    }
    counted(&process, "dropped", 1).await?;
    counted(&process, "failed", 1024).await
}

#[tokio::test]
async fn a_gardenlet_that_stops_sends_the_spans_of_its_queue() -> Result<()> {
    let collector = OtelCollector::start(None).await?;
    let (process, traces) = start(&collector.endpoint, None)?;
    traces.operation_succeeded(&shoot()?, Operation::Migrate, "a");
    traces.operation_succeeded(&shoot()?, Operation::Restore, "b");
    process.shutdown.cancel();
    process.run().await?;
    collected(&collector, &["Migrate", "Restore"]).await
}
