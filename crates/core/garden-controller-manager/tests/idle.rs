//! An idle garden-controller-manager needs little memory, for any number and size of shoots. Some shoots here
//! have the maximum size of a Shoot, in the shape that needs most memory.
//!
//! `make bench` runs this test; `REPOT_IDLE_SHOOTS` sets the number of shoots, `REPOT_IDLE_LARGE` the number
//! of large shoots.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fmt::Debug, time::Duration};

use anyhow::{Context, Result, ensure};
use api::gardencore::ShootState;
use futures::{StreamExt, TryStreamExt, stream};
use garden_fixture::PROJECT;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{core::v1::Secret, rbac::v1::ClusterRole},
};
use kube::{Api, Client, Resource, api::ListParams, core::PartialObjectMeta};
use serde_json::{Value, json};
use testkit::{ControlPlane, Idle, Server, apply, eventually, size};

const SHOOTS: usize = 250;
const LARGE: usize = 20;
/// Private memory that a process may need, in KiB. Pages of the program's file are shared and can be dropped.
const AT_MOST: u64 = 25 * 1024;
/// On a busy machine.
const SETTLED_WITHIN: Duration = Duration::from_secs(300);

#[ignore = "a measurement of a minute"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_garden_controller_manager_idles_in_little_memory() -> Result<()> {
    let (count, large) = (
        size("REPOT_IDLE_SHOOTS", SHOOTS)?,
        size("REPOT_IDLE_LARGE", LARGE)?,
    );
    let plane = ControlPlane::start("idle").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    for (namespace, labels) in [
        (
            PROJECT,
            json!({"project.gardener.cloud/name": "dev", "gardener.cloud/role": "project"}),
        ),
        ("garden", json!({})),
    ] {
        let metadata = json!({"name": namespace, "labels": labels});
        apply(
            &client,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
        )
        .await?;
    }
    stream::iter(0..count)
        .map(|number| {
            let is_large = number + large >= count;
            garden_fixture::settled(
                &client,
                number,
                if is_large { as_much_as_may_be() } else { json!({}) },
            )
        })
        .buffer_unordered(8)
        .try_collect::<Vec<()>>()
        .await?;

    testkit::free_lock(&client, "garden", "garden-controller-manager").await?;
    let folder = tempfile::tempdir()?;
    let arguments = [
        format!("--garden-kubeconfig={}", plane.admin_kubeconfig_file().display()),
        "--health-address=127.0.0.1:0".into(),
        // The test measures memory, so the process must not lose its lock on a machine that is busy with
        // other tests.
        "--leader-elect-lease-duration=90s".into(),
        "--leader-elect-renew-deadline=60s".into(),
    ];
    let mut manager = Server::start(
        "garden-controller-manager",
        env!("CARGO_BIN_EXE_garden-controller-manager"),
        folder.path(),
        arguments,
        &[],
    )?;
    let settled = eventually("every shoot has what is made for it", SETTLED_WITHIN, || {
        settled(&client, count)
    })
    .await;
    manager.check_alive()?;
    settled.with_context(|| manager.log_tail())?;
    let idle = Idle::measure(&manager).await?;
    idle.tell(
        "garden-controller-manager",
        &format!("{count} shoots, {large} of them as large as they may be"),
    );
    ensure!(idle.own < AT_MOST, "{} KiB are more than {AT_MOST} KiB", idle.own);
    Ok(())
}

/// Within the bounds of policy `shoot-size`: nearly 3000 parts, nearly all of them an object with one field,
/// and texts.
fn as_much_as_may_be() -> Value {
    let chain = (0..14).fold(json!({}), |inner, _| json!({"a": inner}));
    json!({"chains": vec![chain; 180], "text": "x".repeat(40_000)})
}

/// Whether each shoot has its Secret and its ShootState, and the seed has the right to each ShootState.
async fn settled(client: &Client, count: usize) -> Result<(), String> {
    for found in [
        count_objects::<Secret>(client).await,
        count_objects::<ShootState>(client).await,
        count_rights(client).await,
    ] {
        let found = found.map_err(|error| error.to_string())?;
        if found < count {
            return Err(format!("{found} of {count}"));
        }
    }
    Ok(())
}

/// The number of ShootStates that the seed may read.
async fn count_rights(client: &Client) -> Result<usize, kube::Error> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let found = roles
        .get_opt(&format!("gardener.cloud:seed:seed-a:{PROJECT}"))
        .await?;
    let granted = found.and_then(|role| role.rules).unwrap_or_default();
    let states = granted
        .into_iter()
        .find(|rule| rule.resources.iter().flatten().any(|name| name == "shootstates"));
    Ok(states
        .and_then(|rule| rule.resource_names)
        .map_or(0, |names| names.len()))
}

async fn count_objects<K>(client: &Client) -> Result<usize, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug,
{
    let api: Api<PartialObjectMeta<K>> = Api::namespaced(client.clone(), PROJECT);
    Ok(api.list(&ListParams::default()).await?.items.len())
}
