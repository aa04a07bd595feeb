//! The client of a cluster, from a flag or from the pod's own ServiceAccount.

use std::path::Path;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// A client from the kubeconfig that `flag` names, or from the pod's own ServiceAccount where it names none.
///
/// # Errors
/// A sentence that says what to do about the flag. It quotes nothing of the file.
pub async fn connect(flag: &str, kubeconfig: Option<&Path>) -> Result<Client, String> {
    let config = match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).map_err(|e| match e {
                // The parser quotes lines around the place, which may hold a token or a key.
                KubeconfigError::Parse(_) => format!("{flag} {} is no kubeconfig", path.display()),
                e => format!("{flag} {} cannot be read: {e}", path.display()),
            })?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .map_err(|e| format!("{flag} {} is of no use: {e}", path.display()))?
        }
        None => Config::incluster()
            .map_err(|e| format!("give {flag}, or run in a pod with a ServiceAccount: {e}"))?,
    };
    Client::try_from(config).map_err(|e| format!("{flag} makes no client: {e}"))
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
            let why = connect("--kubeconfig", Some(&path)).await.err().unwrap();
            assert!(why.contains("--kubeconfig") && !why.contains("s3cret"), "{why}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
