//! What the owner records of a seed's shoots say, and where: what the Seed has to have before a flow begins
//! that writes one.

use std::{net::SocketAddr, time::Duration};

use api::gardencore::{Seed as SeedObject, seed::SeedDNSProviderConfig};
use kube::ResourceExt;
use placement::Names;
use runtime::{Error, Result};

use crate::configuration_problem;

/// A gardenlet records its seed's identity when it starts: a few looks at an API server later it is there.
const WAIT_FOR_IDENTITY: Duration = Duration::from_secs(5);

/// Says before anything is changed what the record would lack (I8). A flow cannot wait for it: it works with
/// the Seed as it was when it began. The next one reads it anew.
pub(crate) fn check(seed: &SeedObject, names: &Names) -> Result<()> {
    if !seed.spec.checks_owners() {
        return Ok(());
    }
    name(seed, names)?;
    authorities(seed)?;
    identity(seed).map(|_| ())
}

/// The record's name, and where it is kept.
pub(crate) fn name<'a>(seed: &'a SeedObject, names: &Names) -> Result<(String, &'a SeedDNSProviderConfig)> {
    let (Some(name), Some(dns)) = (names.owner(), &seed.spec.dns.internal) else {
        return Err(configuration_problem(format!(
            "Seed {} has spec.settings.ownerChecks on and no spec.dns.internal: add it, or switch them off",
            seed.name_any()
        )));
    };
    Ok((name, dns))
}

/// The servers of the zone, where the Seed names them.
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
