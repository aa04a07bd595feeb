//! Test environment for the shoot controller of a gardenlet. A real API server serves as garden and seed,
//! beside a real name server and the source objects of the facts of a shoot.

// Each test uses its part of this module.
#![allow(dead_code)]

pub mod context;

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::{
    constants::{CONFIRMATION_DELETION, PROJECT_NAME, finalizer::GARDENER},
    gardencore::{Seed, Shoot},
};
use http::Method;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use runtime::client::wait::{self, WaitState};
use serde_json::{Value, json};
use testkit::{Asked, ControlPlane, NameServer, WaitBound, apply, eventually};
use tokio::time::{Instant, sleep};

pub const PROJECT: &str = "garden-dev";
/// That of the Shoot `web`.
pub const NAMESPACE: &str = "shoot--dev--web";
pub const CORE: &str = "core.gardener.cloud/v1beta1";
pub const DNS_ZONE: &str = "internal.example.test";
/// The identity of the gardenlet's seed.
pub const OURS: &str = "seed-a-uid";
/// Several tries with their pauses on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);
/// Stack of the thread of a test: the default stack of a test thread overflows in a long test.
const STACK: usize = 16 << 20;

pub struct Ground {
    pub plane: ControlPlane,
    pub client: Client,
    pub dns: NameServer,
    pub shoots: Api<Shoot>,
}

impl Ground {
    /// `checks_owners`: the seed checks the owner of its shoots.
    pub async fn start(name: &str, checks_owners: bool) -> Result<Self> {
        let plane = ControlPlane::start(name).await?;
        let client = plane.admin();
        let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
        testkit::apply_crds(&client, &crds).await?;
        let dns = NameServer::start(&[DNS_ZONE]).await?;
        for object in garden(&dns.address, checks_owners) {
            apply(&client, object).await?;
        }
        let seeds: Api<Seed> = Api::all(client.clone());
        let identity = Patch::Merge(json!({"status": {"clusterIdentity": OURS}}));
        let params = PatchParams::default();
        seeds.patch_status("seed-a", &params, &identity).await?;
        Ok(Self {
            plane,
            shoots: Api::namespaced(client.clone(), PROJECT),
            client,
            dns,
        })
    }

    /// Creates a Shoot with the finalizer of the gardenlet, and deletes the Shoot as its user does.
    pub async fn create_and_delete(&self, mut shoot: Value) -> Result<()> {
        let metadata = &mut shoot["metadata"];
        metadata["annotations"][CONFIRMATION_DELETION] = json!("true");
        metadata["finalizers"] = json!([GARDENER]);
        let name = metadata["name"].as_str().context("a name")?.to_owned();
        apply(&self.client, shoot).await?;
        self.shoots.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until the Shoot of this name is gone.
    pub async fn until_gone(&self, name: &str) -> Result<()> {
        eventually("the Shoot is gone", SOON, || async {
            let shoot = self.shoots.get_opt(name).await;
            match shoot.map_err(|error| error.to_string())? {
                None => Ok(()),
                Some(shoot) => Err(format!("{:?}", shoot.status)),
            }
        })
        .await
    }
}

/// Waits until this holds of the Shoot `web`.
pub async fn until(
    shoots: &Api<Shoot>,
    why: &str,
    holds: impl Fn(&Shoot) -> bool + Send + Sync,
) -> Result<Shoot> {
    let look = |shoot: Option<&Shoot>| {
        if shoot.is_some_and(&holds) {
            WaitState::Done
        } else {
            let status = shoot.and_then(|shoot| shoot.status.as_ref());
            WaitState::Wait(format!("{why}: {status:?}"))
        }
    };
    let end = Instant::now() + SOON;
    let seen = async {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match Box::pin(wait::until(shoots, "web", left, look)).await {
                // A wait ends with the first list that a busy server refuses.
                Err(runtime::Error::Transient(_)) if !left.is_zero() => sleep(Duration::from_secs(1)).await,
                seen => return seen,
            }
        }
    };
    let seen = WaitBound::new(why, SOON).measure(seen).await?;
    seen.context("a Shoot")
}

/// Runs a long test. `stack`: stack size of the threads that run the gardenlet.
pub fn story(stack: usize, work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    let run = move || -> Result<()> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let threads = threads.worker_threads(2).thread_stack_size(stack);
        threads.enable_all().build()?.block_on(work)
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run)?;
    let ended = thread.join();
    ended.map_err(|_| anyhow::anyhow!("the story ended early"))?
}

/// The source objects of the facts of a shoot.
fn garden(authority: &str, checks_owners: bool) -> Vec<Value> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "seed-seed-a", "name": "dns"});
    let checks = json!({"enabled": checks_owners, "authorities": [authority]});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seed-seed-a"}}),
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": PROJECT, "labels": {PROJECT_NAME: "dev"}}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dns", "namespace": "seed-seed-a"},
            "stringData": {"server": authority}}),
        json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": "dev"}, "spec": {"namespace": PROJECT}}),
        json!({"apiVersion": CORE, "kind": "CloudProfile", "metadata": {"name": "local"},
            "spec": {"type": "local", "regions": [{"name": "local"}],
                "kubernetes": {"versions": [{"version": "1.34.4"}]}, "machineImages": [], "machineTypes": []}}),
        json!({"apiVersion": CORE, "kind": "Seed", "metadata": {"name": "seed-a"},
            "spec": {"provider": {"type": "local", "region": "local"},
                "dns": {"internal": {"type": "local", "domain": DNS_ZONE, "credentialsRef": secret}},
                "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "settings": {"ownerChecks": checks}}}),
    ]
}

/// Whether a write of Shoot `web` is a write of the status. `None` for a different request.
pub fn is_write_of_status(asked: &Asked) -> Option<bool> {
    let shoot = format!("/apis/{CORE}/namespaces/{PROJECT}/shoots/web");
    let path = asked.path.split('?').next().unwrap_or_default();
    match path.strip_prefix(&shoot) {
        Some("") if asked.method == Method::PATCH => Some(false),
        Some("/status") if asked.method == Method::PATCH => Some(true),
        _ => None,
    }
}
