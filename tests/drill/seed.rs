//! A seed with the controllers that run in one. The shoot controller itself is left out: its flows are run by the test.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use botanist::{Settings, UrlOf};
use clap::Parser;
use gardenlet::context::Heartbeat;
use gardenlet::{Config, Context};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use lease::migration::PROVIDER_LOCAL;
use runtime::{Events, Garden, Process, Seed, runner};
use serde_json::json;
use testkit::{ControlPlane, Rollout};
use tokio::task::JoinSet;

use crate::{garden, pods};

/// A seed and what runs in it.
pub struct RunningSeed {
    pub name: &'static str,
    pub address: Ipv4Addr,
    pub settings: Arc<Settings>,
    _controllers: JoinSet<()>,
    _rollout: Rollout,
    plane: ControlPlane,
}

impl RunningSeed {
    pub async fn start(
        name: &'static str,
        plane: ControlPlane,
        address: Ipv4Addr,
        of: &ControlPlane,
        shoot_api: Client,
    ) -> Result<Self> {
        let client = plane.admin();
        front(&client, address).await?;
        garden::apply(&of.admin(), garden::seed(name)).await?;
        let mut controllers = JoinSet::new();
        let pods = pods::serve(&mut controllers, client.clone(), shoot_api).await?;
        let folder = "/nonexistent";
        let config = Config::try_parse_from([
            "gardenlet",
            "--garden-kubeconfig",
            folder,
            "--seed-config",
            folder,
            "--seed-name",
            name,
        ])?;
        let settings = Arc::new(Settings {
            shoot_api_url: UrlOf::template(format!("{pods}/api/{{namespace}}")),
            etcd_backup_url: UrlOf::template(format!("{pods}/backup/{{namespace}}")),
            ..config.settings()
        });
        let process = controllers_of(config, &of.admin(), &client, name, settings.clone())?;
        controllers.spawn(async move {
            if let Err(ended) = process.run().await {
                eprintln!("{name}: controllers ended: {ended}");
            }
        });
        let rollout = Rollout::start(&client);
        Ok(Self {
            name,
            address,
            settings,
            _controllers: controllers,
            _rollout: rollout,
            plane,
        })
    }

    pub fn client(&self) -> Client {
        self.plane.admin()
    }
}

/// The place where clients of all shoots of the seed arrive.
async fn front(client: &Client, address: Ipv4Addr) -> Result<()> {
    for name in ["garden", "garden-exposure"] {
        garden::apply(client, garden::namespace(name)).await?;
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "ingress", "namespace": "garden-exposure"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    });
    garden::apply(client, service).await?;
    let services: Api<Service> = Api::namespaced(client.clone(), "garden-exposure");
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": address.to_string()}]}}});
    services
        .patch_status("ingress", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

fn controllers_of(
    config: Config,
    garden: &Client,
    seed: &Client,
    name: &str,
    settings: Arc<Settings>,
) -> Result<Process> {
    let mut process = Process::new("drill");
    let own = Seed::new(seed.clone());
    let flags = [
        "etcd-druid",
        "--etcd-image",
        "etcd",
        "--etcd-backup-restore-image",
        "etcd-backup-restore",
    ];
    let flags = etcd_druid::flags::Flags::try_parse_from(flags).context("flags of etcd-druid")?;
    etcd_druid::start(&mut process, seed.clone(), &flags);
    let of_provider = provider_local::controllers::Context {
        seed: own.clone(),
        settings: runner::Settings {
            concurrency: 20,
            shutdown: process.shutdown.clone(),
            metrics: process.metrics.clone(),
            events: Events::new(seed.clone(), "provider-local"),
        },
        cloud_controller_manager_image: "cloud-controller-manager-local".into(),
        guests: None,
    };
    // Without locks: what is drilled is the flow, and there is one process of each kind.
    let provider = provider_local::controllers::run(PROVIDER_LOCAL.controllers.to_vec(), of_provider, None);
    process.fallible_part("provider-local", provider);
    let context = Context {
        garden: Garden::new(garden.clone()),
        seed: own,
        seed_name: name.to_owned(),
        settings,
        config: Arc::new(config),
        garden_events: Events::new(garden.clone(), "gardenlet"),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
        heartbeat: Heartbeat::default(),
    };
    let context = Arc::new(context);
    process.part("seed controller", gardenlet::seed::run(context.clone()));
    let backups = Arc::new(context.backups());
    process.part(
        "backup bucket controller",
        backup_controllers::backup_bucket::run(backups.clone()),
    );
    process.part(
        "backup entry controller",
        backup_controllers::backup_entry::run(backups),
    );
    Ok(process)
}
