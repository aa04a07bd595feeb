//! Shoots that the caller leaves out of a drain, or of a takeover of a seed.

use std::slice;

use api::gardencore::Shoot;
use kube::ResourceExt;

use crate::failure::Failure;

/// Whether a name in the list, as `NAMESPACE/NAME`, is the name of the Shoot.
#[must_use]
pub fn is_excluded(shoot: &Shoot, excluded: &[String]) -> bool {
    let (namespace, name) = (shoot.namespace().unwrap_or_default(), shoot.name_any());
    let path = Some((namespace.as_str(), name.as_str()));
    excluded.iter().any(|excluded| excluded.split_once('/') == path)
}

/// Checks that each name is the name of a Shoot that was read.
///
/// # Errors
/// A refusal that names the flag: a mistyped name would leave the wrong shoot in.
pub fn check_names(excluded: &[String], read: &[Shoot], seed: &str) -> Result<(), Failure> {
    for name in excluded {
        if !read.iter().any(|shoot| is_excluded(shoot, slice::from_ref(name))) {
            return Err(Failure::refused(format!(
                "--exclude {name}: no such Shoot is on seed {seed}; write NAMESPACE/NAME"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_shoot_is_left_out_by_namespace_and_name() {
        let yaml = "metadata: {name: demo, namespace: garden-dev}\nspec: {region: r, provider: {type: t}}\n";
        let shoot: Shoot = serde_yaml_ng::from_str(yaml).unwrap();
        let names = |name: &str| vec![name.to_owned()];
        assert!(is_excluded(&shoot, &names("garden-dev/demo")));
        for other in ["garden-dev/demo2", "garden-test/demo", "demo", "/demo"] {
            assert!(!is_excluded(&shoot, &names(other)), "{other}");
            let why = check_names(&names(other), slice::from_ref(&shoot), "a").unwrap_err();
            assert!(why.to_string().contains("write NAMESPACE/NAME"), "{why}");
        }
        assert_eq!(
            check_names(&names("garden-dev/demo"), slice::from_ref(&shoot), "a"),
            Ok(())
        );
    }
}
