//! What must hold: I5 (by running at all), I6 nothing left behind, I7 carried state is equal, I8/I9 nothing outside lost.

use std::collections::BTreeMap;
use std::time::Duration;

use api::druid::Etcd;
use api::gardencore::{BackupEntry, ShootState};
use botanist::Operation;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use provider_local::cloud::instances;
use runtime::{Error, Result};
use testkit::eventually;

use crate::garden::{CLOUD, PROJECT};
use crate::refusal::is_backed_up;
use crate::scenario::{Drilled, ShootScenario, transient};
use crate::seed::RunningSeed;
use crate::world::DOMAIN;

/// What a Shoot has that a move must not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Data of the Secrets that are carried, by name.
    secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The node network in the cloud, and the list of its instances.
    network: BTreeMap<String, BTreeMap<String, String>>,
}

/// Longer than the name server takes to answer on a busy machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The flag by which an etcd refuses to start empty.
const REQUIRE_SNAPSHOT: &str = "--require-snapshot";

impl Evidence {
    pub async fn collect(of: &ShootScenario<'_>, seed: &RunningSeed) -> Result<Self> {
        let secrets: Api<Secret> = Api::namespaced(seed.client(), &of.namespace());
        let carried = secrets
            .list(&ListParams::default().labels("persist=true"))
            .await?;
        let data = |secret: Secret| {
            let data = secret
                .data
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key, value.0))
                .collect();
            (secret.metadata.name.unwrap_or_default(), data)
        };
        Ok(Self {
            secrets: carried.into_iter().map(data).collect(),
            network: network(of).await?,
        })
    }
}

/// What the Shoot has in the cloud, by name: its network and the list of its instances; empty if there is nothing.
async fn network(of: &ShootScenario<'_>) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let cloud: Api<ConfigMap> = Api::namespaced(of.world.garden(), CLOUD);
    let mut found = BTreeMap::new();
    for name in [of.namespace(), instances(&of.namespace())] {
        if let Some(object) = cloud.get_opt(&name).await? {
            found.insert(name, object.data.unwrap_or_default());
        }
    }
    Ok(found)
}

fn require(holds: bool, sentence: impl Into<String>) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(Error::Transient(sentence.into()))
    }
}

impl ShootScenario<'_> {
    fn names(&self) -> [String; 2] {
        [
            format!("api.{}.dev.internal.{DOMAIN}", self.name),
            format!("api.{}.dev.{DOMAIN}", self.name),
        ]
    }

    async fn addresses(&self, name: &str) -> Result<Vec<String>> {
        // It is asked by UDP: a question that was not answered in time is asked again. Any answer counts.
        let answer = eventually("an answer of the name server", ANSWER_WITHIN, || {
            self.world.dns.addresses(name)
        });
        answer.await.map_err(transient)
    }

    /// What must hold at any moment of a move.
    pub async fn check_always(&self) -> Result<()> {
        let moving = matches!(self.drilled, Drilled::Migrate | Drilled::Restore);
        let (true, Some(evidence)) = (moving, &self.evidence) else {
            return Ok(());
        };
        for name in self.names() {
            require(
                !self.addresses(&name).await?.is_empty(),
                format!("I9: the name {name} is gone"),
            )?;
        }
        require(
            network(self).await? == evidence.network,
            "I9: the network in the cloud changed",
        )?;
        let states: Api<ShootState> = Api::namespaced(self.world.garden(), PROJECT);
        let source = namespace_exists(&self.world.seeds[0], &self.namespace()).await?;
        let carried = states.get_opt(&self.name).await?.is_some();
        require(
            source || carried,
            "I7: neither the source nor the garden has the state of the Shoot",
        )
    }

    /// What must hold after the drilled flow has ended.
    pub async fn check_end(&self) -> Result<()> {
        self.check_always().await?;
        match self.drilled {
            Drilled::Create => {
                self.check_here().await?;
                let set = self.etcd_main().await?;
                require(
                    !refuses_to_be_empty(&set),
                    "a new etcd-main refuses to start empty",
                )
            }
            Drilled::Migrate => {
                self.check_nothing_left().await?;
                self.check_handed_over().await
            }
            Drilled::Restore => {
                self.check_here().await?;
                let restored = Evidence::collect(self, self.place()).await?;
                require(
                    Some(&restored) == self.evidence.as_ref(),
                    "I7: what was carried is not what was restored",
                )?;
                self.check_etcd_has_a_past().await
            }
            Drilled::ForceDelete => {
                self.check_nothing_left().await?;
                self.check_backups().await?;
                // The cloud and the DNS server refused: what they keep is left, and nothing waited for them.
                require(
                    Some(network(self).await?) == self.evidence.as_ref().map(|e| e.network.clone()),
                    "the cloud refused, and the network is another one",
                )?;
                for name in self.names() {
                    require(
                        !self.addresses(&name).await?.is_empty(),
                        format!("the DNS server refused, and {name} is gone"),
                    )?;
                }
                Ok(())
            }
            Drilled::Delete => {
                self.check_nothing_left().await?;
                self.check_backups().await?;
                for name in self.names() {
                    require(
                        self.addresses(&name).await?.is_empty(),
                        format!("I6: the name {name} is left"),
                    )?;
                }
                require(
                    network(self).await?.is_empty(),
                    "I6: the network in the cloud is left",
                )
            }
        }
    }

    /// The control plane is on this seed, complete, and found by its names.
    async fn check_here(&self) -> Result<()> {
        let seed = self.place();
        let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
            Api::namespaced(seed.client(), &self.namespace());
        for name in [
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "cloud-controller-manager",
        ] {
            let deployment = deployments.get(name).await?;
            let ready = deployment.status.and_then(|status| status.ready_replicas);
            require(ready == Some(1), format!("{name} has {ready:?} ready pods"))?;
        }
        for name in self.names() {
            let found = self.addresses(&name).await?;
            require(
                found == [seed.address.to_string()],
                format!("{name} leads to {found:?}"),
            )?;
        }
        let secrets: Api<Secret> = Api::namespaced(self.world.garden(), PROJECT);
        let kubeconfig = secrets.get_opt(&format!("{}.kubeconfig", self.name)).await?;
        require(kubeconfig.is_some(), "the project has no kubeconfig of the Shoot")
    }

    /// I6.
    async fn check_nothing_left(&self) -> Result<()> {
        let (seed, namespace) = (self.place(), self.namespace());
        require(
            !namespace_exists(seed, &namespace).await?,
            "I6: the namespace is left",
        )?;
        let fronts: Api<Service> = Api::namespaced(seed.client(), "garden-exposure");
        let mine = ListParams::default().labels(&format!("gardener.cloud/technical-id={namespace}"));
        let left: Vec<_> = fronts
            .list(&mine)
            .await?
            .items
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        require(
            left.is_empty(),
            format!("I6: Services {left:?} of the front are left"),
        )?;
        let clusters: Api<api::extensions::Cluster> = Api::all(seed.client());
        let cluster = clusters.get_opt(&namespace).await?;
        require(
            cluster.is_none_or(|c| c.metadata.deletion_timestamp.is_some()),
            "I6: the Cluster is left",
        )
    }

    /// I9: the BackupEntry and the backups follow the Shoot after their grace period, whatever the deletion was.
    async fn check_backups(&self) -> Result<()> {
        let entry = self.backup_entry().await?;
        require(
            entry.is_some_and(|entry| entry.metadata.deletion_timestamp.is_none()),
            "I9: the BackupEntry went with the control plane",
        )?;
        require(is_backed_up(self).await?, "I9: backups were deleted")
    }

    async fn etcd_main(&self) -> Result<StatefulSet> {
        let sets: Api<StatefulSet> = Api::namespaced(self.place().client(), &self.namespace());
        Ok(sets.get("etcd-main").await?)
    }

    /// An etcd that was restored must not start empty, and the next reconciliation does not make it restart.
    async fn check_etcd_has_a_past(&self) -> Result<()> {
        let restored = self.etcd_main().await?;
        require(
            refuses_to_be_empty(&restored),
            "a restored etcd-main may start empty",
        )?;
        let etcds: Api<Etcd> = Api::namespaced(self.place().client(), &self.namespace());
        let before = etcds.get("etcd-main").await?;
        let botanist = Box::pin(self.botanist(self.place(), Operation::Reconcile)).await?;
        Box::pin(botanist.deploy_etcds()).await?;
        let after = etcds.get("etcd-main").await?;
        require(
            before.spec == after.spec && before.annotations() == after.annotations(),
            "a reconciliation after the restore changes etcd-main",
        )
    }

    /// The garden knows all that the next seed needs.
    async fn check_handed_over(&self) -> Result<()> {
        let states: Api<ShootState> = Api::namespaced(self.world.garden(), PROJECT);
        let state = states.get_opt(&self.name).await?;
        require(state.is_some(), "I7: there is no ShootState")?;
        let begin = self.backups_begin();
        let seed = self
            .backup_entry()
            .await?
            .and_then(|entry| entry.status?.seed_name);
        require(
            seed.as_deref() != Some("seed-a"),
            "the BackupEntry was not handed over",
        )?;
        let theirs: Api<api::extensions::BackupEntry> = Api::all(self.world.seeds[0].client());
        let left = theirs
            .list(&ListParams::default())
            .await?
            .into_iter()
            .find(|e| e.name_any().starts_with(&begin));
        require(left.is_none(), "I6: the BackupEntry of the seed is left")
    }
}

impl ShootScenario<'_> {
    fn backups_begin(&self) -> String {
        format!("{}--", self.namespace())
    }

    async fn backup_entry(&self) -> Result<Option<BackupEntry>> {
        let entries: Api<BackupEntry> = Api::namespaced(self.world.garden(), PROJECT);
        let all = entries.list(&ListParams::default()).await?;
        let begin = self.backups_begin();
        Ok(all.into_iter().find(|entry| entry.name_any().starts_with(&begin)))
    }
}

/// Whether its sidecar ends with an error where there are neither data nor backups.
fn refuses_to_be_empty(set: &StatefulSet) -> bool {
    let pod = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.init_containers.as_ref())
        .into_iter()
        .flatten()
        .flat_map(|container| container.args.iter().flatten())
        .any(|arg| arg == REQUIRE_SNAPSHOT)
}

async fn namespace_exists(seed: &RunningSeed, name: &str) -> Result<bool> {
    let namespaces: Api<Namespace> = Api::all(seed.client());
    Ok(namespaces.get_opt(name).await?.is_some())
}
