//! A Shoot, with reads in the garden, in a seed, in the cloud, and by the DNS names.

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
use runtime::{
    Error, Result,
    client::{Garden, Permit, Seed},
};
use testkit::eventually;

use crate::garden::{CLOUD, PROJECT};
use crate::seed::RunningSeed;
use crate::world::{DOMAIN, World};

/// Longer than the name server takes to answer on a busy machine.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The objects of a Shoot in the cloud, by name.
pub type InCloud = BTreeMap<String, BTreeMap<String, String>>;

/// A Shoot by name.
pub struct Subject<'w> {
    pub world: &'w World,
    pub name: String,
}

impl<'w> Subject<'w> {
    pub fn new(world: &'w World) -> Self {
        Self {
            world,
            name: world.shoot_name(),
        }
    }

    /// A Shoot with this unique name.
    pub fn named(world: &'w World, name: &str) -> Self {
        let name = name.to_owned();
        Self { world, name }
    }

    pub fn shoots(&self) -> Api<Shoot> {
        Api::namespaced(self.world.garden(), PROJECT)
    }

    pub fn namespace(&self) -> String {
        namespace_of(&self.name)
    }

    /// The facts of the Shoot, with clients that have all rights.
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

    /// The DNS names of the Shoot's API.
    pub fn names(&self) -> [String; 2] {
        [
            format!("api.{}.dev.internal.{DOMAIN}", self.name),
            format!("api.{}.dev.{DOMAIN}", self.name),
        ]
    }

    /// The addresses of a name.
    pub async fn addresses(&self, name: &str) -> Result<Vec<String>> {
        // The query uses UDP: an unanswered query is repeated. Any answer counts.
        let answer = eventually("an answer of the name server", ANSWER_WITHIN, || {
            self.world.dns.addresses(name)
        });
        answer.await.map_err(transient)
    }

    /// The Shoot's network and the list of instances in the cloud; empty without objects.
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

    /// The machines of the Shoot in the cloud.
    pub fn machines(&self) -> BTreeMap<u32, String> {
        self.world.instances.list(&self.namespace())
    }

    /// The outside things of the Shoot's extensions, by type.
    pub fn extended(&self) -> BTreeMap<String, u32> {
        self.world.outside.list(&self.namespace())
    }

    /// The BackupEntry of the Shoot in the garden.
    pub async fn backup_entry(&self) -> Result<Option<BackupEntry>> {
        let entries: Api<BackupEntry> = Api::namespaced(self.world.garden(), PROJECT);
        let all = entries.list(&ListParams::default()).await?;
        let begin = format!("{}--", self.namespace());
        Ok(all.into_iter().find(|entry| entry.name_any().starts_with(&begin)))
    }

    /// Whether this seed has the Shoot's namespace.
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
