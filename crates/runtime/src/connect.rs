//! Ways to API servers: the one place of the suite that makes clients. A client is made for a permit, and its
//! requests leave only while that is good.

use std::{path::Path, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use permit::Permit;
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    bounded::{self, Answers},
    kept_alive,
    multiplexed::{self, Sender},
    skim::Without,
    survey,
};

/// For opening a connection. A packet that is lost is sent again after 1, 3 and 7 s: what is reached again
/// late is tried anew first.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Of a cluster whose users write into it what they like.
const OF_USERS: Answers = Answers {
    most: survey::ANSWER,
    ..Answers::WHOLE
};
/// Of the clusters that a process works in. Whoever reads who wrote which field has a connection of his own.
const OF_OURS: Answers = Answers {
    without: Without::ManagedFields,
    ..Answers::WHOLE
};

/// A way to an API server. By itself it sends nothing: whoever may act gets a client of it. Of an answer
/// nothing is read that is nested too deep to be decoded: one such object would end the watch of all others.
#[derive(Clone)]
pub struct Connection(Way, Answers);

#[derive(Clone)]
enum Way {
    Usual(Client),
    Own(Sender, String),
}

impl Connection {
    /// For what is asked once. Opens nothing yet. Bound what is asked: a server that is there and does not
    /// answer holds a request up.
    ///
    /// # Errors
    /// An address, a certificate or a key that is of no use.
    pub fn new(config: Config) -> kube::Result<Self> {
        Self::usual(config, Answers::WHOLE)
    }

    /// The same to a cluster whose users write into it what they like: an answer of more than 4 MiB is an
    /// error, but for a watch, which has no end, and for a list that is read page by page: its pages get
    /// smaller. See [`survey`](crate::survey).
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn to_users_cluster(config: Config) -> kube::Result<Self> {
        Self::usual(config, OF_USERS)
    }

    /// The same with one connection for everything that is under way, for who watches many things: see
    /// `multiplexed`. The server must speak HTTP/2, as a kube-apiserver does; one without TLS gets
    /// connections as usual.
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn multiplexed(config: Config) -> kube::Result<Self> {
        Self::multiplexed_within(config, Answers::WHOLE)
    }

    /// The same with answers bounded as by [`Connection::to_users_cluster`].
    ///
    /// # Errors
    /// As [`Connection::new`].
    pub fn multiplexed_to_users_cluster(config: Config) -> kube::Result<Self> {
        Self::multiplexed_within(config, OF_USERS)
    }

    /// A connection for each request that is under way. Behind a proxy the connections are those that kube
    /// opens, and what the kernel holds of a request may outlive the permit.
    fn usual(config: Config, answers: Answers) -> kube::Result<Self> {
        if config.proxy_url.is_some() {
            return Client::try_from(config).map(|client| Self(Way::Usual(client), answers));
        }
        let sender = kept_alive::sender_with_timeouts(&config)?;
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

    /// From the kubeconfig that `flag` names, or from the pod's own ServiceAccount where it names none.
    ///
    /// # Errors
    /// A sentence that says what to do about the flag. It quotes nothing of the file.
    pub async fn of_flag(flag: &str, kubeconfig: Option<&Path>) -> Result<Self, String> {
        let config = match kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path).map_err(|e| match e {
                    // The parser quotes lines around the place, which may hold a token or a key.
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

    /// From `KUBECONFIG`, or from the pod's own ServiceAccount.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub async fn inferred() -> Result<Self, String> {
        Self::lasting(infer().await?).map_err(of_no_use)
    }

    /// The same as [`Connection::multiplexed`].
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub async fn inferred_multiplexed() -> Result<Self, String> {
        Self::multiplexed(infer().await?).map_err(of_no_use)
    }

    /// To an API server that the process talks to as long as it lives. `metadata.managedFields` is not read.
    fn lasting(mut config: Config) -> kube::Result<Self> {
        config.connect_timeout = Some(CONNECT_WITHIN);
        if config.cluster_url.scheme_str() == Some("https") && config.proxy_url.is_none() {
            let sender = kept_alive::sender(&config)?;
            Ok(Self(Way::Own(sender, config.default_namespace), OF_OURS))
        } else {
            Self::usual(config, OF_OURS)
        }
    }

    /// A client whose requests leave only while it is permitted: what waited in it (in a queue, or for a
    /// retry) when the right was lost is refused with [`permit::NotPermitted`], and a write that has left is
    /// counted, so that a clean end waits for its answer.
    #[must_use]
    pub fn client(&self, permit: &Permit) -> Client {
        let answers = self.1;
        #[allow(clippy::disallowed_methods)] // the one place
        match &self.0 {
            Way::Usual(client) => {
                let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
                let service = service_fn(move |request| {
                    let client = client.clone();
                    async move { bounded::ask(request, answers, |request| client.send(request)).await }
                });
                Client::new(permit.layer().layer(service), namespace)
            }
            Way::Own(sender, namespace) => {
                let sender = sender.clone();
                let service = service_fn(move |request| {
                    let sender = sender.clone();
                    async move { bounded::ask(request, answers, |request| sender.clone().oneshot(request)).await }
                });
                Client::new(permit.layer().layer(service), namespace.clone())
            }
        }
    }
}

/// The configuration of a kubeconfig in a process that may have a proxy for buckets and clouds in its
/// environment.
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

/// kube takes `HTTPS_PROXY` for each kubeconfig, whatever `NO_PROXY` says of the API server, and then opens
/// no connection. The variable is meant for buckets and clouds, which only a proxy may reach.
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

/// A client that is there already: one of a test, or one that has other bounds besides.
impl From<Client> for Connection {
    fn from(client: Client) -> Self {
        Self(Way::Usual(client), Answers::WHOLE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
