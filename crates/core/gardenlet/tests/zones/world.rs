//! A real API server that serves as garden, seed and shoot, with the shoot controller of a gardenlet.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{OPERATION, condition},
    extensions::{Infrastructure, SubnetIsolation},
    gardencore::{
        Seed as SeedObject, Shoot,
        shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
    meta::find_condition,
};
use gardenlet::shoot;
use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::{Namespace, Node, Pod, ServiceAccount},
    events::v1::Event,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    config::KubeConfigOptions,
};
use parts::{Settings, UrlOf};
use runtime::{
    client::{
        Connection, Permit,
        wait::{self, WaitState},
    },
    clock,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, NameServer, apply, eventually};
use tokio::task::JoinSet;

use crate::ground::{self, CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

pub const ISOLATED: &str = "shoot.gardener.cloud/isolated-zone";
pub const CLOSE_NOW: &str = "shoot.gardener.cloud/isolated-zone-close-now";
pub const DRY_RUN: &str = "shoot.gardener.cloud/isolated-zone-dry-run";
const ZONE_ID: &str = "topology.k8s.aws/zone-id";

pub struct World {
    plane: ControlPlane,
    pub client: Client,
    pub shoots: Api<Shoot>,
    _dns: NameServer,
}

/// Runs the test with threads like the gardenlet (`runtime::process::Process`).
pub fn story(work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    ground::story(8 << 20, work)
}

/// The last operation of a healthy shoot.
pub fn succeeded() -> Value {
    json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "", "lastUpdateTime": clock::now_k8s()})
}

impl World {
    /// `checks_owners`: the seed checks the owner of its shoots.
    pub async fn start(name: &str, checks_owners: bool) -> Result<Self> {
        let ground = Box::pin(Ground::start(name, checks_owners)).await?;
        for object in [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud", "namespace": PROJECT},
                "stringData": {"token": "none"}}),
            json!({"apiVersion": CORE, "kind": "SecretBinding", "metadata": {"name": "cloud", "namespace": PROJECT},
                "provider": {"type": "local"}, "secretRef": {"name": "cloud"}}),
        ] {
            apply(&ground.client, object).await?;
        }
        Ok(Self {
            plane: ground.plane,
            shoots: ground.shoots,
            client: ground.client,
            _dns: ground.dns,
        })
    }

    /// The Shoot `web`, with two pools.
    pub async fn shoot(&self, status: Value) -> Result<()> {
        let shoot = apply(&self.client, shoot_of("web", "seed-a")).await?;
        if status.is_null() {
            return Ok(());
        }
        let mut status = status;
        status["observedGeneration"] = json!(shoot.metadata.generation);
        status["technicalID"] = json!(NAMESPACE);
        status["uid"] = json!(shoot.metadata.uid);
        self.status(status).await?;
        let metadata =
            json!({"name": NAMESPACE, "annotations": {"shoot.gardener.cloud/uid": shoot.metadata.uid}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        apply(&self.client, namespace).await?;
        Ok(())
    }

    /// The credentials of the gardenlet for the API of the shoot.
    pub async fn shoot_api(&self) -> Result<()> {
        let authority = self.plane.authority();
        let user = authority.user("gardenlet", &["system:masters"])?;
        let trusted = json!({"ca.crt": authority.certificate()});
        let login = json!({"tls.crt": user.certificate, "tls.key": user.key});
        for (name, data) in [("ca", trusted), ("gardenlet", login)] {
            let metadata = json!({"name": name, "namespace": NAMESPACE});
            let secret =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data});
            apply(&self.client, secret).await?;
        }
        Ok(())
    }

    pub fn gardenlet(&self) -> Result<JoinSet<()>> {
        self.gardenlet_with(&[])
    }

    pub fn gardenlet_with(&self, flags: &[&str]) -> Result<JoinSet<()>> {
        let mut context = context(&self.client, flags)?;
        let url = self.plane.url().to_owned();
        context.settings = Arc::new(Settings {
            shoot_api_url: UrlOf::new(move |_| url.clone()),
            ..context.config.settings()
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Box::pin(shoot::run(Arc::new(context))));
        Ok(tasks)
    }

    /// A Node of the seed and of the shoot.
    pub async fn node(&self, name: &str, id: &str, zone: &str, is_ready: bool) -> Result<()> {
        let labels = json!({ZONE_ID: id, "topology.kubernetes.io/zone": zone});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        apply(&self.client, node).await?;
        self.ready(name, is_ready).await
    }

    /// Nodes that are not Ready, of more bytes together than an answer of a shoot may have.
    pub async fn heavy_nodes(&self, count: usize) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        for number in 0..count {
            let name = format!("heavy-{number}");
            self.node(&name, "id-c", "c", false).await?;
            let image = json!({"names": ["x".repeat(700 << 10)], "sizeBytes": 1});
            let body = json!({"status": {"images": [image]}});
            nodes
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(body))
                .await?;
        }
        let login = self.plane.kubeconfig("gardenlet", &["system:masters"])?;
        let config = kube::Config::from_custom_kubeconfig(login, &KubeConfigOptions::default()).await?;
        let bounded = Connection::to_users_cluster(config)?;
        let bounded: Api<Node> = Api::all(bounded.client(&Permit::sole("a test")));
        let refused = bounded.list(&ListParams::default()).await;
        ensure!(refused.is_err(), "an answer of any size was taken");
        Ok(())
    }

    pub async fn ready(&self, name: &str, is_ready: bool) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let status = if is_ready { "True" } else { "False" };
        let body = json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "x", "message": ""}]}});
        nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(body))
            .await?;
        Ok(())
    }

    pub async fn etcd_on(&self, node: &str) -> Result<()> {
        let labels = json!({"app.kubernetes.io/component": "etcd-statefulset"});
        self.pod(NAMESPACE, "etcd-main-0", json!({"nodeName": node}), labels)
            .await
    }

    pub async fn move_etcd_to(&self, node: &str) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let at_once = DeleteParams::default().grace_period(0);
        pods.delete("etcd-main-0", &at_once).await?;
        self.etcd_on(node).await
    }

    async fn pod(&self, namespace: &str, name: &str, mut spec: Value, labels: Value) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        eventually("pods can be made", SOON, || accounts.get("default")).await?;
        // Like the pods of a control plane: the namespace rejects all pods without these settings once a flow
        // has made the namespace restricted.
        spec["securityContext"] =
            json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}});
        let confined = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        spec["containers"] = json!([{"name": "a", "image": "none", "securityContext": confined}]);
        let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        apply(&self.client, pod).await.map(drop)
    }

    /// Three machines, two of the machines in zone `a`, and a pod that is bound to zone `a`.
    pub async fn machines_and_volumes(&self) -> Result<()> {
        for (name, pool, zone) in [("m-1", "both", "a"), ("m-2", "both", "b"), ("m-3", "narrow", "a")] {
            let labels = json!({"worker.gardener.cloud/pool": pool, "topology.kubernetes.io/zone": zone});
            let class = json!({"class": {"kind": "MachineClass", "name": "c"}});
            apply(
                &self.client,
                json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "spec": class,
                    "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}}),
            )
            .await?;
        }
        let wanted = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]});
        apply(
            &self.client,
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"},
                "claimRef": {"namespace": "default", "name": "data-db-0"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}}}),
        )
        .await?;
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]);
        self.pod("default", "db-0", json!({"volumes": volumes}), json!({}))
            .await
    }

    /// Makes the shoot a Seed that hosts a different shoot.
    pub async fn hosts_as(&self, seed: &str) -> Result<()> {
        let system: Api<Namespace> = Api::all(self.client.clone());
        let uid = system.get("kube-system").await?.metadata.uid;
        apply(
            &self.client,
            json!({"apiVersion": CORE, "kind": "Seed", "metadata": {"name": seed},
                "spec": {"provider": {"type": "local", "region": "local"}, "dns": {},
                    "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}}}),
        )
        .await?;
        let seeds: Api<SeedObject> = Api::all(self.client.clone());
        let identity = Patch::Merge(json!({"status": {"clusterIdentity": uid}}));
        seeds
            .patch_status(seed, &PatchParams::default(), &identity)
            .await?;
        apply(&self.client, shoot_of("guest", seed)).await.map(drop)
    }

    /// The Infrastructure of the shoot, with the zones by name and ID.
    pub async fn infrastructure(&self, zones: &[(&str, &str)]) -> Result<()> {
        let spec =
            json!({"type": "local", "region": "local", "secretRef": {"name": "cloud", "namespace": PROJECT}});
        let metadata = json!({"name": "web", "namespace": NAMESPACE});
        apply(
            &self.client,
            json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure",
                "metadata": metadata, "spec": spec}),
        )
        .await?;
        let zones: Vec<_> = zones
            .iter()
            .map(|(name, id)| json!({"name": name, "id": id}))
            .collect();
        let status = Patch::Merge(json!({"status": {"providerStatus": {"zones": zones}}}));
        let objects: Api<Infrastructure> = Api::namespaced(self.client.clone(), NAMESPACE);
        objects
            .patch_status("web", &PatchParams::default(), &status)
            .await?;
        Ok(())
    }

    pub async fn hosts_nothing(&self, seed: &str) -> Result<()> {
        let seeds: Api<SeedObject> = Api::all(self.client.clone());
        self.shoots.delete("guest", &DeleteParams::default()).await?;
        seeds.delete(seed, &DeleteParams::default()).await?;
        Ok(())
    }

    pub async fn annotate(&self, key: &str, value: Value) -> Result<()> {
        let body = json!({"metadata": {"annotations": {key: value}}});
        self.shoots
            .patch("web", &PatchParams::default(), &Patch::Merge(body))
            .await?;
        Ok(())
    }

    pub async fn reconcile(&self) -> Result<()> {
        self.annotate(OPERATION, json!("reconcile")).await
    }

    pub async fn status(&self, status: Value) -> Result<()> {
        let body = Patch::Merge(json!({"status": status}));
        self.shoots
            .patch_status("web", &PatchParams::default(), &body)
            .await?;
        Ok(())
    }

    /// Requests a dry run, and returns the answer.
    pub async fn asked(&self, zone: &str) -> Result<String> {
        self.annotate(DRY_RUN, json!(zone)).await?;
        let answered = self.until("no answer", |shoot| !shoot.annotations().contains_key(DRY_RUN));
        let status = answered.await?.status.context("a status")?;
        let told = find_condition(&status.conditions, condition::ZONE_ISOLATION_DRY_RUN);
        Ok(told.context("a condition")?.message.clone())
    }

    /// Waits for the condition with this reason, and returns the message.
    pub async fn until_reason(&self, reason: &str, is: (Phase, Status)) -> Result<String> {
        let seen = self.until(reason, |shoot| {
            let status = shoot.status.as_ref();
            let told =
                status.and_then(|status| find_condition(&status.conditions, condition::ZONE_ISOLATION));
            is_recorded(shoot, is) && told.is_some_and(|told| told.reason == reason)
        });
        message_of(&seen.await?)
    }

    pub async fn until_message(&self, part: &str) -> Result<String> {
        let seen = self.until(part, |shoot| {
            message_of(shoot).is_ok_and(|message| message.contains(part))
        });
        message_of(&seen.await?)
    }

    /// Sets or removes the isolated zone, and edits the Shoot: the new generation distinguishes the next flow
    /// from the previous flow.
    pub async fn change_zone(&self, zone: Value, purpose: &str) -> Result<i64> {
        let body = json!({"metadata": {"annotations": {ISOLATED: zone}}, "spec": {"purpose": purpose}});
        let changed = self
            .shoots
            .patch("web", &PatchParams::default(), &Patch::Merge(body))
            .await?;
        changed.metadata.generation.context("a generation")
    }

    /// The flow of a generation has recorded this phase and waits in a task that never ends here, since no
    /// process writes the owner record.
    pub async fn until_flow_waits(&self, generation: i64, is: (Phase, Status)) -> Result<()> {
        let waits = self.until("its flow does not wait", |shoot| {
            let status = shoot.status.as_ref();
            let last = status.and_then(|status| status.last_operation.as_ref());
            status.and_then(|status| status.observed_generation) == Some(generation)
                && is_recorded(shoot, is)
                && last.is_some_and(|last| last.description.contains("owner domain DNS record"))
        });
        waits.await.map(drop)
    }

    /// The flow hangs at the task that does not end here, without any zone.
    pub async fn until_plain_flow_waits(&self) -> Result<()> {
        let waits = self.until("its flow does not wait", |shoot| {
            let status = shoot.status.as_ref();
            let last = status.and_then(|status| status.last_operation.as_ref());
            last.is_some_and(|last| last.description.contains("owner domain DNS record"))
        });
        waits.await.map(drop)
    }

    /// The Worker of the Shoot `web`.
    pub async fn worker(&self) -> Result<()> {
        let metadata = json!({"name": "web", "namespace": NAMESPACE});
        let spec = json!({"type": "local", "region": "local", "pools": [],
            "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}});
        let worker = json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker",
            "metadata": metadata, "spec": spec});
        apply(&self.client, worker).await.map(drop)
    }

    /// The deadline in the status, once the deadline is not later than this.
    pub async fn until_deadline(&self, latest: Timestamp) -> Result<Timestamp> {
        let deadline = |shoot: &Shoot| {
            let recorded = shoot.status.as_ref()?.zone_isolation.as_ref()?;
            Some(recorded.close_deadline_time.as_ref()?.0)
        };
        let seen = self.until("the deadline is too late", |shoot| {
            deadline(shoot).is_some_and(|deadline| deadline <= latest)
        });
        deadline(&seen.await?).context("a deadline")
    }

    /// The request to close the network has had an effect.
    pub async fn until_request_is_removed(&self) -> Result<()> {
        let removed = self.until("the request stays", |shoot| {
            !shoot.annotations().contains_key(CLOSE_NOW)
        });
        removed.await.map(drop)
    }

    /// The provider has closed the network.
    pub async fn network_is_closed(&self) -> Result<()> {
        let objects: Api<SubnetIsolation> = Api::namespaced(self.client.clone(), NAMESPACE);
        let params = PatchParams::default();
        let taken = Patch::Merge(json!({"metadata": {"annotations": {OPERATION: null}}}));
        let object = objects.patch("web", &params, &taken).await?;
        let status = json!({"observedGeneration": object.metadata.generation, "lastOperation": succeeded()});
        objects
            .patch_status("web", &params, &Patch::Merge(json!({"status": status})))
            .await?;
        Ok(())
    }

    /// The controller has seen all earlier changes.
    pub async fn looks_at_another_shoot(&self) -> Result<()> {
        apply(&self.client, shoot_of("later", "seed-a")).await?;
        let look = |shoot: Option<&Shoot>| match shoot
            .and_then(|shoot| shoot.status.as_ref()?.last_operation.as_ref())
        {
            Some(_) => WaitState::Done,
            None => WaitState::Wait("it has no status".into()),
        };
        let looked = testkit::measured("another Shoot has a status", SOON, |bound| {
            wait::until(&self.shoots, "later", bound, look)
        });
        looked.await?;
        Ok(())
    }

    /// Waits for an Event with this reason about the Shoot.
    pub async fn event(&self, reason: &str) -> Result<()> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), PROJECT);
        eventually("it is told by an Event", SOON, || async {
            let all = events.list(&ListParams::default()).await;
            let all = all.map_err(|error| error.to_string())?;
            let reasons: Vec<_> = all.iter().filter_map(|event| event.reason.clone()).collect();
            if reasons.iter().any(|other| other == reason) {
                Ok(())
            } else {
                Err(format!("{reasons:?}"))
            }
        })
        .await
    }

    async fn until(&self, why: &str, holds: impl Fn(&Shoot) -> bool + Send + Sync) -> Result<Shoot> {
        ground::until(&self.shoots, why, holds).await
    }
}

fn is_recorded(shoot: &Shoot, is: (Phase, Status)) -> bool {
    let status = shoot.status.as_ref();
    let recorded = status.and_then(|status| status.zone_isolation.as_ref());
    recorded.map(|recorded| (recorded.phase, recorded.status)) == Some(is)
}

fn message_of(shoot: &Shoot) -> Result<String> {
    let status = shoot.status.as_ref().context("a status")?;
    let told = find_condition(&status.conditions, condition::ZONE_ISOLATION);
    Ok(told.context("the condition")?.message.clone())
}

fn shoot_of(name: &str, seed: &str) -> Value {
    let pool = |name: &str, zones: &[&str]| {
        json!({"name": name, "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}},
            "minimum": 1, "maximum": 2, "zones": zones})
    };
    json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": name, "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": seed, "secretBindingName": "cloud",
            "networking": {"type": "local", "nodes": "10.250.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
            "kubernetes": {"version": "1.34.4"},
            "provider": {"type": "local", "workers": [pool("both", &["a", "b"]), pool("narrow", &["a"])]}}})
}
