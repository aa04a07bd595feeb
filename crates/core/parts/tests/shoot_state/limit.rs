//! A ShootState that is larger than the etcd of the destination takes (threats.md 25).

use anyhow::Result;
use parts::{Operation, Settings, ShootState};
use serde_json::json;

use super::{FEW, LARGE, MIB, grow, planted::write, shoot, state};

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
    for error in [
        ShootState::check_size(&restoring).await.unwrap_err(),
        ShootState::whole(&restoring).await.unwrap_err(),
    ] {
        assert_eq!(error.class(), "Config", "{error}");
        assert!(
            error
                .to_string()
                .contains("nothing of this ShootState is applied"),
            "{error}"
        );
    }
    // A hostile source declares fewer bytes than the chunks have.
    let mut lie = honest.clone();
    lie.size = 1;
    write(&world, json!({"inChunks": lie})).await?;
    ShootState::check_size(&restoring).await?;
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
