//! The cloud: a namespace of some Kubernetes cluster, reached with the account in the `cloudprovider` Secret.
//! The cloud outlives seeds, as a real cloud does. The cloud holds ConfigMaps: one per network, and one per
//! cluster with the cluster's instances.

use std::{fmt::Debug, sync::Arc, time::Duration};

use api::meta::ErrorCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, PatchParams, PostParams},
    config::Kubeconfig,
};
use runtime::{
    Error, Result,
    client::{Connection, Credentials, apply::FieldManager, load_config},
};
use serde::de::DeserializeOwned;

/// Key of the Secret with the kubeconfig of the cloud.
const KUBECONFIG: &str = "kubeconfig";
/// Key of the Secret with the namespace that is the account.
const NAMESPACE: &str = "namespace";
/// Timeout for a connection. Shorter than the growing pause between attempts, so that a dead cloud does not
/// occupy a worker.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Timeout for a request with the whole answer: a tenant names the server. Longer than an API server under
/// load needs.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Name of the ConfigMap that lists the instances of a cluster; `cluster` is the shoot's technical id.
#[must_use]
pub fn instances(cluster: &str) -> String {
    format!("instances.{cluster}")
}

/// Builds the client for requests to the cloud, for the permit of the caller.
pub type Wrap = Arc<dyn Fn(Connection) -> Client + Send + Sync>;

/// An account in the cloud, with the field manager of writes.
#[derive(Clone)]
pub struct Cloud {
    client: Client,
    namespace: String,
    writer: FieldManager,
}

impl Cloud {
    /// Opens the account of the credentials. Every request to the cloud uses the client that `wrap` returns.
    /// The client bounds the time and the bytes of each answer.
    pub async fn open(credentials: &Credentials, writer: FieldManager, wrap: &Wrap) -> Result<Self> {
        let namespace = credentials.text(NAMESPACE)?;
        let kubeconfig = Kubeconfig::from_yaml(&credentials.text(KUBECONFIG)?)
            .map_err(|_| wrong(credentials, "is no kubeconfig"))?;
        refuse_programs_and_files(&kubeconfig, credentials)?;
        let mut config = load_config(kubeconfig)
            .await
            .map_err(|_| wrong(credentials, "has no usable current context"))?;
        config.connect_timeout = Some(CONNECT_WITHIN);
        config.read_timeout = Some(ANSWER_WITHIN);
        let connection = Connection::to_tenants_server(config, ANSWER_WITHIN)
            .map_err(|_| wrong(credentials, "has an unusable address, CA or certificate"))?;
        Ok(Self {
            client: wrap(connection),
            namespace,
            writer,
        })
    }

    /// An account, for a program of the cloud that runs beside the objects of accounts.
    #[must_use]
    pub fn inside(client: Client, namespace: &str, writer: FieldManager) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            writer,
        }
    }

    /// The ConfigMaps of the account.
    #[must_use]
    pub fn objects(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of a further kind in the account.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The parameters of a creation.
    pub(crate) fn creating(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.writer.0.to_owned()),
            ..PostParams::default()
        }
    }

    /// The parameters of a change.
    pub(crate) fn changing(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.writer.0.to_owned()),
            ..PatchParams::default()
        }
    }

    /// The field manager of writes.
    #[must_use]
    pub fn writer(&self) -> FieldManager {
        self.writer
    }

    /// The account's name.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.namespace
    }
}

/// A user writes the kubeconfig, and this process uses the kubeconfig: the kubeconfig must neither start
/// programs nor read files.
fn refuse_programs_and_files(kubeconfig: &Kubeconfig, credentials: &Credentials) -> Result<()> {
    let in_users = kubeconfig
        .auth_infos
        .iter()
        .filter_map(|user| user.auth_info.as_ref())
        .any(|user| {
            user.exec.is_some()
                || user.auth_provider.is_some()
                || user.token_file.is_some()
                || user.client_certificate.is_some()
                || user.client_key.is_some()
        });
    let in_clusters = kubeconfig
        .clusters
        .iter()
        .filter_map(|cluster| cluster.cluster.as_ref())
        .any(|cluster| cluster.certificate_authority.is_some());
    if in_users || in_clusters {
        return Err(wrong(
            credentials,
            "refers to programs or files: put tokens and certificates into it instead",
        ));
    }
    Ok(())
}

fn wrong(credentials: &Credentials, what: &str) -> Error {
    Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!(
            "key {KUBECONFIG:?} of the Secret {} {what}: correct it",
            credentials.origin()
        ),
    )
}

/// Requests the deletion of an object. An object that is already gone is success. `doing`: the action for the
/// message of any further error.
pub(crate) async fn delete<K>(api: &Api<K>, name: &str, doing: &str) -> Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(why) => Err(error(doing, why)),
    }
}

/// Divides errors of the cloud into faults that a person must fix and transient errors.
pub fn error(doing: impl std::fmt::Display, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) if status.code == 401 => Error::config(
            ErrorCode::ErrInfraUnauthenticated,
            format!(
                "{doing}: the cloud refuses the credentials: renew them in the Secret that the binding refers to"
            ),
        ),
        kube::Error::Api(status) if status.is_forbidden() => Error::config(
            ErrorCode::ErrInfraUnauthorized,
            format!(
                "{doing}: the cloud forbids it: {}; grant the account this permission",
                status.message
            ),
        ),
        kube::Error::Api(status) if status.is_not_found() => Error::config(
            ErrorCode::ErrInfraDependencies,
            format!("{doing}: {}; create it in the cloud", status.message),
        ),
        other => Error::from(other).context(doing),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn credentials() -> Credentials {
        Credentials::new("garden-dev/cloud", std::collections::BTreeMap::new())
    }

    #[test]
    fn a_kubeconfig_that_starts_a_program_is_refused() {
        let kubeconfig = Kubeconfig::from_yaml(
            "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]\n",
        )
        .unwrap();
        let refused = refuse_programs_and_files(&kubeconfig, &credentials()).unwrap_err();
        assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem]);
        let kubeconfig = Kubeconfig::from_yaml(
            "apiVersion: v1\nkind: Config\nusers: [{name: u, user: {tokenFile: /etc/passwd}}]\n",
        )
        .unwrap();
        assert!(refuse_programs_and_files(&kubeconfig, &credentials()).is_err());
        let kubeconfig =
            Kubeconfig::from_yaml("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: t}}]\n")
                .unwrap();
        assert!(refuse_programs_and_files(&kubeconfig, &credentials()).is_ok());
    }
}
