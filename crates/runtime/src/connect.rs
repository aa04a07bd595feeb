//! The client of a cluster, from a flag or from the pod's own ServiceAccount.

use std::path::Path;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A client from the kubeconfig that `flag` names, or from the pod's own ServiceAccount where it names none.
///
/// # Errors
/// A sentence that says what to do about the flag.
pub async fn connect(flag: &str, kubeconfig: Option<&Path>) -> Result<Client, String> {
    let config = match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path)
                .map_err(|e| format!("{flag} {} cannot be read: {e}", path.display()))?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .map_err(|e| format!("{flag} {} is of no use: {e}", path.display()))?
        }
        None => Config::incluster()
            .map_err(|e| format!("give {flag}, or run in a pod with a ServiceAccount: {e}"))?,
    };
    Client::try_from(config).map_err(|e| format!("{flag} makes no client: {e}"))
}
