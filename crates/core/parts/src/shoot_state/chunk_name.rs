//! Which InternalSecrets are chunks of a ShootState: by name, and by owner. Pure functions.

use kube::ResourceExt;

/// The name of the n-th InternalSecret of an attempt of this shoot. Names are unique across attempts.
pub(super) fn chunk_name(shoot: &str, attempt: i64, number: usize) -> String {
    format!("{shoot}.state-{attempt}-{number}")
}

/// Whether [`chunk_name`] returns this name for this shoot and any attempt.
pub(super) fn is_chunk_name(shoot: &str, name: &str) -> bool {
    attempt_in_name(shoot, name).is_some()
}

/// The number of the attempt in the name of a chunk of this shoot; `None` for any further name. A chunk of
/// shoot `web.state-1-2` has no chunk name of shoot `web`, because two numbers and no further text follow the
/// name of the shoot.
pub(super) fn attempt_in_name(shoot: &str, name: &str) -> Option<i64> {
    let rest = name.strip_prefix(shoot)?.strip_prefix(".state-")?;
    let (attempt, number) = rest.split_once('-')?;
    let (attempt, number) = (attempt.parse::<i64>().ok()?, number.parse::<usize>().ok()?);
    (attempt > 0 && chunk_name(shoot, attempt, number) == name).then_some(attempt)
}

/// Whether the InternalSecret is owned by the ShootState with this uid. The ShootState of an earlier Shoot of
/// the same name has a different uid.
pub(super) fn is_owned_by<K: ResourceExt>(chunk: &K, state: &str) -> bool {
    let owners = chunk.owner_references();
    !state.is_empty()
        && owners
            .iter()
            .any(|owner| owner.kind == "ShootState" && owner.uid == state)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use api::gardencore::InternalSecret;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_of_one_shoot_alone() {
        for name in ["web.state-1-0", "web.state-12-345"] {
            assert!(is_chunk_name("web", name), "{name}");
        }
        for name in [
            "web2.state-1-0",
            "web.state-1-0.state-1-0",
            "web.state-1",
            "web.state-1-0-0",
            "web.state--1-0",
            "web.state-0-0",
            "web.state-+1-0",
            "web.state-01-0",
            "web.state-1-00",
            "web.state-1-",
            "web.state-1-99999999999999999999",
            "web.kubeconfig",
            "../web.state-1-0",
            "other.state-1-0",
            "",
        ] {
            assert!(!is_chunk_name("web", name), "{name}");
        }
        assert!(is_chunk_name("web.state-1-0", "web.state-1-0.state-1-0"));
    }

    #[test]
    fn a_chunk_is_owned_by_the_state_with_the_uid() {
        let owned = |kind: &str, uid: &str| -> InternalSecret {
            serde_json::from_value(json!({"metadata": {"name": "web.state-1-0", "ownerReferences": [
                {"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "name": "web", "uid": uid},
            ]}}))
            .unwrap()
        };
        assert!(is_owned_by(&owned("ShootState", "u"), "u"));
        assert!(!is_owned_by(&owned("ShootState", "earlier"), "u"));
        assert!(!is_owned_by(&owned("Shoot", "u"), "u"));
        assert!(!is_owned_by(&owned("ShootState", ""), ""));
    }
}
