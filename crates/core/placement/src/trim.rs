//! The part of a Shoot that a process keeps while watching all Shoots of all tenants. A user may write a
//! large specification, within bounds. A decision about the specification reads the complete Shoot.

use api::{
    gardencore::{Shoot, ShootSpec},
    meta::PackedExtension,
};

/// Reduces a specification to `seedName` and the fields that `more` keeps.
pub fn trim_spec(shoot: &mut Shoot, more: impl FnOnce(ShootSpec) -> ShootSpec) {
    let seed_name = shoot.spec.seed_name.clone();
    shoot.spec = ShootSpec {
        seed_name,
        ..more(std::mem::take(&mut shoot.spec))
    };
    let status = shoot.status.as_mut();
    if let Some(approval) = status.and_then(|status| status.migration.as_mut()) {
        approval.spec = PackedExtension::default();
    }
}

/// Keeps no other field.
#[must_use]
pub fn seed_name_alone(_: ShootSpec) -> ShootSpec {
    ShootSpec::default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn where_it_is_and_is_to_be_stays() {
        let shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "s", "annotations": {"a": "b"}},
            "spec": {"seedName": "b", "region": "r", "hibernation": {"enabled": true}, "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "migration": {
                "source": "a", "destination": "b", "generation": 7, "spec": {"region": "r"},
            }},
        }))
        .unwrap();
        let (mut place, mut more) = (shoot.clone(), shoot.clone());
        trim_spec(&mut place, seed_name_alone);
        trim_spec(&mut more, |spec| ShootSpec {
            hibernation: spec.hibernation,
            ..ShootSpec::default()
        });
        for seen in [&place, &more] {
            assert_eq!(
                (&seen.metadata, seen.spec.seed_name.as_deref(), &seen.spec.region),
                (&shoot.metadata, Some("b"), &String::new())
            );
            assert_eq!(crate::role(seen, "a"), crate::role(&shoot, "a"));
            let approval = seen.status.as_ref().unwrap().migration.as_ref().unwrap();
            assert_eq!((approval.destination.as_str(), approval.generation), ("b", 7));
            assert!(approval.spec.is_null());
        }
        assert_eq!(place.spec.hibernation, None);
        assert_eq!(more.spec.hibernation, shoot.spec.hibernation);
    }
}
