//! The trials before the takeover of a dead seed.

use anyhow::Result;
use api::{constants::SHOOT_FORCE_RESTORE, gardencore::Shoot};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubectl_repot::{
    follow::{Step, follow},
    takeover::{TakeoverSettings, take_over_seed},
};
use serde_json::{Value, json};
use testkit::apply;

use crate::fixture::{Fixture, NAMESPACE, SOON, object, operation, silent};

/// The project of a tenant whose trial fails.
const HOSTILE: &str = "garden-hostile";
const DEAD: &str = "seed-dead";

/// The trial of a hostile project fails for as long as the command waits, and holds up no other project.
pub async fn a_failing_trial_holds_up_no_other_project(fixture: &Fixture) -> Result<()> {
    let hostile: Api<Shoot> = Api::namespaced(fixture.client.clone(), HOSTILE);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOSTILE}});
    apply(&fixture.client, namespace).await?;
    for (shoots, namespace, name, purpose) in [
        (&hostile, HOSTILE, "trap", "evaluation"),
        (&fixture.shoots, NAMESPACE, "modest", "testing"),
        (&fixture.shoots, NAMESPACE, "vital", "production"),
    ] {
        let spec = json!({"cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
            "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}, "seedName": DEAD});
        let metadata = json!({"name": name, "namespace": namespace});
        apply(&fixture.client, object("Shoot", metadata, &spec)).await?;
        fixture.host_on(shoots, name, DEAD, purpose).await?;
    }
    let settings = TakeoverSettings {
        to: "seed-b",
        source_is_off: true,
        approval: Some(DEAD),
        excluded: &[],
        wait: Some(SOON * 3),
    };
    let nobody = |_: &str, _: &str| -> Option<String> { None };
    let taken = take_over_seed(&fixture.session, DEAD, 1, settings, &nobody, &silent);
    // As garden-controller-manager and the gardenlet of seed-b.
    let garden = async {
        asked(&hostile, "trap").await?;
        let waits = fixture.shoots.get("modest").await?;
        assert_eq!(waits.spec.seed_name.as_deref(), Some(DEAD));
        let fails = json!({"seedName": "seed-b", "settledSeedName": null, "ownership": {"epoch": 2},
            "lastErrors": [{"description": "the credentials do not exist"}], "lastOperation": operation("Restore Error")});
        write(&hostile, "trap", fails).await?;
        // The second trial, and then the rest.
        for name in ["modest", "vital"] {
            asked(&fixture.shoots, name).await?;
            write(&fixture.shoots, name, restored()).await?;
        }
        // The first trial is watched until the end.
        write(&hostile, "trap", restored()).await
    };
    let (answer, acted) = tokio::join!(Box::pin(taken), garden);
    acted?;
    let answer = answer?;
    assert!(!answer.has_obstacles, "{}", answer.text);
    let results = answer.json["shoots"].as_array().unwrap();
    let names: Vec<&str> = results
        .iter()
        .filter_map(|result| result["shoot"].as_str())
        .collect();
    assert_eq!(names, ["modest", "vital", "trap"], "{}", answer.text);
    Ok(())
}

fn restored() -> Value {
    json!({"seedName": "seed-b", "settledSeedName": "seed-b", "ownership": {"epoch": 2}, "lastErrors": null,
        "lastOperation": operation("Restore Succeeded")})
}

/// Waits until the command has asked for the takeover.
async fn asked(shoots: &Api<Shoot>, name: &str) -> Result<()> {
    let asks = |shoot: Option<&Shoot>| {
        let annotations = shoot.and_then(|shoot| shoot.metadata.annotations.as_ref());
        let asks = annotations.is_some_and(|all| all.contains_key(SHOOT_FORCE_RESTORE));
        Ok(if asks {
            Step::Done(())
        } else {
            Step::Waiting("not asked".to_owned())
        })
    };
    follow(shoots.clone(), name, "the request", SOON, &silent, asks).await?;
    Ok(())
}

async fn write(shoots: &Api<Shoot>, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    shoots.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
