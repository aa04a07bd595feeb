//! Deletes the InternalSecret with the keys for a preparation after the end of the grant.

use std::sync::Arc;

use api::gardencore::{InternalSecret, Shoot};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
    core::PartialObjectMeta,
};
use placement::{preparation, preparation_state_name, shoot_of_preparation_state};
use runtime::{
    Result,
    client::{Cluster, Garden},
    error::Explain as _,
};

/// An InternalSecret without content: this process reads no keys.
pub(super) type ChunkMeta = PartialObjectMeta<InternalSecret>;

/// Deletes the objects of ended grants among these objects. The watch of Shoots may be behind the source,
/// which makes the object after the grant. So the Shoot is read from the API server before a deletion.
pub(super) async fn remove_ended(garden: &Garden, namespace: &str, objects: &[Arc<ChunkMeta>]) -> Result<()> {
    let shoots: Api<Shoot> = garden.namespaced(namespace);
    let secrets: Api<InternalSecret> = garden.namespaced(namespace);
    for object in objects {
        let name = object.name_any();
        let Some(shoot) = shoot_of_preparation_state(&name) else {
            continue;
        };
        let found = shoots.get_opt(shoot).await;
        let found = found.context(format_args!("could not read Shoot {shoot}"))?;
        if object.metadata.deletion_timestamp.is_some() || is_of_valid_grant(&name, found.as_ref()) {
            continue;
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: object.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match secrets.delete(&name, &params).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => {
                return Err(error).context(format_args!("could not delete InternalSecret {name}"));
            }
        }
    }
    Ok(())
}

/// Whether the object of this name is of the valid grant of the Shoot.
fn is_of_valid_grant(name: &str, shoot: Option<&Shoot>) -> bool {
    shoot.is_some_and(|shoot| {
        let granted = preparation(shoot);
        granted.is_some_and(|granted| preparation_state_name(&shoot.name_any(), granted) == name)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_stays_for_its_own_grant_alone() {
        let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3,
            "expiry": "2026-01-01T00:00:00Z"});
        let mut shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "ownership": {"epoch": 3}, "liveMigration": {"preparation": grant}},
        }))
        .unwrap();
        assert!(is_of_valid_grant("web.preparation-3-1767225600", Some(&shoot)));
        for name in [
            "web.preparation-3-1767225601",
            "web.preparation-2-1767225600",
            "other.preparation-3-1767225600",
        ] {
            assert!(!is_of_valid_grant(name, Some(&shoot)), "{name}");
        }
        assert!(!is_of_valid_grant("web.preparation-3-1767225600", None));
        // A takeover by a third seed.
        shoot.status.as_mut().unwrap().seed_name = Some("c".into());
        assert!(!is_of_valid_grant("web.preparation-3-1767225600", Some(&shoot)));
    }
}
