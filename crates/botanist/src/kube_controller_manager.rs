//! kube-controller-manager of the shoot.

use runtime::Result;

use crate::{
    Botanist,
    component::{Component, client_of_api, mounted},
    names::Names,
    secrets::config::{CA, CA_CLIENT, CA_KUBELET, KUBE_CONTROLLER_MANAGER as NAME, SERVICE_ACCOUNT_KEY},
};

impl Botanist {
    /// "Deploying Kubernetes controller manager". The API must answer already: the process ends where it does not.
    pub async fn deploy_kube_controller_manager(&self) -> Result<()> {
        self.deploy_component(&component(self)).await
    }

    /// Waits until it runs.
    pub async fn wait_until_kube_controller_manager_ready(&self) -> Result<()> {
        self.wait_until_component_ready(NAME, self.settings.timeouts.controllers)
            .await
    }

    /// Deletes its Deployment.
    pub async fn delete_kube_controller_manager(&self) -> Result<()> {
        self.delete_component(NAME).await
    }
}

fn component(botanist: &Botanist) -> Component {
    let settings = &botanist.settings;
    let image = settings.image(
        &settings.kube_controller_manager_image,
        &botanist.kubernetes_version,
    );
    let mut component = Component {
        readiness: "/healthz",
        liveness: "/healthz",
        secrets: vec![CA_CLIENT, CA_KUBELET, NAME, SERVICE_ACCOUNT_KEY],
        authorities: vec![CA],
        requests: ["96Mi", "20m"],
        ..client_of_api(NAME, image, 10257)
    };
    component.args.extend(flags(&botanist.names));
    component
}

/// Certificates of kubelets and users are signed by the authorities that kube-apiserver trusts for clients, those that
/// kubelets serve with by the kubelets' own.
fn flags(names: &Names) -> Vec<String> {
    let mut flags = vec![
        "--use-service-account-credentials=true".into(),
        "--controllers=*,bootstrapsigner,tokencleaner".into(),
        format!("--root-ca-file={}", mounted(CA, "ca.crt")),
        format!(
            "--service-account-private-key-file={}",
            mounted(SERVICE_ACCOUNT_KEY, "id_rsa")
        ),
        format!("--service-cluster-ip-range={}", names.services),
    ];
    if has_room_for_nodes(&names.pods) {
        flags.push("--allocate-node-cidrs=true".into());
        flags.push(format!("--cluster-cidr={}", names.pods));
    }
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

/// Each node gets a /24 (or a /64): the process ends at once where the network is not larger than that.
fn has_room_for_nodes(pods: &str) -> bool {
    let largest = if pods.contains(':') { 64 } else { 24 };
    pods.split_once('/')
        .and_then(|(_, length)| length.parse::<u8>().ok())
        .is_some_and(|length| length <= largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_get_networks_only_out_of_a_larger_one() {
        assert!(has_room_for_nodes("100.96.0.0/11"));
        assert!(!has_room_for_nodes("10.0.0.0/25"));
        assert!(has_room_for_nodes("fd00::/56"));
    }
}
