//! kube-controller-manager of the shoot.

use runtime::{
    Result,
    workload::{Files, Health, Workload, mounted},
};

use placement::Names;

use crate::{
    Facts,
    component::{self, client_of_api},
    controllers::controller_leaders::{
        CONFIG, ENABLE, FILE, Home, Stage, WITHOUT_NODE_IPAM, deploy_migration_config, has_room_for_nodes,
    },
    secrets::config::{CA, CA_CLIENT, CA_KUBELET, KUBE_CONTROLLER_MANAGER as NAME, SERVICE_ACCOUNT_KEY},
    task::{ExternalSystems, NONE},
    verbs::{Deploy, Sleep, Tasks},
};

/// The controllers of Kubernetes. The API must answer before this deployment, because the process exits
/// without the API.
#[derive(Debug)]
pub struct KubeControllerManager;

impl Deploy for KubeControllerManager {
    const TASKS: Tasks = [
        "Deploying Kubernetes controller manager",
        "Waiting until Kubernetes controller manager is ready",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        Self::deploy_at(f, f.stage).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        f.residency
            .component_ready(NAME, f.residency.settings.timeouts.controllers)
            .await
    }
}

impl Sleep for KubeControllerManager {
    const TASKS: Tasks = [
        "Scaling Kubernetes controller manager down",
        "Waiting until Kubernetes controller manager has stopped",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn sleep(f: &Facts) -> Result<()> {
        component::stop(&f.residency, &workload(f, f.stage.home())).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        f.residency
            .component_stopped(NAME, f.residency.settings.timeouts.controllers)
            .await
    }
}

impl KubeControllerManager {
    /// Deploys the process with the node IPAM flags of this stage.
    pub(crate) async fn deploy_at(f: &Facts, stage: Stage) -> Result<()> {
        if stage.home() == Home::Shares {
            deploy_migration_config(&f.residency).await?;
        }
        component::deploy(&f.residency, &workload(f, stage.home())).await
    }
}

fn workload(f: &Facts, home: Home) -> Workload {
    let settings = &f.residency.settings;
    let image = settings.image(&settings.kube_controller_manager_image, &f.kubernetes_version);
    let health = Health {
        scheme: "HTTPS",
        port: 10257,
        readiness: "/healthz",
        liveness: "/healthz",
    };
    let mut files: Vec<_> = [CA_CLIENT, CA_KUBELET, NAME, SERVICE_ACCOUNT_KEY]
        .map(Files::Secret)
        .into();
    files.push(Files::Authority(CA));
    let mut component = Workload {
        files,
        requests: ["96Mi", "20m"],
        ..client_of_api(NAME, image, health)
    };
    component.args.extend(flags(&f.names));
    component.args.extend(node_ipam_flags(&f.names, home));
    if home == Home::Shares {
        component.files.push(Files::ConfigMap(CONFIG));
    }
    component
}

/// Flags of node IPAM: node IPAM runs here, is shared under the migration lock, or runs in the
/// cloud-controller-manager.
fn node_ipam_flags(names: &Names, home: Home) -> Vec<String> {
    let without = match home {
        Home::Keeps | Home::Shares => String::new(),
        Home::Leaves => format!(",{WITHOUT_NODE_IPAM}"),
    };
    let mut flags = vec![format!("--controllers=*,bootstrapsigner,tokencleaner{without}")];
    if home != Home::Leaves && has_room_for_nodes(&names.pods) {
        flags.push("--allocate-node-cidrs=true".into());
        flags.push(format!("--cluster-cidr={}", names.pods));
    }
    if home == Home::Shares {
        flags.push(ENABLE.into());
        flags.push(format!("--leader-migration-config={}", mounted(CONFIG, FILE)));
    }
    flags
}

/// The CAs that kube-apiserver trusts for clients sign certificates of kubelets and users. The kubelets' own
/// CA signs serving certificates of kubelets.
fn flags(names: &Names) -> Vec<String> {
    let mut flags = vec![
        "--use-service-account-credentials=true".into(),
        format!("--root-ca-file={}", mounted(CA, "ca.crt")),
        format!(
            "--service-account-private-key-file={}",
            mounted(SERVICE_ACCOUNT_KEY, "id_rsa")
        ),
        format!("--service-cluster-ip-range={}", names.services),
    ];
    let signers = [
        ("kube-apiserver-client", CA_CLIENT),
        ("kubelet-client", CA_CLIENT),
        ("legacy-unknown", CA_CLIENT),
        ("kubelet-serving", CA_KUBELET),
    ];
    for (signer, ca) in signers {
        flags.push(format!(
            "--cluster-signing-{signer}-cert-file={}",
            mounted(ca, "ca.crt")
        ));
        flags.push(format!(
            "--cluster-signing-{signer}-key-file={}",
            mounted(ca, "ca.key")
        ));
    }
    flags
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::from_json;

    /// These flags are the only record of the migration stage in the kube-controller-manager.
    #[test]
    fn what_it_is_told_of_node_ipam_is_read_back_as_the_same() {
        for home in [Home::Keeps, Home::Shares, Home::Leaves] {
            let args = node_ipam_flags(&crate::names_in_tests("100.96.0.0/11"), home);
            let deployment = from_json(
                json!({"spec": {"selector": {}, "template": {"spec": {"containers": [
                {"name": NAME, "args": args}]}}}}),
            )
            .unwrap();
            assert_eq!(Home::from_deployment(&deployment), home);
        }
    }

    /// RK-26: without a requested migration, the flags do not change.
    #[test]
    fn flags_of_leader_migration_are_there_only_on_the_way() {
        let of = |home| node_ipam_flags(&crate::names_in_tests("100.96.0.0/11"), home).join(" ");
        assert_eq!(
            of(Home::Keeps),
            "--controllers=*,bootstrapsigner,tokencleaner --allocate-node-cidrs=true --cluster-cidr=100.96.0.0/11"
        );
        assert_eq!(
            of(Home::Shares),
            "--controllers=*,bootstrapsigner,tokencleaner --allocate-node-cidrs=true --cluster-cidr=100.96.0.0/11 \
             --enable-leader-migration=true \
             --leader-migration-config=/srv/kubernetes/kube-controller-manager-leader-migration/leader-migration.yaml"
        );
        assert_eq!(
            of(Home::Leaves),
            "--controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller"
        );
        let small = node_ipam_flags(&crate::names_in_tests("10.0.0.0/25"), Home::Keeps);
        assert_eq!(small, ["--controllers=*,bootstrapsigner,tokencleaner"]);
    }
}
