//! What is known here of a ShootState: never what it holds.

use api::gardencore::ShootState;
use kube::core::PartialObjectMeta;

/// Its metadata.
pub(super) type StateMeta = PartialObjectMeta<ShootState>;
