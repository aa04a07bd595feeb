//! A garden of its own for each test: a real API server with the kinds, policies and roles of
//! `charts/garden`.

// Each test uses its part of this module.
#![allow(dead_code, unused_imports)]

use std::{fmt::Debug, fs, panic::Location, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use api::gardencore::{BackupEntry, InternalSecret, InternalSecretFields, Project, Seed, Shoot, ShootState};
use clap::Parser;
use garden_controller_manager::{Config, Context as ManagerContext, backup_entries, shoots};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Secret, rbac::v1::Role},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use runtime::{client::Permit, controller::Events, process::metrics::Metrics};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use testkit::{ControlPlane, apply_crds, eventually};
use tokio_util::sync::CancellationToken;

mod attempt;
mod controlled;
mod in_force;
mod users;

pub use attempt::{
    Attempt, try_apply, try_create, try_delete, try_patch, try_patch_status, until_allowed, until_refused,
};
pub use controlled::Controlled;
pub use users::{config_map, event_in, secret_binding};

/// Who garden-controller-manager is.
pub const MANAGER: &str = "system:serviceaccount:garden:garden-controller-manager";
/// The namespace of the project.
pub const NAMESPACE: &str = "garden-dev";
/// A namespace that holds one Shoot and no BackupEntry.
pub const WITH_A_SHOOT: &str = "with-a-shoot";
/// A namespace that holds one BackupEntry and no Shoot.
pub const WITH_BACKUPS: &str = "with-backups";
/// The namespace of a Project in deletion.
pub const IN_DELETION: &str = "garden-departing";
/// The API server takes a policy into account a second after it was made, and a kind that it does not know
/// yet it looks for every half minute. Three times as long, for a busy machine.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(90);

/// A garden and its users.
pub struct Garden {
    plane: ControlPlane,
    admin: Client,
    /// The gardenlet of seed-a.
    pub seed_a: Client,
    /// The gardenlet of seed-b.
    pub seed_b: Client,
    /// In the group of gardenlets, and named after no seed.
    pub nameless: Client,
    /// The ServiceAccount of garden-controller-manager, with the rights that its chart gives.
    pub manager: Client,
}

impl Garden {
    /// Starts one and waits until its policies are in force.
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start("garden").await?;
        let admin = plane.admin();
        let crds: Vec<CustomResourceDefinition> = documents("crds/garden")?
            .into_iter()
            .map(serde_json::from_value)
            .collect::<Result<_, _>>()?;
        apply_crds(&admin, &crds).await?;
        let group = ["gardener.cloud:system:seeds"];
        let garden = Self {
            seed_a: plane.client("gardener.cloud:system:seed:seed-a", &group).await?,
            seed_b: plane.client("gardener.cloud:system:seed:seed-b", &group).await?,
            nameless: plane.client("somebody", &group).await?,
            manager: plane.client(MANAGER, &[]).await?,
            admin,
            plane,
        };
        let project = json!({"project.gardener.cloud/name": "dev", "gardener.cloud/role": "project"});
        for (name, labels) in [
            (NAMESPACE, project),
            ("gardener-system-seed-lease", json!({})),
            ("garden", json!({})),
        ] {
            let metadata = json!({"name": name, "labels": labels});
            garden
                .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
                .await?;
        }
        for name in ["seed-a", "seed-b", "seed-c"] {
            garden.bring(&seed(name)).await?;
            garden.bring(&seed_namespace(name)).await?;
        }
        let mut dev = project_of("dev", Some(NAMESPACE));
        let whitelist = [
            ("protected", None),
            ("x", None),
            ("tier", Some("gold")),
            ("tier", Some("iron")),
        ];
        let whitelist = whitelist.map(|(key, value)| json!({"key": key, "value": value}));
        dev["spec"]["tolerations"] = json!({"whitelist": whitelist});
        garden.bring(&dev).await?;
        for document in documents("charts/garden/files/policies")? {
            garden.bring(&document).await?;
        }
        for template in [
            "garden/templates/gardenlets-rbac.yaml",
            "garden/templates/gardenlets-bindings.yaml",
            "garden/templates/priority-and-fairness.yaml",
            "garden/templates/priority-of-operators.yaml",
            "garden-controller-manager/templates/clusterrole.yaml",
            "garden-controller-manager/templates/clusterrolebinding.yaml",
        ] {
            for document in read(&root().join("charts").join(template))? {
                garden.bring(&document).await?;
            }
        }
        garden.wait_until_in_force().await?;
        Ok(garden)
    }

    /// What a controller of garden-controller-manager is given, with its rights and these flags.
    pub fn context(&self, flags: &[&str]) -> ManagerContext {
        let program = ["garden-controller-manager"];
        let garden = runtime::client::Garden::new(self.manager.clone(), &Permit::sole("a test"));
        ManagerContext {
            shoots: shoots::watch(&garden),
            backup_entries: backup_entries::watch(&garden),
            garden,
            config: Arc::new(Config::parse_from(program.iter().chain(flags))),
            events: Events::new(self.manager.clone(), "garden-controller-manager"),
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
        }
    }

    /// The client of the administrator.
    pub fn administrator(&self) -> Client {
        self.admin.clone()
    }

    /// An API of the administrator.
    pub fn admin<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.admin.clone(), namespace)
    }

    /// A Secret as garden-controller-manager makes it for the Shoot of that name, if there is one; or of
    /// another type.
    pub async fn secret(&self, name: &str, type_: &str) {
        let secrets: Api<Secret> = self.admin(NAMESPACE);
        let owners = match name.strip_suffix(".kubeconfig") {
            Some(shoot) => self.owners(shoot).await,
            None => Vec::new(),
        };
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": type_,
            "metadata": {
                "name": name, "ownerReferences": owners, "labels": {"gardener.cloud/role": "kubeconfig"},
                "annotations": {"kubernetes.io/service-account.name": "default"},
            },
        });
        self.apply(&secrets, name, body).await.unwrap();
    }

    /// A ShootState as garden-controller-manager makes it for the Shoot of that name, if there is one.
    pub async fn state(&self, name: &str) {
        let states: Api<ShootState> = self.admin(NAMESPACE);
        let body = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ShootState", "spec": {},
            "metadata": {"name": name, "ownerReferences": self.owners(name).await},
        });
        self.apply(&states, name, body).await.unwrap();
    }

    async fn owners(&self, shoot: &str) -> Vec<OwnerReference> {
        let shoots: Api<Shoot> = self.admin(NAMESPACE);
        let found = shoots.get_opt(shoot).await.unwrap();
        found
            .and_then(|found| found.controller_owner_ref(&()))
            .into_iter()
            .collect()
    }

    /// Gives gardenlets a right that the chart does not give them.
    pub async fn grant_gardenlets(&self, group: &str, resource: &str, verb: &str) {
        let name = format!("too-much-{resource}");
        let rbac = "rbac.authorization.k8s.io";
        let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]);
        let metadata = json!({"name": name});
        let version = format!("{rbac}/v1");
        let role =
            json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules});
        let binding = json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "gardener.cloud:system:seeds"}],
        });
        for document in [role, binding] {
            self.bring(&document).await.unwrap();
        }
    }

    /// Applies as the administrator, whatever it is.
    pub async fn bring(&self, document: &Value) -> Result<()> {
        let (group, version) = document["apiVersion"]
            .as_str()
            .unwrap_or_default()
            .rsplit_once('/')
            .unwrap_or(("", document["apiVersion"].as_str().unwrap_or_default()));
        let kind = document["kind"].as_str().unwrap_or_default();
        let plural = match kind {
            "ValidatingAdmissionPolicy" => "validatingadmissionpolicies".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural);
        let api: Api<DynamicObject> = match document["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        };
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(document))
            .await
            .with_context(|| format!("{kind} {name}"))?;
        Ok(())
    }

    /// A Shoot as it is after the given operation; no seed in the status: never reconciled.
    pub async fn shoot(&self, name: &str, seed: &str, host: Option<&str>, last: (&str, &str)) {
        self.shoot_in(NAMESPACE, name, seed, host, last).await;
    }

    /// The same in another namespace.
    pub async fn shoot_in(
        &self,
        namespace: &str,
        name: &str,
        seed: &str,
        host: Option<&str>,
        last: (&str, &str),
    ) {
        let shoots: Api<Shoot> = self.admin(namespace);
        let mut body = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": name},
            "spec": {
                "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
                "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"},
            },
        });
        if !seed.is_empty() {
            body["spec"]["seedName"] = json!(seed);
        }
        self.apply(&shoots, name, body).await.unwrap();
        if let Some(host) = host {
            let mut status = json!({"seedName": host, "lastOperation": operation(last.0, last.1)});
            if last.1 == "Succeeded" {
                let made = shoots.get(name).await.unwrap();
                status["reconciledSpecHash"] = json!(placement::spec_hash(&made.spec));
            }
            self.status(&shoots, name, status).await;
        }
    }

    /// A BackupEntry made by the administrator.
    pub async fn entry(&self, name: &str, seed: &str, bucket: &str) {
        let entries: Api<BackupEntry> = self.admin(NAMESPACE);
        self.apply(&entries, name, entry(name, seed, bucket))
            .await
            .unwrap();
    }

    /// Sets the status as the administrator.
    pub async fn status<K: Object>(&self, api: &Api<K>, name: &str, status: Value) {
        self.patch_status(api, name, status).await.unwrap();
    }

    /// Name of the BackupBucket of a Seed.
    pub async fn bucket_of(&self, seed: &str) -> String {
        let seeds: Api<Seed> = Api::all(self.admin.clone());
        seeds.get(seed).await.unwrap().metadata.uid.unwrap()
    }

    /// Keeps an object that is deleted.
    pub async fn finalizer<K: Object>(&self, api: &Api<K>, name: &str) {
        self.patch(api, name, json!({"metadata": {"finalizers": ["gardener"]}}))
            .await
            .unwrap();
    }

    /// Merges.
    pub async fn patch<K: Object>(&self, api: &Api<K>, name: &str, body: Value) -> Result<(), kube::Error> {
        api.patch(name, &PatchParams::default(), &Patch::Merge(body))
            .await
            .map(|_| ())
    }

    /// Merges into the status.
    pub async fn patch_status<K: Object>(
        &self,
        api: &Api<K>,
        name: &str,
        status: Value,
    ) -> Result<(), kube::Error> {
        let body = json!({"status": status});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(body))
            .await
            .map(|_| ())
    }

    /// Creates or changes by server-side apply.
    pub async fn apply<K: Object>(&self, api: &Api<K>, name: &str, body: Value) -> Result<(), kube::Error> {
        api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(body))
            .await
            .map(|_| ())
    }
}

/// Any kind that the tests write.
pub trait Object: Clone + DeserializeOwned + Debug + Send + Sync + 'static {}
impl<K> Object for K where K: Clone + DeserializeOwned + Debug + Send + Sync + 'static {}

/// A lastOperation.
pub fn operation(type_: &str, state: &str) -> Value {
    json!({"type": type_, "state": state, "progress": 5, "description": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"})
}

/// A BackupBucket.
pub fn bucket(name: &str, seed: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupBucket", "metadata": {"name": name},
        "spec": {"provider": {"type": "local", "region": "local"}, "seedName": seed},
    })
}

/// A BackupEntry.
pub fn entry(name: &str, seed: &str, bucket: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry", "metadata": {"name": name},
        "spec": {"bucketName": bucket, "seedName": seed},
    })
}

/// A Shoot as its user writes it, with these worker pools.
pub fn shoot_with_pools(name: &str, profile: &str, pools: &Value) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": name},
        "spec": {
            "cloudProfile": {"name": profile, "kind": "CloudProfile"}, "region": "local", "seedName": "seed-a",
            "credentialsBindingName": "cloud", "networking": {"type": "local"},
            "provider": {"type": "local", "workers": pools}, "kubernetes": {"version": "1.34.4"},
        },
    })
}

/// A CloudProfile that allows a shoot so many nodes.
pub fn bounded_profile(nodes: i32) -> Value {
    let versions = json!([{"version": "1.34.4"}, {"version": "1.34.5"}]);
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "bounded"},
        "spec": {
            "type": "local", "regions": [{"name": "local"}], "kubernetes": {"versions": versions},
            "machineImages": [], "machineTypes": [], "limits": {"maxNodesTotal": nodes},
        },
    })
}

/// What the charts of a garden give rights by, each with its file.
pub fn rights_of_charts() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for chart in ["garden", "garden-controller-manager"] {
        let folder = root().join("charts").join(chart).join("templates");
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("rbac.authorization.k8s.io") {
                // What is filled in is some name.
                let documents = parse(&text.replace("{{ ", "").replace(" }}", "")).unwrap();
                let documents = documents.into_iter();
                all.extend(documents.map(|document| (path.display().to_string(), document)));
            }
        }
    }
    assert!(all.len() > 3, "the charts have rights: {all:?}");
    all
}

/// A Project.
pub fn project_of(name: &str, namespace: Option<&str>) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": name},
        "spec": {"namespace": namespace},
    })
}

/// A Seed that reports nothing yet.
pub fn seed(name: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
        "spec": {
            "dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"},
        },
    })
}

/// The namespace of a seed, as garden-controller-manager creates the namespace.
pub fn seed_namespace(seed: &str) -> Value {
    let labels = json!({"gardener.cloud/role": "seed"});
    let metadata = json!({"name": format!("seed-{seed}"), "labels": labels});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// The request succeeded. A failure fails the scenario at the end of the scenario.
#[track_caller]
pub fn allowed(outcome: Result<(), kube::Error>) {
    if let Err(error) = outcome {
        record(Location::caller(), &format!("the request was refused: {error}"));
    }
}

/// The request was refused with these words. A failure fails the scenario at the end of the scenario.
#[track_caller]
pub fn refused(outcome: Result<(), kube::Error>, words: &str) {
    let gap = match outcome {
        Ok(()) => format!("the request was allowed; expected: {words}"),
        Err(error) if error.to_string().contains(words) => return,
        Err(error) => format!("the request was refused with other words: {error}; expected: {words}"),
    };
    record(Location::caller(), &gap);
}

fn record(caller: &Location<'_>, gap: &str) {
    testkit::record_gap(&format!("{}:{}: {gap}", caller.file(), caller.line()));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The files of the garden's policies: name and text.
pub fn files_of_policies() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("charts/garden/files/policies")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    paths
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The documents of a text of YAML.
pub fn documents_in(text: &str) -> Vec<Value> {
    parse(text).unwrap()
}

fn documents(folder: &str) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    for file in fs::read_dir(root().join(folder)).with_context(|| folder.to_owned())? {
        documents.extend(read(&file?.path())?);
    }
    Ok(documents)
}

/// A file, or a template of a chart without what only decorates: labels.
fn read(path: &std::path::Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let text = text
        .replace("{{ .Release.Namespace }}", "garden")
        .replace("{{ . | quote }}", "garden-operators")
        .replace(r#"{{ splitList "/" . | first | quote }}"#, "tools")
        .replace(r#"{{ splitList "/" . | last | quote }}"#, "deployer");
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Vec<Value>> {
    let lines = text.lines().filter(|line| !line.contains("{{-"));
    let text = lines.collect::<Vec<_>>().join("\n");
    serde_yaml_ng::Deserializer::from_str(&text)
        .map(|document| Ok(Value::deserialize(document)?))
        .collect()
}
