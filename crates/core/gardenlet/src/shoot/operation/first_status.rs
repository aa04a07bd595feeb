//! The first write of an operation to the status of a Shoot.

use api::gardencore::Shoot;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::{
    bounded_status::{add_bounds_if_large, with_room},
    last_errors::{keep_left_behind, with_left_behind},
};
use serde_json::Value;

/// The first write on `shoot`. A host may have filled the status up to the bound of seeds, so that the write
/// would be refused. Such a status is bounded by the same write.
///
/// `begin`: the patch for the Shoot that the operation works with. `left`: errors about machines left behind.
pub(crate) fn compose(
    shoot: &Shoot,
    traveller: &Shoot,
    left: &[String],
    now: &Time,
    begin: impl FnOnce(&Shoot) -> Value,
) -> Value {
    let patch = begin(&with_room(traveller.clone()));
    let kept = keep_left_behind(&with_room(shoot.clone()), patch);
    add_bounds_if_large(shoot, with_left_behind(kept, left, now))
}
