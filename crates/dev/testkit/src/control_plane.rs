//! etcd, kube-apiserver and kube-controller-manager as processes on loopback.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;

use crate::pki::{self, Authority};
use crate::ports;
use crate::process::Server;
use crate::wait::eventually;

/// Far longer than a start takes. A start takes about five seconds on an idle machine with two cores, and
/// tests start up to eight control planes at once. The end of a process is noticed immediately, so the
/// timeout only bounds a process that hangs.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A test's API server lives for a minute or two, and the garbage is gone afterwards. Later collection saves
/// a sixth of the CPU time, and the limit bounds the memory.
const FEWER_COLLECTIONS: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "700MiB")];

/// The group with all rights.
const ADMINISTRATORS: &str = "system:masters";

/// A cluster without nodes: the API and the controllers (namespaces, garbage collection, workloads, tokens,
/// signing).
pub struct ControlPlane {
    name: String,
    url: String,
    authority: Authority,
    admin: Client,
    // Dropped in this order: no client is left that would log errors about an ended server.
    controllers: Option<Server>,
    api_server: Option<Server>,
    etcd: Option<Server>,
    etcd_url: String,
    flags: Vec<String>,
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a control plane and waits until the control plane is ready. The name is for logs.
    pub async fn start(name: &str) -> Result<Self> {
        Self::start_with(name, Vec::new()).await
    }

    /// As [`Self::start`], with further flags of the API server; paths in the flags are absolute.
    pub async fn start_with(name: &str, flags: Vec<String>) -> Result<Self> {
        Self::begin(name, flags)
            .await
            .with_context(|| format!("control plane {name}"))
    }

    /// Starts several side by side.
    pub async fn start_all<const N: usize>(names: [&str; N]) -> Result<[Self; N]> {
        let all = try_join_all(names.map(Self::start)).await?;
        all.try_into()
            .map_err(|_| anyhow::anyhow!("a control plane was lost"))
    }

    async fn begin(name: &str, flags: Vec<String>) -> Result<Self> {
        // Several modules of a test binary may set a TLS provider; the first provider counts.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::Builder::new()
            .prefix(&format!("repot-{name}-"))
            .tempdir()?;
        let authority = Authority::new(&format!("{name} CA"))?;
        let port = ports::free()?;
        let url = format!("https://127.0.0.1:{port}");
        prepare(folder.path(), &authority, &url)?;
        let (etcd, etcd_url) = start_etcd(name, folder.path())?;
        let api_server = start_api_server(name, folder.path(), &etcd_url, port, &flags)?;
        let admin = client(&authority, &url, "testkit", &[ADMINISTRATORS]).await?;
        let mut plane = Self {
            name: name.to_owned(),
            url,
            authority,
            admin,
            controllers: None,
            api_server: Some(api_server),
            etcd: Some(etcd),
            etcd_url,
            flags,
            folder,
        };
        plane.wait_until_api_ready().await?;
        plane.controllers = Some(start_controllers(name, plane.folder.path())?);
        plane.wait_until_controllers_work().await?;
        Ok(plane)
    }

    /// The name from the start.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Address of the API.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Address of the etcd behind the API server, without TLS.
    #[must_use]
    pub fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// The certificate authority of the API server and of the API server's users.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A client with all rights.
    #[must_use]
    pub fn admin(&self) -> Client {
        self.admin.clone()
    }

    /// A client of this user in these groups, two at most.
    pub async fn client(&self, user: &str, groups: &[&str]) -> Result<Client> {
        client(&self.authority, &self.url, user, groups).await
    }

    /// A kubeconfig of this user in these groups, for a process under test.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<Kubeconfig> {
        kubeconfig(&self.authority, &self.url, user, groups)
    }

    /// A kubeconfig file with all rights, e.g. for kubectl.
    #[must_use]
    pub fn admin_kubeconfig_file(&self) -> std::path::PathBuf {
        self.folder.path().join("admin.kubeconfig")
    }

    /// Stops the controllers after the setup: no controller then reports a Node with a fake kubelet as
    /// unhealthy.
    pub fn stop_controllers(&mut self) {
        self.controllers = None;
    }

    /// Stops the API server: every request fails from now on, the data stays.
    pub fn stop_api(&mut self) {
        self.api_server = None;
    }

    /// Stops etcd for good: the API server continues without etcd.
    pub fn stop_etcd(&mut self) {
        self.etcd = None;
    }

    /// Starts the API server again, on the same address, and waits until the API server is ready.
    pub async fn start_api(&mut self) -> Result<()> {
        let port = self.url.rsplit(':').next().unwrap_or_default().parse()?;
        self.api_server = Some(start_api_server(
            &self.name,
            self.folder.path(),
            &self.etcd_url,
            port,
            &self.flags,
        )?);
        self.wait_until_api_ready().await
    }

    async fn wait_until_api_ready(&mut self) -> Result<()> {
        let admin = self.admin.clone();
        let (etcd, api_server) = (&mut self.etcd, &mut self.api_server);
        let ready = eventually("the API server is ready", READY_WITHIN, || {
            // An ended process never becomes ready: report the log instead of waiting.
            let processes = etcd.iter_mut().chain(api_server.iter_mut());
            let ended = processes.map(Server::check_alive).find_map(Result::err);
            let admin = admin.clone();
            async move {
                if let Some(ended) = ended {
                    return Ok(Err(ended));
                }
                let request = http::Request::get("/readyz").body(Vec::new())?;
                admin
                    .request_text(request)
                    .await
                    .map(|_| Ok(()))
                    .map_err(anyhow::Error::from)
            }
        });
        ready.await?
    }

    /// The service account that the controllers make in every namespace is there: tests may create pods.
    async fn wait_until_controllers_work(&mut self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin.clone(), "default");
        let controllers = &mut self.controllers;
        // Not a watch, because a watch would not notice the end of the process.
        let work = eventually("kube-controller-manager makes accounts", READY_WITHIN, || {
            let ended = controllers
                .as_mut()
                .and_then(|controllers| controllers.check_alive().err());
            let accounts = accounts.clone();
            async move {
                match ended {
                    Some(ended) => Ok(Err(ended)),
                    None => accounts.get("default").await.map(|_| Ok(())),
                }
            }
        });
        work.await?
    }
}

/// Writes the input files of the processes.
fn prepare(folder: &Path, authority: &Authority, url: &str) -> Result<()> {
    authority.write(folder, "ca")?;
    let names = [
        "127.0.0.1",
        "localhost",
        "kubernetes.default.svc",
        "10.0.0.1",
        // A gardenlet uses this name for the API of a shoot.
        "kube-apiserver",
    ];
    authority.server(&names)?.write(folder, "server")?;
    let (private, public) = pki::keys()?;
    fs::write(folder.join("service-account.key"), private)?;
    fs::write(folder.join("service-account.pub"), public)?;
    for (file, user) in [
        ("admin", "testkit"),
        ("controllers", "system:kube-controller-manager"),
    ] {
        let config = kubeconfig(authority, url, user, &[ADMINISTRATORS])?;
        fs::write(
            folder.join(format!("{file}.kubeconfig")),
            serde_yaml_ng::to_string(&config)?,
        )?;
    }
    Ok(())
}

fn start_etcd(name: &str, folder: &Path) -> Result<(Server, String)> {
    let client = format!("http://127.0.0.1:{}", ports::free()?);
    let peer = format!("http://127.0.0.1:{}", ports::free()?);
    let args = [
        "--name=default".to_owned(),
        "--data-dir=etcd".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // 8 GiB, as docs/operate/install-requirements.md asks for the garden.
        "--quota-backend-bytes=8589934592".to_owned(),
        // The data need not outlive the test.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    Ok((
        Server::start(&format!("{name}-etcd"), "etcd", folder, args, &[])?,
        client,
    ))
}

fn start_api_server(
    name: &str,
    folder: &Path,
    etcd_url: &str,
    port: u16,
    flags: &[String],
) -> Result<Server> {
    let args = [
        format!("--etcd-servers={etcd_url}"),
        // As docs/operate/install-requirements.md asks for the garden.
        "--etcd-compaction-interval=1m".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={port}"),
        "--tls-cert-file=server.crt".to_owned(),
        "--tls-private-key-file=server.key".to_owned(),
        "--client-ca-file=ca.crt".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--service-account-key-file=service-account.pub".to_owned(),
        "--service-account-signing-key-file=service-account.key".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
    ];
    Server::start(
        &format!("{name}-kube-apiserver"),
        "kube-apiserver",
        folder,
        args.iter().chain(flags),
        &FEWER_COLLECTIONS,
    )
}

fn start_controllers(name: &str, folder: &Path) -> Result<Server> {
    let args = [
        "--kubeconfig=controllers.kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
        "--service-account-private-key-file=service-account.key",
        "--root-ca-file=ca.crt",
        "--cluster-signing-cert-file=ca.crt",
        "--cluster-signing-key-file=ca.key",
        // Tests create and delete many objects at once; the defaults would make them wait for the limit.
        "--kube-api-qps=300",
        "--kube-api-burst=600",
        // Kubelets are fakes, and do not renew their status.
        "--node-monitor-grace-period=1h",
        "--node-startup-grace-period=1h",
        // Pods are fakes with addresses that Endpoints refuse: these controllers would retry for ever.
        "--controllers=*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller",
    ];
    Server::start(
        &format!("{name}-kube-controller-manager"),
        "kube-controller-manager",
        folder,
        args,
        &[],
    )
}

fn kubeconfig(authority: &Authority, url: &str, user: &str, groups: &[&str]) -> Result<Kubeconfig> {
    let identity = authority.user(user, groups)?;
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {
            "server": url,
            "certificate-authority-data": STANDARD.encode(authority.certificate()),
        }}],
        "users": [{"name": "test", "user": {
            "client-certificate-data": STANDARD.encode(&identity.certificate),
            "client-key-data": STANDARD.encode(&identity.key),
        }}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    });
    Ok(serde_json::from_value(config)?)
}

async fn client(authority: &Authority, url: &str, user: &str, groups: &[&str]) -> Result<Client> {
    let kubeconfig = kubeconfig(authority, url, user, groups)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
