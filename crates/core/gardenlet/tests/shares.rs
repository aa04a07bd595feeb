//! Shoots of a project that hang do not keep a Shoot of a second project from its start. A real API server
//! serves as garden and seed; a proxy never answers the requests for the Shoots of the first project.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::{Result, ensure};
use api::constants::PROJECT_NAME;
use gardenlet::shoot;
use http::Method;
use runtime::client::{Garden, Permit};
use serde_json::{Value, json};
use testkit::{Relay, apply};
use tokio::task::JoinSet;

use ground::{CORE, Ground, PROJECT, SOON, context::context};

/// Namespace of the project with the Shoots that hang.
const HANGING: &str = "garden-hang";
/// More than the workers.
const SHOOTS: usize = 20;
const WORKERS: usize = 4;

#[test]
fn twenty_shoots_that_hang_do_not_keep_a_neighbour_from_its_start() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("shares", false)).await?;
        let relay = Relay::start(ground.client.clone()).await?;
        let shoots = format!("/apis/{CORE}/namespaces/{HANGING}/shoots/");
        relay.hold_prefix(&shoots);
        for object in second_project() {
            apply(&ground.client, object).await?;
        }
        for number in 0..SHOOTS {
            apply(&ground.client, shoot(HANGING, &format!("s{number}"))).await?;
        }
        let mut context = context(&ground.client, &[&format!("--concurrent-syncs={WORKERS}")])?;
        context.garden = Garden::new(relay.client().await?, &Permit::sole("a test"));
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context))));

        // The project is alone, and holds all workers.
        relay.until_held(WORKERS, SOON).await?;
        apply(&ground.client, shoot(PROJECT, "web")).await?;
        ground::until(&ground.shoots, "no operation has begun", |shoot| {
            let status = shoot.status.as_ref();
            status.is_some_and(|status| status.last_operation.is_some())
        })
        .await?;
        // The neighbour has not waited for the end of a reconciliation.
        let asked = relay.asked();
        let reads = asked
            .iter()
            .filter(|asked| asked.method == Method::GET && asked.path.starts_with(&shoots));
        ensure!(reads.count() == WORKERS, "{asked:#?}");
        Ok(())
    })
}

fn second_project() -> [Value; 2] {
    [
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": HANGING, "labels": {PROJECT_NAME: "hang"}}}),
        json!({"apiVersion": CORE, "kind": "Project", "metadata": {"name": "hang"}, "spec": {"namespace": HANGING}}),
    ]
}

fn shoot(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": name, "namespace": namespace},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
