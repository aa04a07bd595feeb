//! The Secrets of a ManagedResource: read on demand, and not kept.

use std::collections::BTreeMap;

use api::resources::ManagedResource;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use runtime::{Result, client::Cluster, error::Explain, workload::rollout::checksum};

use super::Controller;
use crate::object::Owner;

/// By Secret and key.
type Data = BTreeMap<String, BTreeMap<String, Vec<u8>>>;

impl Controller {
    /// Reads all Secrets of the ManagedResource, and computes the checksum.
    ///
    /// # Errors
    /// The seed's API cannot be read. The inner error: sentences about missing Secrets.
    pub(super) async fn secrets(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
    ) -> Result<Result<(Data, String), Vec<String>>> {
        let mut names: Vec<String> = resource
            .spec
            .secret_refs
            .iter()
            .map(|secret| secret.name.clone())
            .collect();
        names.sort();
        names.dedup();
        // Recorded before the reads: a Secret that changes from here on is read again.
        self.ledger
            .reads(owner, names.iter().map(|name| (name.clone(), None)).collect());
        let api: Api<Secret> = self.seed.namespaced(&owner.namespace);
        let (mut data, mut missing, mut versions) = (Data::new(), Vec::new(), Vec::new());
        for name in names {
            let read = api
                .get_opt(&name)
                .await
                .context(format_args!("could not read the Secret {name}"))?;
            versions.push((
                name.clone(),
                read.as_ref().and_then(ResourceExt::resource_version),
            ));
            match read {
                Some(secret) => {
                    let values = secret.data.unwrap_or_default().into_iter();
                    data.insert(name, values.map(|(key, bytes)| (key, bytes.0)).collect());
                }
                None => missing.push(format!("the Secret {name} of spec.secretRefs is not there")),
            }
        }
        self.ledger.reads(owner, versions);
        if !missing.is_empty() {
            return Ok(Err(missing));
        }
        let all = data.iter().flat_map(|(secret, data)| {
            data.iter()
                .map(move |(key, bytes)| (format!("{secret}/{key}"), bytes))
        });
        let checksum = checksum(all);
        Ok(Ok((data, checksum)))
    }
}
