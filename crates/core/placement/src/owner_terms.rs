//! The owner terms that the processes of a shoot should run with, as a hash. The hash is recorded in
//! `status.ownerChecks` of the Shoot at the end of a flow, and compared with the present Seed before a
//! takeover.

use std::fmt::Write;

use api::gardencore::Seed;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Bytes of the hash that are kept: enough to distinguish terms.
const HASH_BYTES: usize = 16;

/// The hash of epoch, identity, domain, zone, servers and settings. `None` where the Seed does not check
/// owners.
#[must_use]
pub fn hash(seed: &Seed, epoch: i64) -> Option<String> {
    let checks = seed.spec.owner_checks().filter(|checks| checks.enabled)?;
    let identity = seed
        .status
        .as_ref()
        .and_then(|status| status.cluster_identity.as_ref());
    let dns = seed.spec.dns.internal.as_ref();
    let place = dns.map(|dns| (&dns.domain, dns.zone_name()));
    let digest = Sha256::digest(json!([epoch, identity, place, checks]).to_string());
    let mut text = String::with_capacity(2 * HASH_BYTES);
    for byte in digest.iter().take(HASH_BYTES) {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}
