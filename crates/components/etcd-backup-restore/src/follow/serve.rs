//! `GET /follow` and `GET /metrics` of a follower, without TLS: the answers hold numbers and no data.

use super::progress::FollowProgress;
use axum::{Json, Router, extract::State, routing::get};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sidecar_protocol::{FollowPhase, FollowStatus};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

/// Serves the progress for ever. An address that cannot be used does not end the follower.
pub async fn serve_status(address: SocketAddr, progress: FollowProgress) -> Infallible {
    let routes = Router::new()
        .route("/follow", get(status))
        .route("/metrics", get(metrics))
        .with_state(progress);
    let served = axum_server::bind(address).serve(routes.into_make_service()).await;
    if let Err(error) = served {
        tracing::warn!(%error, %address, "cannot serve the progress of the follower; the follower goes on");
    }
    std::future::pending().await
}

async fn status(State(progress): State<FollowProgress>) -> Json<FollowStatus> {
    Json(progress.status())
}

async fn metrics(State(progress): State<FollowProgress>) -> String {
    text(&progress)
}

/// The text of `/metrics`.
fn text(progress: &FollowProgress) -> String {
    let (status, lag) = (progress.status(), progress.lag());
    let mut registry = Registry::with_prefix("etcdbr_follow");
    let mut number = |name: &str, help: &str, value: i64| {
        let gauge = Gauge::<i64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    number(
        "revision",
        "Revision up to which the local etcd was proved equal to the source",
        status.revision,
    );
    number(
        "source_revision",
        "Newest known revision of the source",
        status.source_revision,
    );
    number(
        "compacted_revision",
        "Revision at which the local etcd was compacted",
        status.compacted_revision,
    );
    number("leases", "Leases of the local etcd", count(status.leases));
    number(
        "up",
        "1 while the follower reads the watch of the source, and the whole history was compared",
        i64::from(status.phase == FollowPhase::Following),
    );
    // A lag that is unknown must not look like no lag.
    if status.lag_milliseconds.is_some() {
        number(
            "lag_revisions",
            "Revisions of the source that are not proved at the local etcd",
            (status.source_revision - status.revision).max(0),
        );
        let seconds = Gauge::<f64, AtomicU64>::default();
        seconds.set(lag.as_secs_f64());
        let help = "Age of the oldest change of the source that is not proved at the local etcd";
        registry.register("lag_seconds", help, seconds);
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_metrics_have_the_lag_in_revisions_and_seconds() {
        let progress = FollowProgress::default();
        progress.begin(4).unwrap();
        assert!(!text(&progress).contains("_lag_"), "the lag is unknown");
        progress.pass_check(1);
        progress.source_at(9);
        let text = text(&progress);
        for line in [
            "etcdbr_follow_revision 4",
            "etcdbr_follow_source_revision 9",
            "etcdbr_follow_lag_revisions 5",
            "etcdbr_follow_lag_seconds ",
            "etcdbr_follow_up 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
