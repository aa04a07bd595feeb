//! Configuration of node IPAM in each stage of the migration, and the present stage of a shoot.

use api::{
    extensions::{CloudControllerManager, NodeIPAM},
    leader_migration::{ControllerLeader, LeaderMigration},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{Api, api::ObjectMeta};
use placement::Names;
use runtime::{Result, client::Cluster, error::Explain};

use super::stage::{Guest, Home, Stage};
use crate::{FIELD_MANAGER, Residency, configuration_problem, secrets::config::KUBE_CONTROLLER_MANAGER};

/// The lock for node IPAM while two managers may run node IPAM. The name is the same in every shoot and
/// release, because the list of controllers under a lock must never change (RK-03).
pub(super) const LOCK: &str = "node-ipam-migration";
/// Namespace in the shoot with the locks of the managers.
pub(super) const NAMESPACE: &str = "kube-system";
/// ConfigMap in the seed with the leader migration file of the kube-controller-manager.
pub(crate) const CONFIG: &str = "kube-controller-manager-leader-migration";
/// Key of the file in the ConfigMap.
pub(crate) const FILE: &str = "leader-migration.yaml";
const EVERY: &str = "*";

/// Reads the present stage of the shoot from the Deployment and the `ControlPlane` in the seed.
pub(crate) async fn current_stage(
    seed: &runtime::client::Seed,
    namespace: &str,
    control_plane: &str,
    wanted: Stage,
) -> Result<Stage> {
    let deployments: Api<Deployment> = seed.namespaced(namespace);
    let home = deployments
        .get_opt(KUBE_CONTROLLER_MANAGER)
        .await
        .context(format_args!(
            "could not read Deployment {KUBE_CONTROLLER_MANAGER}"
        ))?;
    let providers: Api<api::extensions::ControlPlane> = seed.namespaced(namespace);
    let guest = providers
        .get_opt(control_plane)
        .await
        .context(format_args!("could not read ControlPlane {control_plane}"))?;
    Ok(Stage::from_managers(
        home.as_ref().map(Home::from_deployment),
        guest.map(|guest| Guest::from_config(guest.spec.cloud_controller_manager.as_ref())),
        wanted,
    ))
}

/// Writes the ConfigMap with the leader migration file of the kube-controller-manager.
pub(crate) async fn deploy_migration_config(residency: &Residency) -> Result<()> {
    let config = ConfigMap {
        metadata: ObjectMeta {
            name: Some(CONFIG.into()),
            namespace: Some(residency.namespace.clone()),
            ..ObjectMeta::default()
        },
        data: Some([(FILE.to_owned(), migration().file())].into()),
        ..ConfigMap::default()
    };
    let api: Api<ConfigMap> = residency.seed.namespaced(&residency.namespace);
    FIELD_MANAGER.apply(&api, &config).await.map(|_| ())
}

/// Refuses, before any change, a pods network that the cloud-controller-manager cannot divide (I8).
pub(crate) fn check(wanted: Stage, names: &Names) -> Result<()> {
    if wanted == Stage::Away && (names.pods.contains(':') || !has_room_for_nodes(&names.pods)) {
        return Err(configuration_problem(format!(
            "spec.kubernetes.controllerLeaders gives node-ipam-controller to the cloud-controller-manager, which cannot divide the \
             pods network {}: it must be an IPv4 network of a /24 at least; leave the controller where it is",
            names.pods
        )));
    }
    Ok(())
}

/// Each node gets a /24 (or a /64): the manager exits at once when the pods network is smaller than that.
pub(crate) fn has_room_for_nodes(pods: &str) -> bool {
    let largest = if pods.contains(':') { 64 } else { 24 };
    pods.split_once('/')
        .and_then(|(_, length)| length.parse::<u8>().ok())
        .is_some_and(|length| length <= largest)
}

/// The configuration of the cloud-controller-manager that the `ControlPlane` passes to the provider.
pub(crate) fn configure_guest(stage: Stage, names: &Names) -> Option<CloudControllerManager> {
    let guest = stage.guest();
    (guest != Guest::Absent).then(|| CloudControllerManager {
        node_ipam: Some(NodeIPAM {
            cluster_cidr: names.pods.clone(),
            service_cluster_ip_range: names.services.clone(),
        }),
        leader_migration: (guest == Guest::Shares).then(migration),
    })
}

/// The same for both managers, and in every stage: the controllers that a lock covers must not change
/// (RK-03).
pub(super) fn migration() -> LeaderMigration {
    LeaderMigration {
        leader_name: LOCK.into(),
        controller_leaders: vec![ControllerLeader {
            name: "node-ipam-controller".into(),
            component: EVERY.into(),
        }],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn nodes_get_networks_only_out_of_one_that_is_large_enough() {
        assert!(has_room_for_nodes("100.96.0.0/11") && has_room_for_nodes("10.0.0.0/24"));
        assert!(!has_room_for_nodes("10.0.0.0/25"));
        assert!(has_room_for_nodes("fd00::/56"));
    }

    #[test]
    fn what_the_other_manager_cannot_do_is_told_first() {
        assert!(check(Stage::Away, &crate::names_in_tests("100.96.0.0/11")).is_ok());
        assert!(check(Stage::AtHome, &crate::names_in_tests("fd00::/56")).is_ok());
        for pods in ["fd00::/56", "10.0.0.0/25"] {
            let why = check(Stage::Away, &crate::names_in_tests(pods))
                .unwrap_err()
                .to_string();
            assert!(
                why.contains(pods) && why.contains("leave the controller"),
                "{why}"
            );
        }
    }

    #[test]
    fn what_the_provider_is_told_is_read_back_as_the_same() {
        for stage in Stage::WAY {
            let told = configure_guest(stage, &crate::names_in_tests("100.96.0.0/11"));
            assert_eq!(Guest::from_config(told.as_ref()), stage.guest());
        }
    }
}
