//! A ShootState that is larger than the etcd of the destination takes (threats.md 25).

use anyhow::Result;
use api::extensions;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::DeleteParams};
use parts::{Deploy, Facts, Infrastructure, Operation, Secrets, Settings, ShootState};
use parts_fixture::{NAMESPACE, World};
use serde_json::json;

use super::{EXTENSIONS, FEW, LARGE, MIB, grow, planted::write, shoot, state};

#[tokio::test]
async fn a_restore_above_the_limit_is_refused_and_nothing_else() -> Result<()> {
    let world = Box::pin(shoot("limit")).await?;
    let source = world.facts(Operation::Reconcile, Settings::default()).await?;
    for number in 0..FEW {
        grow(&world, number, LARGE, 1).await?;
    }
    ShootState::persist(&source).await?;
    let honest = state(&world).await?.spec.in_chunks.unwrap();
    assert!(usize::try_from(honest.size)? > 2 * MIB, "{}", honest.size);

    let settings = || Settings {
        shoot_state_limit: u64::try_from(2 * MIB).unwrap(),
        ..Settings::default()
    };
    let restoring = world.facts(Operation::Restore, settings()).await?;
    let error = ShootState::whole(&restoring).await.unwrap_err();
    assert_eq!(error.class(), "Config", "{error}");
    assert!(
        error
            .to_string()
            .contains("only the keys of the shoot are restored"),
        "{error}"
    );
    Box::pin(the_keys_alone_are_restored(&world, &restoring)).await?;
    // A hostile source declares fewer bytes than the chunks have.
    let mut lie = honest.clone();
    lie.size = 1;
    write(&world, json!({"inChunks": lie})).await?;
    let error = ShootState::whole(&restoring).await.unwrap_err();
    assert!(
        error.to_string().contains("--shoot-state-limit-mebibytes"),
        "{error}"
    );

    write(&world, json!({"inChunks": honest})).await?;
    // A planned move is refused before the first process stops.
    let leaving = world.facts(Operation::Migrate, settings()).await?;
    let error = ShootState::check(&leaving).await.unwrap_err();
    assert_eq!(error.class(), "Config", "{error}");
    // The seed with the shoot reconciles and deletes a shoot of any size.
    for operation in [Operation::Reconcile, Operation::Delete] {
        let staying = world.facts(operation, settings()).await?;
        assert!(ShootState::whole(&staying).await?.is_some(), "{operation:?}");
    }
    ShootState::sync(&source.garden, &source.residency, &source.shoot).await?;
    Ok(())
}

/// A size costs a hostile source a single number, and must not keep the destination from the keys.
async fn the_keys_alone_are_restored(world: &World, restoring: &Facts) -> Result<()> {
    let before: Secret = world.read("ca").await?;
    let secrets: Api<Secret> = Api::namespaced(world.client(), NAMESPACE);
    secrets.delete("ca", &DeleteParams::default()).await?;
    Secrets::deploy(restoring).await?;
    let after: Secret = world.read("ca").await?;
    assert_eq!(before.data, after.data);
    let infrastructures: Api<extensions::Infrastructure> = Api::namespaced(world.client(), NAMESPACE);
    infrastructures.delete("web", &DeleteParams::default()).await?;
    let error = Infrastructure::deploy(restoring).await.unwrap_err();
    assert!(
        error.to_string().contains("--shoot-state-limit-mebibytes"),
        "{error}"
    );
    let waiting: extensions::Infrastructure = world.read("web").await?;
    assert!(waiting.status.is_none_or(|status| status.default.state.is_none()));
    let status = json!({"state": {"networkID": "n1"}});
    world.status(EXTENSIONS, "Infrastructure", "web", status).await
}
