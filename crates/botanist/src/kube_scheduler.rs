//! kube-scheduler of the shoot.

use runtime::{
    Result,
    workload::{Health, Workload},
};

use crate::{Botanist, component::client_of_api, secrets::config::KUBE_SCHEDULER as NAME};

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
}

fn component(botanist: &Botanist) -> Workload {
    let settings = &botanist.settings;
    let image = settings.image(&settings.kube_scheduler_image, &botanist.kubernetes_version);
    let health = Health {
        scheme: "HTTPS",
        port: 10259,
        readiness: "/readyz",
        liveness: "/livez",
    };
    client_of_api(NAME, image, health)
}
