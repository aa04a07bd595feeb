//! The shared watch of all Shoots of all tenants, and the part of a Shoot that the store keeps. A user may
//! write a large Shoot, within bounds. A decision about a field that is not kept reads the complete Shoot.

use api::gardencore::{
    Shoot, ShootSpec,
    shoot::{Kubernetes, Machine, Networking, Provider, ShootMachineImage, Worker},
};
use placement::trim_spec;
use runtime::{
    client::{Cluster, Garden},
    controller::{SharedWatch, runner},
};

/// The end of the domain of all annotations that a controller reads. An annotation can be large, such as the
/// annotation of `kubectl apply` with the whole Shoot.
const DOMAIN: &str = "gardener.cloud/";

/// The watch of all Shoots, to which each controller of the process subscribes.
#[must_use]
pub fn watch(garden: &Garden) -> SharedWatch<Shoot> {
    SharedWatch::new(garden.all(), runner::few_at_a_time(), trim)
}

/// Removes the fields that no controller reads from the store.
pub fn trim(shoot: &mut Shoot) {
    if let Some(annotations) = &mut shoot.metadata.annotations {
        annotations.retain(|key, _| key.contains(DOMAIN));
    }
    trim_spec(shoot, read_fields);
}

/// The bindings for `seed-rights`, the schedules for `shoot-hibernation`, the version and the CloudProfile
/// for `shoot-version`, and the types of extensions for `controller-registration`.
fn read_fields(spec: ShootSpec) -> ShootSpec {
    let mut extensions = spec.extensions;
    for extension in &mut extensions {
        extension.provider_config = None;
    }
    ShootSpec {
        hibernation: spec.hibernation,
        kubernetes: Kubernetes {
            version: spec.kubernetes.version,
            ..Kubernetes::default()
        },
        credentials_binding_name: spec.credentials_binding_name,
        secret_binding_name: spec.secret_binding_name,
        cloud_profile: spec.cloud_profile,
        cloud_profile_name: spec.cloud_profile_name,
        provider: Provider {
            type_: spec.provider.type_,
            workers: distinct(spec.provider.workers),
            ..Provider::default()
        },
        networking: spec.networking.map(|networking| Networking {
            type_: networking.type_,
            ..Networking::default()
        }),
        dns: spec.dns,
        extensions,
        ..ShootSpec::default()
    }
}

/// The operating systems and the container runtimes of the worker pools, each combination once.
fn distinct(workers: Vec<Worker>) -> Vec<Worker> {
    let mut distinct: Vec<Worker> = Vec::new();
    for worker in workers {
        let image = worker.machine.image.map(|image| ShootMachineImage {
            name: image.name,
            ..ShootMachineImage::default()
        });
        let mut cri = worker.cri;
        for runtime in cri.iter_mut().flat_map(|cri| &mut cri.container_runtimes) {
            runtime.provider_config = None;
        }
        let worker = Worker {
            machine: Machine {
                image,
                ..Machine::default()
            },
            cri,
            ..Worker::default()
        };
        if !distinct.contains(&worker) {
            distinct.push(worker);
        }
    }
    distinct.shrink_to_fit();
    distinct
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::constants::SHOOT_ISOLATED_ZONE;
    use serde_json::{Value, json};

    use super::*;
    use crate::controller_registration::need::{Need, of_shoot};

    fn worker(name: &str, image: &str) -> Value {
        json!({"name": name, "minimum": 1, "maximum": 2, "providerConfig": {"a": "b"},
            "machine": {"type": "m", "image": {"name": image, "version": "1", "providerConfig": {"a": "b"}}},
            "cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor", "providerConfig": {"a": "b"}}]}})
    }

    fn shoot() -> Shoot {
        let isolation = json!({"isolatedZoneID": "z", "phase": "Failover", "status": "Done",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({
            "metadata": {"name": "web", "annotations": {"example.com/a": "b", (SHOOT_ISOLATED_ZONE): "z",
                "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {
                "region": "r", "seedName": "a", "purpose": "production", "cloudProfile": {"name": "p"},
                "kubernetes": {"version": "1.34", "kubeAPIServer": {"requests": {"maxNonMutatingInflight": 7}}},
                "hibernation": {"schedules": [{"start": "0 20 * * *"}]},
                "networking": {"type": "calico", "providerConfig": {"a": "b"}},
                "dns": {"domain": "web.example.com", "providers": [{"type": "route53"}]},
                "extensions": [{"type": "oidc", "providerConfig": {"a": "b"}}],
                "provider": {"type": "metal", "infrastructureConfig": {"a": "b"},
                    "workers": [worker("a", "linux"), worker("b", "linux"), worker("c", "flatcar")]},
            },
            "status": {"seedName": "a", "zoneIsolation": isolation},
        }))
        .unwrap()
    }

    /// Otherwise a seed would lose an extension that the Shoot needs.
    #[test]
    fn the_needs_of_a_shoot_are_kept() {
        let (whole, mut kept) = (shoot(), shoot());
        trim(&mut kept);
        let needs = of_shoot(&kept, &[]);
        assert_eq!(needs, of_shoot(&whole, &[]));
        for (kind, type_) in [
            ("Network", "calico"),
            ("OperatingSystemConfig", "flatcar"),
            ("ContainerRuntime", "gvisor"),
            ("DNSRecord", "route53"),
        ] {
            assert!(needs.contains(&Need::new(kind, type_)), "{kind} {type_}");
        }
        // The provider opens the zone again.
        assert_eq!(kept.status, whole.status);
    }

    /// Part of the bound in docs/understand/bench.md: a Shoot has 256 worker pools at most.
    const _: () = assert!(256 * size_of::<Worker>() <= 1 << 20);

    #[test]
    fn a_large_field_of_the_user_is_not_kept() {
        let (whole, mut kept) = (shoot(), shoot());
        trim(&mut kept);
        assert_eq!(
            json!(kept.metadata.annotations),
            json!({(SHOOT_ISOLATED_ZONE): "z"})
        );
        assert_eq!(kept.spec.provider.workers.len(), 2);
        assert!(!json!(kept).to_string().contains("providerConfig"));
        let (kept, whole) = (kept.spec, whole.spec);
        assert_eq!(kept.provider.infrastructure_config, None);
        assert_eq!((kept.purpose, kept.kubernetes.kube_api_server), (None, None));
        assert_eq!(
            (kept.hibernation, kept.kubernetes.version, kept.cloud_profile),
            (whole.hibernation, whole.kubernetes.version, whole.cloud_profile)
        );
    }
}
