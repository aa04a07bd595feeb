//! How old ShootStates are and how large, as metrics.

use std::sync::{OnceLock, atomic::AtomicU64};

use kube::ResourceExt;
use parts::shoot_state::ShootStateWrite;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};
use runtime::{clock, process::metrics::Metrics};

use api::gardencore::Shoot;

/// The labels of a shoot.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    namespace: String,
    name: String,
}

/// The metrics of this controller.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauges {
    synced: Family<Labels, Gauge<f64, AtomicU64>>,
    bytes: Family<Labels, Gauge>,
}

impl Gauges {
    /// The metrics of the process. A restarted controller continues the same metrics.
    pub(super) fn of_process(metrics: &Metrics) -> Self {
        static GAUGES: OnceLock<Gauges> = OnceLock::new();
        GAUGES
            .get_or_init(|| {
                let gauges = Self::default();
                metrics.register(|registry| {
                    registry.register(
                        "shoot_state_synced_timestamp_seconds",
                        "When the ShootState was last found, or made, to hold what the seed has; the time since is its age",
                        gauges.synced.clone(),
                    );
                    registry.register(
                        "shoot_state_bytes",
                        "Bytes of what the ShootState holds, before compression",
                        gauges.bytes.clone(),
                    );
                });
                gauges
            })
            .clone()
    }

    /// Records that the ShootState is up to date now.
    pub(super) fn synced(&self, shoot: &Shoot, write: &ShootStateWrite) {
        let now = clock::now().as_millisecond();
        #[allow(clippy::cast_precision_loss)] // exact for some hundred thousand years
        let seconds = now as f64 / 1000.0;
        self.synced.get_or_create(&labels(shoot)).set(seconds);
        let bytes = i64::try_from(write.bytes).unwrap_or(i64::MAX);
        self.bytes.get_or_create(&labels(shoot)).set(bytes);
    }

    /// This seed no longer owns the shoot, or the shoot is gone.
    pub(super) fn forget(&self, shoot: &Shoot) {
        self.synced.remove(&labels(shoot));
        self.bytes.remove(&labels(shoot));
    }
}

fn labels(shoot: &Shoot) -> Labels {
    Labels {
        namespace: shoot.namespace().unwrap_or_default(),
        name: shoot.name_any(),
    }
}
