//! `kubectl repot cordon` and `kubectl repot uncordon`: closes a Seed to new shoots and to moves to the seed
//! by a taint, and opens the Seed again. Shoots on the seed stay, and moves on the way to the seed go on.

mod decision;

pub use decision::{SeedEdit, decide};

use api::gardencore::Seed;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use runtime::client::Cluster;
use serde_json::json;

use crate::{answer::Answer, edit::FIELD_MANAGER, failure::Failure, session::Session};

/// The gardenlet writes the status of a Seed every few seconds at most, so a few attempts suffice.
const ATTEMPTS: usize = 10;

/// Closes or opens the Seed, and answers.
pub async fn cordon(session: &Session, name: &str, closed: bool) -> Result<Answer, Failure> {
    let changed = Box::pin(set(session, name, closed)).await?;
    let sentence = match (closed, changed) {
        (true, true) => format!(
            "Seed {name} is cordoned: no shoot is created on the seed or moves to the seed. The shoots on the seed stay: command drain \
             moves these shoots."
        ),
        (true, false) => format!("Seed {name} is cordoned already."),
        (false, true) => format!("Seed {name} is open to new shoots and to moves."),
        (false, false) => format!("Seed {name} is not cordoned."),
    };
    let json = json!({"seed": name, "cordoned": closed, "changed": changed, "message": sentence});
    Ok(Answer::new(format!("{sentence}\n"), &json))
}

/// Closes or opens the Seed. The result is whether the Seed was changed.
pub async fn set(session: &Session, name: &str, closed: bool) -> Result<bool, Failure> {
    let seeds: Api<Seed> = session.garden().cluster_wide();
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let doing = format!("Seed {name} cannot be changed");
    for _ in 0..ATTEMPTS {
        let seed = Box::pin(session.request(&doing, seeds.get(name))).await?;
        let SeedEdit::Patch(mut patch) = decide(&seed, closed) else {
            return Ok(false);
        };
        // A concurrent edit of the taints is never written over.
        patch["metadata"]["resourceVersion"] = json!(seed.resource_version());
        patch["metadata"]["uid"] = json!(seed.uid());
        let patch = Patch::Merge(patch);
        let request = seeds.patch(name, &params, &patch);
        if Box::pin(session.write(&doing, request)).await?.is_some() {
            return Ok(true);
        }
    }
    Err(Failure::failed(format!(
        "{doing}: each of {ATTEMPTS} attempts met a concurrent write; repeat the command"
    )))
}
