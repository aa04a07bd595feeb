//! The conditions at the end of a journey.

use std::path::Path;
use std::time::Duration;

use api::gardencore::ShootState;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use runtime::Result;
use testkit::eventually;

use super::journey::Journey;
use super::rules::epoch;
use crate::evidence::{Evidence, require};
use crate::garden::PROJECT;

/// The deletion of dependents takes longest in the garbage collector, and in a source whose cleanup is not
/// awaited.
pub const FOLLOWS_WITHIN: Duration = Duration::from_secs(300);

impl Journey<'_> {
    /// The Shoot is complete on this seed with all former state, and the second seed has no object of the
    /// Shoot.
    pub async fn is_complete_on(&self, seed: usize, evidence: &Evidence) -> anyhow::Result<()> {
        let (here, there) = (&self.world.seeds[seed], &self.world.seeds[1 - seed]);
        self.check_here(here).await?;
        let now = Evidence::collect(self, here).await?;
        require(now == *evidence, "I7, I9: what it has now is not what it had")?;
        self.check_nothing_left(there).await?;
        let entry = self.backup_entry().await?;
        let entry = entry.and_then(|entry| entry.spec.seed_name);
        require(
            entry.as_deref() == Some(here.name),
            format!("its backups are with {entry:?}"),
        )?;
        let served = epoch(&self.shoots().get(&self.name).await?);
        self.check_owner(Some(here), Some(served)).await?;
        require(
            !here.sidecars.has_finished(&self.namespace(), served),
            "its backup process takes no snapshots any more",
        )?;
        eventually("the garden holds its keys", FOLLOWS_WITHIN, || {
            self.keys_are_kept()
        })
        .await
    }

    /// R7-42: a seed that dies takes no key along.
    async fn keys_are_kept(&self) -> Result<()> {
        let states: Api<ShootState> = Api::namespaced(self.world.garden(), PROJECT);
        let state = states.get_opt(&self.name).await?;
        require(
            state.is_some_and(|state| !state.spec.gardener.is_empty()),
            "its ShootState holds nothing",
        )
    }

    /// The Shoot is gone, without leftovers anywhere. Observations of the witness at the time of the report
    /// are not repeated here.
    pub async fn is_nowhere(&self) -> anyhow::Result<()> {
        self.ends().await?;
        let nothing = eventually("nothing of it is left", FOLLOWS_WITHIN, || self.nothing_is_left());
        nothing.await
    }

    async fn nothing_is_left(&self) -> Result<()> {
        for seed in &self.world.seeds {
            self.check_nothing_left(seed).await?;
        }
        require(
            self.network().await?.is_empty(),
            "I6: the network in the cloud is left",
        )?;
        require(
            self.extended().is_empty(),
            "I6: what extensions had outside is left",
        )?;
        for name in self.names() {
            let found = self.addresses(&name).await?;
            require(found.is_empty(), format!("I6: the name {name} is left"))?;
        }
        self.check_owner(None, None).await?;
        let entry = self.backup_entry().await?;
        require(entry.is_none(), "its BackupEntry is left after its grace")?;
        let states: Api<ShootState> = Api::namespaced(self.world.garden(), PROJECT);
        let state = states.get_opt(&self.name).await?;
        require(state.is_none(), "its ShootState is left")?;
        let secrets: Api<Secret> = Api::namespaced(self.world.garden(), PROJECT);
        let kubeconfig = secrets.get_opt(&format!("{}.kubeconfig", self.name)).await?;
        require(kubeconfig.is_none(), "its kubeconfig is left")?;
        let left = objects_below(&self.world.store.folder(), &format!("{}--", self.namespace()));
        require(left.is_empty(), format!("backups are left: {left:?}"))
    }
}

/// Files in a folder of that name, at any depth.
fn objects_below(folder: &Path, name: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let text = path.display().to_string();
        if path.is_dir() {
            found.extend(objects_below(&path, name));
        } else if text.contains(name) {
            found.push(text);
        }
    }
    found
}
