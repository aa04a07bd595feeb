//! The shared parts of the demo and the end-to-end tests. They are a landscape of real clusters, a user's
//! Shoot, a continuous writer, and proofs that no data are lost. The writer uses the shoot's own name.

pub mod availability;
pub mod dns;
pub mod external_changes;
pub mod hunter;
pub mod isolation;
pub mod landscape;
pub mod lifecycle;
pub mod managers;
pub mod manifests;
pub mod nodes;
pub mod open_watch;
pub mod proof;
pub mod shoot;
pub mod skew;
pub mod stored;
pub mod takeover;
pub mod timeline;
pub mod trouble;
pub mod watched;
pub mod writer;

use std::{
    env,
    path::{Path, PathBuf},
};

/// The folder of the repository. A demo from a registry was compiled in a different folder: hack/demo.sh sets
/// `REPOT_REPOSITORY` then.
#[must_use]
pub fn repository() -> PathBuf {
    env::var_os("REPOT_REPOSITORY")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), PathBuf::from)
}

/// Whether to run every scenario (`make e2e-all`), and not each capability once. hack/e2e.sh sets
/// `REPOT_E2E_SET`.
#[must_use]
pub fn is_every_scenario() -> bool {
    env::var("REPOT_E2E_SET").is_ok_and(|set| set == "all")
}
