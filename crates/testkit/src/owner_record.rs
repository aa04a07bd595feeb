//! The owner record of a shoot on a real name server, and what is told to those who ask for it.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::NameServer;

const ZONE: &str = "internal.example.test";
const API: &str = "api.web.dev.internal.example.test";
const OWNER: &str = "owner.web.dev.internal.example.test";
const EPOCH: &str = "epoch.owner.web.dev.internal.example.test";

/// The record. Nothing is written there at first.
pub struct OwnerRecord {
    dns: NameServer,
}

impl OwnerRecord {
    /// Longer than a process may act on an answer by its default settings: what it does after that it does
    /// without a right.
    pub const OUTLASTS_AN_ANSWER: Duration = Duration::from_secs(14);

    /// Starts its server.
    pub async fn start() -> Result<Self> {
        Ok(Self {
            dns: NameServer::start(&[ZONE]).await?,
        })
    }

    /// Makes it say that this seed has the shoot, in this epoch.
    pub async fn says(&self, identity: &str, epoch: i64) -> Result<()> {
        let epoch = epoch.to_string();
        let names: [(&str, &[&str]); 2] = [(OWNER, &[identity]), (EPOCH, &[&epoch])];
        self.dns.write_texts(ZONE, &names).await
    }

    /// Nobody answers any more.
    pub fn falls_silent(&mut self) {
        self.dns.stop();
    }

    /// The server is there again, with this.
    pub async fn says_again(&mut self, identity: &str, epoch: i64) -> Result<()> {
        self.dns.resume().await?;
        self.says(identity, epoch).await
    }

    /// What a gardenlet tells of such a shoot, in an epoch of this seed.
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

    /// Flags by which a process of this seed asks, whose second witness is silent.
    #[must_use]
    pub fn flags(&self, identity: &str, epoch: i64) -> Vec<String> {
        vec![
            format!("--owner-name={OWNER}"),
            format!("--owner-id={identity}"),
            format!("--owner-zone={ZONE}"),
            format!("--owner-authorities={}", self.dns.address),
            format!("--ownership-epoch={epoch}"),
            // Nobody answers there.
            "--owner-witness=http://127.0.0.1:1".to_owned(),
        ]
    }
}
