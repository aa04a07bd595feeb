//! Makes instances and takes them away. An instance is a pod in the account's namespace that runs a system of
//! its own, with a real kubelet once its user data has been run; it is listed (see [`Instance`]) when it has
//! an address.
//!
//! Promises: an instance that is there is given again, never made twice, since its pod's name is its own; its
//! id is that of its pod and never used again. What is left of a launch that was interrupted is found by
//! [`Compute::list`], as the pod carries cluster and name from the beginning. A pod that is gone without
//! having been listed out (somebody deleted it, or its node died) is an instance that is gone: it is listed
//! out when somebody looks for it.
//!
//! The addresses of instances are those that the cluster which plays the cloud gives to pods. The range of a
//! [`crate::Network`] is a claim only: it is what a shoot is told, and no two shoots of an account are told
//! the same.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch},
};
use runtime::{Error, Result, wait};
use serde_json::json;

use crate::{
    cloud::{self, Cloud, instances},
    instances::{Address, Instance, Inventory, State},
    pod::{self, Launch},
    provider_id::ProviderId,
};

/// How long one launch waits for an address. Longer than a pod takes whose image is there; what comes later
/// the next call finds.
const ADDRESS_WITHIN: Duration = Duration::from_secs(30);
/// How long one termination waits. Longer than the pod's grace period.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// The instances of one cluster.
pub struct Compute {
    cloud: Cloud,
    cluster: String,
    pods: Api<Pod>,
    secrets: Api<Secret>,
    lists: Api<ConfigMap>,
}

impl Compute {
    /// Of this cluster, by its technical id, in this account.
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

    /// Makes the instance, or gives the one that is there.
    ///
    /// # Errors
    /// The cloud refuses, or the instance has no address yet: the next call goes on.
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

    /// The instance of this name. One whose launch was interrupted is listed now.
    ///
    /// # Errors
    /// The cloud does not answer, or the instance has no address yet. It is not concluded that there is none.
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

    /// Whether the instance runs: what the list of instances says, and the pod. A listed instance without a
    /// pod is gone. `None`: the pod ends, or there is no such instance. Changes nothing, unlike
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

    /// Takes the instance away, and waits until it is gone. One that is gone already is success.
    ///
    /// # Errors
    /// The cloud refuses, or the instance does not stop.
    pub async fn terminate(&self, name: &str) -> Result<()> {
        let pod = pod::name_of(&self.cluster, name);
        let doing = format!("could not terminate instance {name}");
        cloud::delete(&self.pods, &pod, &doing).await?;
        wait::until_gone(&self.pods, &pod, GONE_WITHIN).await?;
        // Last: a Node whose instance is not listed is taken away at once, and its pods are still running
        // until here.
        self.write_entry(name, None).await
    }

    /// Names and ids of all instances of the cluster, also of those whose launch was interrupted.
    ///
    /// # Errors
    /// The cloud does not answer. Half a list is none.
    pub async fn list(&self) -> Result<Vec<(String, ProviderId)>> {
        let of_cluster = ListParams::default().labels(&format!("{}={}", pod::CLUSTER, self.cluster));
        let pods = self.pods.list(&of_cluster).await;
        let pods = pods.map_err(|e| cloud::error("could not list the instances", e))?;
        Ok(pods
            .items
            .iter()
            .map(|pod| {
                let id = ProviderId {
                    zone: pod::told(pod, pod::ZONE),
                    id: pod::id_of(pod),
                };
                (pod::told(pod, pod::NAME), id)
            })
            .collect())
    }

    /// The instance that a pod stands for, as it is listed; it is listed if it is not.
    async fn listed(&self, list: &Inventory, name: &str, pod: &Pod) -> Result<Instance> {
        let id = pod::id_of(pod);
        if let Some(instance) = list.by_name(name).filter(|listed| listed.id == id) {
            return Ok(instance.clone());
        }
        let address = self.address(&pod.name_any()).await?;
        let instance = Instance {
            addresses: addresses(&address, name),
            id,
            zone: pod::told(pod, pod::ZONE),
            region: pod::told(pod, pod::REGION),
            type_: pod::told(pod, pod::TYPE),
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
        let wanted = pod::of(&self.cluster, launch)?;
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

    /// The pod waits for it, and it goes with the pod.
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
            // What a system was started with does not change any more.
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
                Some((Some(_), _)) => wait::Look::Done,
                Some((None, Some(why))) => wait::Look::Wait(why),
                Some((None, None)) => wait::Look::Wait("it has no address yet".into()),
                None => wait::Look::Fail(Error::transient("it came and went")),
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

    /// Only its own key is written: writers of other instances do not meet.
    async fn write_entry(&self, name: &str, instance: Option<&Instance>) -> Result<()> {
        let entry = instance.map(serde_json::to_string).transpose();
        let entry = entry.map_err(|e| Error::bug(format!("an instance does not serialise: {e}")))?;
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
