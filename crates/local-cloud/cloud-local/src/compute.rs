//! Creates and terminates instances. An instance is a pod in the account's namespace that runs a separate
//! system, with a real kubelet once the user data has run. An instance with an address is listed (see
//! [`Instance`]).
//!
//! Promises:
//! - An existing instance is returned and never created twice, because the pod's name is derived from the
//!   instance's name.
//! - The instance's id is derived from the pod's UID and never reused.
//! - [`Compute::list`] finds the rest of an interrupted launch, because the pod has cluster and name from the
//!   beginning.
//! - If a pod is gone while the instance is listed (a manual deletion, or a dead node), the instance is gone.
//!   The next lookup removes the entry from the list.
//!
//! The addresses of instances are the pod addresses in the cluster that simulates the cloud. The range of a
//! [`crate::Network`] is only a claim. The range is reported to a shoot, and no two shoots of an account get
//! the same range.

use std::{collections::BTreeMap, ops::ControlFlow, time::Duration};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch},
    core::PartialObjectMeta,
};
use runtime::{Error, Result, bounds::survey, client::wait};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    cloud::{self, Cloud, instances},
    instances::{Address, Instance, Inventory, State},
    pod::{self, Launch},
    provider_id::ProviderId,
};

/// Time in which a launch waits for an address. Longer than a pod takes to start with a present image; the
/// next call finds a later address.
const ADDRESS_WITHIN: Duration = Duration::from_secs(30);
/// Time in which a termination waits. Longer than the pod's grace period.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// Time for all pages of the list of instances. Longer than the list of a large cluster takes.
const LISTED_WITHIN: Duration = Duration::from_secs(60);

/// The instances of a cluster.
pub struct Compute {
    cloud: Cloud,
    cluster: String,
    pods: Api<Pod>,
    secrets: Api<Secret>,
    lists: Api<ConfigMap>,
}

impl Compute {
    /// For the cluster with this technical id, in this account.
    #[must_use]
    pub fn new(cloud: Cloud, cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            pods: cloud.api(),
            secrets: cloud.api(),
            lists: cloud.objects(),
            cloud,
        }
    }

    /// Creates the instance, or returns the existing instance.
    ///
    /// # Errors
    /// The cloud refuses, or the instance has no address yet: the next call continues.
    pub async fn launch(&self, launch: &Launch<'_>) -> Result<Instance> {
        launch.check()?;
        let list = self.inventory().await?;
        let name = pod::name_of(&self.cluster, launch.name);
        let pod = match self.pod(&name).await? {
            Some(pod) => pod,
            None => self.make(&name, launch).await?,
        };
        self.give_user_data(&pod, launch.user_data).await?;
        self.listed(&list, launch.name, &pod).await
    }

    /// The instance of this name. An instance of an interrupted launch is listed now.
    ///
    /// # Errors
    /// The cloud does not answer, or the instance has no address yet. An error never means an absent
    /// instance.
    pub async fn find(&self, name: &str) -> Result<Option<Instance>> {
        let list = self.inventory().await?;
        if let Some(pod) = self.pod(&pod::name_of(&self.cluster, name)).await? {
            return self.listed(&list, name, &pod).await.map(Some);
        }
        if list.by_name(name).is_some() {
            self.write_entry(name, None).await?;
        }
        Ok(None)
    }

    /// Whether the instance runs, from the list of instances and the pod. A listed instance without a pod is
    /// gone. `None`: the pod is terminating, or the instance does not exist. Changes nothing, unlike
    /// [`Compute::find`].
    ///
    /// # Errors
    /// The cloud does not answer.
    pub async fn power(&self, name: &str) -> Result<Option<State>> {
        let list = self.inventory().await?;
        let Some(pod) = self.pod(&pod::name_of(&self.cluster, name)).await? else {
            return Ok(list.by_name(name).map(|_| State::Stopped));
        };
        let id = pod::id_of(&pod);
        if list
            .by_name(name)
            .is_some_and(|listed| listed.id == id && listed.state == State::Stopped)
        {
            return Ok(Some(State::Stopped));
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        Ok(match phase {
            Some("Succeeded" | "Failed") => Some(State::Stopped),
            _ if pod.metadata.deletion_timestamp.is_some() => None,
            _ => Some(State::Running),
        })
    }

    /// Terminates the instance, and waits for the end. An instance that is already gone is success.
    ///
    /// # Errors
    /// The cloud refuses, or the instance does not stop.
    pub async fn terminate(&self, name: &str) -> Result<()> {
        let pod = pod::name_of(&self.cluster, name);
        let doing = format!("could not terminate instance {name}");
        cloud::delete(&self.pods, &pod, &doing).await?;
        wait::until_gone(&self.pods, &pod, GONE_WITHIN).await?;
        // Last: a Node without a listed instance is removed at once, and the instance's pods run until here.
        self.write_entry(name, None).await
    }

    /// Names and ids of all instances of the cluster, including interrupted launches.
    ///
    /// # Errors
    /// The cloud does not answer. A partial list is an error.
    pub async fn list(&self) -> Result<Vec<(String, ProviderId)>> {
        let of_cluster = ListParams::default().labels(&format!("{}={}", pod::CLUSTER, self.cluster));
        let mut instances = Vec::new();
        let listed = survey(&self.pods, &of_cluster, |pod: PartialObjectMeta<Pod>| {
            let id = ProviderId {
                zone: pod::read_annotation(&pod, pod::ZONE),
                id: pod::id_of(&pod),
            };
            instances.push((pod::read_annotation(&pod, pod::NAME), id));
            ControlFlow::Continue(())
        });
        let listed = timeout(LISTED_WITHIN, listed).await.map_err(|_| {
            Error::transient(format!(
                "could not list the instances: the cloud sent no complete list within {LISTED_WITHIN:?}"
            ))
        })?;
        listed.map_err(|e| cloud::error("could not list the instances", e))?;
        Ok(instances)
    }

    /// The listed instance of a pod; a missing entry is added.
    async fn listed(&self, list: &Inventory, name: &str, pod: &Pod) -> Result<Instance> {
        let id = pod::id_of(pod);
        if let Some(instance) = list.by_name(name).filter(|listed| listed.id == id) {
            return Ok(instance.clone());
        }
        let address = self.address(&pod.name_any()).await?;
        let instance = Instance {
            addresses: addresses(&address, name),
            id,
            zone: pod::read_annotation(pod, pod::ZONE),
            region: pod::read_annotation(pod, pod::REGION),
            type_: pod::read_annotation(pod, pod::TYPE),
            state: State::Running,
        };
        self.write_entry(name, Some(&instance)).await?;
        Ok(instance)
    }

    async fn pod(&self, name: &str) -> Result<Option<Pod>> {
        let pod = self.pods.get_opt(name).await;
        pod.map_err(|e| cloud::error(format_args!("could not look for the pod {name}"), e))
    }

    async fn make(&self, name: &str, launch: &Launch<'_>) -> Result<Pod> {
        let wanted = pod::build_pod(&self.cluster, launch)?;
        match self.pods.create(&self.cloud.creating(), &wanted).await {
            Ok(pod) => Ok(pod),
            Err(kube::Error::Api(status)) if status.is_already_exists() => self
                .pod(name)
                .await?
                .ok_or_else(|| Error::transient(format!("instance {} came and went", launch.name))),
            Err(error) => Err(cloud::error(
                format_args!("could not make instance {}", launch.name),
                error,
            )),
        }
    }

    /// The pod waits for the Secret, and the Secret is deleted with the pod.
    async fn give_user_data(&self, pod: &Pod, user_data: &str) -> Result<()> {
        let secret = Secret {
            metadata: kube::api::ObjectMeta {
                name: Some(pod.name_any()),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".into(),
                    kind: "Pod".into(),
                    name: pod.name_any(),
                    uid: pod.uid().unwrap_or_default(),
                    ..OwnerReference::default()
                }]),
                ..kube::api::ObjectMeta::default()
            },
            immutable: Some(true),
            string_data: Some(BTreeMap::from([(pod::USER_DATA.into(), user_data.to_owned())])),
            ..Secret::default()
        };
        match self.secrets.create(&self.cloud.creating(), &secret).await {
            Ok(_) => Ok(()),
            // The user data of a started system does not change any more.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(cloud::error(
                "could not hand the user data to the instance",
                error,
            )),
        }
    }

    async fn address(&self, name: &str) -> Result<String> {
        let found = wait::until(&self.pods, name, ADDRESS_WITHIN, |pod| {
            match pod.map(|pod| (pod::address_of(pod), pod::trouble_of(pod))) {
                Some((Some(_), _)) => wait::WaitState::Done,
                Some((None, Some(why))) => wait::WaitState::Wait(why),
                Some((None, None)) => wait::WaitState::Wait("it has no address yet".into()),
                None => wait::WaitState::Fail(Error::transient("it came and went")),
            }
        });
        let pod = found.await?;
        pod.as_ref()
            .and_then(pod::address_of)
            .ok_or_else(|| Error::transient(format!("instance {name} has no address yet")))
    }

    async fn inventory(&self) -> Result<Inventory> {
        Inventory::read(&self.cloud, &instances(&self.cluster)).await
    }

    /// Writes only the instance's key, so writers of different instances never conflict.
    async fn write_entry(&self, name: &str, instance: Option<&Instance>) -> Result<()> {
        let entry = instance.map(serde_json::to_string).transpose();
        let entry = entry.map_err(|e| Error::bug("an instance does not serialise").caused_by(e))?;
        let list = instances(&self.cluster);
        let patch = Patch::Merge(json!({"data": {name: entry}}));
        let written = self.lists.patch(&list, &self.cloud.changing(), &patch).await;
        written
            .map(drop)
            .map_err(|e| cloud::error(format_args!("could not write instance {name} into {list}"), e))
    }
}

fn addresses(ip: &str, name: &str) -> Vec<Address> {
    [("InternalIP", ip), ("Hostname", name)]
        .map(|(type_, address)| Address {
            type_: type_.into(),
            address: address.into(),
        })
        .into()
}
