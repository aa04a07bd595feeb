//! Flags that a process writes for a second process are accepted by the second process.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use cloud_controller_manager_local::{flags::Config, names::AS_MANAGER};
use owner_checks::OwnerClaim;
use ownership::Terms;
use provider_local::control_plane::cloud_controller_manager::{
    ManagerInputs, Settings, migration_file, process,
};
use serde_json::json;

/// The arguments in provider-local's Deployment, before, during and after a move of controllers.
#[test]
fn the_flags_of_a_control_plane_are_understood() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let migration = json!({"leaderName": "node-ipam-migration",
        "controllerLeaders": [{"name": "node-ipam-controller", "component": "*"}]});
    let settings = Settings {
        image: "i".into(),
        load_balancer_range: "192.0.2.0/24".parse().ok(),
    };
    let owner = OwnerClaim {
        shoot_uid: String::new(),
        name: "owner.one.dev.internal.example.test".into(),
        identity: "seed-a".into(),
        zone: "example.test".into(),
        authorities: vec!["192.0.2.53:53".parse().unwrap()],
        epoch: 3,
        // Owner flags beyond the defaults.
        terms: Terms::default()
            .with_overrides([("fence", Some("45s"))], Some(500))
            .unwrap(),
    };
    let ranges = json!({"clusterCIDR": "100.96.0.0/11", "serviceClusterIPRange": "100.64.0.0/13"});
    for (told, lock) in [
        (json!({}), "node-ipam-controller disabled"),
        (
            json!({"nodeIPAM": ranges, "leaderMigration": migration}),
            "node-ipam-controller migrated",
        ),
        (json!({"nodeIPAM": ranges}), "node-ipam-controller main"),
    ] {
        let told = serde_json::from_value(told).unwrap();
        let wanted = ManagerInputs {
            cluster: "shoot--dev--one",
            spec: Some(&told),
            owner: Some(&owner),
        };
        let made = process(&settings, wanted).deployment(&BTreeMap::new()).unwrap();
        let pod = made.spec.unwrap().template.spec.unwrap();
        let mut args = pod.containers[0].args.clone().unwrap();
        if let Some(map) = migration_file(Some(&told)) {
            std::fs::write(file.path(), map.data.unwrap().into_values().next().unwrap()).unwrap();
            args.push(format!("--leader-migration-config={}", file.path().display()));
            // The path of the mounted file in a pod.
            args.retain(|arg| !arg.starts_with("--leader-migration-config=/srv/"));
        }
        let config =
            Config::from_arguments(std::iter::once(pod.containers[0].name.clone()).chain(args)).unwrap();
        assert_eq!(config.options().unwrap().cluster, "shoot--dev--one");
        assert_eq!(config.lease.main_lock(&AS_MANAGER), "cloud-controller-manager");
        let locks = config.locks().unwrap().to_string();
        assert!(locks.contains(lock), "{locks}");
    }
}
