//! Sends spans to a collector by OTLP over gRPC, in a part of the process.
//!
//! The connection begins with the first span. A batch that the collector does not take is dropped and
//! counted. The first such batch is also logged, with the reason.

use std::{path::Path, time::Duration};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{
    SpanExporter, WithExportConfig, WithTonicConfig,
    tonic_types::transport::{Certificate, ClientTlsConfig},
};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanExporter as _},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use runtime::process::Process;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::config::MoveTraceFlags;

/// The most spans that wait for the collector: the spans of some ten moves, and a megabyte.
const QUEUE: usize = 1024;

/// Time for a batch, with all attempts. A process that stops sends at most two further batches, and must end
/// within the 10 s of `runtime::process`.
const EXPORT_WITHIN: Duration = Duration::from_secs(4);

/// The fate of spans, by which the metric counts.
#[derive(Clone, Copy, Debug)]
enum SpanResult {
    /// The collector has taken the span.
    Exported,
    /// The collector has not taken the span.
    Failed,
    /// The queue was full.
    Dropped,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

/// The number of spans by result.
#[derive(Clone, Debug, Default)]
struct SpanCounts(Family<ResultLabels, Counter>);

impl SpanCounts {
    fn add(&self, result: SpanResult, spans: usize) {
        let result = match result {
            SpanResult::Exported => "exported",
            SpanResult::Failed => "failed",
            SpanResult::Dropped => "dropped",
        };
        let spans = u64::try_from(spans).unwrap_or(u64::MAX);
        self.0.get_or_create(&ResultLabels { result }).inc_by(spans);
    }
}

/// The spans that wait for the collector. Clones share the queue.
#[derive(Clone, Debug)]
pub(super) struct SpanQueue {
    sender: mpsc::Sender<SpanData>,
    counts: SpanCounts,
}

impl SpanQueue {
    /// Adds a span, or counts the span as dropped where the queue is full. Does not wait.
    pub(super) fn push(&self, span: SpanData) {
        if self.sender.try_send(span).is_err() {
            self.counts.add(SpanResult::Dropped, 1);
        }
    }
}

/// Starts the export, if the flags name a collector.
pub(super) fn start(
    process: &mut Process,
    flags: &MoveTraceFlags,
    seed: &str,
    instance: &str,
) -> Result<Option<SpanQueue>, String> {
    let Some(endpoint) = &flags.otlp_endpoint else {
        return Ok(None);
    };
    let mut exporter = connect(endpoint, flags.otlp_ca_file.as_deref())?;
    let resource = Resource::builder_empty().with_attributes([
        KeyValue::new("service.name", "gardenlet"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance.to_owned()),
        KeyValue::new("gardener.seed.name", seed.to_owned()),
    ]);
    exporter.set_resource(&resource.build());
    let (counts, (sender, spans)) = (SpanCounts::default(), mpsc::channel(QUEUE));
    let queue = SpanQueue {
        sender,
        counts: counts.clone(),
    };
    process.metrics.register(|registry| {
        registry.register(
            "move_trace_spans",
            "Spans of moves by result of the export",
            counts.0.clone(),
        );
    });
    let shutdown = process.shutdown.clone();
    process.part("export of traces", export(spans, exporter, counts, shutdown));
    Ok(Some(queue))
}

/// An exporter that connects with the first batch.
fn connect(endpoint: &str, ca_file: Option<&Path>) -> Result<SpanExporter, String> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .with_timeout(EXPORT_WITHIN);
    let exporter = match (endpoint.starts_with("https://"), ca_file) {
        (true, Some(file)) => {
            let pem = std::fs::read(file)
                .map_err(|error| format!("--otlp-ca-file {} cannot be read: {error}", file.display()))?;
            let authority = Certificate::from_pem(pem);
            exporter.with_tls_config(ClientTlsConfig::new().ca_certificate(authority))
        }
        (true, None) => return Err("--otlp-endpoint with https needs --otlp-ca-file".to_owned()),
        (false, Some(_)) => return Err("--otlp-ca-file needs --otlp-endpoint with https".to_owned()),
        (false, None) => exporter,
    };
    exporter
        .build()
        .map_err(|error| format!("the exporter for --otlp-endpoint cannot be built: {error}"))
}

/// Sends all spans until shutdown, and then the rest of the queue.
async fn export(
    mut spans: mpsc::Receiver<SpanData>,
    exporter: SpanExporter,
    counts: SpanCounts,
    shutdown: CancellationToken,
) {
    let mut is_away = false;
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            () = shutdown.cancelled(), if !spans.is_closed() => {
                spans.close();
                continue;
            }
            received = spans.recv_many(&mut batch, QUEUE) => {
                if received == 0 {
                    // Every sender may be gone before the end of the process.
                    shutdown.cancelled().await;
                    return;
                }
            }
        }
        let count = batch.len();
        let failure = match timeout(EXPORT_WITHIN, exporter.export(batch)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", EXPORT_WITHIN.as_secs())),
        };
        match failure {
            None => {
                counts.add(SpanResult::Exported, count);
                if std::mem::take(&mut is_away) {
                    info!("the collector takes spans again");
                }
            }
            Some(error) => {
                counts.add(SpanResult::Failed, count);
                if !std::mem::replace(&mut is_away, true) {
                    warn!(%error, "the collector does not take spans, which are dropped");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn flags(endpoint: &str, ca_file: Option<&str>) -> MoveTraceFlags {
        MoveTraceFlags {
            otlp_endpoint: Some(endpoint.to_owned()),
            otlp_ca_file: ca_file.map(Into::into),
        }
    }

    #[tokio::test]
    async fn nothing_starts_without_a_collector() {
        let mut process = Process::new("a test");
        let queue = start(&mut process, &MoveTraceFlags::default(), "a", "pod").unwrap();
        assert!(queue.is_none());
        let shown = process.metrics.encode();
        assert!(!shown.contains("move_trace_spans"), "{shown}");
    }

    #[tokio::test]
    async fn a_certificate_authority_belongs_to_https() {
        for (endpoint, ca_file, words) in [
            ("https://collector:4317", None, "needs --otlp-ca-file"),
            ("http://collector:4317", Some("/ca.crt"), "needs --otlp-endpoint"),
            ("https://collector:4317", Some("/nonexistent"), "cannot be read"),
        ] {
            let mut process = Process::new("a test");
            let refused = start(&mut process, &flags(endpoint, ca_file), "a", "pod");
            let sentence = refused.err().unwrap_or_default();
            assert!(sentence.contains(words), "{sentence}");
        }
    }
}
