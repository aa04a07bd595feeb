//! The invariants: I5 (by running at all), I6 (no leftovers), I7 (carried state is equal), I8/I9 (no outside
//! resource lost).

use std::collections::BTreeMap;
use std::time::Duration;

use api::constants::DRUID_REQUIRE_SNAPSHOT;
use api::druid::Etcd;
use api::extensions::Extension;
use api::gardencore::{BackupEntry, ShootState};
use api::meta::{LastOperationState as State, LastOperationType as Type};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use parts::{Deploy, Etcds, Kinds, Writers};
use placement::Operation;
use runtime::{Error, Result};
use testkit::eventually;

use crate::garden::PROJECT;
use crate::guest;
use crate::machines;
use crate::refusal::{self, is_backed_up};
use crate::scenario::{Drilled, ShootScenario};
use crate::seed::RunningSeed;
use crate::subject::{InCloud, Subject, transient};
use crate::zones::Zone;

/// The properties of a Shoot that a move must not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Data of the Secrets that are carried, by name.
    secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The node network in the cloud, with the list of the network's instances.
    pub network: InCloud,
    /// The outside things of the Shoot's extensions.
    extended: BTreeMap<String, u32>,
    /// The machines of the Shoot in the cloud.
    pub machines: BTreeMap<u32, String>,
    /// The isolated zone.
    zone: Zone,
}

/// Longer than etcd-druid takes to see an annotation on a busy machine.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// The Deployments of each control plane.
const CONTROL_PLANE: [&str; 4] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "cloud-controller-manager",
];
/// The flag by which an etcd refuses to start empty.
const REQUIRE_SNAPSHOT: &str = "--require-snapshot";

impl Evidence {
    pub async fn collect(of: &Subject<'_>, seed: &RunningSeed) -> Result<Self> {
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
            network: of.network().await?,
            extended: of.extended(),
            machines: of.machines(),
            zone: of.zone(seed).await?,
        })
    }
}

pub fn require(holds: bool, sentence: impl Into<String>) -> Result<()> {
    if holds {
        Ok(())
    } else {
        Err(Error::transient(sentence))
    }
}

impl ShootScenario<'_> {
    /// The conditions at any moment of a move.
    pub async fn check_always(&self) -> Result<()> {
        self.check_zones().await?;
        let moving = matches!(
            self.drilled,
            Drilled::Migrate
                | Drilled::CancelMove
                | Drilled::Restore
                | Drilled::RestoreAsleep
                | Drilled::RestoreIsolated
                | Drilled::TakeOver
                | Drilled::TakeOverIsolated
                | Drilled::Leave
        );
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
            self.network().await? == evidence.network,
            "I9: the network in the cloud changed",
        )?;
        let machines = self.machines();
        require(
            machines == evidence.machines,
            format!(
                "I4: the machines were {:?} and are {machines:?}",
                evidence.machines
            ),
        )?;
        require(
            self.closed().await? == evidence.zone.closed,
            "I9: the closed zone changed",
        )?;
        require(
            self.extended() == evidence.extended,
            "I9: what extensions have outside changed",
        )?;
        let states: Api<ShootState> = Api::namespaced(self.world.garden(), PROJECT);
        let source = self.is_in(&self.world.seeds[0]).await?;
        let carried = states.get_opt(&self.name).await?.is_some();
        require(
            source || carried,
            "I7: neither the source nor the garden has the state of the Shoot",
        )
    }

    /// The record names the present owner. Between two seeds or after the deletion, the record names no seed
    /// (R17-21, R17-50).
    async fn check_owner_at_end(&self) -> Result<()> {
        let (owner, epoch) = match self.drilled {
            Drilled::Create
            | Drilled::Hibernate
            | Drilled::Failover
            | Drilled::Failback
            | Drilled::AnotherZone => (Some(self.drilled_seed()), Some(1)),
            Drilled::Restore
            | Drilled::RestoreAsleep
            | Drilled::RestoreIsolated
            | Drilled::TakeOver
            | Drilled::TakeOverIsolated
            | Drilled::CancelMove
            | Drilled::Renew => (Some(self.drilled_seed()), Some(2)),
            Drilled::Migrate | Drilled::Leave => (None, Some(1)),
            Drilled::Delete | Drilled::DeleteIsolated | Drilled::ForceDelete => (None, None),
        };
        self.check_owner(owner, epoch).await
    }

    /// The conditions after the drilled flow has ended.
    pub async fn check_end(&self) -> Result<()> {
        self.check_always().await?;
        let extended = self.extended();
        let wanted = usize::from(!self.drilled.deletes()) * guest::PER_SHOOT;
        require(
            extended.len() == wanted,
            format!("extensions have outside: {extended:?}"),
        )?;
        // Awaits the other zones of a failback, which shrink after the flow.
        self.check_zones_at_end().await?;
        let has_machines = self.has_nodes && !self.drilled.deletes() && self.drilled != Drilled::Hibernate;
        let (wanted, machines) = (usize::from(has_machines) * machines::PER_SHOOT, self.machines());
        // The cloud keeps an instance; every further instance was deleted with the instance's machine.
        let wanted = wanted + usize::from(self.drilled == Drilled::ForceDelete && self.has_nodes);
        require(
            machines.len() == wanted,
            format!("there are to be {wanted} machines: {machines:?}"),
        )?;
        self.check_owner_at_end().await?;
        self.check_foreign_at_end().await?;
        match self.drilled {
            Drilled::Create => {
                self.check_here(self.drilled_seed()).await?;
                // From now on, etcd-druid remembers that the etcd has data; before the first start, no
                // annotation was set.
                let etcds: Api<Etcd> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
                let etcd = etcds.get("etcd-main").await?;
                require(
                    !etcd.annotations().contains_key(DRUID_REQUIRE_SNAPSHOT),
                    "a new etcd-main refuses to start empty",
                )
            }
            Drilled::Migrate => self.check_ready_to_be_handed_over().await,
            Drilled::Leave => self.check_left().await,
            Drilled::Hibernate => {
                self.check_asleep().await?;
                self.check_same().await
            }
            Drilled::RestoreAsleep => {
                self.check_asleep().await?;
                self.check_same().await?;
                Box::pin(self.wake()).await?;
                self.check_here(self.drilled_seed()).await?;
                self.check_same().await?;
                self.check_etcd_has_a_past().await
            }
            Drilled::Failover | Drilled::Failback | Drilled::AnotherZone => {
                self.check_here(self.drilled_seed()).await
            }
            Drilled::RestoreIsolated | Drilled::TakeOverIsolated => {
                self.check_here(self.drilled_seed()).await?;
                self.check_same().await?;
                self.check_states().await?;
                Box::pin(self.next_obeys()).await
            }
            Drilled::CancelMove | Drilled::Renew | Drilled::Restore | Drilled::TakeOver => {
                self.check_here(self.drilled_seed()).await?;
                self.check_same().await?;
                self.check_states().await?;
                self.check_copy_is_gone().await?;
                self.check_etcd_has_a_past().await
            }
            Drilled::Delete | Drilled::DeleteIsolated | Drilled::ForceDelete => self.check_gone().await,
        }
    }

    async fn check_gone(&self) -> Result<()> {
        self.check_nothing_left(self.drilled_seed()).await?;
        self.check_backups().await?;
        if self.drilled == Drilled::ForceDelete {
            // The cloud and the DNS server refused: their resources are left, and the deletion did not wait.
            require(
                Some(self.network().await?) == self.evidence.as_ref().map(|e| e.network.clone()),
                "the cloud refused, and the network is another one",
            )?;
            for name in self.names() {
                require(
                    !self.addresses(&name).await?.is_empty(),
                    format!("the DNS server refused, and {name} is gone"),
                )?;
            }
            return refusal::check_machines_are_named(self).await;
        }
        for name in self.names() {
            require(
                self.addresses(&name).await?.is_empty(),
                format!("I6: the name {name} is left"),
            )?;
        }
        require(
            self.network().await?.is_empty(),
            "I6: the network in the cloud is left",
        )
    }

    /// I7.
    pub async fn check_same(&self) -> Result<()> {
        let mut now = Evidence::collect(self, self.drilled_seed()).await?;
        if let (Drilled::Hibernate, Some(before)) = (self.drilled, &self.evidence) {
            // A hibernated shoot must have no machines.
            now.machines.clone_from(&before.machines);
        }
        require(
            Some(&now) == self.evidence.as_ref(),
            "I7: what is here is not what was there",
        )
    }

    /// RX-11: each extension was restored from the last written state; if the source could act, the state
    /// comes from migrate.
    async fn check_states(&self) -> Result<()> {
        let lets_go = !self.drilled.takes_over() && self.drilled != Drilled::Renew;
        let times = u32::from(lets_go);
        let objects: Api<Extension> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        let all = objects.list(&ListParams::default()).await?;
        let left: Vec<_> = all.iter().map(guest::left).collect();
        require(
            left == [Some(times); guest::PER_SHOOT],
            format!("extensions were let go of so often: {left:?}"),
        )
    }

    /// No process of the shoot runs, and all stopped objects, data and names exist.
    async fn check_asleep(&self) -> Result<()> {
        let (client, namespace) = (self.drilled_seed().client(), self.namespace());
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let running: Vec<_> = pods
            .list(&ListParams::default().fields("status.phase!=Succeeded"))
            .await?
            .items
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        require(running.is_empty(), format!("these run in its sleep: {running:?}"))?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        for name in CONTROL_PLANE {
            let wanted = deployments.get(name).await?.spec.and_then(|spec| spec.replicas);
            require(wanted == Some(0), format!("{name} wants {wanted:?} pods"))?;
        }
        let etcds: Api<Etcd> = Api::namespaced(client.clone(), &namespace);
        let etcds = etcds.list(&ListParams::default()).await?;
        require(
            etcds.items.len() == 2 && etcds.iter().all(|etcd| etcd.spec.replicas == 0),
            "etcd is to run, or is gone",
        )?;
        let volumes: Api<PersistentVolumeClaim> = Api::namespaced(client, &namespace);
        require(
            volumes.list(&ListParams::default()).await?.items.len() == 2,
            "etcd lost its data when it fell asleep",
        )?;
        self.check_reachable(self.drilled_seed()).await
    }

    /// I9: the BackupEntry and the backups follow the Shoot after the grace period, for any kind of deletion.
    async fn check_backups(&self) -> Result<()> {
        let entry = self.backup_entry().await?;
        require(
            entry.is_some_and(|entry| entry.metadata.deletion_timestamp.is_none()),
            "I9: the BackupEntry went with the control plane",
        )?;
        require(is_backed_up(self).await?, "I9: backups were deleted")
    }

    async fn etcd_main(&self) -> Result<StatefulSet> {
        let sets: Api<StatefulSet> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        Ok(sets.get("etcd-main").await?)
    }

    /// R17-29, R17-30: the copy has left no object, neither in the seed nor in the garden.
    async fn check_copy_is_gone(&self) -> Result<()> {
        let etcds: Api<Etcd> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        require(
            etcds.get("etcd-main").await?.spec.backup.source_store.is_none(),
            "etcd-main still copies",
        )?;
        let entries: Api<BackupEntry> = Api::namespaced(self.world.garden(), PROJECT);
        let all = entries.list(&ListParams::default()).await?;
        let name = format!("source-{}--", self.namespace());
        let left = all.iter().find(|entry| entry.name_any().starts_with(&name));
        require(left.is_none(), format!("{name}… is left in the garden"))
    }

    /// A restored etcd must not start empty, and the next reconciliation does not restart the etcd.
    async fn check_etcd_has_a_past(&self) -> Result<()> {
        // An existing Etcd gets the flag while the etcd runs, and the flow does not wait for the flag.
        let told = eventually("etcd-main refuses to start empty", TOLD_WITHIN, || async {
            require(
                refuses_to_be_empty(&self.etcd_main().await?),
                "a restored etcd-main may start empty",
            )
        });
        told.await.map_err(transient)?;
        let etcds: Api<Etcd> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        let before = etcds.get("etcd-main").await?;
        let facts = Box::pin(self.facts(self.drilled_seed(), Operation::Reconcile)).await?;
        Box::pin(Etcds::deploy(&facts)).await?;
        let after = etcds.get("etcd-main").await?;
        require(
            before.spec == after.spec && before.annotations() == after.annotations(),
            "a reconciliation after the restore changes etcd-main",
        )
    }

    /// The garden has all data that the destination needs, no process writes any more, and all objects that a
    /// cancellation needs still exist.
    async fn check_ready_to_be_handed_over(&self) -> Result<()> {
        let states: Api<ShootState> = Api::namespaced(self.world.garden(), PROJECT);
        let state = states.get_opt(&self.name).await?;
        require(
            state.is_some_and(|state| !state.spec.gardener.is_empty()),
            "I7: the ShootState holds nothing",
        )?;
        let facts = Box::pin(self.facts(self.drilled_seed(), Operation::Migrate)).await?;
        Writers::check_gone(&facts.residency).await?;
        require(
            self.is_in(self.drilled_seed()).await?,
            "the namespace went before the hand-over",
        )?;
        let etcds: Api<Etcd> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        require(
            etcds.get_opt("etcd-main").await?.is_some(),
            "etcd went before the hand-over",
        )?;
        let extensions = facts.residency.list_extension_resources(Kinds::All).await?;
        let held: Vec<_> = extensions
            .iter()
            .filter(|any| {
                let last = any.status().and_then(|status| status.last_operation);
                last.is_none_or(|last| last.type_ != Type::Migrate || last.state != State::Succeeded)
            })
            .map(|any| format!("{} {}", any.kind.kind, any.object.name_any()))
            .collect();
        require(
            !extensions.is_empty() && held.is_empty(),
            format!(
                "of {} extension objects these were not let go of: {held:?}",
                extensions.len()
            ),
        )
    }

    /// No process of the shoot runs in the source any more and no name leads there; the data wait for the
    /// destination.
    async fn check_left(&self) -> Result<()> {
        let facts = Box::pin(self.facts(&self.world.seeds[0], Operation::Restore)).await?;
        require(
            facts
                .residency
                .list_extension_resources(Kinds::All)
                .await?
                .is_empty(),
            "I6: extension objects are left",
        )?;
        self.check_no_front(&self.world.seeds[0]).await?;
        let etcds: Api<Etcd> = Api::namespaced(self.drilled_seed().client(), &self.namespace());
        require(
            etcds.list(&ListParams::default()).await?.items.is_empty(),
            "I6: an Etcd is left",
        )?;
        require(
            self.is_in(self.drilled_seed()).await?,
            "the namespace, and with it the data, went before the destination had restored",
        )?;
        // The destination does not need the removed objects.
        self.check_always().await
    }
}

impl Subject<'_> {
    /// The control plane is complete on this seed, and reachable by the shoot's names.
    pub async fn check_here(&self, seed: &RunningSeed) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(seed.client(), &self.namespace());
        for name in CONTROL_PLANE {
            let deployment = deployments.get(name).await?;
            let ready = deployment.status.and_then(|status| status.ready_replicas);
            require(ready == Some(1), format!("{name} has {ready:?} ready pods"))?;
        }
        self.check_reachable(seed).await
    }

    /// The shoot is reachable by the shoot's names, and users can log on.
    pub async fn check_reachable(&self, seed: &RunningSeed) -> Result<()> {
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
    pub async fn check_nothing_left(&self, seed: &RunningSeed) -> Result<()> {
        let namespace = self.namespace();
        require(!self.is_in(seed).await?, "I6: the namespace is left")?;
        self.check_no_front(seed).await?;
        let clusters: Api<api::extensions::Cluster> = Api::all(seed.client());
        let cluster = clusters.get_opt(&namespace).await?;
        require(
            cluster.is_none_or(|c| c.metadata.deletion_timestamp.is_some()),
            "I6: the Cluster is left",
        )
    }

    async fn check_no_front(&self, seed: &RunningSeed) -> Result<()> {
        let namespace = self.namespace();
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
        )
    }
}

/// Whether the sidecar ends with an error without data and backups.
fn refuses_to_be_empty(set: &StatefulSet) -> bool {
    let pod = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.init_containers.as_ref())
        .into_iter()
        .flatten()
        .flat_map(|container| container.args.iter().flatten())
        .any(|arg| arg == REQUIRE_SNAPSHOT)
}
