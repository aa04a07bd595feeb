//! The nodes and pods of a shoot whose seed dies: neither may notice.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::{Fleet, Instances, Taints, Web, web::Counts};
use crate::{landscape::Landscape, proof, shoot::UserShoot};

/// The state before, and the observers since.
pub struct Herd {
    technical_id: String,
    before: Fleet,
    web: Web,
    counted: Counts,
    since: Instant,
    taints: Taints,
    instances: Instances,
}

impl Herd {
    /// Deploys a page on the nodes of a shoot in this seed, and observes from now on.
    ///
    /// # Errors
    /// The page does not become ready, or the shoot has no nodes.
    pub async fn watch(landscape: &Landscape, shoot: &UserShoot, seed: &str) -> Result<Self> {
        let technical_id = proof::technical_id(shoot).await?;
        let client = shoot.client().await?;
        let web = Web::deploy(&client).await?;
        web.answers(&client).await?;
        let before = Fleet::read(landscape.seed(seed)?, &technical_id, &client).await?;
        ensure!(!before.nodes.is_empty(), "the shoot has no nodes");
        ensure!(
            before.nodes.len() == before.machines.len(),
            "nodes and machines differ: {before:?}"
        );
        Ok(Self {
            taints: Taints::watch(&client),
            instances: Instances::watch(landscape, &technical_id).await?,
            counted: web.counts(&client).await?,
            since: Instant::now(),
            technical_id,
            before,
            web,
        })
    }

    /// Checks that the owner seed has the same Machines, and the shoot has the same Nodes with the same
    /// provider IDs and the same pods. In addition: the cloud has run no further instance, no request inside
    /// the shoot was lost, and the owner seed manages the nodes.
    ///
    /// # Errors
    /// The failed expectation.
    pub async fn has_noticed_nothing(
        &self,
        landscape: &Landscape,
        shoot: &UserShoot,
        seed: &str,
    ) -> Result<()> {
        let client = shoot.client().await?;
        let after = Fleet::read(landscape.seed(seed)?, &self.technical_id, &client).await?;
        let differences = self.before.differences(&after);
        ensure!(differences.is_empty(), "{differences:?}");
        let count = self.before.nodes.len();
        let instances = self.instances.ever_and_now().await?;
        ensure!(
            instances == [count, count],
            "instances ever and now: {instances:?}, and {count} nodes"
        );
        let now = self.web.counts(&client).await?;
        now.nothing_lost_since(self.counted, self.since.elapsed())?;
        let taints = self.taints.collect(&client).await?;
        ensure!(taints.is_empty(), "nodes were tainted: {taints:?}");
        self.before.leases_are_renewed(&client).await?;
        self.web.a_new_pod_runs_on(&client, &self.before).await
    }

    /// Waits until the cloud has no instance of the shoot any more.
    ///
    /// # Errors
    /// The remaining instances.
    pub async fn is_gone(&self, landscape: &Landscape) -> Result<()> {
        Fleet::nothing_left(landscape, &self.technical_id).await
    }
}
