//! Entries of `status.formerSeeds` whose Seed does not exist any more: no gardenlet is left that would remove
//! these entries.

use api::gardencore::{Shoot, shoot::FormerSeed};
use kube::ResourceExt;
use serde_json::{Value, json};

/// Names of the former seeds of the shoot, which still have objects of the shoot to clean up.
pub(super) fn names(shoot: &Shoot) -> impl Iterator<Item = &str> {
    entries(shoot).iter().map(|former| former.name.as_str())
}

/// The write that removes the entries of these seeds, on the version of the Shoot that was read; `None`
/// without such entries. All further entries stay: each seed removes the seed's own entry.
pub(super) fn without(shoot: &Shoot, gone: &[String]) -> Option<Value> {
    let kept: Vec<&FormerSeed> = entries(shoot)
        .iter()
        .filter(|former| !gone.contains(&former.name))
        .collect();
    (kept.len() < entries(shoot).len()).then(|| {
        json!([
            {"op": "add", "path": "/status/formerSeeds", "value": kept},
            {"op": "add", "path": "/metadata/resourceVersion", "value": shoot.resource_version()},
        ])
    })
}

/// All entries of the shoot.
pub(super) fn entries(shoot: &Shoot) -> &[FormerSeed] {
    shoot
        .status
        .as_ref()
        .map(|s| s.former_seeds.as_slice())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{ShootSpec, ShootStatus};

    use super::*;

    #[test]
    fn only_seeds_that_are_gone_lose_their_entry() {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        assert_eq!(without(&shoot, &["a".into()]), None);
        let former = |name: &str, epoch| FormerSeed {
            name: name.into(),
            epoch,
        };
        shoot.status = Some(ShootStatus {
            former_seeds: vec![former("a", 1), former("b", 2)],
            ..ShootStatus::default()
        });
        assert_eq!(names(&shoot).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(without(&shoot, &[]), None);
        assert_eq!(without(&shoot, &["c".into()]), None);
        let patch = without(&shoot, &["a".into()]).unwrap();
        assert_eq!(patch[0]["value"], json!([{"name": "b", "epoch": 2}]));
    }
}
