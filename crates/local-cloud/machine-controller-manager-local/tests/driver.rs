//! The driver on a real API server that simulates the cloud, with the rights of an account. Pods are reported
//! as running but do not run: `make e2e` tests the content of pods on clusters.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod world;

use std::collections::BTreeMap;

use anyhow::Result;
use api::{
    machine::{Machine, MachineClass},
    meta::RawExtension,
};
use cloud_local::{ProviderId, ProviderSpec, instances};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use machine_controller_manager_local::driver::LocalDriver;
use machine_controllers::{Driver, InstancePower, Request};
use runtime::client::{Credentials, Permit};
use serde_json::json;
use testkit::{ControlPlane, PlayedKubelet};
use world::{ACCOUNT, CLUSTER, account, made};

struct World {
    driver: LocalDriver,
    credentials: BTreeMap<String, Vec<u8>>,
    class: MachineClass,
    admin: Client,
}

impl World {
    fn credentials(&self) -> Credentials {
        Credentials::new("shoot--dev--web/cloudprovider", self.credentials.clone())
    }

    fn request<'a>(&'a self, machine: &'a Machine) -> Request<'a> {
        Request {
            machine,
            class: &self.class,
            credentials: self.credentials(),
            user_data: Some("true".to_owned()),
            ending_for: std::time::Duration::ZERO,
        }
    }

    async fn listed(&self) -> Result<BTreeMap<String, String>> {
        let lists: Api<ConfigMap> = Api::namespaced(self.admin.clone(), ACCOUNT);
        Ok(lists.get(&instances(CLUSTER)).await?.data.unwrap_or_default())
    }

    async fn pods(&self) -> Result<usize> {
        let pods: Api<Pod> = Api::namespaced(self.admin.clone(), ACCOUNT);
        Ok(pods.list(&ListParams::default()).await?.items.len())
    }
}

fn machine(name: &str) -> Machine {
    made(json!({"metadata": {"name": name}, "spec": {}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_made_once_found_again_and_taken_away() -> Result<()> {
    let cloud = ControlPlane::start("cloud").await?;
    let credentials = account(&cloud).await?;
    let _kubelet = PlayedKubelet::start(&cloud.admin());
    let spec = ProviderSpec::new(CLUSTER, ["local", "a"], "small", "repot/machine:dev");
    let world = World {
        driver: LocalDriver::new(&Permit::sole("a test")),
        credentials,
        class: MachineClass {
            spec: api::machine::MachineClassFields {
                provider_spec: RawExtension::encode(&spec)?,
                ..api::machine::MachineClassFields::default()
            },
            ..MachineClass::new("pool-a", api::machine::MachineClassFields::default())
        },
        admin: cloud.admin(),
    };
    let one = machine("pool-a-1");
    assert_eq!(world.driver.status(&world.request(&one)).await?, None);

    let instance = world.driver.create(&world.request(&one)).await?;
    assert_eq!(instance.node_name, "pool-a-1");
    let id: ProviderId = instance.provider_id.parse().unwrap();
    assert_eq!(id.zone, "a");
    assert_eq!(
        world.driver.create(&world.request(&one)).await?,
        instance,
        "made twice"
    );
    assert_eq!(
        world.driver.status(&world.request(&one)).await?,
        Some(instance.clone())
    );
    assert_eq!(world.pods().await?, 1);
    let secrets: Api<Secret> = Api::namespaced(world.admin.clone(), ACCOUNT);
    let user_data = secrets.get("shoot--dev--web.pool-a-1").await?;
    assert_eq!(
        user_data.owner_references()[0].kind,
        "Pod",
        "it goes with the instance"
    );

    one_that_is_stopped_is_off(&world, &one).await?;
    an_interrupted_launch_is_found_and_ended(&world, &one, &instance.provider_id).await?;

    world.driver.delete(&world.request(&one)).await?;
    world.driver.delete(&world.request(&one)).await?;
    assert_eq!(world.pods().await?, 0);
    assert_eq!(world.listed().await?, BTreeMap::new());
    let again = world.driver.create(&world.request(&one)).await?;
    assert_ne!(again.provider_id, instance.provider_id, "an id is used again");

    one_that_died_by_itself_is_gone(&world, &one).await?;
    without_a_list_nothing_is_known(&world, &one).await
}

/// The list of the cloud reports a stopped instance, and then a running instance.
async fn one_that_is_stopped_is_off(world: &World, one: &Machine) -> Result<()> {
    let lists: Api<ConfigMap> = Api::namespaced(world.admin.clone(), ACCOUNT);
    let running = world.listed().await?[&one.name_any()].clone();
    let stopped = running.replace(r#""state":"running""#, r#""state":"stopped""#);
    assert_ne!(running, stopped);
    for (entry, power) in [(stopped, InstancePower::Off), (running, InstancePower::Running)] {
        let entry = Patch::Merge(json!({"data": {one.name_any(): entry}}));
        lists
            .patch(&instances(CLUSTER), &PatchParams::default(), &entry)
            .await?;
        assert_eq!(world.driver.power(&world.request(one)).await?, power);
    }
    Ok(())
}

/// The list is written last: an instance may exist before the instance is in the list.
async fn an_interrupted_launch_is_found_and_ended(world: &World, one: &Machine, id: &str) -> Result<()> {
    let lists: Api<ConfigMap> = Api::namespaced(world.admin.clone(), ACCOUNT);
    let forgotten = Patch::Merge(json!({"data": {one.name_any(): null}}));
    lists
        .patch(&instances(CLUSTER), &PatchParams::default(), &forgotten)
        .await?;
    let found = world.driver.list(&world.class, world.credentials()).await?;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].machine_name.as_str(), found[0].provider_id.as_str()),
        ("pool-a-1", id)
    );
    let instance = world.driver.status(&world.request(one)).await?;
    assert_eq!(instance.map(|instance| instance.provider_id).as_deref(), Some(id));
    assert!(world.listed().await?.contains_key("pool-a-1"));
    Ok(())
}

/// The instance lost power: the cloud reports no running instance.
async fn one_that_died_by_itself_is_gone(world: &World, one: &Machine) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), ACCOUNT);
    pods.delete(
        "shoot--dev--web.pool-a-1",
        &DeleteParams::default().grace_period(0),
    )
    .await?;
    assert_eq!(world.driver.power(&world.request(one)).await?, InstancePower::Off);
    assert_eq!(world.driver.status(&world.request(one)).await?, None);
    assert_eq!(world.listed().await?, BTreeMap::new());
    // Neither in the list nor as a pod: the instance may be of a different account.
    assert_eq!(
        world.driver.power(&world.request(one)).await?,
        InstancePower::Unclear
    );
    Ok(())
}

/// I4: that the list is missing does not mean that there are no instances.
async fn without_a_list_nothing_is_known(world: &World, one: &Machine) -> Result<()> {
    let lists: Api<ConfigMap> = Api::namespaced(world.admin.clone(), ACCOUNT);
    lists
        .delete(&instances(CLUSTER), &DeleteParams::default())
        .await?;
    let unknown = world.driver.status(&world.request(one)).await.unwrap_err();
    assert!(
        unknown.to_string().contains("instances.shoot--dev--web"),
        "{unknown}"
    );
    assert!(world.driver.create(&world.request(one)).await.is_err());
    assert_eq!(world.pods().await?, 0);
    Ok(())
}
