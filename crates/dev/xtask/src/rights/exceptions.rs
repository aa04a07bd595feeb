//! `crates/dev/xtask/rights.yaml`: rights in the garden without a visible request. Each entry has a reason,
//! and an entry without effect fails the check.

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The file with the exceptions.
pub const FILE: &str = "crates/dev/xtask/rights.yaml";

/// All exceptions.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    pub unused: Vec<Exception>,
}

/// Verbs on a resource, and the reason why no request shows the use.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    pub process: String,
    pub group: String,
    pub resource: String,
    pub verbs: Vec<String>,
    pub reason: String,
}

impl Exceptions {
    pub fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
        Self::parse(&text).context(FILE)
    }

    pub fn parse(text: &str) -> Result<Self> {
        let exceptions: Self = serde_yaml_ng::from_str(text)?;
        for exception in &exceptions.unused {
            if exception.reason.trim().is_empty() {
                bail!("{exception} has no reason");
            }
        }
        Ok(exceptions)
    }
}

impl Exception {
    /// Whether the exception covers this verb on this resource of the process.
    pub fn covers(&self, process: &str, group: &str, resource: &str, verb: &str) -> bool {
        self.process == process
            && self.group == group
            && self.resource == resource
            && self.verbs.iter().any(|listed| listed == verb)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = self.verbs.join(", ");
        write!(
            f,
            "{}: {verbs} {} of {:?}",
            self.process, self.resource, self.group
        )
    }
}
