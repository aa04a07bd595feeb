//! Deletes every object of an Etcd, data included unless the volume is to be kept, and reports the remaining
//! objects.

use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::{
        Cluster, Seed,
        apply::{delete, delete_exactly},
    },
};

use api::druid::Etcd;

use crate::{
    names::{client_service, peer_service},
    observed::{Observed, is_retained},
    retained_volume::{retain, retains_volume},
};

/// Deletes the existing objects. The caller repeats this until no object remains.
pub async fn cleanup(seed: &Seed, etcd: &Etcd, observed: &Observed) -> Result<()> {
    let (name, namespace) = (etcd.name_any(), etcd.namespace().unwrap_or_default());
    if retains_volume(etcd) {
        retain(seed, etcd, observed).await?;
    }
    if let Some(stateful_set) = observed
        .stateful_set
        .as_ref()
        .filter(|s| s.metadata.deletion_timestamp.is_none())
    {
        delete_exactly(&seed.namespaced(&namespace), stateful_set).await?;
    }
    if let Some(job) = observed
        .job
        .as_ref()
        .filter(|j| j.metadata.deletion_timestamp.is_none())
    {
        delete_exactly(&seed.namespaced(&namespace), job).await?;
    }
    let services: Api<Service> = seed.namespaced(&namespace);
    delete(&services, &client_service(&name)).await?;
    delete(&services, &peer_service(&name)).await?;
    let accounts: Api<ServiceAccount> = seed.namespaced(&namespace);
    delete(&accounts, &name).await?;
    if observed.stateful_set.is_none() && observed.members.is_empty() {
        // The StatefulSet's retention policy covers claims of pods that its controller has seen. A missed
        // claim would give old data to the next Etcd of this name (I6).
        for claim in observed
            .claims
            .iter()
            .filter(|c| c.metadata.deletion_timestamp.is_none() && !is_retained(c))
        {
            delete_exactly(&seed.namespaced(&namespace), claim).await?;
        }
    }
    Ok(())
}
