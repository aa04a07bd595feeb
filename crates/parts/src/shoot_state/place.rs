//! Storage of the state of a single shoot: the ShootState in the garden, and the InternalSecrets beside the
//! ShootState.

use std::time::Duration;

use api::gardencore::{InternalSecret, InternalSecretFields, ShootState};
use k8s_openapi::ByteString;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use runtime::{Cluster, Error, Garden, Result, error::Explain};

use crate::FIELD_MANAGER;

/// Requeue interval while garden-controller-manager has not granted the rights yet. garden-controller-manager
/// follows `status.seedName` within a second.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Data key of a chunk in an InternalSecret.
pub(super) const KEY: &str = "chunk";
/// Type of an InternalSecret with a chunk.
pub(super) const TYPE: &str = "gardener.cloud/shoot-state";

/// The objects of a single shoot.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Name of the Shoot and of the ShootState.
    pub(super) name: String,
    states: Api<ShootState>,
    secrets: Api<InternalSecret>,
}

impl Place {
    /// Storage of the shoot of this name in a namespace of the garden.
    pub(super) fn new(garden: &Garden, namespace: &str, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            states: garden.namespaced(namespace),
            secrets: garden.namespaced(namespace),
        }
    }

    /// The ShootState of the Shoot with this uid, if the ShootState exists. A ShootState left over from an
    /// earlier Shoot of the same name holds the keys of a different cluster.
    pub(super) async fn state(&self, shoot: &str) -> Result<Option<ShootState>> {
        let found = match self.states.get_opt(&self.name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => return Err(self.not_yet()),
            other => other.context("could not read the ShootState")?,
        };
        Ok(found.filter(|state| state.owner_references().iter().any(|owner| owner.uid == shoot)))
    }

    /// Merges into the ShootState. Returns `None` when the ShootState has changed since the read.
    pub(super) async fn write(
        &self,
        read: &ShootState,
        body: &serde_json::Value,
    ) -> Result<Option<ShootState>> {
        FIELD_MANAGER.try_merge_of(&self.states, read, body).await
    }

    /// Reads the chunk in an InternalSecret. A missing InternalSecret is an error, because the ShootState
    /// refers to the chunk.
    pub(super) async fn chunk(&self, name: &str) -> Result<Vec<u8>> {
        let found = match self.secrets.get_opt(name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => return Err(self.not_yet()),
            other => other.context(format_args!("could not read InternalSecret {name}"))?,
        };
        let mut found = found.ok_or_else(|| self.spoilt(name, "it is gone"))?;
        let chunk = found.spec.data.remove(KEY);
        chunk
            .map(|chunk| chunk.0)
            .ok_or_else(|| self.spoilt(name, &format!("it has no data under {KEY:?}")))
    }

    /// Whether an InternalSecret exists. A forbidden read means that the grant for a new InternalSecret is
    /// not there yet.
    pub(super) async fn has_chunk(&self, name: &str) -> Result<bool> {
        match self.secrets.get_metadata_opt(name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => Err(self.not_yet()),
            other => other
                .map(|found| found.is_some())
                .context(format_args!("could not read InternalSecret {name}")),
        }
    }

    /// Creates an InternalSecret with a chunk. The ShootState owns the InternalSecret.
    pub(super) async fn make_chunk(&self, name: &str, chunk: Vec<u8>, of: &ShootState) -> Result<()> {
        let size = chunk.len();
        let data = [(KEY.to_owned(), ByteString(chunk))].into();
        let fields = InternalSecretFields {
            immutable: Some(true),
            data,
            type_: Some(TYPE.to_owned()),
            ..InternalSecretFields::default()
        };
        let mut secret = InternalSecret::new(name, fields);
        secret.metadata.owner_references = kube::Resource::owner_ref(of, &()).map(|owner| vec![owner]);
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.0.to_owned()),
            ..PostParams::default()
        };
        match self.secrets.create(&params, &secret).await {
            Err(kube::Error::Api(status))
                if status.is_forbidden() && !status.message.contains("gardenlet-") =>
            {
                Err(self.not_yet())
            }
            other => other.map(drop).context(format_args!(
                "could not make InternalSecret {name} of {size} bytes"
            )),
        }
    }

    /// Deletes an InternalSecret. Returns false when the InternalSecret does not exist.
    pub(super) async fn delete_chunk(&self, name: &str) -> Result<bool> {
        match self.secrets.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(false),
            Err(error) => Err(error).context(format_args!("could not delete InternalSecret {name}")),
        }
    }

    /// The name of the n-th InternalSecret of an attempt. Names are unique across attempts.
    pub(super) fn chunk_name(&self, attempt: i64, number: usize) -> String {
        format!("{}.state-{attempt}-{number}", self.name)
    }

    /// The error for a referenced object whose content has changed.
    pub(super) fn spoilt(&self, object: &str, why: &str) -> Error {
        crate::configuration_problem(format!(
            "InternalSecret {object}, which ShootState {} refers to, cannot be used: {why}. Nothing of this ShootState is \
             applied: put the former InternalSecret back",
            self.name
        ))
    }

    fn not_yet(&self) -> Error {
        Error::not_ready(
            TRY_AGAIN,
            format!(
                "garden-controller-manager has not given this seed the right to ShootState {} and its InternalSecrets yet: \
                 only the seed in status.seedName of the Shoot has it",
                self.name
            ),
        )
    }
}
