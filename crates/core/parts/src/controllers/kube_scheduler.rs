//! kube-scheduler of the shoot.

use runtime::{
    Result,
    workload::{Health, Workload},
};

use crate::{
    Facts,
    component::{self, client_of_api},
    secrets::config::KUBE_SCHEDULER as NAME,
    task::{ExternalSystems, NONE},
    verbs::{Deploy, Sleep, Tasks},
};

/// The scheduler. The API must answer before this deployment, because the process exits without the API.
#[derive(Debug)]
pub struct KubeScheduler;

impl Deploy for KubeScheduler {
    const TASKS: Tasks = [
        "Deploying Kubernetes scheduler",
        "Waiting until Kubernetes scheduler is ready",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        component::deploy(&f.residency, &workload(f)).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        f.residency
            .component_ready(NAME, f.residency.settings.timeouts.controllers)
            .await
    }
}

impl Sleep for KubeScheduler {
    const TASKS: Tasks = [
        "Scaling Kubernetes scheduler down",
        "Waiting until Kubernetes scheduler has stopped",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn sleep(f: &Facts) -> Result<()> {
        component::stop(&f.residency, &workload(f)).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        f.residency
            .component_stopped(NAME, f.residency.settings.timeouts.controllers)
            .await
    }
}

fn workload(f: &Facts) -> Workload {
    let settings = &f.residency.settings;
    let image = settings.image(&settings.kube_scheduler_image, &f.kubernetes_version);
    let health = Health {
        scheme: "HTTPS",
        port: 10259,
        readiness: "/readyz",
        liveness: "/livez",
    };
    client_of_api(NAME, image, health)
}
