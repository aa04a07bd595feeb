//! Entries of `status.formerSeeds` whose Seed does not exist any more: no gardenlet is left that would remove
//! these entries.

use api::gardencore::{Seed, SeedSpec, Shoot, shoot::FormerSeed};
use futures::stream::BoxStream;
use kube::{Api, ResourceExt, runtime::watcher};
use serde_json::{Value, json};

use crate::changes::{Keys, cache_trimmed, trim_metadata};

/// The names of Seeds that are new, in deletion or gone. A report of a seed is left out: a hostile seed
/// removes no entry of its own, and would wake each shoot that has left the seed.
pub(super) fn ends_of_seeds(seeds: Api<Seed>) -> BoxStream<'static, String> {
    let config = watcher::Config::default();
    let (_, names) = cache_trimmed(seeds, config, keep_identity, |seed: &Seed| {
        Keys::from([seed.name_any()])
    });
    names
}

/// Removes all fields of a Seed that a report of the seed changes.
fn keep_identity(seed: &mut Seed) {
    trim_metadata(&mut seed.metadata);
    seed.spec = SeedSpec::default();
    seed.status = None;
}

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

    /// Otherwise each status write of a former seed wakes all its former shoots.
    #[test]
    fn a_report_of_a_former_seed_is_no_end_of_the_seed() {
        let trimmed = |changes: &Value| {
            let mut seed = json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a", "uid": "u"},
                "spec": {"dns": {}, "networks": {"pods": "p", "services": "s"}, "provider": {"type": "t", "region": "r"}},
            });
            json_patch::merge(&mut seed, changes);
            let mut seed: Seed = serde_json::from_value(seed).unwrap();
            keep_identity(&mut seed);
            json!(seed)
        };
        let before = trimmed(&json!({}));
        for report in [
            json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "generation": 7}}),
            json!({"spec": {"provider": {"region": "s"}}}),
            json!({"status": {"observedGeneration": 7}}),
        ] {
            assert_eq!(trimmed(&report), before, "{report}");
        }
        let ending = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_ne!(trimmed(&ending), before);
        assert_ne!(trimmed(&json!({"metadata": {"uid": "v"}})), before);
    }

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
