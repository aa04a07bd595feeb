//! The real etcd, kube-apiserver, kube-controller-manager and kube-scheduler start with exactly the flags and
//! Secrets that the parts write. Only addresses differ: there is no kubelet and no cluster DNS here.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Secret, ServiceAccount},
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams},
    client::Body,
};
use parts::{
    Deploy, Destroy, Facts, KubeApiserver, KubeApiserverService, KubeControllerManager, KubeScheduler,
    Namespace, Operation, Secrets, Settings, ShootApi, Sleep, UrlOf, Writers,
};
use parts_fixture::{NAMESPACE, World};
use runtime::client::{Cluster, Shoot};
use testkit::{PlayedKubelet, Server, eventually, free_port};

/// Longer than a start on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Seconds from the fence to the end of the last watch, as docs/understand/ownership.md states.
const ENDS_WITHIN: u64 = 65;

#[tokio::test]
async fn the_processes_of_a_shoot_run_with_what_is_written() -> Result<()> {
    let world = World::start("processes").await?;
    let _pods = PlayedKubelet::start(&world.client());
    let [etcd_port, peer_port] = [free_port()?, free_port()?];
    let [api_port, kcm_port, scheduler_port] = [free_port()?, free_port()?, free_port()?];
    let settings = Settings {
        shoot_api_url: UrlOf::new(move |_| format!("https://127.0.0.1:{api_port}")),
        ..Settings::default()
    };
    let facts = world.facts(Operation::Reconcile, settings).await?;
    Namespace::deploy(&facts).await?;
    Secrets::deploy(&facts).await?;
    KubeApiserverService::deploy(&facts).await?;
    KubeApiserver::deploy(&facts).await?;
    KubeControllerManager::deploy(&facts).await?;
    KubeScheduler::deploy(&facts).await?;
    // The pods pass the namespace's pod security admission, otherwise no pod would exist.
    KubeApiserver::ready(&facts).await?;
    KubeControllerManager::ready(&facts).await?;
    KubeScheduler::ready(&facts).await?;
    Box::pin(they_sleep_and_wake(&world, &facts)).await?;

    let folder = tempfile::tempdir()?;
    write_mounts(&world, folder.path(), api_port).await?;
    let etcd = start_etcd(folder.path(), etcd_port, peer_port)?;
    let mut api = start(
        &world,
        folder.path(),
        "kube-apiserver",
        |flag| match flag {
            _ if flag.starts_with("--etcd-servers=") => {
                Some(format!("--etcd-servers=https://127.0.0.1:{etcd_port}"))
            }
            _ if flag.starts_with("--etcd-servers-overrides=") => None,
            _ if flag.starts_with("--secure-port=") => Some(format!("--secure-port={api_port}")),
            _ => Some(flag.to_owned()),
        },
        &[],
    )
    .await?;
    let answered = ShootApi::ready(&facts.residency).await;
    api.check_alive()?;
    answered?;
    let mut kcm = start(
        &world,
        folder.path(),
        "kube-controller-manager",
        |flag| Some(flag.to_owned()),
        &beside_others(kcm_port),
    )
    .await?;
    let mut scheduler = start(
        &world,
        folder.path(),
        "kube-scheduler",
        |flag| Some(flag.to_owned()),
        &beside_others(scheduler_port),
    )
    .await?;

    let shoot = facts.residency.shoot_client().await?;
    controllers_work(&shoot, &mut kcm).await?;
    for port in [api_port, kcm_port, scheduler_port] {
        answers_well(port, "/healthz").await?;
    }
    scheduler.check_alive()?;
    only_health_is_open(api_port).await?;
    is_encrypted(&shoot, etcd_port, folder.path()).await?;
    drop(etcd);
    ends_without_etcd(&world, api_port).await
}

/// Watches of clients continue in a kube-apiserver whose etcd is behind a closed gate. The liveness probe
/// asks etcd, so the kubelet ends this process, and with the process all connections.
async fn ends_without_etcd(world: &World, port: u16) -> Result<()> {
    let api: Api<Deployment> = Api::namespaced(world.client(), NAMESPACE);
    let deployment = serde_json::to_value(api.get("kube-apiserver").await?)?;
    let pod = &deployment["spec"]["template"]["spec"];
    let probe = &pod["containers"][0]["livenessProbe"];
    let path = probe["httpGet"]["path"].as_str().unwrap();
    eventually("the liveness probe fails without etcd", READY_WITHIN, || async {
        match anonymous(port, path).await? {
            500 => Ok(()),
            status => bail!("{port} says {status} to {path}"),
        }
    })
    .await?;
    let seconds = |field: &serde_json::Value| field.as_u64().unwrap();
    let failures = seconds(&probe["failureThreshold"]) * seconds(&probe["periodSeconds"]);
    let within = failures + seconds(&pod["terminationGracePeriodSeconds"]);
    assert!(within <= ENDS_WITHIN, "{within} s");
    Ok(())
}

/// Long leases: the test checks that the managers work, not the release of locks on a machine that is busy
/// with other tests.
fn beside_others(port: u16) -> [String; 3] {
    [
        format!("--secure-port={port}"),
        "--leader-elect-lease-duration=90s".to_owned(),
        "--leader-elect-renew-deadline=60s".to_owned(),
    ]
}

/// kube-controller-manager creates an account in each namespace, so the process is authenticated and may
/// write.
async fn controllers_work(shoot: &Shoot, kcm: &mut Server) -> Result<()> {
    let accounts: Api<ServiceAccount> = shoot.namespaced("default");
    let worked = eventually("kube-controller-manager works", READY_WITHIN, || {
        accounts.get("default")
    })
    .await;
    kcm.check_alive()?;
    worked.map(|_| ())
}

/// A process may refuse for a moment, for example while etcd takes more than two seconds for an answer.
async fn answers_well(port: u16, path: &str) -> Result<()> {
    eventually(
        "a probe without credentials is answered",
        READY_WITHIN,
        || async move {
            let status = anonymous(port, path).await?;
            if status == 200 {
                Ok(())
            } else {
                bail!("{port} says {status} to {path}")
            }
        },
    )
    .await
}

async fn only_health_is_open(port: u16) -> Result<()> {
    answers_well(port, "/readyz").await?;
    answers_well(port, "/livez").await?;
    assert_eq!(anonymous(port, "/version").await?, 401);
    assert_eq!(anonymous(port, "/api/v1/namespaces").await?, 401);
    Ok(())
}

async fn anonymous(port: u16, path: &str) -> Result<u16> {
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.accept_invalid_certs = true;
    let client = Client::try_from(config)?;
    Ok(client
        .send(http::Request::get(path).body(Body::empty())?)
        .await?
        .status()
        .as_u16())
}

/// The data in etcd's files differ from the data that were written to the API.
async fn is_encrypted(shoot: &Shoot, etcd_port: u16, folder: &Path) -> Result<()> {
    let secret: Secret = serde_json::from_value(
        serde_json::json!({"metadata": {"name": "probe"}, "stringData": {"k": "in-plain-sight"}}),
    )?;
    shoot
        .namespaced::<Secret>("default")
        .create(&kube::api::PostParams::default(), &secret)
        .await?;
    let mount = |secret: &str, file: &str| {
        folder
            .join("mounts")
            .join(secret)
            .join(file)
            .display()
            .to_string()
    };
    let output = std::process::Command::new(testkit::find_program("etcdctl")?)
        .args(["get", "/registry/secrets/default/probe", "--print-value-only"])
        .arg(format!("--endpoints=https://127.0.0.1:{etcd_port}"))
        .arg(format!("--cacert={}", mount("ca-etcd", "ca.crt")))
        .arg(format!("--cert={}", mount("etcd-client", "tls.crt")))
        .arg(format!("--key={}", mount("etcd-client", "tls.key")))
        // The defaults of etcdctl are two and five seconds.
        .args(["--dial-timeout=60s", "--command-timeout=60s"])
        .output()?;
    let stored = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        stored.contains("k8s:enc:secretbox:v1:key1:"),
        "{stored} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!stored.contains("in-plain-sight"));
    Ok(())
}

fn start_etcd(folder: &Path, port: u16, peer: u16) -> Result<Server> {
    let mount = |secret: &str, file: &str| {
        folder
            .join("mounts")
            .join(secret)
            .join(file)
            .display()
            .to_string()
    };
    let args = [
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=https://127.0.0.1:{port}"),
        format!("--advertise-client-urls=https://127.0.0.1:{port}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
        format!("--cert-file={}", mount("etcd-server", "tls.crt")),
        format!("--key-file={}", mount("etcd-server", "tls.key")),
        format!("--trusted-ca-file={}", mount("ca-etcd", "ca.crt")),
        "--client-cert-auth=true".to_owned(),
        "--unsafe-no-fsync".to_owned(),
    ];
    Server::start("shoot-etcd", "etcd", folder, args, &[])
}

/// Starts the process of a Deployment with the Deployment's own flags; `change` replaces addresses or drops a
/// flag.
async fn start(
    world: &World,
    folder: &Path,
    name: &str,
    change: impl Fn(&str) -> Option<String>,
    more: &[String],
) -> Result<Server> {
    let deployment: Deployment = world.read(name).await?;
    let pod = deployment
        .spec
        .and_then(|spec| spec.template.spec)
        .context("no pod")?;
    let flags = pod.containers[0].args.clone().context("no flags")?;
    let mounts = format!("{}/", folder.join("mounts").display());
    let flags = flags
        .iter()
        .filter_map(|flag| change(flag))
        .map(|flag| flag.replace("/srv/kubernetes/", &mounts));
    Server::start(
        &format!("shoot-{name}"),
        name,
        folder,
        flags.chain(more.iter().cloned()),
        &[],
    )
}

/// Writes the files that a kubelet would mount into the pods.
async fn write_mounts(world: &World, folder: &Path, api_port: u16) -> Result<()> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for (name, secret) in world.secrets().await? {
        all.insert(
            name,
            secret
                .data
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key, value.0))
                .collect(),
        );
    }
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client(), NAMESPACE);
    for map in config_maps.list(&ListParams::default()).await? {
        let data = map
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.into_bytes()));
        all.insert(map.metadata.name.unwrap_or_default(), data.collect());
    }
    for (name, files) in all {
        let place = folder.join("mounts").join(name);
        fs::create_dir_all(&place)?;
        for (file, content) in files {
            let content = String::from_utf8(content)?
                .replace("https://kube-apiserver", &format!("https://127.0.0.1:{api_port}"));
            fs::write(place.join(file), content)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn deleting_kube_apiserver_leaves_no_pod_and_no_autoscaler() -> Result<()> {
    let world = World::start("deletion").await?;
    let _pods = PlayedKubelet::start(&world.client());
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&facts).await?;
    Secrets::deploy(&facts).await?;
    KubeApiserver::deploy(&facts).await?;
    KubeApiserver::ready(&facts).await?;
    let before: Deployment = world.read("kube-apiserver").await?;
    // Deploying twice changes nothing (I5).
    Secrets::deploy(&facts).await?;
    KubeApiserver::deploy(&facts).await?;
    let after: Deployment = world.read("kube-apiserver").await?;
    assert_eq!(before.metadata.generation, after.metadata.generation);

    let scaler = serde_json::json!({"spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kube-apiserver"}}});
    world
        .apply(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            Some(NAMESPACE),
            "kube-apiserver",
            scaler,
        )
        .await?;
    Writers::destroy(&facts.residency).await?;
    Writers::gone(&facts.residency).await?;
    let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 0);
    let scalers = world.any("autoscaling/v2", "HorizontalPodAutoscaler", Some(NAMESPACE));
    assert_eq!(scalers.list(&ListParams::default()).await?.items.len(), 0);
    assert!(!KubeApiserver::exists(&facts.residency).await?);
    // A second run, without any object.
    Writers::destroy(&facts.residency).await?;
    Writers::gone(&facts.residency).await.map_err(Into::into)
}

/// No process is left, including terminating processes, and the objects are unchanged. A part that never
/// existed is created stopped.
async fn they_sleep_and_wake(world: &World, facts: &Facts) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(world.client(), NAMESPACE);
    let before = deployments
        .get("kube-apiserver")
        .await?
        .spec
        .map(|spec| spec.template);
    deployments
        .delete("kube-scheduler", &DeleteParams::default())
        .await?;
    for _ in 0..2 {
        KubeControllerManager::sleep(facts).await?;
        KubeScheduler::sleep(facts).await?;
        KubeApiserver::sleep(facts).await?;
        KubeControllerManager::asleep(facts).await?;
        KubeScheduler::asleep(facts).await?;
        KubeApiserver::asleep(facts).await?;
    }
    let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 0);
    let scheduler = deployments.get("kube-scheduler").await?.spec.unwrap();
    assert_eq!(scheduler.replicas, Some(0));
    let after = deployments
        .get("kube-apiserver")
        .await?
        .spec
        .map(|spec| spec.template);
    assert_eq!(before, after);
    assert!(KubeApiserver::exists(&facts.residency).await? && KubeApiserver::sleeps(&facts.residency).await?);
    KubeApiserver::deploy(facts).await?;
    KubeControllerManager::deploy(facts).await?;
    KubeScheduler::deploy(facts).await?;
    KubeApiserver::ready(facts).await?;
    KubeControllerManager::ready(facts).await?;
    KubeScheduler::ready(facts).await?;
    assert!(!KubeApiserver::sleeps(&facts.residency).await?);
    Ok(())
}
