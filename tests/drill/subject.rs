//! One Shoot of a world, and how it is looked at: in the garden, in a seed, in the cloud, by its names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::gardencore::{BackupEntry, Shoot};
use cloud_local::instances;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use parts::Facts;
use placement::Operation;
use runtime::{Error, Garden, Permit, Result, Seed};
use testkit::eventually;

use crate::garden::{CLOUD, PROJECT};
use crate::seed::RunningSeed;
use crate::world::{DOMAIN, World};

/// Longer than the name server takes to answer on a busy machine.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// What a Shoot has in the cloud, by name.
pub type InCloud = BTreeMap<String, BTreeMap<String, String>>;

/// A Shoot by its name.
pub struct Subject<'w> {
    pub world: &'w World,
    pub name: String,
}

impl<'w> Subject<'w> {
    /// One that does not exist yet.
    pub fn new(world: &'w World) -> Self {
        Self {
            world,
            name: world.shoot_name(),
        }
    }

    /// The one of this name, which no other has.
    pub fn named(world: &'w World, name: &str) -> Self {
        let name = name.to_owned();
        Self { world, name }
    }

    pub fn shoots(&self) -> Api<Shoot> {
        Api::namespaced(self.world.garden(), PROJECT)
    }

    /// Namespace in the seed.
    pub fn namespace(&self) -> String {
        namespace_of(&self.name)
    }

    /// Works on it with all rights.
    pub async fn facts(&self, seed: &RunningSeed, operation: Operation) -> Result<Facts> {
        Facts::new(
            Garden::new(self.world.garden(), &Permit::sole("the drill")),
            Seed::new(seed.client(), &Permit::sole("the drill")),
            seed.settings.clone(),
            seed.name,
            Arc::new(self.shoots().get(&self.name).await?),
            operation,
        )
        .await
    }

    /// Under which its API is found.
    pub fn names(&self) -> [String; 2] {
        [
            format!("api.{}.dev.internal.{DOMAIN}", self.name),
            format!("api.{}.dev.{DOMAIN}", self.name),
        ]
    }

    /// Where a name leads to.
    pub async fn addresses(&self, name: &str) -> Result<Vec<String>> {
        // It is asked by UDP: a question that was not answered in time is asked again. Any answer counts.
        let answer = eventually("an answer of the name server", ANSWER_WITHIN, || {
            self.world.dns.addresses(name)
        });
        answer.await.map_err(transient)
    }

    /// What the Shoot has in the cloud: its network and the list of its instances; empty if there is nothing.
    pub async fn network(&self) -> Result<InCloud> {
        let cloud: Api<ConfigMap> = Api::namespaced(self.world.garden(), CLOUD);
        let mut found = InCloud::new();
        for name in [self.namespace(), instances(&self.namespace())] {
            if let Some(object) = cloud.get_opt(&name).await? {
                found.insert(name, object.data.unwrap_or_default());
            }
        }
        Ok(found)
    }

    /// Its machines, by what they are in the cloud.
    pub fn machines(&self) -> BTreeMap<u32, String> {
        self.world.instances.of(&self.namespace())
    }

    /// What its extensions have outside, by type.
    pub fn extended(&self) -> BTreeMap<String, u32> {
        self.world.outside.of(&self.namespace())
    }

    /// The entry of its backups in the garden.
    pub async fn backup_entry(&self) -> Result<Option<BackupEntry>> {
        let entries: Api<BackupEntry> = Api::namespaced(self.world.garden(), PROJECT);
        let all = entries.list(&ListParams::default()).await?;
        let begin = format!("{}--", self.namespace());
        Ok(all.into_iter().find(|entry| entry.name_any().starts_with(&begin)))
    }

    /// Whether its namespace is in this seed.
    pub async fn is_in(&self, seed: &RunningSeed) -> Result<bool> {
        let namespaces: Api<Namespace> = Api::all(seed.client());
        Ok(namespaces.get_opt(&self.namespace()).await?.is_some())
    }
}

/// Namespace in a seed of the Shoot of this name.
pub fn namespace_of(name: &str) -> String {
    format!("shoot--dev--{name}")
}

#[allow(clippy::needless_pass_by_value)] // given to map_err
pub fn transient(error: anyhow::Error) -> Error {
    Error::transient(format!("{error:#}"))
}
