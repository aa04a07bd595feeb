//! A collector of OpenTelemetry: receives OTLP over gRPC and prints each span into a file.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::pki::Identity;
use crate::ports;
use crate::process::Server;
use crate::wait::eventually;

/// Longer than the collector needs to bind the port on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(90);
/// The file of the printed spans, in the folder of the collector.
const SPANS: &str = "spans.txt";

/// A running collector.
pub struct OtelCollector {
    /// URL for exporters.
    pub endpoint: String,
    _server: Server,
    folder: TempDir,
}

/// A span as the collector has received it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectedSpan {
    /// Id of the trace, in hex.
    pub trace_id: String,
    /// Id of the parent in hex; empty without a parent.
    pub parent_id: String,
    /// Id of the span, in hex.
    pub id: String,
    /// Name of the span.
    pub name: String,
    /// Start as a date in UTC. The texts of two dates have the order of the dates.
    pub start: String,
    /// End, in the same format.
    pub end: String,
    /// `Unset`, `Ok` or `Error`.
    pub status: String,
    /// Attributes of the span, as text.
    pub attributes: BTreeMap<String, String>,
    /// Attributes of the resource, as text.
    pub resource: BTreeMap<String, String>,
}

impl OtelCollector {
    /// Starts a collector that serves plain gRPC, or TLS with the certificate of `identity`.
    pub async fn start(identity: Option<&Identity>) -> Result<Self> {
        let port = ports::free()?;
        let folder = tempfile::Builder::new().prefix("repot-otelcol-").tempdir()?;
        let mut grpc = serde_json::json!({"endpoint": format!("127.0.0.1:{port}")});
        if let Some(identity) = identity {
            identity.write(folder.path(), "collector")?;
            grpc["tls"] = serde_json::json!({"cert_file": "collector.crt", "key_file": "collector.key"});
        }
        let config = serde_json::json!({
            "receivers": {"otlp": {"protocols": {"grpc": grpc}}},
            "exporters": {"debug": {
                "verbosity": "detailed", "use_internal_logger": false, "output_paths": [SPANS],
            }},
            "service": {
                // The collector serves metrics on a fixed port.
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["debug"]}},
            },
        });
        fs::write(folder.path().join("config.yaml"), config.to_string())?;
        let args = ["--config=config.yaml"];
        let mut server = Server::start("otelcol", "otelcol", folder.path(), args, &[])?;
        eventually("the collector is ready", READY_WITHIN, || {
            let ended = server.check_alive().err();
            async move {
                match ended {
                    Some(ended) => Ok(Err(ended)),
                    None => TcpStream::connect(("127.0.0.1", port)).await.map(|_| Ok(())),
                }
            }
        })
        .await??;
        let scheme = if identity.is_some() { "https" } else { "http" };
        Ok(Self {
            endpoint: format!("{scheme}://127.0.0.1:{port}"),
            _server: server,
            folder,
        })
    }

    /// The spans that the collector has received so far, in the order of the arrival. The last span may
    /// be incomplete.
    pub fn spans(&self) -> Result<Vec<CollectedSpan>> {
        let printed = match fs::read(self.folder.path().join(SPANS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        Ok(parse(&String::from_utf8_lossy(&printed)))
    }
}

/// Reads the format of the collector's exporter `debug`: a block for each resource, with the attributes of
/// the resource before the spans of the resource.
fn parse(text: &str) -> Vec<CollectedSpan> {
    let mut resource = BTreeMap::new();
    let mut spans: Vec<CollectedSpan> = Vec::new();
    let mut is_in_span = false;
    for line in text.lines() {
        if line.starts_with("ResourceSpans #") {
            (is_in_span, resource) = (false, BTreeMap::new());
        } else if line.starts_with("Span #") {
            is_in_span = true;
            spans.push(CollectedSpan {
                resource: resource.clone(),
                ..CollectedSpan::default()
            });
        } else if let Some((key, value)) = line
            .strip_prefix("     -> ")
            .and_then(|line| line.split_once(": "))
        {
            let (key, value) = (key.to_owned(), without_type(value).to_owned());
            match spans.last_mut().filter(|_| is_in_span) {
                Some(span) => span.attributes.insert(key, value),
                None => resource.insert(key, value),
            };
        } else if let (Some(span), Some((key, value))) = (spans.last_mut(), line.split_once(':')) {
            let field = match key.trim() {
                "Trace ID" => &mut span.trace_id,
                "Parent ID" => &mut span.parent_id,
                "ID" => &mut span.id,
                "Name" => &mut span.name,
                "Start time" => &mut span.start,
                "End time" => &mut span.end,
                "Status code" => &mut span.status,
                _ => continue,
            };
            value.trim().clone_into(field);
        }
    }
    spans
}

/// The value in `Str(value)`.
fn without_type(value: &str) -> &str {
    let inner = value.split_once('(').map(|(_, inner)| inner);
    inner.and_then(|inner| inner.strip_suffix(')')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As version 0.165 prints spans.
    const PRINTED: &str = "ResourceSpans #0
Resource attributes:
     -> gardener.seed.name: Str(seed-a)
ScopeSpans #0
InstrumentationScope gardenlet 0.1.0
Span #0
    Trace ID       : dba074d40fbe301b38795514c21ff913
    Parent ID      :
    ID             : 999c3a98becc28c3
    Name           : Migrate
    Kind           : Internal
    Start time     : 2026-01-01 00:00:00 +0000 UTC
    End time       : 2026-01-01 00:00:40.5 +0000 UTC
    Status code    : Unset
    DroppedAttributesCount: 0
Attributes:
     -> gardener.shoot.name: Str(demo)
     -> gardener.move.takeover: Bool(false)
ResourceSpans #0
Resource attributes:
     -> gardener.seed.name: Str(seed-b)
Span #0
    Trace ID       : dba074d40fbe301b38795514c21ff913
    Parent ID      : 999c3a98becc28c3
    Name           : a task (with brackets): x
    Status code    : Error
";

    #[test]
    fn printed_spans_are_read_with_the_attributes_of_their_resource() {
        let spans = parse(PRINTED);
        let [first, second] = spans.as_slice() else {
            unreachable!("two spans are printed");
        };
        assert_eq!(first.trace_id, second.trace_id);
        assert_eq!(
            (first.id.as_str(), first.parent_id.as_str()),
            ("999c3a98becc28c3", "")
        );
        assert_eq!(second.parent_id, first.id);
        assert_eq!((first.name.as_str(), first.status.as_str()), ("Migrate", "Unset"));
        assert_eq!(second.name, "a task (with brackets): x");
        assert_eq!(second.status, "Error");
        assert!(first.start < first.end);
        let text = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_default();
        assert_eq!(text(&first.attributes, "gardener.shoot.name"), "demo");
        assert_eq!(text(&first.attributes, "gardener.move.takeover"), "false");
        assert_eq!(text(&first.resource, "gardener.seed.name"), "seed-a");
        assert_eq!(text(&second.resource, "gardener.seed.name"), "seed-b");
        assert!(second.attributes.is_empty());
    }
}
