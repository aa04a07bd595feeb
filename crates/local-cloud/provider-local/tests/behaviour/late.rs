//! The last write of an ended process arrives while the successor begins: the reported result must stay.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use anyhow::{Result, ensure};
use api::{
    extensions::{ExtensionObject, Infrastructure},
    meta::{LastOperationState, LastOperationType},
};
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome, kind};
use kube::{Api, ResourceExt};
use runtime::controller::{Next, finalizer};
use serde_json::json;

use super::{
    World,
    world::{self, MANAGER_OF_TEST, create, object},
};

/// More awaits than an operation without work needs.
const WAKES: usize = 24;
/// Finalizer that keeps the deleted object, so that the test can read the status.
const KEEP: &str = "test.example.com/keep";

/// An actuator without work.
struct Idle;

#[async_trait]
impl Actuator<Infrastructure> for Idle {
    const NAME: &'static str = "idle";

    async fn reconcile(&self, _: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn restore(&self, _: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn migrate(&self, _: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn delete(&self, _: &Context<Infrastructure>) -> runtime::Result<()> {
        Ok(())
    }
}

/// A succeeded deletion must not be reported as running again, because no process would ever end that
/// operation. The finalizer is removed at any moment of the successor's work.
pub async fn a_finalizer_that_goes_late_undoes_no_success(world: &World) -> Result<()> {
    let namespace = "shoot--dev--late";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    let reconciler = world::infrastructure_by(&world.seed, Idle);
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    for wakes in 0..WAKES {
        let mut infra: Infrastructure = object(&format!("late-{wakes}"), namespace, json!({}))?;
        infra
            .finalizers_mut()
            .extend([KEEP.to_owned(), kind::finalizer::<Infrastructure>()]);
        let name = infra.name_any();
        create(&api, &infra).await?;
        runtime::client::apply::delete(&api, &name).await?;
        // All writes of the former process, except for the removal of the finalizer.
        let done = json!({"lastOperation": {
            "type": "Delete", "state": "Succeeded", "progress": 100, "description": "done",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }});
        let written: Infrastructure = MANAGER_OF_TEST.merge_status(&api, &name, &done).await?;
        let mut work = pin!(Box::pin(reconciler.run(&infra)));
        let mut left = wakes;
        let ended = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => {
                left -= 1;
                Poll::Pending
            }
        })
        .await;
        finalizer::try_remove(&api, &written, &kind::finalizer::<Infrastructure>()).await?;
        if !ended {
            work.await.ok();
        }
        while !matches!(Box::pin(reconciler.run(&infra)).await, Ok(Next::Change)) {}
        let object = api.get(&name).await?;
        let last = object
            .default_status()
            .and_then(|status| status.last_operation.as_ref());
        let last = last.map(|last| (last.type_, last.state));
        ensure!(
            last == Some((LastOperationType::Delete, LastOperationState::Succeeded)),
            "the finalizer went after {wakes} awaits: {last:?}"
        );
        finalizer::remove(&api, &object, KEEP).await?;
    }
    Ok(())
}
