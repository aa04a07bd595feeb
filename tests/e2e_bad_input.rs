//! Mistakes of a user and accidents, on real clusters. Each fault is refused at the earliest place, or
//! reported in `lastErrors` with a code and a sentence with the remedy. No fault does harm, and after the fix
//! the work continues without further action.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path, time::Duration};

use api::{
    gardencore::{BackupEntry, ControllerInstallation, Seed, Shoot, ShootState},
    meta::{ErrorCode, LastError, LastOperationState, LastOperationType},
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use repot_tests::{
    is_every_scenario,
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, PROJECT, deleted, nothing_left},
    manifests, proof,
    shoot::UserShoot,
    watched,
};
use serde_json::{Value, json};

/// Bounds the time until an error is reported. Longer than two of the longest pauses between retries, with a
/// step's patience in each, because only the second retry may notice the fix.
const TOLD_WITHIN: Duration = Duration::from_secs(420);

/// Waits for an error with this code and all these words, and prints the sentence.
async fn wait_for_error(shoot: &UserShoot, code: ErrorCode, words: &[&str]) -> Shoot {
    let tells = |error: &LastError| {
        error.codes.contains(&code) && words.iter().all(|word| error.description.contains(word))
    };
    let found = shoot
        .wait(
            &format!("lastErrors tell {code:?} {words:?}"),
            TOLD_WITHIN,
            |shoot| {
                let status = shoot.status.as_ref();
                status.is_some_and(|status| status.last_errors.iter().any(tells))
            },
        )
        .await
        .unwrap();
    let status = found.status.as_ref().unwrap();
    let error = status.last_errors.iter().find(|error| tells(error)).unwrap();
    println!("{code:?}: {}", error.description);
    found
}

fn manifest(name: &str) -> Value {
    let text = manifests::text("30-shoot.yaml", &[("SHOOT", name)]).unwrap();
    serde_json::to_value(serde_yaml_ng::from_str::<Value>(&text).unwrap()).unwrap()
}

/// The schema is the earliest place: the object is not stored, and the answer names the field.
#[tokio::test]
async fn a_manifest_with_a_wrong_or_unknown_field_is_refused_and_the_field_is_named() {
    let landscape = Landscape::open("e2e").await.unwrap();
    manifests::apply_project(&landscape).await.unwrap();
    let mut unknown = manifest("odd");
    unknown["spec"]["seedNam"] = json!("seed-a");
    let mut wrong = manifest("odd");
    wrong["spec"]["region"] = json!(5);
    let mut odd = manifest("odd");
    odd["spec"]["networking"]["pods"] = json!("100.96.0.0/99");
    for (manifest, field) in [(unknown, "seedNam"), (wrong, "region"), (odd, "networking.pods")] {
        let refusal = manifests::apply_text(&landscape, &manifest.to_string())
            .await
            .unwrap_err();
        println!("{refusal}");
        assert!(refusal.to_string().contains(field), "{refusal}");
    }
    let shoot = UserShoot::new(&landscape, PROJECT, "odd");
    assert!(shoot.api().get_opt("odd").await.unwrap().is_none());
}

/// A shoot meets a sequence of obstacles: no seed (I8), and a move that cannot begin (I8). Then
/// (`make e2e-all`) all inputs of the restore fail at once. Each obstacle is reported. After all fixes, the
/// shoot is on the destination seed with all data.
#[tokio::test]
async fn every_obstacle_of_a_move_is_told_and_once_it_is_mended_the_work_goes_on_by_itself() {
    let landscape = Landscape::open("e2e").await.unwrap();
    manifests::apply_project(&landscape).await.unwrap();
    let shoot = homeless(&landscape).await;
    proof::write_data(&shoot.client().await.unwrap(), 50)
        .await
        .unwrap();
    let before = proof::read(&shoot, landscape.seed("seed-a").unwrap())
        .await
        .unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    Box::pin(moves_that_cannot_begin(&landscape, &shoot, &id)).await;
    if is_every_scenario() {
        hand_over(&landscape, &shoot).await;
        broken_restore(&landscape, &shoot, &id).await;
    } else {
        shoot.set_seed("seed-b").await.unwrap();
    }

    shoot.wait_until_on("seed-b", MOVE_WITHIN).await.unwrap();
    let after = proof::read(&shoot, landscape.seed("seed-b").unwrap())
        .await
        .unwrap();
    assert_eq!(before.differences(&after), Vec::<String>::new());
    nothing_left(&landscape, "seed-a", &id).await.unwrap();
    deleted(&landscape, &shoot).await.unwrap();
}

/// A shoot that names a missing seed is reported, and starts without further action after the name is
/// corrected.
async fn homeless(landscape: &Landscape) -> UserShoot {
    let mut homeless = manifest("mended");
    homeless["spec"]["seedName"] = json!("nowhere");
    manifests::apply_text(landscape, &homeless.to_string())
        .await
        .unwrap();
    let shoot = UserShoot::new(landscape, PROJECT, "mended");
    wait_for_error(
        &shoot,
        ErrorCode::ErrConfigurationProblem,
        &["no seed nowhere", "correct spec.seedName"],
    )
    .await;
    shoot.set_seed("seed-a").await.unwrap();
    shoot.wait_until_on("seed-a", MOVE_WITHIN).await.unwrap();
    shoot
}

/// A missing seed, and a seed that cannot take the shoot: no state changes, and the move can be cancelled.
async fn moves_that_cannot_begin(landscape: &Landscape, shoot: &UserShoot, id: &str) {
    let seeds: Api<Seed> = Api::all(landscape.garden.clone());
    let mut bare = seeds.get("seed-b").await.unwrap();
    bare.metadata = kube::api::ObjectMeta {
        name: Some("bare".into()),
        ..Default::default()
    };
    bare.status = None;
    bare.spec.backup = None;
    for dns in bare
        .spec
        .dns
        .internal
        .iter_mut()
        .chain(&mut bare.spec.dns.defaults)
    {
        dns.credentials_ref.namespace = Some("seed-bare".into());
    }
    seeds.create(&PostParams::default(), &bare).await.unwrap();
    for (seed, words) in [
        ("nowhere", ["no seed nowhere", "set spec.seedName back to seed-a"]),
        ("bare", ["no spec.backup", "set spec.seedName back to seed-a"]),
    ] {
        shoot.set_seed(seed).await.unwrap();
        let found = wait_for_error(shoot, ErrorCode::ErrConfigurationProblem, &words).await;
        let status = found.status.unwrap();
        assert_eq!(status.seed_name.as_deref(), Some("seed-a"));
        let last = status.last_operation.unwrap();
        assert!(
            last.type_ != LastOperationType::Migrate && last.state == LastOperationState::Succeeded,
            "{last:?}"
        );
        let namespaces: Api<Namespace> = Api::all(landscape.seed("seed-a").unwrap().clone());
        let namespace = namespaces.get(id).await.unwrap();
        assert!(namespace.metadata.deletion_timestamp.is_none());
        let client = shoot.client().await.unwrap();
        client
            .apiserver_version()
            .await
            .expect("the shoot's API must still answer");
        shoot.set_seed("seed-a").await.unwrap();
        let back = shoot.wait("the errors are taken back", TOLD_WITHIN, |shoot| {
            let status = shoot.status.as_ref();
            status.is_some_and(|status| status.last_errors.is_empty())
        });
        back.await.unwrap();
    }
    seeds.delete("bare", &DeleteParams::default()).await.unwrap();
    // The seed got extensions, and has no gardenlet that would release the ControllerInstallations.
    let installations: Api<ControllerInstallation> = Api::all(landscape.garden.clone());
    let given = ListParams::default().fields("spec.seedRef.name=bare");
    for installation in installations.list(&given).await.unwrap() {
        let name = installation.name_any();
        installations
            .delete(&name, &DeleteParams::default())
            .await
            .unwrap();
    }
}

/// All inputs of a restore are broken at once. The flow reports fault by fault, after each fix.
async fn broken_restore(landscape: &Landscape, shoot: &UserShoot, id: &str) {
    let state = break_shoot_state(landscape, shoot).await;
    let store = landscape.variable("S3_DATA").unwrap().to_owned();
    let backups = lifecycle::backup_name(shoot).await.unwrap();
    let spoilt = spoil_snapshots(&lifecycle::snapshots(store.as_ref(), &backups));
    let (last, _) = spoilt
        .iter()
        .rfind(|(path, _)| path.contains("/Full-"))
        .expect("there is no final snapshot");
    let key = change_store_key(landscape, "not the key").await;
    let stored = lifecycle::snapshots(store.as_ref(), &backups);
    lifecycle::start_gardenlet(landscape.seed("seed-b").unwrap())
        .await
        .unwrap();

    wait_for_error(
        shoot,
        ErrorCode::ErrConfigurationProblem,
        &[
            "ShootState mended",
            "does not decode",
            "put its former content back",
        ],
    )
    .await;
    let states: Api<ShootState> = Api::namespaced(landscape.garden.clone(), PROJECT);
    put_back(&states, &shoot.name, &json!({"spec": {"gardener": state}})).await;

    wait_for_error(shoot, ErrorCode::ErrInfraUnauthenticated, &["StoreCredentials"]).await;
    let entries: Api<BackupEntry> = Api::namespaced(landscape.garden.clone(), PROJECT);
    let source = entries
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .find(|entry| entry.name_any().starts_with("source-") && entry.name_any().contains(id))
        .expect("there is no source BackupEntry");
    lost(&entries, &source.name_any()).await;
    // The Shoot records the bucket, so garden-controller-manager creates the entry again.
    let again = wait_until_created(&entries, &source).await;
    assert_eq!(again.spec, source.spec);
    change_store_key(landscape, &key).await;

    wait_for_error(
        shoot,
        ErrorCode::ErrRetryableConfigurationProblem,
        &[
            "SnapshotMissing",
            Path::new(last).file_name().unwrap().to_str().unwrap(),
            "cannot be used",
            "accept-loss=",
        ],
    )
    .await;
    let kept = lifecycle::snapshots(store.as_ref(), &backups);
    assert!(
        stored.iter().all(|path| kept.contains(path)),
        "snapshots are gone"
    );
    for (path, content) in &spoilt {
        fs::write(path, content).unwrap();
    }
}

/// Cuts off the second half of each snapshot but the first, and returns the former contents. An intact
/// earlier full snapshot with all deltas would replace the final snapshot.
fn spoil_snapshots(paths: &[String]) -> Vec<(String, Vec<u8>)> {
    let first = paths.iter().position(|path| path.contains("/Full-"));
    let spoil = |path: &String| {
        let content = fs::read(path).unwrap();
        fs::write(path, &content[..content.len() / 2]).unwrap();
        (path.clone(), content)
    };
    paths
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != first)
        .map(|(_, path)| spoil(path))
        .collect()
}

/// The source prepares the shoot for seed-b. The gardenlet of seed-b does not run, so no seed takes the shoot
/// over yet.
async fn hand_over(landscape: &Landscape, shoot: &UserShoot) {
    lifecycle::stop_gardenlet(landscape.seed("seed-b").unwrap())
        .await
        .unwrap();
    shoot.set_seed("seed-b").await.unwrap();
    shoot
        .wait("the source has handed over", MOVE_WITHIN, |shoot| {
            let status = shoot.status.as_ref();
            let last = status.and_then(|status| status.last_operation.as_ref());
            last.is_some_and(|last| {
                last.type_ == LastOperationType::Migrate && last.state == LastOperationState::Succeeded
            })
        })
        .await
        .unwrap();
}

/// A new entry of the same name.
async fn wait_until_created(entries: &Api<BackupEntry>, former: &BackupEntry) -> BackupEntry {
    let is_new = |entry: Option<&BackupEntry>| entry.is_some_and(|entry| entry.uid() != former.uid());
    let created = watched::until(entries, &former.name_any(), TOLD_WITHIN, is_new).await;
    created.unwrap().unwrap()
}

/// As after an accident: deleted at once, with all finalizers removed.
async fn lost(entries: &Api<BackupEntry>, name: &str) {
    entries.delete(name, &DeleteParams::default()).await.unwrap();
    let freed = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    match entries.patch(name, &PatchParams::default(), &freed).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        freed => drop(freed.unwrap()),
    }
}

/// Damages the first carried secret of the ShootState, and returns the former content.
async fn break_shoot_state(landscape: &Landscape, shoot: &UserShoot) -> Value {
    let states: Api<ShootState> = Api::namespaced(landscape.garden.clone(), PROJECT);
    let state = states.get(&shoot.name).await.unwrap();
    let good = serde_json::to_value(&state.spec.gardener).unwrap();
    let mut bad = good.clone();
    let secrets = bad.as_array_mut().unwrap();
    let first = secrets
        .iter_mut()
        .find(|entry| entry["type"] == "secret")
        .expect("the ShootState carries no secret");
    first["data"] = json!({"data": "no map"});
    put_back(&states, &shoot.name, &json!({"spec": {"gardener": bad}})).await;
    good
}

async fn put_back(states: &Api<ShootState>, name: &str, spec: &Value) {
    states
        .patch(name, &PatchParams::default(), &Patch::Merge(spec))
        .await
        .unwrap();
}

/// Changes the credential key of seed-a's bucket, and returns the former key.
async fn change_store_key(landscape: &Landscape, key: &str) -> String {
    let secrets: Api<Secret> = Api::namespaced(landscape.garden.clone(), "seed-seed-a");
    let former = secrets.get("backup").await.unwrap();
    let patch = json!({"stringData": {"secretAccessKey": key}});
    secrets
        .patch("backup", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    String::from_utf8(former.data.unwrap()["secretAccessKey"].0.clone()).unwrap()
}
