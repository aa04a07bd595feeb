//! Seeds that can take part in a drain.

#![allow(clippy::unwrap_used)]

use super::*;

fn seed(more: &str) -> Seed {
    serde_yaml_ng::from_str(&format!(
        "metadata: {{name: a}}\nspec: {{dns: {{}}, networks: {{pods: p, services: s}}, provider: {{type: t, region: r}}}}\n{more}"
    ))
    .unwrap()
}

#[test]
fn a_silent_source_is_not_drained() {
    let ready = |status: &str| {
        seed(&format!(
            "status: {{conditions: [{{type: GardenletReady, status: '{status}', reason: r, message: m, \
             lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}}]}}\n"
        ))
    };
    let silent = check_source(&ready("Unknown"), "a").unwrap_err();
    assert!(silent.to_string().contains("takeover --seed a"), "{silent}");
    assert_eq!(check_source(&ready("True"), "a"), Ok(()));
    assert_eq!(check_source(&seed(""), "a"), Ok(()));
}

#[test]
fn a_cordoned_seed_is_no_destination() {
    let mut cordoned = seed("");
    assert_eq!(check_destination(&cordoned, "a"), Ok(()));
    cordoned.spec.taints = serde_yaml_ng::from_str("[{key: migration.gardener.cloud/cordoned}]").unwrap();
    let why = check_destination(&cordoned, "a").unwrap_err();
    assert!(why.to_string().contains("uncordon a"), "{why}");
}
