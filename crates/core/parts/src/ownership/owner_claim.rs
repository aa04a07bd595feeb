//! Name, identity and servers of the owner records of a seed's shoots: fields that the Seed needs before a
//! flow begins to write a record.

use std::{net::SocketAddr, time::Duration};

use api::gardencore::{Seed as SeedObject, seed::SeedDNSProviderConfig};
use kube::ResourceExt;
use placement::Names;
use runtime::{Error, Result};

use crate::configuration_problem;

/// Requeue interval for a missing identity. A gardenlet records the seed's identity at startup, within a few
/// requests to an API server.
const WAIT_FOR_IDENTITY: Duration = Duration::from_secs(5);

/// Reports, before any change, a field that the record would lack (I8). A running flow cannot wait for the
/// field, because the flow uses the Seed from the start. The next flow reads the Seed again.
pub(crate) fn check(seed: &SeedObject, names: &Names) -> Result<()> {
    if !seed.spec.checks_owners() {
        return Ok(());
    }
    name(seed, names)?;
    authorities(seed)?;
    identity(seed).map(|_| ())
}

/// Name of the record, and the DNS provider of the record.
pub(crate) fn name<'a>(seed: &'a SeedObject, names: &Names) -> Result<(String, &'a SeedDNSProviderConfig)> {
    let (Some(name), Some(dns)) = (names.owner(), &seed.spec.dns.internal) else {
        return Err(configuration_problem(format!(
            "Seed {} has spec.settings.ownerChecks on and no spec.dns.internal: add it, or switch them off",
            seed.name_any()
        )));
    };
    Ok((name, dns))
}

/// The servers of the zone, if the Seed names servers.
pub(crate) fn authorities(seed: &SeedObject) -> Result<Vec<SocketAddr>> {
    seed.spec.owner_authorities().map_err(configuration_problem)
}

/// The seed's cluster identity.
pub(crate) fn identity(seed: &SeedObject) -> Result<String> {
    let status = seed.status.as_ref();
    let identity = status.and_then(|status| status.cluster_identity.clone());
    identity.filter(|identity| !identity.is_empty()).ok_or_else(|| {
        Error::not_ready(
            WAIT_FOR_IDENTITY,
            format!(
                "the gardenlet of Seed {} has not recorded status.clusterIdentity yet",
                seed.name_any()
            ),
        )
    })
}
