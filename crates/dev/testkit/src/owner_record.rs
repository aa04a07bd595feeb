//! The owner record of a shoot on a real name server, with the matching inputs of processes that check
//! owners.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::NameServer;

const ZONE: &str = "internal.example.test";
const API: &str = "api.web.dev.internal.example.test";
const OWNER: &str = "owner.web.dev.internal.example.test";
const EPOCH: &str = "epoch.owner.web.dev.internal.example.test";

/// The record. Not written at first.
pub struct OwnerRecord {
    dns: NameServer,
}

impl OwnerRecord {
    /// Longer than a process may act on an answer with the default settings: a later action has no permit.
    pub const OUTLASTS_AN_ANSWER: Duration = Duration::from_secs(14);

    /// Starts the name server.
    pub async fn start() -> Result<Self> {
        Ok(Self {
            dns: NameServer::start(&[ZONE]).await?,
        })
    }

    /// Writes this seed as the owner of the shoot, in this epoch.
    pub async fn says(&self, identity: &str, epoch: i64) -> Result<()> {
        let epoch = epoch.to_string();
        let names: [(&str, &[&str]); 2] = [(OWNER, &[identity]), (EPOCH, &[&epoch])];
        self.dns.write_texts(ZONE, &names).await
    }

    /// Stops the name server.
    pub fn falls_silent(&mut self) {
        self.dns.stop();
    }

    /// Starts the name server again, with this record.
    pub async fn says_again(&mut self, identity: &str, epoch: i64) -> Result<()> {
        self.dns.resume().await?;
        self.says(identity, epoch).await
    }

    /// The Cluster that a gardenlet writes for such a shoot, in an epoch of this seed.
    #[must_use]
    pub fn cluster(&self, namespace: &str, identity: &str, epoch: i64) -> Value {
        json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": namespace},
            "spec": {
                "cloudProfile": {},
                "seed": {
                    "metadata": {"name": identity},
                    "spec": {
                        "settings": {"ownerChecks": {"enabled": true, "authorities": [self.dns.address]}},
                        "dns": {"internal": {"type": "local", "domain": ZONE, "credentialsRef": {}}},
                    },
                    "status": {"clusterIdentity": identity},
                },
                "shoot": {"status": {
                    "seedName": identity, "ownership": {"epoch": epoch},
                    "advertisedAddresses": [{"name": "internal", "url": format!("https://{API}")}],
                }},
            },
        })
    }

    /// Flags for the owner checks of a process of this seed; the second witness is silent.
    #[must_use]
    pub fn flags(&self, identity: &str, epoch: i64) -> Vec<String> {
        vec![
            format!("--owner-name={OWNER}"),
            format!("--owner-id={identity}"),
            format!("--owner-zone={ZONE}"),
            format!("--owner-authorities={}", self.dns.address),
            format!("--ownership-epoch={epoch}"),
            // No process listens at this address.
            "--owner-witness=http://127.0.0.1:1".to_owned(),
        ]
    }
}
