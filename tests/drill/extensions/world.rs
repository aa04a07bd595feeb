//! A single API server in the role of garden and seed, and the three processes with the rights of their
//! charts.

use std::{fmt::Debug, fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use api::{
    gardencore::ControllerInstallation,
    meta::{ConditionStatus, find_condition},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Parser;
use gardenlet::{context::Heartbeat, move_trace::MoveTraces};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
    core::ClusterResourceScope,
};
use runtime::{
    client::{Garden, Permit, Seed},
    controller::Events,
    process::metrics::Metrics,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use testkit::{ControlPlane, PlayedKubelet, eventually, find_program};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Namespace of the shoot's extension objects.
pub const NAMESPACE: &str = "shoot--dev--web";
const MANAGER: &str = "system:serviceaccount:garden:garden-controller-manager";
const RESOURCE_MANAGER: &str = "system:serviceaccount:garden:resource-manager";
const GARDENLET: &str = "system:serviceaccount:garden:gardenlet";
const SEEDS: &str = "gardener.cloud:system:seeds";
/// For a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

pub struct World {
    plane: ControlPlane,
    _pods: PlayedKubelet,
    _processes: JoinSet<()>,
    /// The shared context of garden-controller-manager's controllers.
    pub manager: garden_controller_manager::Context,
    /// The shared context of seed-a's gardenlet.
    pub gardenlet_of_a: Arc<gardenlet::Context>,
}

impl World {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start("extensions").await?;
        let admin = plane.admin();
        let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
        testkit::apply_crds(&admin, &crds).await?;
        for name in ["garden", "garden-dev", NAMESPACE, "gardener-system-seed-lease"] {
            testkit::apply(
                &admin,
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            )
            .await?;
        }
        for name in ["seed-a", "seed-b"] {
            let spec = json!({
                "dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "metal", "region": "here"},
            });
            testkit::apply(&admin, core("Seed", name, &json!({"spec": spec}))).await?;
        }
        for file in [
            "garden-controller-manager/templates/clusterrole.yaml",
            "garden-controller-manager/templates/clusterrolebinding.yaml",
            "gardenlet/templates/clusterrole.yaml",
            "gardenlet/templates/clusterrolebinding.yaml",
            "resource-manager/templates/clusterrole.yaml",
            "resource-manager/templates/clusterrolebinding.yaml",
            "garden/templates/gardenlets-rbac.yaml",
            "garden/templates/gardenlets-bindings.yaml",
            "garden/files/policies/gardenlet-controllerinstallation.yaml",
            "resource-manager/templates/roles.yaml",
        ] {
            for document in documents(file)? {
                testkit::apply(&admin, document).await?;
            }
        }
        let mut processes = JoinSet::new();
        let (manager, gardenlet_of_a) = start(&plane, &mut processes).await?;
        Ok(Self {
            _pods: PlayedKubelet::start(&admin),
            _processes: processes,
            plane,
            manager,
            gardenlet_of_a,
        })
    }

    pub fn admin(&self) -> Client {
        self.plane.admin()
    }

    /// A client with the gardenlet's rights in the garden.
    pub async fn gardenlet(&self, seed: &str) -> Result<Client> {
        self.plane
            .client(&format!("gardener.cloud:system:seed:{seed}"), &[SEEDS])
            .await
    }

    /// A registration of this name for this kind, of type metal or mesh.
    pub async fn register(&self, name: &str, policy: &str, kind: &str, archive: Option<&[u8]>) -> Result<()> {
        let type_ = if kind == "Network" { "mesh" } else { "metal" };
        let mut deployment = json!({"policy": policy, "seedSelector": {}});
        if let Some(archive) = archive {
            self.deployment(name, archive).await?;
            deployment["deploymentRefs"] = json!([{"name": name}]);
        }
        let spec = json!({"resources": [{"kind": kind, "type": type_}], "deployment": deployment});
        testkit::apply(
            &self.admin(),
            core("ControllerRegistration", name, &json!({"spec": spec})),
        )
        .await?;
        Ok(())
    }

    /// The chart of a registration. Charts that are bad have no values.
    pub async fn deployment(&self, name: &str, archive: &[u8]) -> Result<()> {
        let values = if name == "bad" {
            Value::Null
        } else {
            json!({"color": "green"})
        };
        let mut object = core(
            "ControllerDeployment",
            name,
            &json!({"helm": {"rawChart": STANDARD.encode(archive), "values": values}}),
        );
        object["apiVersion"] = json!("core.gardener.cloud/v1");
        testkit::apply(&self.admin(), object).await.map(drop)
    }

    pub async fn shoot(&self, name: &str, seed: &str) -> Result<()> {
        let machine = json!({"type": "small", "image": {"name": "flat", "version": "1"}});
        let spec = json!({
            "cloudProfile": {"name": "metal"}, "credentialsBindingName": "c", "region": "here", "seedName": seed,
            "kubernetes": {"version": "1.34.4"}, "networking": {"type": "mesh"},
            "provider": {"type": "metal", "workers": [{"name": "a", "minimum": 1, "maximum": 1, "machine": machine}]},
        });
        let mut shoot = core("Shoot", name, &json!({"spec": spec}));
        shoot["metadata"]["namespace"] = json!("garden-dev");
        testkit::apply(&self.admin(), shoot).await.map(drop)
    }

    /// An extension object that the chart serves.
    pub async fn network(&self) -> Result<()> {
        let spec = json!({"type": "mesh", "podCIDR": "10.3.0.0/16", "serviceCIDR": "10.4.0.0/16"});
        let metadata = json!({"name": "web", "namespace": NAMESPACE});
        let network = json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Network", "metadata": metadata, "spec": spec,
        });
        testkit::apply(&self.admin(), network).await.map(drop)
    }

    /// Waits for an installation, and returns the name.
    pub async fn made(&self, registration: &str, seed: &str) -> Result<String> {
        let why = format!("{registration} is to be in {seed}");
        let all = self
            .until(&why, |all| {
                all.iter().any(|found| is_of(found, registration, seed))
            })
            .await?;
        let found = all.iter().find(|found| is_of(found, registration, seed));
        Ok(found.context("an installation")?.name_any())
    }

    /// Waits until the installation is installed and healthy, and returns the name.
    pub async fn installed(&self, registration: &str, seed: &str) -> Result<String> {
        let name = self.made(registration, seed).await?;
        for (condition, status) in [
            ("Valid", "True"),
            ("Installed", "True"),
            ("Healthy", "True"),
            ("Progressing", "False"),
            ("Required", "False"),
        ] {
            self.tells(&name, condition, status, "").await?;
        }
        Ok(name)
    }

    /// Awaits a condition.
    pub async fn tells(&self, name: &str, type_: &str, status: &str, words: &str) -> Result<()> {
        let wanted: ConditionStatus = serde_json::from_value(json!(status))?;
        let api: Api<ControllerInstallation> = Api::all(self.admin());
        eventually(
            &format!("{name} is to be {type_}={status} ({words})"),
            SOON,
            || async {
                let found = api.get(name).await.map_err(|error| error.to_string())?;
                let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
                let condition = find_condition(&conditions, type_);
                match condition {
                    Some(condition) if condition.status == wanted && condition.message.contains(words) => {
                        Ok(())
                    }
                    _ => Err(format!("{conditions:#?}")),
                }
            },
        )
        .await
    }

    /// Awaits an Event of an installation.
    pub async fn wait_for_event(&self, name: &str, reason: &str) -> Result<()> {
        let api: Api<Event> = Api::all(self.admin());
        eventually(&format!("an Event {reason} of {name}"), SOON, || async {
            let all = api
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            let is_it = |event: &Event| {
                let about = event
                    .regarding
                    .as_ref()
                    .and_then(|regarding| regarding.name.as_deref());
                event.reason.as_deref() == Some(reason) && about == Some(name)
            };
            if all.items.iter().any(is_it) {
                Ok(())
            } else {
                Err("there is none".to_owned())
            }
        })
        .await
    }

    pub async fn all<K: OfCluster>(&self) -> Result<Vec<K>> {
        Ok(Api::<K>::all(self.admin())
            .list(&ListParams::default())
            .await?
            .items)
    }

    pub async fn get<K: OfCluster>(&self, name: &str) -> Result<Option<K>> {
        Ok(Api::<K>::all(self.admin()).get_opt(name).await?)
    }

    pub async fn delete<K: OfCluster>(&self, name: &str) -> Result<()> {
        Api::<K>::all(self.admin())
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    /// Awaits that this holds of all objects of a kind.
    pub async fn until<K: OfCluster>(&self, why: &str, holds: impl Fn(&[K]) -> bool) -> Result<Vec<K>> {
        let api: Api<K> = Api::all(self.admin());
        let holds = &holds;
        eventually(why, SOON, || {
            let api = api.clone();
            async move {
                let all = api
                    .list(&ListParams::default())
                    .await
                    .map_err(|error| error.to_string())?
                    .items;
                if holds(&all) {
                    Ok(all)
                } else {
                    Err(format!("{all:?}"))
                }
            }
        })
        .await
    }

    pub async fn gone<K: OfCluster>(&self, name: &str) -> Result<()> {
        let why = format!("{name} is to be gone");
        self.until::<K>(&why, |all| !all.iter().any(|found| found.name_any() == name))
            .await
            .map(drop)
    }
}

/// Kinds of a cluster.
pub trait OfCluster:
    Resource<Scope = ClusterResourceScope, DynamicType = ()>
    + Clone
    + DeserializeOwned
    + Debug
    + Send
    + Sync
    + 'static
{
}
impl<K> OfCluster for K where
    K: Resource<Scope = ClusterResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// Checks that the request was refused with these words.
#[track_caller]
pub fn refused<T: Debug>(outcome: Result<T, kube::Error>, words: &str) {
    match outcome {
        Ok(written) => panic!("it was allowed: {written:?}"),
        Err(error) => assert!(error.to_string().contains(words), "{error}"),
    }
}

pub fn is_of(installation: &ControllerInstallation, registration: &str, seed: &str) -> bool {
    installation.spec.registration_ref.name.as_deref() == Some(registration) && seed_of(installation) == seed
}

pub fn seed_of(installation: &ControllerInstallation) -> &str {
    let seed = installation
        .spec
        .seed_ref
        .as_ref()
        .and_then(|seed| seed.name.as_deref());
    seed.unwrap_or_default()
}

/// An object of the garden.
pub fn core(kind: &str, name: &str, fields: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "metadata": {"name": name}});
    if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
        object.extend(fields.clone());
    }
    object
}

/// The documents of a chart's file, without lines that are only templating.
fn documents(file: &str) -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../charts")
        .join(file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().filter(|line| !line.contains("{{-"));
    let text = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("{{ .Release.Namespace }}", "garden");
    let all = serde_yaml_ng::Deserializer::from_str(&text);
    all.map(|document| Ok(Value::deserialize(document)?)).collect()
}

async fn start(
    plane: &ControlPlane,
    processes: &mut JoinSet<()>,
) -> Result<(garden_controller_manager::Context, Arc<gardenlet::Context>)> {
    let permit = Permit::sole("a test");
    let shutdown = CancellationToken::new();
    let manager = plane.client(MANAGER, &[]).await?;
    let garden = Garden::new(manager.clone(), &permit);
    let of_garden = garden_controller_manager::Context {
        shoots: garden_controller_manager::shoots::watch(&garden),
        backup_entries: garden_controller_manager::backup_entries::watch(&garden),
        garden,
        config: Arc::new(garden_controller_manager::Config::parse_from([
            "garden-controller-manager",
        ])),
        events: Events::new(manager, "garden-controller-manager"),
        metrics: Metrics::default(),
        shutdown: shutdown.clone(),
    };
    processes.spawn(garden_controller_manager::controller_registration::run(
        of_garden.clone(),
    ));

    let seed = Seed::new(plane.client(RESOURCE_MANAGER, &[]).await?, &permit);
    let flags = resource_manager::flags::Flags::parse_from(["resource-manager"]);
    processes.spawn(resource_manager::run(
        seed,
        flags,
        Metrics::default(),
        shutdown.clone(),
    ));

    let helm = format!("--helm={}", find_program("helm")?.display());
    let config = gardenlet::Config::try_parse_from([
        "gardenlet",
        "--garden-kubeconfig=/none",
        "--seed-name=seed-a",
        "--seed-config=/none",
        &helm,
    ])?;
    let garden = plane
        .client("gardener.cloud:system:seed:seed-a", &[SEEDS])
        .await?;
    let client = Garden::new(garden.clone(), &permit);
    let of_seed = Arc::new(gardenlet::Context {
        shoots: gardenlet::shoots::watch(&client, "seed-a"),
        garden: client,
        seed: Seed::new(plane.client(GARDENLET, &[]).await?, &permit),
        seed_name: "seed-a".into(),
        settings: Arc::new(config.settings()),
        config: Arc::new(config),
        garden_events: Events::new(garden, "gardenlet"),
        metrics: Metrics::default(),
        shutdown,
        heartbeat: Heartbeat::default(),
        move_traces: MoveTraces::default(),
        certificate_expiry: None,
    });
    processes.spawn(gardenlet::controller_installation::run(Arc::clone(&of_seed)));
    Ok((of_garden, of_seed))
}
