//! The cached part of a ShootState: never its content.

use api::gardencore::ShootState;
use kube::core::PartialObjectMeta;

/// The metadata of a ShootState.
pub(super) type StateMeta = PartialObjectMeta<ShootState>;
