//! A garden of its own for each test: a real API server with the kinds, policies and roles of `charts/garden`.

// Each test uses its part of this module.
#![allow(dead_code)]

use std::{fmt::Debug, fs, future::Future, panic::Location, path::PathBuf, sync::Mutex, time::Duration};

use anyhow::{Context, Result};
use api::gardencore::{BackupEntry, Seed, Shoot};
use k8s_openapi::{
    NamespaceResourceScope, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use testkit::{ControlPlane, apply_crds, eventually};

/// The namespace of the project.
pub const NAMESPACE: &str = "garden-dev";
/// The API server takes a policy into account a second after it was made, and a kind that it does not know yet it looks for every
/// half minute. Five times as long, for a busy machine.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(150);

/// A garden and its users.
pub struct Garden {
    _plane: ControlPlane,
    admin: Client,
    /// The gardenlet of seed-a.
    pub seed_a: Client,
    /// The gardenlet of seed-b.
    pub seed_b: Client,
    /// In the group of gardenlets, and named after no seed.
    pub nameless: Client,
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
            admin,
            _plane: plane,
        };
        let project = json!({"project.gardener.cloud/name": "dev"});
        for (name, labels) in [(NAMESPACE, project), ("gardener-system-seed-lease", json!({}))] {
            let metadata = json!({"name": name, "labels": labels});
            garden
                .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
                .await?;
        }
        for name in ["seed-a", "seed-b", "seed-c"] {
            garden.bring(&seed(name)).await?;
        }
        for document in documents("charts/garden/files/policies")? {
            garden.bring(&document).await?;
        }
        for document in read(&root().join("charts/garden/templates/gardenlets-rbac.yaml"))? {
            garden.bring(&document).await?;
        }
        garden.wait_until_in_force().await?;
        Ok(garden)
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

    /// Every policy has refused something that only it refuses.
    async fn wait_until_in_force(&self) -> Result<()> {
        self.shoot("probe", "seed-a", Some("seed-a"), ("Migrate", "Processing"))
            .await;
        self.shoot("young-probe", "seed-a", None, ("", "")).await;
        self.status(
            &self.admin::<Shoot>(NAMESPACE),
            "probe",
            json!({"technicalID": "t", "uid": "u"}),
        )
        .await;
        let shoots: Api<Shoot> = self.admin(NAMESPACE);
        let entries: Api<BackupEntry> = self.admin(NAMESPACE);
        // A policy about entries looks at other entries. Until the API server has found and read that kind it refuses everybody.
        eventually("a BackupEntry can be made", IN_FORCE_WITHIN, || {
            self.apply(&entries, "t--u", entry("t--u", "seed-a", "bucket-a"))
        })
        .await?;
        let theirs: Api<Seed> = Api::all(self.seed_b.clone());
        let their_shoots: Api<Shoot> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let their_entries: Api<BackupEntry> = Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let their_buckets: Api<api::gardencore::BackupBucket> = Api::all(self.seed_b.clone());
        let their_secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(self.seed_b.clone(), NAMESPACE);
        let to_b = json!({"spec": {"seedName": "seed-b"}});
        let operation = json!({"metadata": {"annotations": {"gardener.cloud/operation": "x"}}});
        let force =
            json!({"metadata": {"annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}});
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        in_force("shoot-seed-name", || try_patch(&shoots, "probe", &to_b)).await?;
        in_force("shoot-seed-name-before-creation", || {
            try_patch(&shoots, "young-probe", &to_b)
        })
        .await?;
        in_force("shoot-operation", || try_patch(&shoots, "probe", &operation)).await?;
        in_force("shoot-force-deletion", || try_patch(&shoots, "probe", &force)).await?;
        in_force("shoot-deletion", || try_delete(&shoots, "probe")).await?;
        in_force("backupentry-deletion", || try_delete(&entries, "t--u")).await?;
        in_force("gardenlet-seed", || try_patch(&theirs, "seed-a", &label)).await?;
        in_force("gardenlet-shoot", || try_patch(&their_shoots, "probe", &label)).await?;
        in_force("gardenlet-backupentry", || {
            try_patch(&their_entries, "t--u", &label)
        })
        .await?;
        in_force("gardenlet-backupbucket", || {
            try_apply(&their_buckets, "x", bucket("x", "seed-a"))
        })
        .await?;
        let source = || entry("source-t--u", "seed-b", "z");
        in_force("gardenlet-source-backupentry", || {
            try_apply(&their_entries, "source-t--u", source())
        })
        .await?;
        in_force("gardenlet-secret", || try_apply(&their_secrets, "x", secret("x"))).await?;
        let kubeconfig = || secret("probe.kubeconfig");
        in_force("gardenlet-shoot-objects", || {
            try_apply(&their_secrets, "probe.kubeconfig", kubeconfig())
        })
        .await?;
        Ok(())
    }

    /// Applies as the administrator, whatever it is.
    async fn bring(&self, document: &Value) -> Result<()> {
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
            self.status(
                &shoots,
                name,
                json!({"seedName": host, "lastOperation": operation(last.0, last.1)}),
            )
            .await;
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

/// Waits until a policy refuses. One whose parameters are not read yet refuses everything, with another sentence.
async fn in_force(policy: &str, attempt: impl Fn() -> Attempt) -> Result<()> {
    let phrase = format!("ValidatingAdmissionPolicy '{policy}'");
    eventually(&format!("{policy} is in force"), IN_FORCE_WITHIN, || {
        let (attempt, phrase) = (attempt(), phrase.clone());
        async move {
            match attempt.await {
                Err(error) if error.to_string().contains(&phrase) && !is_not_ready(&error) => Ok(()),
                Err(error) => Err(error.to_string()),
                Ok(()) => Err("it was allowed".to_owned()),
            }
        }
    })
    .await
}

/// Waits until this is refused. What a policy knows of other objects than the one that is written it has from a cache of the API
/// server, which follows their last change a moment later.
pub async fn until_refused(attempt: impl Fn() -> Attempt) {
    settled(attempt, true).await;
}

/// The same, until it goes through.
pub async fn until_allowed(attempt: impl Fn() -> Attempt) {
    settled(attempt, false).await;
}

/// Only gives time: what is not so in the end is told, with its line, by the try in earnest that follows.
async fn settled(attempt: impl Fn() -> Attempt, refused: bool) {
    let _ = eventually("the last change is known", IN_FORCE_WITHIN, || {
        let attempt = attempt();
        async move {
            if attempt.await.is_err() == refused {
                Ok(())
            } else {
                Err("not yet")
            }
        }
    })
    .await;
}

/// Something that is tried without effect.
type Attempt = std::pin::Pin<Box<dyn Future<Output = Result<(), kube::Error>> + Send>>;

/// Tries to merge.
fn try_patch<K: Object>(api: &Api<K>, name: &'static str, body: &Value) -> Attempt {
    let (api, body) = (api.clone(), body.clone());
    Box::pin(async move {
        api.patch(name, &PatchParams::default().dry_run(), &Patch::Merge(body))
            .await
            .map(|_| ())
    })
}

/// Tries to apply.
pub fn try_apply<K: Object>(api: &Api<K>, name: &'static str, body: Value) -> Attempt {
    let api = api.clone();
    Box::pin(async move {
        api.patch(
            name,
            &PatchParams::apply("test").force().dry_run(),
            &Patch::Apply(body),
        )
        .await
        .map(|_| ())
    })
}

/// Tries to delete.
pub fn try_delete<K: Object>(api: &Api<K>, name: &'static str) -> Attempt {
    let api = api.clone();
    Box::pin(async move {
        api.delete(name, &kube::api::DeleteParams::default().dry_run())
            .await
            .map(|_| ())
    })
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

fn seed(name: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
        "spec": {
            "dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"},
        },
    })
}

/// What was not as expected, with the line. All of it is told at the end, so that one run shows every gap.
static GAPS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Fails if anything was not as expected.
pub fn no_gaps() {
    let gaps = GAPS.lock().unwrap();
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

/// It went through.
#[track_caller]
pub fn allowed(outcome: Result<(), kube::Error>) {
    if let Err(error) = outcome {
        GAPS.lock().unwrap().push(format!(
            "line {}: it was refused: {error}",
            Location::caller().line()
        ));
    }
}

/// It was refused with these words.
#[track_caller]
pub fn refused(outcome: Result<(), kube::Error>, words: &str) {
    let line = Location::caller().line();
    let gap = match outcome {
        Ok(()) => format!("line {line}: it was allowed; expected: {words}"),
        Err(error) if error.to_string().contains(words) => return,
        Err(error) => format!("line {line}: refused with other words: {error}; expected: {words}"),
    };
    GAPS.lock().unwrap().push(gap);
}

fn is_not_ready(error: &kube::Error) -> bool {
    error.to_string().contains("failed to configure")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents(folder: &str) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    for file in fs::read_dir(root().join(folder)).with_context(|| folder.to_owned())? {
        documents.extend(read(&file?.path())?);
    }
    Ok(documents)
}

fn read(path: &std::path::Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_yaml_ng::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).with_context(|| path.display().to_string()))
        .collect()
}
