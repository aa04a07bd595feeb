//! The bytes that a copy has transferred, of the bytes that the copy has listed; served as `GET /progress`
//! without TLS, since the answer holds two numbers.

use crate::snapshot_name::Snapshot;
use axum::{Json, Router, extract::State, routing::get};
use serde::Serialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The objects of a copy. Cloning gives a second view of the same objects.
#[derive(Clone, Debug, Default)]
pub struct CopyGauge(Arc<Mutex<BTreeMap<String, ObjectBytes>>>);

#[derive(Debug, Default)]
struct ObjectBytes {
    copied: u64,
    total: u64,
}

/// The answer of `GET /progress`, which etcd-druid reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CopiedBytes {
    /// Bytes of objects that were copied, or were found in the target and verified, and of objects in
    /// transfer.
    pub copied_bytes: u64,
    /// Bytes of all objects that were listed for this copy so far.
    pub total_bytes: u64,
}

impl CopyGauge {
    /// Adds objects that are to be copied.
    pub(super) fn list(&self, objects: &[Snapshot]) {
        let mut all = self.objects();
        for object in objects {
            let total = object.size;
            all.insert(object.to_string(), ObjectBytes { copied: 0, total });
        }
    }

    /// Counts bytes of an object in transfer.
    pub(super) fn add(&self, name: &str, bytes: u64) {
        if let Some(object) = self.objects().get_mut(name) {
            object.copied = (object.copied + bytes).min(object.total);
        }
    }

    /// Counts the whole object.
    pub(super) fn finish(&self, object: &Snapshot) {
        if let Some(found) = self.objects().get_mut(&object.to_string()) {
            found.copied = found.total;
        }
    }

    /// Takes out the objects of a transfer that has failed: these are listed again, or left aside.
    pub(super) fn drop_unfinished(&self) {
        self.objects().retain(|_, object| object.copied == object.total);
    }

    /// The sums.
    #[must_use]
    pub fn bytes(&self) -> CopiedBytes {
        let mut sums = CopiedBytes::default();
        for object in self.objects().values() {
            sums.copied_bytes += object.copied;
            sums.total_bytes += object.total;
        }
        sums
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, ObjectBytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves the progress for ever. An address that cannot be used does not end the copy: the bytes are unknown
/// then.
pub async fn serve_progress(address: SocketAddr, gauge: CopyGauge) -> Infallible {
    let routes = Router::new().route("/progress", get(progress)).with_state(gauge);
    let served = axum_server::bind(address).serve(routes.into_make_service()).await;
    if let Err(error) = served {
        tracing::warn!(%error, %address, "cannot serve the progress of the copy; the copy goes on");
    }
    std::future::pending().await
}

async fn progress(State(gauge): State<CopyGauge>) -> Json<CopiedBytes> {
    Json(gauge.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full};

    #[test]
    fn bytes_of_objects_that_are_listed_again_count_once() {
        let gauge = CopyGauge::default();
        let sized = |mut object: Snapshot, size| {
            object.size = size;
            object
        };
        let (full, delta) = (sized(full(5, 1), 100), sized(delta(6, 9, 2), 10));
        let sums = |copied_bytes, total_bytes| CopiedBytes {
            copied_bytes,
            total_bytes,
        };
        gauge.list(&[full.clone(), delta.clone()]);
        gauge.add(&full.to_string(), 64);
        assert_eq!(gauge.bytes(), sums(64, 110));
        gauge.finish(&delta);
        // The transfer of the full snapshot fails, and is begun again.
        gauge.drop_unfinished();
        assert_eq!(gauge.bytes(), sums(10, 10));
        gauge.list(std::slice::from_ref(&full));
        gauge.add(&full.to_string(), 1000);
        assert_eq!(gauge.bytes(), sums(110, 110));
    }
}
