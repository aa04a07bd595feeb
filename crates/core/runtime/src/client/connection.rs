//! Connections to API servers: the only place of the workspace that creates clients. A client is created for
//! a permit, and the client's requests leave the process only while that permit is valid.

use std::{path::Path, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use permit::Permit;
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    bounds::{
        paged_list,
        pruning::Without,
        response_size::{self, Answers},
    },
    client::{
        multiplexed::{self, Sender},
        pooled,
    },
};

/// Timeout for opening a connection. TCP repeats a lost SYN packet after 1, 3 and 7 s. A server that becomes
/// reachable late is thus retried before the timeout.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// For clusters with untrusted users, who can create objects of any size.
const OF_USERS: Answers = Answers {
    most: paged_list::ANSWER,
    ..Answers::WHOLE
};
/// For the clusters that a process works in. A reader of `metadata.managedFields` needs a separate
/// connection.
const OF_OURS: Answers = Answers {
    without: Without::ManagedFields,
    ..Answers::WHOLE
};

/// A connection to an API server. A `Connection` sends nothing alone: [`Self::client`] gives a client to the
/// holder of a permit. JSON that is nested too deep to be decoded is cut out of every answer. Otherwise a
/// single such object would end the watch of all objects.
#[derive(Clone)]
pub struct Connection(Way, Answers);

#[derive(Clone)]
enum Way {
    Usual(Client),
    Own(Sender, String),
}

impl Connection {
    /// For short-lived requests. Opens no connection yet. Callers must set a timeout: a reachable server that
    /// does not answer holds a request up.
    ///
    /// # Errors
    /// An invalid address, certificate or key.
    pub fn new(config: Config) -> kube::Result<Self> {
        Self::usual(config, Answers::WHOLE)
    }

    /// As [`Connection::new`], for a cluster with untrusted users: an answer of more than 4 MiB is an error.
    /// Two kinds of requests are exempt: a watch, which has no end, and a list with pages, which gets smaller
    /// pages. See [`survey`](crate::bounds::survey).
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn to_users_cluster(config: Config) -> kube::Result<Self> {
        Self::usual(config, OF_USERS)
    }

    /// As [`Connection::to_users_cluster`], for a server whose address a tenant names: a request with the
    /// whole answer takes at most `within`, also if the server sends a byte a second. Callers must bound the
    /// time of a watch, which ends after 4 MiB.
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn to_tenants_server(config: Config, within: Duration) -> kube::Result<Self> {
        Self::usual(config, OF_USERS.within(within))
    }

    /// As [`Connection::new`], with a single connection for all requests under way, for processes with many
    /// watches: see `multiplexed`. The server must speak HTTP/2, as a kube-apiserver does; a server without
    /// TLS gets ordinary connections.
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn multiplexed(config: Config) -> kube::Result<Self> {
        Self::multiplexed_within(config, Answers::WHOLE)
    }

    /// As [`Connection::multiplexed`], with answers bounded as by [`Connection::to_users_cluster`].
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn multiplexed_to_users_cluster(config: Config) -> kube::Result<Self> {
        Self::multiplexed_within(config, OF_USERS)
    }

    /// One connection for each request under way. Behind a proxy, kube opens the connections. There, request
    /// bytes in the kernel's buffers may outlive the permit.
    fn usual(mut config: Config, answers: Answers) -> kube::Result<Self> {
        // kube repeats a request after 429 or 503 for minutes. The controllers repeat requests themselves,
        // and a refused eviction has to be reported at once.
        config.default_retry = false;
        if config.proxy_url.is_some() {
            return Client::try_from(config).map(|client| Self(Way::Usual(client), answers));
        }
        let sender = pooled::sender_with_timeouts(&config)?;
        Ok(Self(Way::Own(sender, config.default_namespace), answers))
    }

    fn multiplexed_within(config: Config, answers: Answers) -> kube::Result<Self> {
        if config.cluster_url.scheme_str() == Some("https") {
            let sender = multiplexed::sender(&config)?;
            Ok(Self(Way::Own(sender, config.default_namespace), answers))
        } else {
            Self::usual(config, answers)
        }
    }

    /// The same connection, whose server may compress answers of more than 128 KiB (gzip). For a caller at a
    /// slow line to a trusted server: an answer is decompressed without a bound.
    #[must_use]
    pub fn compressed(self) -> Self {
        let answers = Answers {
            zipped: true,
            ..self.1
        };
        Self(self.0, answers)
    }

    /// From the kubeconfig named by `flag`, or from the pod's ServiceAccount without a kubeconfig.
    ///
    /// # Errors
    /// A sentence with the remedy for the flag. The sentence quotes nothing of the file.
    pub async fn of_flag(flag: &str, kubeconfig: Option<&Path>) -> Result<Self, String> {
        let config = match kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path).map_err(|e| match e {
                    // The parser quotes lines around the error, and these lines may hold a token or a key.
                    KubeconfigError::Parse(_) => format!("{flag} {} is no kubeconfig", path.display()),
                    e => format!("{flag} {} cannot be read: {e}", path.display()),
                })?;
                load_config(read)
                    .await
                    .map_err(|e| format!("{flag} {} is of no use: {e}", path.display()))?
            }
            None => Config::incluster()
                .map_err(|e| format!("give {flag}, or run in a pod with a ServiceAccount: {e}"))?,
        };
        Self::lasting(config).map_err(|e| format!("{flag} makes no client: {e}"))
    }

    /// From `KUBECONFIG`, or from the pod's ServiceAccount.
    ///
    /// # Errors
    /// A sentence with the remedy.
    pub async fn inferred() -> Result<Self, String> {
        Self::lasting(infer().await?).map_err(of_no_use)
    }

    /// As [`Connection::inferred`], multiplexed like [`Connection::multiplexed`].
    ///
    /// # Errors
    /// A sentence with the remedy.
    pub async fn inferred_multiplexed() -> Result<Self, String> {
        Self::multiplexed(infer().await?).map_err(of_no_use)
    }

    /// To an API server that the process uses until the process ends. `metadata.managedFields` is not read.
    fn lasting(mut config: Config) -> kube::Result<Self> {
        config.connect_timeout = Some(CONNECT_WITHIN);
        if config.cluster_url.scheme_str() == Some("https") && config.proxy_url.is_none() {
            let sender = pooled::sender(&config)?;
            Ok(Self(Way::Own(sender, config.default_namespace), OF_OURS))
        } else {
            Self::usual(config, OF_OURS)
        }
    }

    /// A client whose requests leave only while `permit` is valid. A request that waits in the client (in a
    /// queue, or for a retry) when the permit ends is refused with [`permit::NotPermitted`]. A write under
    /// way is counted, so that a clean end of the permit waits for the answer.
    #[must_use]
    pub fn client(&self, permit: &Permit) -> Client {
        let answers = self.1;
        #[allow(clippy::disallowed_methods)] // the one place
        match &self.0 {
            Way::Usual(client) => {
                let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
                let service = service_fn(move |request| {
                    let client = client.clone();
                    async move { response_size::ask(request, answers, |request| client.send(request)).await }
                });
                Client::new(permit.layer().layer(service), namespace)
            }
            Way::Own(sender, namespace) => {
                let sender = sender.clone();
                let service = service_fn(move |request| {
                    let sender = sender.clone();
                    async move {
                        response_size::ask(request, answers, |request| sender.clone().oneshot(request)).await
                    }
                });
                Client::new(permit.layer().layer(service), namespace.clone())
            }
        }
    }
}

/// Loads a kubeconfig in a process whose environment may name a proxy for buckets and clouds.
///
/// # Errors
/// A kubeconfig without a usable context.
pub async fn load_config(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigError> {
    let has_proxy = has_proxy(&kubeconfig);
    let options = KubeConfigOptions::default();
    // The future is large, and callers are futures of controllers.
    let mut config = Box::pin(Config::from_custom_kubeconfig(kubeconfig, &options)).await?;
    ignore_proxy_of_environment(&mut config, has_proxy);
    Ok(config)
}

fn has_proxy(kubeconfig: &Kubeconfig) -> bool {
    let clusters = kubeconfig.clusters.iter();
    clusters
        .filter_map(|named| named.cluster.as_ref())
        .any(|cluster| cluster.proxy_url.is_some())
}

/// kube applies `HTTPS_PROXY` to each kubeconfig, ignores a `NO_PROXY` entry for the API server, and then
/// cannot connect. The variable is meant for buckets and clouds that only a proxy can reach.
fn ignore_proxy_of_environment(config: &mut Config, has_proxy: bool) {
    if !has_proxy {
        config.proxy_url = None;
    }
}

async fn infer() -> Result<Config, String> {
    Config::infer().await.map_err(|error| {
        format!("the API server is not known: run in a pod with a ServiceAccount, or set KUBECONFIG: {error}")
    })
}

#[allow(clippy::needless_pass_by_value)] // `map_err` calls it so
fn of_no_use(error: kube::Error) -> String {
    format!("the kubeconfig makes no client: {error}")
}

/// An existing client: the client of a test, or a client with further limits.
impl From<Client> for Connection {
    fn from(client: Client) -> Self {
        Self(Way::Usual(client), Answers::WHOLE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::future;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use stalled_server::drip;
    use tokio::{net::TcpListener, time::timeout};

    use super::*;

    /// A server that a tenant names sends a byte now and then: in the head of an answer, or in the body.
    #[tokio::test]
    async fn an_answer_that_comes_byte_by_byte_is_given_up_in_time() {
        // A different test may have installed the provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let within = Duration::from_millis(500);
        for head in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n",
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let mut config = Config::new(url.parse().unwrap());
            // Each byte resets this timeout.
            config.read_timeout = Some(within);
            let connection = Connection::to_tenants_server(config, within).unwrap();
            let client = connection.client(&Permit::sole("a test"));
            let maps: Api<ConfigMap> = Api::default_namespaced(client);
            let dripping = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                drip(&mut stream, head, Duration::from_millis(20)).await
            };
            let both = future::join(maps.get("any"), dripping);
            let (read, sent) = timeout(Duration::from_secs(60), both).await.unwrap();
            let why = crate::Error::from(read.unwrap_err());
            assert!(
                why.to_string().contains("no complete answer within 500ms"),
                "{why}"
            );
            assert_eq!(why.class(), "Transient");
            assert!(sent > 0, "{head}");
        }
    }

    #[tokio::test]
    async fn of_a_file_that_is_no_kubeconfig_nothing_is_quoted() {
        let path = std::env::temp_dir().join(format!("no-kubeconfig-{}", std::process::id()));
        for content in [
            "s3cret",
            "users: [{name: u, user: {token: s3cret}}]\nclusters: 7\n",
            "users:\n- name: u\n  user:\n    token: s3cret\n   wrong: 1\n",
        ] {
            std::fs::write(&path, content).unwrap();
            let opened = Connection::of_flag("--kubeconfig", Some(&path)).await;
            let why = opened.err().unwrap();
            assert!(why.contains("--kubeconfig") && !why.contains("s3cret"), "{why}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_api_server_is_not_reached_by_the_proxy_for_buckets_and_clouds() {
        let of = |cluster: &str| {
            let text = format!("clusters: [{{name: c, cluster: {{server: \"https://s\"{cluster}}}}}]");
            Kubeconfig::from_yaml(&text).unwrap()
        };
        for (cluster, kept) in [("", false), (", proxy-url: \"http://p\"", true)] {
            // As kube sets the field in a process with HTTPS_PROXY.
            let mut config = Config::new("https://s".parse().unwrap());
            config.proxy_url = Some("http://p".parse().unwrap());
            ignore_proxy_of_environment(&mut config, has_proxy(&of(cluster)));
            assert_eq!(config.proxy_url.is_some(), kept, "{cluster}");
        }
    }
}
