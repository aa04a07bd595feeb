//! Closed zones as objects of a real API server. The test writes the confirmations of hosts;
//! `cloud-local-agent` has the tests with packets.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cloud_local::{
    Closed, Cloud, Host, Isolation,
    isolation::{self, HOSTS, Order},
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use runtime::{Error, client::apply::FieldManager};
use serde_json::json;
use testkit::{ControlPlane, eventually};

const CLUSTER: &str = "shoot--dev--web";
/// Far longer than any of this takes.
const SOON: Duration = Duration::from_secs(60);
/// Wait for a confirmation that is known not to come: mostly long enough for an answered request.
const SHORTLY: Duration = Duration::from_secs(1);

async fn account(client: &Client, name: &str) -> Result<Cloud> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await?;
    Ok(Cloud::inside(client.clone(), name, FieldManager("test")))
}

fn build_isolation(cloud: &Cloud) -> Isolation {
    Isolation::new(cloud.clone(), CLUSTER).waiting(SOON)
}

fn impatient(cloud: &Cloud) -> Isolation {
    Isolation::new(cloud.clone(), CLUSTER).waiting(SHORTLY)
}

/// The call ends late with these words. If not even the first request was answered in time, the call is
/// repeated.
async fn is_late<F>(words: &str, ask: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = runtime::Result<()>>,
{
    let outcome = eventually("the zone is looked at", SOON, || async {
        match ask().await {
            Err(unseen) if unseen.to_string().contains("it was not seen yet") => Err(unseen),
            outcome => Ok(outcome),
        }
    })
    .await?;
    let is_told = matches!(&outcome, Err(Error::NotReady { why, .. }) if why.contains(words));
    ensure!(is_told, "{words}: {outcome:?}");
    Ok(())
}

/// The order, once `shut` has this value.
async fn order(host: &Host, shut: bool) -> Result<Order> {
    eventually("what is wanted has been written", SOON, || async {
        let orders = host.orders().await?;
        let found = orders.into_iter().find(|order| order.shut == shut);
        found.context("nothing is wanted")
    })
    .await
}

async fn does(host: &Host, shut: bool) -> Result<Order> {
    let order = order(host, shut).await?;
    host.confirm(&order).await?;
    Ok(order)
}

async fn find(cloud: &Cloud) -> Result<Option<Closed>> {
    let mut found = build_isolation(cloud).find().await?;
    if let Some(found) = &mut found {
        ensure!(found.since.ends_with('Z'), "{found:?}");
        found.since.clear();
    }
    Ok(found)
}

fn closed(zone: &str, confirmed: bool) -> Closed {
    Closed {
        zone: zone.into(),
        since: String::new(),
        confirmed,
    }
}

/// A zone is closed when every host has confirmed, and open again when every host has confirmed;
/// confirmations of an earlier order do not count.
#[tokio::test]
async fn a_zone_is_closed_when_every_host_has_said_so() -> Result<()> {
    let server = ControlPlane::start("cloud").await?;
    let cloud = account(&server.admin(), "account").await?;
    assert_eq!(find(&cloud).await?, None);
    build_isolation(&cloud).open().await.context("none is closed")?;

    // No host is registered that could close the zone: the zone is not closed.
    let refused = build_isolation(&cloud).close("a").await.unwrap_err();
    assert!(matches!(refused, Error::Config { .. }), "{refused}");
    assert!(refused.to_string().contains("cloud-local-agent"), "{refused}");
    assert_eq!(find(&cloud).await?, None, "nothing was begun");

    let [one, two] = ["one", "two"].map(|name| Host::new(cloud.clone(), name));
    one.register().await?;
    two.register().await?;
    two.register().await.context("a second time")?;

    let asked = impatient(&cloud);
    is_late("not closed on one, two:", || asked.close("a")).await?;
    does(&one, true).await?;
    is_late("not closed on two:", || asked.close("a")).await?;
    assert_eq!(find(&cloud).await?, Some(closed("a", false)));

    let (isolation, of_two) = (build_isolation(&cloud), async { does(&two, true).await });
    let (done, first) = tokio::join!(isolation.close("a"), of_two);
    done?;
    let first = first?;
    assert_eq!(find(&cloud).await?, Some(closed("a", true)));
    build_isolation(&cloud)
        .close("a")
        .await
        .context("what is closed stays so")?;
    let object = cloud.objects().get(&isolation::name_of(CLUSTER)).await?;
    assert_eq!(
        object.labels()["local.provider.extensions.gardener.cloud/cluster"],
        CLUSTER
    );

    // A kernel that has lost the rules.
    two.withdraw(&first).await?;
    assert_eq!(find(&cloud).await?, Some(closed("a", false)));
    two.confirm(&first).await?;

    is_late("not open on one, two:", || asked.open()).await?;
    assert_eq!(find(&cloud).await?, Some(closed("a", false)), "it opens");
    // A late confirmation of an earlier order does not count.
    one.confirm(&first).await?;
    two.confirm(&first).await?;
    is_late("not open on one, two:", || asked.open()).await?;

    // A new order to close, before the zone was open.
    let isolation = build_isolation(&cloud);
    let (done, of_one, of_two) = tokio::join!(isolation.close("a"), does(&one, true), does(&two, true));
    done?;
    assert_eq!((of_one?.revision, of_two?.revision), (3, 3));

    let isolation = build_isolation(&cloud);
    let (done, of_one, of_two) = tokio::join!(isolation.open(), does(&one, false), does(&two, false));
    done?;
    let last = of_one?;
    assert_eq!(last.revision, of_two?.revision, "the same wish");
    assert_eq!(find(&cloud).await?, None);
    // For a deleted object, no confirmation is written, and the object does not return.
    one.confirm(&last).await?;
    assert_eq!(find(&cloud).await?, None);
    Ok(())
}

/// Two zones of a cluster are never closed at a time, even after two requests at the same moment, and even
/// while a zone opens. Zones of a second cluster do not matter.
#[tokio::test]
async fn only_one_zone_of_a_cluster_is_closed() -> Result<()> {
    let server = ControlPlane::start("cloud").await?;
    let cloud = account(&server.admin(), "account").await?;
    let host = Host::new(cloud.clone(), "one");
    host.register().await?;
    let (of_a, of_b) = (impatient(&cloud), impatient(&cloud));
    let (a, b) = tokio::join!(of_a.close("a"), of_b.close("b"));
    let refused = [a.unwrap_err(), b.unwrap_err()];
    let config = refused
        .iter()
        .filter(|why| matches!(why, Error::Config { .. }))
        .count();
    assert_eq!(config, 1, "{refused:?}");
    let winner = order(&host, true).await?.zone;
    let loser = if winner == "a" { "b" } else { "a" };
    host.confirm(&order(&host, true).await?).await?;

    let refused = build_isolation(&cloud)
        .close(loser)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(&format!("open it before zone {loser}")),
        "{refused}"
    );
    impatient(&cloud).open().await.unwrap_err();
    let refused = build_isolation(&cloud).close(loser).await.unwrap_err();
    assert!(
        matches!(refused, Error::Config { .. }),
        "while it opens: {refused}"
    );

    let other = Isolation::new(cloud.clone(), "shoot--dev--shop").waiting(SHORTLY);
    assert!(matches!(other.close(loser).await, Err(Error::NotReady { .. })));

    // An invalid object is not open.
    let name = isolation::name_of(CLUSTER);
    let spoilt = Patch::Merge(json!({"data": {"wanted": "maybe"}}));
    let objects: Api<ConfigMap> = cloud.objects();
    objects.patch(&name, &PatchParams::default(), &spoilt).await?;
    for answer in [
        build_isolation(&cloud).find().await.map(drop),
        build_isolation(&cloud).open().await,
    ] {
        let why = answer.unwrap_err().to_string();
        assert!(why.contains("neither closed nor open"), "{why}");
    }
    // A lost list of hosts is not an empty list.
    let mended = Patch::Merge(json!({"data": {"wanted": "open"}}));
    objects.patch(&name, &PatchParams::default(), &mended).await?;
    objects.delete(HOSTS, &DeleteParams::default()).await?;
    assert!(matches!(
        build_isolation(&cloud).open().await,
        Err(Error::Config { .. })
    ));
    Ok(())
}
