//! The preconditions of a deletion that can fail. Backups could get lost, and a cloud and a DNS server refuse
//! the credentials of a single Shoot. The refusals are real, because the credentials in the seed are invalid.

use std::path::PathBuf;
use std::time::Duration;

use api::extensions::Infrastructure;
use api::gardencore::Seed;
use api::meta::ErrorCode;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use runtime::client::wait::{self, WaitState};
use runtime::{Error, Result};
use serde_json::{Value, json};

use crate::evidence::require;
use crate::garden::PROJECT;
use crate::scenario::ShootScenario;
use crate::subject::Subject;

/// Longer than the report of a refusal takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// Name of the object that stands for the Shoot's backups.
const SNAPSHOT: &str = "Full-00000000-00000009-1";
/// A key of the right form that the DNS server does not know.
const WRONG_KEY: &str = "d3Jvbmcgc2VjcmV0IG9mIDMyIGJ5dGVzLCByZWFsbHkh";

/// Writes an object into the folder of the Shoot's etcd snapshots.
pub async fn back_up(of: &Subject<'_>) -> Result<()> {
    let place = locate_backup(of).await?;
    let written = std::fs::create_dir_all(&place)
        .and_then(|()| std::fs::write(place.join(SNAPSHOT), of.name.as_bytes()));
    written.map_err(|error| Error::transient(format!("{}: {error}", place.display())))
}

/// Whether that object is unchanged.
pub async fn is_backed_up(of: &Subject<'_>) -> Result<bool> {
    let object = locate_backup(of).await?.join(SNAPSHOT);
    Ok(std::fs::read(object).is_ok_and(|content| content == of.name.as_bytes()))
}

async fn locate_backup(of: &Subject<'_>) -> Result<PathBuf> {
    let seeds: Api<Seed> = Api::all(of.world.garden());
    let bucket = seeds.get("seed-a").await?.uid().unwrap_or_default();
    let uid = of.shoots().get(&of.name).await?.uid().unwrap_or_default();
    let entry = format!("{}--{uid}", of.namespace());
    Ok(of
        .world
        .store
        .folder()
        .join(bucket)
        .join(entry)
        .join("etcd-main/v2"))
}

/// From now on, cloud and DNS server refuse, and an ordinary deletion is held up. In this situation a user
/// requests force, and the forced deletion begins.
pub async fn begin(of: &ShootScenario<'_>) -> Result<()> {
    let (seed, namespace) = (of.drilled_seed().client(), of.namespace());
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), &namespace);
    let cloud = secrets.get("cloudprovider").await?.data.unwrap_or_default();
    let kubeconfig = cloud
        .get("kubeconfig")
        .map(|text| text.0.clone())
        .unwrap_or_default();
    let mut kubeconfig: Value =
        serde_yaml_ng::from_slice(&kubeconfig).map_err(|e| Error::bug(e.to_string()))?;
    kubeconfig["users"][0]["user"] = json!({"token": "of-nobody"});
    replace(
        &secrets,
        "cloudprovider",
        &json!({"kubeconfig": kubeconfig.to_string()}),
    )
    .await?;
    for record in ["internal", "external"] {
        let name = format!("dnsrecord-{}-{record}", of.name);
        replace(&secrets, &name, &json!({"tsigSecret": WRONG_KEY})).await?;
    }
    let infrastructures: Api<Infrastructure> = Api::namespaced(seed, &namespace);
    infrastructures.delete(&of.name, &DeleteParams::default()).await?;
    let refused = testkit::measured("the refusal is reported", SOON, |bound| {
        wait::until(&infrastructures, &of.name, bound, is_held_up)
    });
    refused.await.map(drop)
}

/// Each instance that the cloud keeps is named, in `lastErrors` and in an Event of the Shoot.
pub async fn check_machines_are_named(of: &ShootScenario<'_>) -> Result<()> {
    let shoot = of.shoots().get(&of.name).await?;
    let errors = shoot.status.map(|status| status.last_errors).unwrap_or_default();
    let events: Api<Event> = Api::namespaced(of.world.garden(), PROJECT);
    let events = events.list(&ListParams::default()).await?;
    let is_of_shoot = |event: &&Event| {
        event.reason.as_deref() == Some("LeftBehind")
            && event
                .regarding
                .as_ref()
                .and_then(|regarding| regarding.name.as_ref())
                == Some(&of.name)
    };
    let notes: Vec<_> = events
        .iter()
        .filter(is_of_shoot)
        .filter_map(|event| event.note.as_deref())
        .collect();
    for (id, machine) in of.machines() {
        let named = format!("machine {machine} (played:///{id}) may be left behind: ");
        require(
            errors.iter().any(|error| error.description.starts_with(&named)),
            format!("lastErrors does not name {machine}: {errors:?}"),
        )?;
        require(
            notes.iter().any(|note| note.contains(&named)),
            format!("no Event of the Shoot names {machine}: {notes:?}"),
        )?;
    }
    Ok(())
}

async fn replace(secrets: &Api<Secret>, name: &str, data: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"stringData": data}));
    secrets.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn is_held_up(infrastructure: Option<&Infrastructure>) -> WaitState {
    let Some(infrastructure) = infrastructure else {
        return WaitState::Fail(Error::bug(
            "the cloud refuses, and the Infrastructure is gone nevertheless",
        ));
    };
    let status = infrastructure.status.as_ref();
    let error = status.and_then(|status| status.default.last_error.as_ref());
    match error {
        Some(error) if error.codes == [ErrorCode::ErrInfraUnauthenticated] => WaitState::Done,
        other => WaitState::Wait(format!("its last error is {other:?}")),
    }
}
