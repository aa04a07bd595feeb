//! kube-scheduler of the shoot.

use runtime::Result;

use crate::{
    Botanist,
    component::{Component, client_of_api},
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
}

fn component(botanist: &Botanist) -> Component {
    let settings = &botanist.settings;
    let image = settings.image(&settings.kube_scheduler_image, &botanist.kubernetes_version);
    client_of_api(NAME, image, 10259)
}
