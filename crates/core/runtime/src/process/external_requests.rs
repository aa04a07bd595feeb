//! Requests to clouds and DNS servers as a metric, by the code of the answer.
//!
//! A client of a cloud or DNS server lives for a single reconciliation. So the counter belongs to the
//! process, and all clients of the process add to this counter.

use std::sync::LazyLock;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// The code of a request without an answer.
pub const UNANSWERED: &str = "none";

/// Labels of the metric. Services and operations are literals, and the codes of a service are few, so the
/// number of series is bounded. Do not pass a code that the service can choose freely.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    service: &'static str,
    operation: &'static str,
    code: String,
}

static REQUESTS: LazyLock<Family<RequestLabels, Counter>> = LazyLock::new(Family::default);

/// Adds the metric to the registry of a process.
pub(super) fn register(registry: &mut Registry) {
    registry.register(
        "external_requests",
        "Requests to clouds and DNS servers by the code of the answer",
        REQUESTS.clone(),
    );
}

/// Counts a request that has left this process. `code` is the code of the answer, or [`UNANSWERED`].
pub fn count_request(service: &'static str, operation: &'static str, code: impl Into<String>) {
    let labels = RequestLabels {
        service,
        operation,
        code: code.into(),
    };
    REQUESTS.get_or_create(&labels).inc();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::metrics::Metrics;

    #[test]
    fn requests_are_counted_by_code() {
        let service = "a service of this test";
        for code in ["200", "503", "503", UNANSWERED] {
            count_request(service, "List", code);
        }
        let text = Metrics::default().encode();
        for (code, count) in [("200", 1), ("503", 2), (UNANSWERED, 1)] {
            let line = format!(
                "external_requests_total{{service=\"{service}\",operation=\"List\",code=\"{code}\"}} {count}"
            );
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }
}
