//! A seed meets a Secret with keys of a different account, a second garden, and manual changes of a closed
//! zone. The tests check statuses, Events and finalizers.
#![allow(clippy::unwrap_used)]

mod control_plane;

use anyhow::{Result, ensure};
use api::extensions::{Cluster, Infrastructure, SubnetIsolation};
use aws_fixture::{
    keys::{HOME, OTHER, issue},
    region::{Region, SHOOT, credentials, refused},
};
use cloud_aws::tags::SHOOT_UID;
use extension::subnet_isolation::SubnetIsolationActuator;
use extension_contract::run_until_ready;
use k8s_openapi::{
    ByteString,
    api::{core::v1::Secret, events::v1::Event},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use provider_aws::{infrastructure::InfrastructureActuator, subnet_isolation::AwsZones};
use provider_aws_fixture::{TEST, build_access, object, reconciler, seed};
use serde_json::{Value, json};
use testkit::{ControlPlane, Moto};

const REGION: &str = "eu-central-1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_account_a_second_garden_and_manual_changes_are_reported() -> Result<()> {
    let (moto, plane) = (Moto::start().await?, ControlPlane::start("seed-a").await?);
    let (region, client) = (Region::start(&moto, REGION).await?, seed(&plane).await?);
    set_uid(&client, "uid-a").await?;

    let infrastructures: Api<Infrastructure> = Api::namespaced(client.clone(), SHOOT);
    let by = reconciler(&client, InfrastructureActuator(build_access(&region)));
    let created: Infrastructure = object("one", REGION, json!({"providerConfig": region.config()}))?;
    let created = infrastructures
        .create(&PostParams::default(), &asking(created))
        .await?;
    run_until_ready(&by, &created).await?;
    let status = json!(infrastructures.get("one").await?)["status"].take();
    let state = &status["state"];
    ensure!(
        state["accountID"] == HOME && state["shootUID"] == "uid-a",
        "{state}"
    );
    let provider_status = status["providerStatus"].clone();
    ensure!(provider_status["accountID"] == HOME, "{provider_status}");
    Box::pin(control_plane::keeps_the_keys_of_the_recorded_account(
        &client,
        &moto,
        &region,
        &provider_status,
    ))
    .await?;

    Box::pin(a_changed_zone_is_closed_again_and_reported(
        &client,
        &region,
        &provider_status,
    ))
    .await?;

    // A garden with the same technical ID.
    set_uid(&client, "uid-b").await?;
    TEST.merge(&infrastructures, "one", &again()).await?;
    let error = run_until_ready(&by, &created).await.unwrap_err().to_string();
    ensure!(error.contains(SHOOT_UID) && error.contains("uid-a"), "{error}");
    set_uid(&client, "uid-a").await?;

    // A deletion with keys of a different account does not succeed.
    set_keys(&client, issue(&moto, OTHER).await?.data()).await?;
    infrastructures.delete("one", &DeleteParams::default()).await?;
    let error = run_until_ready(&by, &created).await.unwrap_err().to_string();
    ensure!(error.contains(HOME) && error.contains(OTHER), "{error}");
    let left = infrastructures.get("one").await?;
    ensure!(!left.finalizers().is_empty(), "the Infrastructure counts as gone");
    let reported = json!(left)["status"]["lastError"].to_string();
    ensure!(
        reported.contains(OTHER) && reported.contains("ERR_CONFIGURATION_PROBLEM"),
        "{reported}"
    );
    ensure!(region.list_parts().await?.vpcs.len() == 1, "the VPC is gone");

    set_keys(&client, credentials().data()).await?;
    TEST.merge(&infrastructures, "one", &again()).await?;
    run_until_ready(&by, &created).await?;
    ensure!(
        infrastructures.get_opt("one").await?.is_none(),
        "the Infrastructure is left"
    );
    ensure!(region.list_parts().await?.vpcs.is_empty(), "the VPC is left");
    Ok(())
}

/// The ACL of the isolation is removed by hand, and a subnet does not exist any more.
async fn a_changed_zone_is_closed_again_and_reported(
    client: &Client,
    region: &Region,
    infrastructure: &Value,
) -> Result<()> {
    const GONE: &str = "subnet-0123456789abcdef0";
    let isolations: Api<SubnetIsolation> = Api::namespaced(client.clone(), SHOOT);
    let by = reconciler(client, SubnetIsolationActuator(AwsZones(build_access(region))));
    let zone = &infrastructure["zones"][0];
    let (vpc, name) = (
        infrastructure["vpc"]["id"].as_str().unwrap(),
        zone["name"].as_str().unwrap(),
    );
    let mut with_gone = infrastructure.clone();
    let subnets = with_gone["vpc"]["subnets"].as_array_mut().unwrap();
    let subnet = subnets.iter().find(|subnet| subnet["zone"] == name).unwrap()["id"].clone();
    let subnet = subnet.as_str().unwrap();
    subnets.push(json!({"id": GONE, "purpose": "public", "zone": name}));
    let created: SubnetIsolation = object(
        "one",
        REGION,
        json!({"isolatedZoneID": zone["id"], "infrastructureProviderStatus": with_gone}),
    )?;
    let created = isolations
        .create(&PostParams::default(), &asking(created))
        .await?;
    run_until_ready(&by, &created).await?;
    let acl = acl_of(&isolations).await?;
    let events = events(client).await?;
    ensure!(
        events.contains("SubnetMissing") && events.contains(GONE),
        "{events}"
    );
    ensure!(!events.contains("ChangedByHand"), "{events}");

    let by_hand = region.other_acl(vpc).await?;
    for (closed, its) in region.acls(vpc).await?.subnets {
        if its == acl {
            region.set_acl(vpc, &closed, &by_hand).await?;
        }
    }
    refused(region.direct.delete_network_acl(&acl).await)?;
    TEST.merge(&isolations, "one", &again()).await?;
    run_until_ready(&by, &created).await?;
    let new = acl_of(&isolations).await?;
    ensure!(new != acl, "the ACL that was removed is reported");
    ensure!(region.acls(vpc).await?.subnets[subnet] == new, "the zone is open");
    let events = self::events(client).await?;
    ensure!(events.contains("ChangedByHand"), "{events}");
    ensure!(events.contains(&acl) && events.contains(&by_hand), "{events}");

    isolations.delete("one", &DeleteParams::default()).await?;
    run_until_ready(&by, &created).await?;
    ensure!(
        isolations.get_opt("one").await?.is_none(),
        "the SubnetIsolation is left"
    );
    refused(region.direct.delete_network_acl(&by_hand).await)?;
    Ok(())
}

/// The ACL that a SubnetIsolation reports, with the missing subnet.
async fn acl_of(isolations: &Api<SubnetIsolation>) -> Result<String> {
    let status = json!(isolations.get("one").await?)["status"]["providerStatus"].take();
    ensure!(
        status["missingSubnets"]
            .as_array()
            .is_some_and(|missing| missing.len() == 1),
        "{status}"
    );
    Ok(status["aclID"].as_str().unwrap().to_owned())
}

async fn events(client: &Client) -> Result<String> {
    let events = Api::<Event>::namespaced(client.clone(), SHOOT);
    let events = events.list(&ListParams::default()).await?.items;
    let text = events.into_iter().map(|event| {
        format!(
            "{}: {}",
            event.reason.unwrap_or_default(),
            event.note.unwrap_or_default()
        )
    });
    Ok(text.collect::<Vec<_>>().join("\n"))
}

fn again() -> Value {
    json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
}

/// The object with the annotation that asks for an operation.
fn asking<K: kube::Resource>(mut object: K) -> K {
    let annotations = object.meta_mut().annotations.get_or_insert_default();
    annotations.insert("gardener.cloud/operation".into(), "reconcile".into());
    object
}

async fn set_uid(client: &Client, uid: &str) -> Result<()> {
    let clusters: Api<Cluster> = Api::all(client.clone());
    TEST.merge(
        &clusters,
        SHOOT,
        &json!({"spec": {"shoot": {"status": {"uid": uid}}}}),
    )
    .await?;
    Ok(())
}

async fn set_keys(client: &Client, data: &std::collections::BTreeMap<String, Vec<u8>>) -> Result<()> {
    let data = data
        .iter()
        .map(|(key, value)| (key.clone(), json!(ByteString(value.clone()))));
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SHOOT);
    let data: serde_json::Map<_, _> = data.collect();
    TEST.merge(&secrets, "cloudprovider", &json!({"data": data}))
        .await?;
    Ok(())
}
