//! Finalizer `gardener`, which keeps a Shoot until the host has deleted the control plane.

use api::constants::finalizer::GARDENER;
use kube::ResourceExt;

/// Whether the Shoot has finalizer `gardener`. Without the finalizer a user can delete the Shoot at any time,
/// so no seed may begin with the Shoot. `shoot`: the Shoot, or its metadata.
#[must_use]
pub fn is_kept(shoot: &impl ResourceExt) -> bool {
    shoot.finalizers().iter().any(|finalizer| finalizer == GARDENER)
}

/// Whether the Shoot is being deleted without finalizer `gardener`. Finalizers of other writers alone keep
/// such a Shoot, and no seed has a control plane of the shoot.
///
/// A seed takes only a Shoot with the finalizer (policy `shoot-ownership`). From then on the host alone
/// removes the finalizer (policy `shoot-finalizer`), at the end of the deletion. The API server adds no
/// finalizer to an object in deletion.
#[must_use]
pub fn is_released(shoot: &impl ResourceExt) -> bool {
    shoot.meta().deletion_timestamp.is_some() && !is_kept(shoot)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::Shoot;
    use serde_json::json;

    use super::*;

    fn shoot(finalizers: &[&str], deleted: Option<&str>) -> Shoot {
        let spec = json!({"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}});
        let metadata = json!({"name": "web", "finalizers": finalizers, "deletionTimestamp": deleted});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": {"seedName": "a"}}))
            .unwrap()
    }

    #[test]
    fn a_shoot_in_deletion_is_released_without_the_finalizer_of_the_gardenlet() {
        let deleted = Some("2026-01-01T00:00:00Z");
        for (finalizers, kept) in [
            (&["gardener"] as &[&str], true),
            (&["example.org/own", "gardener"], true),
            (&["example.org/own"], false),
            (&["gardener.cloud/gardener"], false),
            (&[], false),
        ] {
            assert_eq!(is_kept(&shoot(finalizers, None)), kept, "{finalizers:?}");
            assert_eq!(is_kept(&shoot(finalizers, deleted)), kept, "{finalizers:?}");
            assert!(!is_released(&shoot(finalizers, None)), "{finalizers:?}");
            assert_eq!(is_released(&shoot(finalizers, deleted)), !kept, "{finalizers:?}");
        }
    }
}
