//! A seed with the seed's controllers. A test starts the gardenlet, whole or in parts.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use extension::OwnerChecks;
use gardenlet::config::MoveTraceFlags;
use gardenlet::context::Heartbeat;
use gardenlet::move_trace::MoveTraces;
use gardenlet::{Config, Context, controllers, shoots};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use manager::PROVIDER_LOCAL;
use parts::{Settings, Timeouts, UrlOf};
use parts_fixture::terms;
use runtime::{
    client::{Garden, Permit, Seed},
    controller::{Events, runner},
    process::{Process, metrics::Metrics},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, PlayedKubelet};
use tokio::task::JoinSet;

use crate::guest::{self, Outside};
use crate::machines::{self, Instances};
use crate::sidecar::Sidecars;
use crate::{foreign, garden, objects, pods};

/// The component that a gardenlet checks for the seed's health: a Deployment in namespace `garden`.
const COMPONENT: &str = "etcd-druid";

/// Time limit of a machine manager in a forced deletion. The cloud keeps an instance for the whole time.
/// Longer than the first attempts that a drill interrupts: the time is counted once.
const FORCED_MACHINES: Duration = Duration::from_secs(6);

/// A seed with the running processes.
pub struct RunningSeed {
    pub name: &'static str,
    pub address: Ipv4Addr,
    pub settings: Arc<Settings>,
    /// The backup processes of the shoots in this seed.
    pub sidecars: Sidecars,
    config: Arc<Config>,
    /// Where the gardenlet sends traces of moves. Each gardenlet that starts later uses the value.
    pub traces: MoveTraceFlags,
    garden: Client,
    /// Address of the simulated pods.
    pods: String,
    _manifest: tempfile::NamedTempFile,
    controllers: JoinSet<()>,
    _rollout: PlayedKubelet,
    plane: ControlPlane,
}

impl RunningSeed {
    /// `garden`: the client of this seed's gardenlet; `authority`: the name server of the shoots' names.
    pub async fn start(
        name: &'static str,
        plane: ControlPlane,
        address: Ipv4Addr,
        authority: &str,
        garden: Client,
        shoot_api: Client,
        outside: &Outside,
    ) -> Result<Self> {
        let client = plane.admin();
        front(&client, address).await?;
        garden::apply(&client, component()).await?;
        let (mut controllers, sidecars) = (JoinSet::new(), Sidecars::default());
        let pods = pods::serve(&mut controllers, client.clone(), &sidecars, shoot_api).await?;
        let manifest = tempfile::NamedTempFile::new()?;
        serde_yaml_ng::to_writer(&manifest, &garden::seed(name, authority))?;
        let config = config_of(name, manifest.path())?;
        let settings = Arc::new(Settings {
            shoot_api_url: UrlOf::template(format!("{pods}/api/{{namespace}}")),
            etcd_backup_url: UrlOf::template(format!("{pods}/backup/{{namespace}}")),
            owner_check: terms::short()?,
            timeouts: Timeouts {
                forced_machines: FORCED_MACHINES,
                ..Timeouts::default()
            },
            ..config.settings()
        });
        let mut process = others(&client, &pods)?;
        guest::join(&mut process, &client, outside);
        foreign::install(&mut controllers, &client).await?;
        // A fake resource-manager.
        objects::play(&mut controllers, client.clone());
        controllers.spawn(async move {
            if let Err(ended) = process.run().await {
                eprintln!("{name}: controllers ended: {ended}");
            }
        });
        let rollout = PlayedKubelet::with(&client, pods::fate);
        Ok(Self {
            name,
            address,
            settings,
            sidecars,
            config: Arc::new(config),
            traces: MoveTraceFlags::default(),
            garden,
            pods,
            _manifest: manifest,
            controllers,
            _rollout: rollout,
            plane,
        })
    }

    /// Starts a fake machine manager, with the cloud that all seeds share.
    pub fn play_machines(&mut self, instances: &Instances) {
        let client = self.client();
        machines::play(&mut self.controllers, client, instances.clone());
    }

    /// Runs a further process in the seed.
    pub fn run(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.controllers.spawn(work);
    }

    /// The owner checks of this seed's processes.
    pub fn owners(&self, metrics: &Metrics) -> OwnerChecks {
        owners(&self.pods, metrics)
    }

    /// Extends the timeout for answers of owner checks. All processes of a garden run in this process, and
    /// may be busy for longer than an answer takes.
    pub fn is_busy(&mut self) -> Result<()> {
        let owner_check = terms::answered_within(Duration::from_millis(200))?;
        self.settings = Arc::new(Settings {
            owner_check,
            ..Settings::clone(&self.settings)
        });
        Ok(())
    }

    pub fn client(&self) -> Client {
        self.plane.admin()
    }

    /// Starts these controllers of the gardenlet, like a new process. Dropping the set kills the process.
    pub fn gardenlet(&self, names: &[&'static str]) -> JoinSet<()> {
        let mut process = Process::new("drill");
        let move_traces = MoveTraces::start(&mut process, &self.traces, self.name, self.name).unwrap();
        let permit = Permit::sole("the drill has no other process");
        let garden = Garden::new(self.garden.clone(), &permit);
        let context = Context {
            shoots: shoots::watch(&garden, self.name),
            garden,
            seed: Seed::new(self.client(), &permit),
            seed_name: self.name.to_owned(),
            settings: Arc::clone(&self.settings),
            config: Arc::clone(&self.config),
            garden_events: Events::new(self.garden.clone(), "gardenlet"),
            metrics: process.metrics.clone(),
            shutdown: process.shutdown.clone(),
            heartbeat: Heartbeat::default(),
            certificate_expiry: None,
            move_traces,
        };
        let (name, names, mut running) = (self.name, names.to_vec(), JoinSet::new());
        running.spawn(async move {
            let _process = process;
            if let Err(ended) = controllers::run(names, context).await {
                eprintln!("{name}: the gardenlet ended: {ended}");
            }
        });
        running
    }
}

fn config_of(name: &str, manifest: &std::path::Path) -> Result<Config> {
    let component = format!("garden/{COMPONENT}");
    let manifest = manifest.display().to_string();
    let flags = [
        ("--garden-kubeconfig", "/nonexistent"),
        ("--seed-config", &manifest),
        ("--seed-name", name),
        ("--system-component", &component),
    ];
    let flags = flags.into_iter().flat_map(|(flag, value)| [flag, value]);
    Ok(Config::try_parse_from(std::iter::once("gardenlet").chain(flags))?)
}

fn component() -> Value {
    let labels = json!({"app": COMPONENT});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": COMPONENT, "namespace": "garden"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": COMPONENT}]},
            },
        },
    })
}

/// The Service for the clients of all shoots of the seed.
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

fn owners(pods: &str, metrics: &Metrics) -> OwnerChecks {
    OwnerChecks::with_sidecars_at(&format!("{pods}/backup/{{namespace}}"), metrics)
}

/// The processes of the seed beside the gardenlet. `pods`: the address of the simulated pods.
fn others(seed: &Client, pods: &str) -> Result<Process> {
    let mut process = Process::new("drill");
    let permit = Permit::sole("the drill has no other process");
    let own = Seed::new(seed.clone(), &permit);
    let flags = [
        "etcd-druid",
        "--etcd-image",
        "etcd",
        "--etcd-backup-restore-image",
        "etcd-backup-restore",
    ];
    let flags = etcd_druid::flags::Flags::try_parse_from(flags).context("flags of etcd-druid")?;
    let druid = etcd_druid::run(
        own.clone(),
        flags,
        process.metrics.clone(),
        process.shutdown.clone(),
    );
    process.part("etcd controller", druid);
    let of_provider = provider_local::context::Context {
        seed: own,
        owners: owners(pods, &process.metrics),
        settings: runner::Settings {
            concurrency: 20,
            shutdown: process.shutdown.clone(),
            permit,
            metrics: process.metrics.clone(),
            events: Events::new(seed.clone(), "provider-local"),
        },
        cloud_controller_manager: provider_local::control_plane::cloud_controller_manager::Settings {
            image: "cloud-controller-manager-local".into(),
            load_balancer_range: None,
        },
        // `machines` simulates the work.
        machine_controller_manager_image: "not-run".to_owned(),
        network_image: "not-run".to_owned(),
        guests: None,
    };
    // Without locks: the drill covers the flow, and runs a single process of each kind.
    let provider = provider_local::controllers::run(PROVIDER_LOCAL.controllers.to_vec(), of_provider);
    process.fallible_part("provider-local", provider);
    Ok(process)
}
