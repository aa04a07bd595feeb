//! The driver on EC2, simulated by moto. The tests of `cloud-aws` cover single calls.
#![allow(clippy::unwrap_used)]

use anyhow::{Result, ensure};
use api::{
    machine::{Machine, MachineClass, MachineClassFields, MachineSpec},
    meta::{ErrorCode, RawExtension},
};
use aws_fixture::region::{Region, SHOOT, credentials, until_done};
use cloud_aws::{
    Tag,
    machines::{ProviderId, ProviderSpec},
};
use machine_controller_manager_aws::driver::AwsDriver;
use machine_controllers::{Driver, InstancePower, Request};
use runtime::{Error, client::Permit};
use serde_json::json;
use testkit::Moto;

fn request<'a>(machine: &'a Machine, class: &'a MachineClass) -> Request<'a> {
    Request {
        machine,
        class,
        credentials: credentials(),
        user_data: Some("true".to_owned()),
        ending_for: std::time::Duration::ZERO,
    }
}

fn class(spec: RawExtension) -> MachineClass {
    let fields = MachineClassFields {
        provider_spec: spec,
        ..MachineClassFields::default()
    };
    MachineClass {
        spec: fields,
        ..MachineClass::new("pool-a", MachineClassFields::default())
    }
}

#[tokio::test]
async fn an_instance_is_made_once_found_again_and_taken_away() -> Result<()> {
    let moto = Moto::start().await?;
    let region = Region::start(&moto, "eu-west-1").await?;
    let (status, _) = region.made().await?;
    let [zone, _] = region.zones();
    let class = class(RawExtension::encode(&ProviderSpec {
        ami: "ami-1e749f67".into(),
        machine_type: "m5.large".into(),
        subnet_id: status.subnet_for_nodes(&zone).unwrap().to_owned(),
        security_group_ids: status.groups_of_nodes(),
        ..ProviderSpec::new(SHOOT, "eu-west-1")
    })?);
    let driver = AwsDriver::new(&Permit::sole("a test"), Some(region.proxy.endpoint.clone()));
    let mut machine = Machine::new("pool-a-x1", MachineSpec::default());
    machine.metadata.uid = Some("uid-of-x1".into());
    ensure!(
        driver.status(&request(&machine, &class)).await?.is_none(),
        "it is there before it was made"
    );

    let made = driver.create(&request(&machine, &class)).await?;
    let id: ProviderId = made.provider_id.parse().unwrap();
    ensure!(made.node_name == "pool-a-x1" && id.zone == zone, "{made:?}");
    ensure!(
        driver.create(&request(&machine, &class)).await? == made,
        "it is made twice"
    );
    let listed = driver.list(&class, credentials()).await?;
    ensure!(
        listed.len() == 1 && listed[0].provider_id == made.provider_id,
        "{listed:?}"
    );
    machine.spec.provider_id = Some(made.provider_id.clone());
    ensure!(
        driver.status(&request(&machine, &class)).await? == Some(made),
        "it is not found by its id"
    );
    ensure!(driver.power(&request(&machine, &class)).await? == InstancePower::Running);
    ensure!(
        driver.launch_failure(&request(&machine, &class)).await?.is_none(),
        "an instance that runs was ended"
    );

    an_instance_is_listed_late(&driver, &class, &zone).await?;
    an_orphan_ends_without_instances_of_the_same_name(&driver, &class, &region).await?;

    let first = driver.delete(&request(&machine, &class)).await;
    ensure!(matches!(first, Err(Error::NotReady { .. })), "{first:?}");
    let asked = request(&machine, &class);
    until_done(|| driver.delete(&asked)).await?;
    ensure!(
        driver.status(&request(&machine, &class)).await?.is_none(),
        "what is gone is found"
    );
    ensure!(
        driver.list(&class, credentials()).await?.is_empty(),
        "what is gone is listed"
    );
    ensure!(driver.power(&request(&machine, &class)).await? == InstancePower::Off);
    // EC2 has accepted the launch, and reports the instance as ended, with the reason.
    let failure = driver.launch_failure(&request(&machine, &class)).await?;
    let failure = failure.map(|failure| failure.to_string()).unwrap_or_default();
    ensure!(
        failure.contains(&id.id) && failure.contains("Client.UserInitiatedShutdown"),
        "{failure}"
    );
    let unlisted: Machine = serde_json::from_value(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": {"name": "pool-a-x1"},
        "spec": {"providerID": format!("aws:///{zone}/i-0123456789abcdef0")},
    }))?;
    let power = driver.power(&request(&unlisted, &class)).await?;
    ensure!(
        power == InstancePower::Unclear,
        "an instance that is not listed is {power:?}"
    );
    a_hanging_end_is_forced(&driver, &class).await
}

/// An instance that EC2 does not list is not gone for some time.
async fn an_instance_is_listed_late(driver: &AwsDriver, class: &MachineClass, zone: &str) -> Result<()> {
    // EC2 lists a new instance late: a Machine that is deleted at once keeps the finalizer until EC2 would
    // list the instance.
    let terminating = |phase: &str, seconds: u64| -> Result<Machine> {
        let since = runtime::clock::now() - std::time::Duration::from_secs(seconds);
        Ok(serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": "unlisted", "deletionTimestamp": since.to_string()}, "spec": {},
            "status": {"currentStatus": {"phase": phase, "lastUpdateTime": since.to_string()}},
        }))?)
    };
    for (phase, seconds, is_gone) in [
        ("Pending", 600, false),
        ("Terminating", 60, false),
        ("Terminating", 200, true),
    ] {
        let deleted = driver
            .delete(&request(&terminating(phase, seconds)?, class))
            .await;
        ensure!(deleted.is_ok() == is_gone, "{phase} for {seconds} s: {deleted:?}");
    }

    // A new instance that EC2 does not list is not gone.
    for (seconds, is_gone) in [(60, false), (200, true)] {
        let since = runtime::clock::now() - std::time::Duration::from_secs(seconds);
        let unlisted: Machine = serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": {"name": "unlisted"},
            "spec": {"providerID": format!("aws:///{zone}/i-0123456789abcdef0")},
            "status": {"currentStatus": {"phase": "Pending", "lastUpdateTime": since.to_string()}},
        }))?;
        let found = driver.status(&request(&unlisted, class)).await;
        ensure!(
            matches!(found, Ok(None)) == is_gone,
            "after {seconds} s: {found:?}"
        );
    }
    Ok(())
}

/// EC2 has accepted the termination minutes ago, and the instance is still there.
async fn a_hanging_end_is_forced(driver: &AwsDriver, class: &MachineClass) -> Result<()> {
    let machine = Machine::new("pool-a-x2", MachineSpec::default());
    driver.create(&request(&machine, class)).await?;
    let hanging = Request {
        ending_for: std::time::Duration::from_secs(300),
        ..request(&machine, class)
    };
    let forced = driver.delete(&hanging).await;
    ensure!(
        matches!(&forced, Err(Error::NotReady { why, .. }) if why.contains("is asked to force its end")),
        "{forced:?}"
    );
    let asked = request(&machine, class);
    until_done(|| driver.delete(&asked)).await?;
    Ok(())
}

#[tokio::test]
async fn a_class_of_another_cloud_is_refused_by_its_name() {
    let driver = AwsDriver::new(&Permit::sole("a test"), None);
    let class = class(RawExtension(
        json!({"apiVersion": "other/v1", "kind": "ProviderSpec"}),
    ));
    let machine = Machine::new("pool-a-x1", MachineSpec::default());
    let error = driver.status(&request(&machine, &class)).await.unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
    assert!(error.to_string().contains("MachineClass pool-a"), "{error}");
}

/// The name of an orphan is the name tag of the instance, and a user of the account may have changed the tag.
async fn an_orphan_ends_without_instances_of_the_same_name(
    driver: &AwsDriver,
    class: &MachineClass,
    region: &Region,
) -> Result<()> {
    let mut ids = Vec::new();
    for name in ["pool-a-y1", "pool-a-y2"] {
        let machine = Machine::new(name, MachineSpec::default());
        ids.push(driver.create(&request(&machine, class)).await?.provider_id);
    }
    let [orphan, kept] = <[String; 2]>::try_from(ids).unwrap();
    let instances = [&orphan, &kept].map(|id| id.parse::<ProviderId>().unwrap().id);
    region
        .direct
        .set_tags_of(&instances, &[Tag::new("Name", "node")])
        .await?;

    let mut machine = Machine::new("node", MachineSpec::default());
    machine.spec.provider_id = Some(orphan);
    let asked = request(&machine, class);
    until_done(|| driver.delete(&asked)).await?;
    let mut other = Machine::new("pool-a-y2", MachineSpec::default());
    other.metadata.uid = Some("uid-of-y2".into());
    other.spec.provider_id = Some(kept);
    let power = driver.power(&request(&other, class)).await?;
    ensure!(power == InstancePower::Running, "the other instance is {power:?}");
    let ended = request(&other, class);
    until_done(|| driver.delete(&ended)).await?;
    Ok(())
}
