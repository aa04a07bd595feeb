//! kube-scheduler of the shoot.

use runtime::Result;

use crate::{
    Botanist,
    component::{Component, mounted},
    secrets::config::KUBE_SCHEDULER as NAME,
};

impl Botanist {
    /// "Deploying Kubernetes scheduler". The API must answer already: the process ends where it does not.
    pub async fn deploy_kube_scheduler(&self) -> Result<()> {
        self.deploy_component(&component(self)).await
    }

    /// Waits until it runs.
    pub async fn wait_until_kube_scheduler_ready(&self) -> Result<()> {
        self.wait_until_component_ready(NAME, self.settings.timeouts.controllers)
            .await
    }

    /// Deletes its Deployment.
    pub async fn delete_kube_scheduler(&self) -> Result<()> {
        self.delete_component(NAME).await
    }

    /// Waits until it is gone.
    pub async fn wait_until_kube_scheduler_deleted(&self) -> Result<()> {
        self.wait_until_component_deleted(NAME, self.settings.timeouts.controllers)
            .await
    }
}

fn component(botanist: &Botanist) -> Component {
    Component {
        name: NAME,
        image: botanist.settings.image(
            &botanist.settings.kube_scheduler_image,
            &botanist.kubernetes_version,
        ),
        args: vec![
            format!("--kubeconfig={}", mounted(NAME, "kubeconfig")),
            "--leader-elect=true".into(),
            "--profiling=false".into(),
        ],
        port: 10259,
        readiness: "/readyz",
        liveness: "/livez",
        secrets: vec![NAME],
        authorities: Vec::new(),
        config_maps: Vec::new(),
        grace_seconds: 5,
        overlaps: false,
        requests: ["64Mi", "10m"],
    }
}
