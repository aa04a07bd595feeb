//! The child process.

use std::{io::ErrorKind, net::SocketAddr, path::PathBuf, process::Stdio, sync::Arc};

use hyper_util::client::proxy::matcher::Matcher;
use permit::Permit;
use tokio::{fs, process::Command};

use crate::gate::Gate;

/// Kubernetes' cloud-controller-manager for AWS.
#[derive(Clone, Debug)]
pub struct Program {
    /// Path of the executable.
    pub path: PathBuf,
    /// Arguments in order.
    pub arguments: Vec<String>,
    /// Folder with the files `accessKeyID` and `secretAccessKey`, and with `sessionToken` for temporary keys.
    pub credentials: PathBuf,
    /// Proxies between this process and EC2.
    pub proxies: Arc<Matcher>,
}

impl Program {
    /// Runs the program until the program ends. A caller that drops the future kills the program and closes
    /// the gate.
    ///
    /// # Errors
    /// The program cannot start, or has ended.
    pub async fn run(&self, permit: Permit) -> Result<(), String> {
        let path = self.path.display();
        let gate = Gate::bind(Arc::clone(&self.proxies)).await;
        let gate = gate.map_err(|error| format!("cannot listen on loopback for {path}: {error}"))?;
        let address = gate.address();
        let address = address.map_err(|error| format!("the gate for {path} has no address: {error}"))?;
        let mut command = self.command(address).await?;
        permit
            .check()
            .map_err(|refused| format!("{path} is not started: {refused}"))?;
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot start {path}: {error}"))?;
        tokio::select! {
            () = gate.forward(&permit) => Err(format!("the gate for {path} has ended")),
            ended = child.wait() => match ended {
                Ok(status) => Err(format!("{path} has ended ({status}); its last lines are in the log of this container")),
                Err(error) => Err(format!("cannot wait for {path}: {error}")),
            },
        }
    }

    async fn command(&self, gate: SocketAddr) -> Result<Command, String> {
        let mut command = Command::new(&self.path);
        command
            .args(&self.arguments)
            .env_clear()
            .env("AWS_ACCESS_KEY_ID", self.required("accessKeyID").await?)
            .env("AWS_SECRET_ACCESS_KEY", self.required("secretAccessKey").await?)
            .envs(
                self.optional("sessionToken")
                    .await?
                    .map(|token| ("AWS_SESSION_TOKEN", token)),
            )
            // Without a key the program must not ask the metadata service of the seed's instance.
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("HTTPS_PROXY", format!("http://{gate}"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Ok(command)
    }

    async fn required(&self, name: &str) -> Result<String, String> {
        self.optional(name).await?.ok_or_else(|| {
            format!(
                "{} is missing or empty; add the key {name} to the Secret of the account",
                self.credentials.join(name).display()
            )
        })
    }

    /// A key of the Secret, if the key has a value.
    async fn optional(&self, name: &str) -> Result<Option<String>, String> {
        let file = self.credentials.join(name);
        match fs::read_to_string(&file).await {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", file.display())),
        }
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
