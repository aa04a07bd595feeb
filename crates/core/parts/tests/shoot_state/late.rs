//! A former owner, with an earlier epoch, wakes up (R17-60).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Result;
use api::gardencore::{Shoot, ShootState as Object};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    client::Body,
};
use parts::{Facts, Operation, Settings, ShootState};
use parts_fixture::{PROJECT, World};
use runtime::client::{Garden, Permit};
use serde_json::{Value, json};

use crate::{LARGE, grow, names, referred_to, state};

/// The former owner slept while the shoot moved on: before the read, or between the read and the write. No
/// chunk is created.
pub async fn a_former_owner_writes_nothing(world: &World, former: &Facts) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(world.client(), PROJECT);
    let later = json!({"status": {"ownership": {"epoch": 3}}});
    shoots
        .patch_status("web", &PatchParams::default(), &Patch::Merge(later))
        .await?;
    let owner = world.facts(Operation::Reconcile, Settings::default()).await?;
    assert_eq!(state(world).await?.spec.epoch, None);
    for number in [0, 1] {
        grow(world, number, LARGE, 1).await?;
    }
    let mut sleeper = former.clone();
    sleeper.garden = Garden::new(woken_late(world.client(), &owner), &Permit::sole("a test"));
    for (late, slept) in [
        (&sleeper, "when it was about to write"),
        (former, "before it looked"),
    ] {
        let refused = ShootState::persist(late).await.unwrap_err();
        assert_eq!(refused.class(), "NotOwner", "{slept}: {refused}");
        assert!(
            refused.to_string().contains("written in ownership epoch 3"),
            "{refused}"
        );
        let kept = state(world).await?;
        assert_eq!((kept.spec.epoch, kept.spec.in_chunks.is_some()), (Some(3), true));
        assert_eq!(names(world).await?, referred_to(world).await?, "{slept}");
        // Adds state, so that the former owner would have content to write.
        grow(world, 2, LARGE, 1).await?;
    }
    let states: Api<Object> = Api::namespaced(world.client(), PROJECT);
    for epoch in [json!(2), Value::Null] {
        let falls = Patch::Merge(json!({"spec": {"epoch": epoch}}));
        let refused = states
            .patch("web", &PatchParams::default(), &falls)
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("epoch never falls"), "{refused}");
    }
    ShootState::persist(&owner).await?;
    assert_eq!(names(world).await?, referred_to(world).await?);
    Ok(())
}

/// A client of a process that sleeps before the first write, and wakes after the owner of a later epoch has
/// written.
fn woken_late(client: Client, owner: &Facts) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (owner, asleep) = (Arc::new(owner.clone()), Arc::new(AtomicBool::new(true)));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, owner, asleep) = (client.clone(), Arc::clone(&owner), Arc::clone(&asleep));
        async move {
            if request.method() != http::Method::GET && asleep.swap(false, Ordering::SeqCst) {
                ShootState::persist(&owner).await?;
            }
            client.send(request).await.map_err(tower::BoxError::from)
        }
    });
    #[allow(clippy::disallowed_methods)] // a test client needs no permit
    Client::new(service, namespace)
}
