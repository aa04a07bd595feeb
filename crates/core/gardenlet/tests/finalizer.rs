//! A user removes finalizer `gardener` between two writes of the gardenlet that takes a Shoot. Without the
//! finalizer the user could delete the Shoot, and the control plane would stay without a Shoot. A real API
//! server serves as garden and seed; a proxy makes the write of the user at the right moment.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use api::{constants::OPERATION, gardencore::Shoot};
use futures::FutureExt as _;
use gardenlet::shoot;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use placement::{is_hosted, is_kept};
use serde_json::json;
use testkit::{Relay, apply};
use tokio::task::JoinSet;

use ground::{CORE, Ground, PROJECT, context::context, is_write_of_status};

/// A finalizer of the user.
const OWN: &str = "example.org/own";

/// The Shoot in the garden before a write of the gardenlet.
#[derive(Clone, Copy, Debug)]
struct ShootBeforeWrite {
    is_write_of_status: bool,
    is_kept: bool,
    /// The Shoot has neither the request of the user nor the start of the operation.
    is_request_lost: bool,
}

#[test]
fn a_shoot_whose_finalizer_a_user_removes_is_not_taken_without_the_finalizer() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("finalizer", false)).await?;
        let annotations = json!({OPERATION: "reconcile"});
        let metadata = json!({"name": "web", "namespace": PROJECT, "finalizers": ["gardener", OWN],
            "annotations": annotations});
        let spec = json!({"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}});
        apply(
            &ground.client,
            json!({"apiVersion": CORE, "kind": "Shoot", "metadata": metadata, "spec": spec}),
        )
        .await?;
        let relay = Relay::start(ground.client.clone()).await?;
        let writes = remove_before_first_write(&relay, ground.shoots.clone());
        let mut gardenlet = JoinSet::new();
        let context = context(&relay.client().await?, &[])?;
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context))));
        ground::until(&ground.shoots, "no seed has taken the Shoot", is_hosted).await?;

        let writes = writes.lock().unwrap().clone();
        ensure!(writes.iter().any(|write| !write.is_kept), "{writes:?}");
        let mut of_status = writes.iter().filter(|write| write.is_write_of_status);
        ensure!(of_status.all(|write| write.is_kept), "{writes:?}");
        // The request of the user stays until the start of the operation is recorded.
        ensure!(!writes.iter().any(|write| write.is_request_lost), "{writes:?}");
        Ok(())
    })
}

/// Removes finalizer `gardener` just before the first write of the Shoot, and records the Shoot before each
/// write.
fn remove_before_first_write(relay: &Relay, shoots: Api<Shoot>) -> Arc<Mutex<Vec<ShootBeforeWrite>>> {
    let writes = Arc::<Mutex<Vec<ShootBeforeWrite>>>::default();
    let recorded = Arc::clone(&writes);
    relay.act_before(move |asked| {
        let (shoots, recorded) = (shoots.clone(), Arc::clone(&recorded));
        async move {
            let Some(is_write_of_status) = is_write_of_status(&asked) else {
                return;
            };
            let shoot = shoots.get("web").await.unwrap();
            let is_first = recorded.lock().unwrap().is_empty();
            recorded.lock().unwrap().push(ShootBeforeWrite {
                is_write_of_status,
                is_kept: is_kept(&shoot),
                is_request_lost: !shoot.annotations().contains_key(OPERATION) && !is_hosted(&shoot),
            });
            if is_first {
                let removed = Patch::Merge(json!({"metadata": {"finalizers": [OWN]}}));
                let params = PatchParams::default();
                shoots.patch("web", &params, &removed).await.unwrap();
            }
        }
        .boxed()
    });
    writes
}
