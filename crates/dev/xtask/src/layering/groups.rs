//! The groups of crates: the folders below `crates/`. A reader of the core needs no other group.

use std::path::Path;

/// Each group, and the further groups that its crates may use outside of tests.
const GROUPS: &[(&str, &[&str])] = &[
    // Moves, ownership, zones: the purpose of the project.
    ("core", &[]),
    // Processes beside the core, each useful alone: etcd with its backups, machines, the tunnel.
    ("components", &["core"]),
    ("providers/aws", &["core", "components"]),
    // The simulated cloud of the demonstration and of the tests.
    ("local-cloud", &["core", "components"]),
    ("cli", &["core"]),
    // Only tests and people use these crates.
    ("dev", &["core", "components", "providers/aws", "local-cloud"]),
];

/// The group of a crate with this manifest: the folders between `crates/` and the folder of the crate. `None`
/// for a crate outside of `crates/`.
pub(super) fn group_of(manifest: &Path, root: &Path) -> Option<String> {
    let below = manifest.strip_prefix(root).ok()?.strip_prefix("crates").ok()?;
    let group = below.parent()?.parent()?;
    Some(group.to_string_lossy().into_owned())
}

/// Why a crate of `group` must not use a crate of group `used`.
pub(super) fn breach(group: &str, used: &str) -> Option<String> {
    let Some((_, allowed)) = GROUPS.iter().find(|(name, _)| *name == group) else {
        return Some(format!(
            "there is no group crates/{group}; the groups are in crates/dev/xtask/src/layering/groups.rs"
        ));
    };
    let is_allowed = group == used || allowed.contains(&used);
    (!is_allowed).then(|| format!("crates/{group} must not use crates/{used}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_the_path_between_crates_and_the_crate() {
        let root = Path::new("/repository");
        let group = |manifest: &str| group_of(Path::new(manifest), root);
        assert_eq!(
            group("/repository/crates/core/api/Cargo.toml").as_deref(),
            Some("core")
        );
        assert_eq!(
            group("/repository/crates/providers/aws/cloud-aws/Cargo.toml").as_deref(),
            Some("providers/aws")
        );
        assert_eq!(group("/repository/tests/drill/Cargo.toml"), None);
    }

    #[test]
    fn the_core_uses_no_further_group() {
        for (group, used, is_allowed) in [
            ("core", "core", true),
            ("core", "components", false),
            ("core", "dev", false),
            ("components", "local-cloud", false),
            ("providers/aws", "components", true),
            ("providers/aws", "local-cloud", false),
            ("novelty", "core", false),
        ] {
            assert_eq!(breach(group, used).is_none(), is_allowed, "{group} -> {used}");
        }
    }
}
