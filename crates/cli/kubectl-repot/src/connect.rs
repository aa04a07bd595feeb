//! The connection to the garden, by the kubeconfig of the caller.

use std::{path::Path, time::Duration};

use kube::{
    Config,
    config::{Kubeconfig, KubeconfigError},
};
use permit::Permit;
use runtime::client::{Connection, Garden, load_config};

use crate::{failure::Failure, session::Session};

/// Settings of the connection, as flags of kubectl.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The kubeconfig file. Default: `KUBECONFIG`, `~/.kube/config`, or the ServiceAccount of a pod.
    pub kubeconfig: Option<&'a Path>,
    /// The context of the kubeconfig. Default: the current context.
    pub context: Option<&'a str>,
    /// The namespace. Default: the namespace of the context.
    pub namespace: Option<&'a str>,
    /// The bound of each request.
    pub request_within: Duration,
}

/// Connects with the rights of the caller. Sends no request yet.
pub async fn connect(target: Target<'_>) -> Result<Session, Failure> {
    let mut config = load(target).await?;
    config.connect_timeout = Some(target.request_within);
    let namespace = target
        .namespace
        .map_or_else(|| config.default_namespace.clone(), str::to_owned);
    let connection = Connection::new(config)
        .map(Connection::compressed)
        .map_err(|error| Failure::failed(format!("the kubeconfig cannot build a client: {error}")))?;
    let permit = Permit::sole("a command of a person, with the rights of this person");
    let garden = Garden::new(connection, &permit);
    Ok(Session::new(garden, namespace, target.request_within))
}

async fn load(target: Target<'_>) -> Result<Config, Failure> {
    let (origin, read) = match target.kubeconfig {
        Some(path) => (
            format!("--kubeconfig {}", path.display()),
            Kubeconfig::read_from(path),
        ),
        None => ("the kubeconfig".to_owned(), Kubeconfig::read()),
    };
    let mut kubeconfig = match read {
        Ok(kubeconfig) => kubeconfig,
        // As kubectl in a pod: the ServiceAccount counts where no kubeconfig exists.
        Err(error) if target.kubeconfig.is_none() && target.context.is_none() => {
            return Config::incluster().map_err(|_| describe(&origin, &error));
        }
        Err(error) => return Err(describe(&origin, &error)),
    };
    if let Some(context) = target.context {
        kubeconfig.current_context = Some(context.to_owned());
    }
    load_config(kubeconfig)
        .await
        .map_err(|error| describe(&origin, &error))
}

/// The parser quotes lines around an error, and these lines may hold a token or a key.
fn describe(origin: &str, error: &KubeconfigError) -> Failure {
    match error {
        KubeconfigError::Parse(_) => Failure::failed(format!("{origin} is not a valid kubeconfig")),
        error => Failure::failed(format!(
            "{origin} cannot be loaded: {error}; name a kubeconfig (--kubeconfig, or variable KUBECONFIG) and a context (--context)"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn an_invalid_kubeconfig_is_not_quoted() {
        let path = std::env::temp_dir().join(format!("kubectl-repot-{}", std::process::id()));
        std::fs::write(&path, "users: [{name: u, user: {token: s3cret}}]\nclusters: 7\n").unwrap();
        let target = Target {
            kubeconfig: Some(&path),
            context: None,
            namespace: None,
            request_within: Duration::from_secs(1),
        };
        let failure = connect(target).await.unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let why = failure.to_string();
        assert!(why.contains("--kubeconfig") && !why.contains("s3cret"), "{why}");
    }
}
