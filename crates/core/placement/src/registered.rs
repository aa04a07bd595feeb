//! The kinds and types of extension objects that the machines and the control plane of a shoot need, and the
//! missing registrations: kinds and types without a ControllerRegistration.

use std::collections::BTreeSet;

use api::gardencore::{ControllerRegistration, Shoot};

/// Kind and type of the objects of a shoot's provider, network, systems and container runtimes.
#[must_use]
pub fn needs_of(shoot: &Shoot) -> BTreeSet<(&'static str, String)> {
    let (spec, workers) = (&shoot.spec, &shoot.spec.provider.workers);
    let mut needs = BTreeSet::new();
    let mut add = |kind, type_: &str| {
        if !type_.is_empty() {
            needs.insert((kind, type_.to_owned()));
        }
    };
    for kind in ["Infrastructure", "ControlPlane"] {
        add(kind, &spec.provider.type_);
    }
    if !workers.is_empty() {
        add("Worker", &spec.provider.type_);
        let network = spec.networking.as_ref().and_then(|n| n.type_.as_deref());
        add("Network", network.unwrap_or_default());
    }
    for worker in workers {
        if let Some(image) = &worker.machine.image {
            add("OperatingSystemConfig", &image.name);
        }
        for runtime in worker.cri.iter().flat_map(|cri| &cri.container_runtimes) {
            add("ContainerRuntime", &runtime.type_);
        }
    }
    needs
}

/// The reason why a new shoot cannot get nodes, with the remedy. `None` where the shoot's provider is not
/// registered: then extensions were installed by other means, and the registrations say nothing about them.
#[must_use]
pub fn missing_for(shoot: &Shoot, registrations: &[ControllerRegistration]) -> Option<String> {
    let answers = |kind: &str, type_: &str| {
        let mut resources = registrations
            .iter()
            .flat_map(|registration| &registration.spec.resources);
        resources.any(|resource| {
            resource.kind == kind && resource.type_ == type_ && resource.primary != Some(false)
        })
    };
    if !answers("Infrastructure", &shoot.spec.provider.type_) {
        return None;
    }
    let missing: Vec<_> = needs_of(shoot)
        .into_iter()
        .filter(|(kind, type_)| !answers(kind, type_))
        .map(|(kind, type_)| format!("{kind} of type {type_}"))
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "the shoot needs {}, and no ControllerRegistration answers for it: register the extension (without deploymentRefs \
             if it is installed by other means), or name another type in the Shoot",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(workers: bool) -> Shoot {
        let pool = json!({"name": "a", "minimum": 1, "maximum": 1, "machine": {"type": "m5.large", "image": {"name": "gardenlinux"}}});
        serde_json::from_value(json!({
            "metadata": {"name": "one", "namespace": "garden-dev"},
            "spec": {
                "region": "eu-west-1", "networking": {"type": "calico"},
                "provider": {"type": "aws", "workers": if workers { json!([pool]) } else { json!([]) }},
            },
        }))
        .unwrap()
    }

    fn registration(resources: &Value) -> ControllerRegistration {
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {"resources": resources}})).unwrap()
    }

    fn aws() -> ControllerRegistration {
        let kinds = ["Infrastructure", "ControlPlane", "Worker", "SubnetIsolation"];
        registration(&json!(kinds.map(|kind| json!({"kind": kind, "type": "aws"}))))
    }

    #[test]
    fn a_shoot_on_aws_is_told_which_extensions_it_lacks() {
        let told = missing_for(&shoot(true), &[aws()]).unwrap();
        assert!(
            told.contains("needs Network of type calico, OperatingSystemConfig of type gardenlinux, and"),
            "{told}"
        );
        let standby = registration(&json!([{"kind": "Network", "type": "calico", "primary": false}]));
        assert_eq!(missing_for(&shoot(true), &[aws(), standby]), Some(told));
        let others = registration(&json!([
            {"kind": "Network", "type": "calico"}, {"kind": "OperatingSystemConfig", "type": "gardenlinux"},
        ]));
        assert_eq!(missing_for(&shoot(true), &[aws(), others]), None);
        assert_eq!(missing_for(&shoot(false), &[aws()]), None, "without machines");
    }

    #[test]
    fn nothing_is_missing_where_providers_are_installed_by_other_means() {
        assert_eq!(missing_for(&shoot(true), &[]), None);
        let another = registration(&json!([{"kind": "Infrastructure", "type": "metal"}]));
        assert_eq!(missing_for(&shoot(true), &[another]), None);
    }
}
