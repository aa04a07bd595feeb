//! Storage of the state of a single shoot: the ShootState in the garden, and the InternalSecrets beside the
//! ShootState.

use std::time::Duration;

use api::gardencore::{InternalSecret, InternalSecretFields, ShootState};
use k8s_openapi::ByteString;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
    core::PartialObjectMeta,
};
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
    error::Explain,
};

use super::chunk_name::{chunk_name, is_chunk_name, is_owned_by};
use crate::FIELD_MANAGER;

/// Requeue interval while garden-controller-manager has not granted the rights yet. garden-controller-manager
/// follows `status.seedName` within a second.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Data key of a chunk in an InternalSecret.
pub(super) const KEY: &str = "chunk";
/// Type of an InternalSecret with a chunk.
pub(super) const TYPE: &str = "gardener.cloud/shoot-state";

/// The InternalSecret of a name that a ShootState lists.
#[derive(Debug)]
pub(super) enum FoundChunk {
    /// No InternalSecret has the name.
    Absent,
    /// The InternalSecret exists, and this seed may not read the InternalSecret yet.
    Unreadable,
    /// The name is no chunk name of this shoot, or the InternalSecret is not owned by the ShootState.
    Foreign,
    /// A chunk of the ShootState.
    Own(Box<PartialObjectMeta<InternalSecret>>),
}

/// The objects of a single shoot.
#[derive(Clone, Debug)]
pub(super) struct StateStore {
    /// Name of the Shoot and of the ShootState.
    pub(super) name: String,
    states: Api<ShootState>,
    secrets: Api<InternalSecret>,
}

impl StateStore {
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

    /// Reads the chunk in an InternalSecret of the ShootState with this uid. A missing InternalSecret is an
    /// error, because the ShootState refers to the chunk. The former owner of the shoot wrote the name, so an
    /// InternalSecret of a different ShootState is an error, too.
    pub(super) async fn chunk(&self, name: &str, state: &str) -> Result<Vec<u8>> {
        if !is_chunk_name(&self.name, name) {
            return Err(self.spoilt(name, "the name is no name of a chunk of this shoot"));
        }
        let found = match self.secrets.get_opt(name).await {
            // A right to read names each InternalSecret, so a deleted InternalSecret is never readable.
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                if !matches!(self.find_unreadable(name).await, Ok(FoundChunk::Absent)) {
                    return Err(self.not_yet());
                }
                None
            }
            other => other.context(format_args!("could not read InternalSecret {name}"))?,
        };
        let mut found = found.ok_or_else(|| self.spoilt(name, "it is gone"))?;
        if !is_owned_by(&found, state) {
            return Err(self.spoilt(
                name,
                &format!("no owner of the chunk is the ShootState with uid {state}"),
            ));
        }
        let chunk = found.spec.data.remove(KEY);
        chunk
            .map(|chunk| chunk.0)
            .ok_or_else(|| self.spoilt(name, &format!("it has no data under {KEY:?}")))
    }

    /// Whether the InternalSecret of a name that the ShootState lists exists and is a chunk of the
    /// ShootState. A forbidden read means that the grant for a new InternalSecret is not there yet.
    pub(super) async fn has_chunk(&self, name: &str, state: &ShootState) -> Result<bool> {
        match self.find_chunk(name, state).await? {
            FoundChunk::Own(_) => Ok(true),
            FoundChunk::Absent | FoundChunk::Foreign => Ok(false),
            FoundChunk::Unreadable => Err(self.not_yet()),
        }
    }

    /// The InternalSecret of a name that the ShootState lists.
    pub(super) async fn find_chunk(&self, name: &str, state: &ShootState) -> Result<FoundChunk> {
        if !is_chunk_name(&self.name, name) {
            return Ok(FoundChunk::Foreign);
        }
        match self.secrets.get_metadata_opt(name).await {
            Ok(None) => Ok(FoundChunk::Absent),
            Ok(Some(chunk)) if is_owned_by(&chunk, &state.uid().unwrap_or_default()) => {
                Ok(FoundChunk::Own(Box::new(chunk)))
            }
            Ok(Some(_)) => Ok(FoundChunk::Foreign),
            Err(kube::Error::Api(status)) if status.is_forbidden() => self.find_unreadable(name).await,
            Err(error) => Err(error).context(format_args!("could not read InternalSecret {name}")),
        }
    }

    /// Rights to read name each InternalSecret, so reads of a missing InternalSecret are forbidden as well.
    /// The right to delete names no InternalSecret: a dry run shows whether the InternalSecret exists.
    async fn find_unreadable(&self, name: &str) -> Result<FoundChunk> {
        match self
            .secrets
            .delete(name, &DeleteParams::default().dry_run())
            .await
        {
            Ok(_) => Ok(FoundChunk::Unreadable),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(FoundChunk::Absent),
            Err(error) => Err(error).context(format_args!("could not look for InternalSecret {name}")),
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
            // The refusal of a policy or of a quota is no missing right.
            Err(kube::Error::Api(status))
                if status.is_forbidden()
                    && !status.message.contains("gardenlet-")
                    && !status.message.contains("exceeded quota") =>
            {
                Err(self.not_yet())
            }
            other => other.map(drop).context(format_args!(
                "could not make InternalSecret {name} of {size} bytes"
            )),
        }
    }

    /// Deletes exactly this InternalSecret. Returns false when the InternalSecret has changed since the read.
    pub(super) async fn delete_chunk(&self, chunk: &PartialObjectMeta<InternalSecret>) -> Result<bool> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: chunk.uid(),
                resource_version: chunk.resource_version(),
            }),
            ..DeleteParams::default()
        };
        let name = chunk.name_any();
        match self.secrets.delete(&name, &params).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            Err(error) => Err(error).context(format_args!("could not delete InternalSecret {name}")),
        }
    }

    /// The name of the n-th InternalSecret of an attempt.
    pub(super) fn chunk_name(&self, attempt: i64, number: usize) -> String {
        chunk_name(&self.name, attempt, number)
    }

    /// The error for a referenced object whose content has changed.
    pub(super) fn spoilt(&self, object: &str, why: &str) -> Error {
        crate::configuration_problem(format!(
            "InternalSecret {object}, which ShootState {} refers to, cannot be used: {why}. Only the keys of the shoot are \
             restored: put the former InternalSecret back",
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
