//! Deleted Shoots that no seed has a control plane of. A finalizer of a user can keep such a Shoot for ever.

use api::gardencore::Shoot;
use kube::ResourceExt;
use placement::is_released;

/// A note about each released Shoot: the Shoot names the seed, and does not count.
#[must_use]
pub fn describe_released(shoots: &[Shoot], seed: &str) -> Vec<String> {
    let released = shoots.iter().filter(|shoot| is_released(*shoot));
    let note = |shoot: &Shoot| {
        format!(
            "note: shoot {}/{} is deleted, and does not count: seed {seed} has no control plane of the shoot, and finalizers ({}) keep \
             the Shoot",
            shoot.namespace().unwrap_or_default(),
            shoot.name_any(),
            shoot.finalizers().join(", ")
        )
    };
    released.map(note).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_released_shoot_is_named_with_the_finalizers() {
        let shoot = |finalizers: &str| -> Shoot {
            serde_yaml_ng::from_str(&format!(
                "metadata: {{name: demo, namespace: garden-dev, finalizers: [{finalizers}], deletionTimestamp: 2026-01-01T00:00:00Z}}\n\
                 spec: {{region: r, provider: {{type: t}}}}\n"
            ))
            .unwrap()
        };
        let notes = describe_released(&[shoot("gardener, x/own"), shoot("x/own")], "a");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].contains("garden-dev/demo is deleted") && notes[0].contains("(x/own)"),
            "{notes:?}"
        );
    }
}
