//! Seeds that are cordoned and drained.

use anyhow::Result;
use api::gardencore::Seed;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubectl_repot::cordon::{cordon, set as set_cordon};
use serde_json::json;

use crate::fixture::{Fixture, session};

pub async fn a_cordoned_seed_keeps_its_taints(fixture: &Fixture) -> Result<()> {
    let seeds: Api<Seed> = Api::all(fixture.client.clone());
    let protected = json!({"spec": {"taints": [{"key": "protected"}]}});
    seeds
        .patch("seed-c", &PatchParams::default(), &Patch::Merge(protected))
        .await?;
    let closed = cordon(&fixture.session, "seed-c", true).await?;
    assert!(closed.text.contains("is cordoned: no shoot"), "{}", closed.text);
    let again = cordon(&fixture.session, "seed-c", true).await?;
    assert_eq!(again.json["changed"], false, "{}", again.text);
    let seed = seeds.get("seed-c").await?;
    assert!(
        seed.spec.is_cordoned() && seed.spec.taints.len() == 2,
        "{:?}",
        seed.spec.taints
    );
    // Two users who close and open the seed at once lose no taint.
    let (first, second) = tokio::join!(
        set_cordon(&fixture.session, "seed-c", false),
        set_cordon(&fixture.session, "seed-c", false)
    );
    assert!(first? || second?);
    let seed = seeds.get("seed-c").await?;
    assert_eq!(seed.spec.taints.len(), 1, "{:?}", seed.spec.taints);
    assert_eq!(seed.spec.taints[0].key, "protected");
    let ghost = cordon(&fixture.session, "ghost", true).await.unwrap_err();
    assert!(ghost.to_string().contains("does not exist"), "{ghost}");
    let stranger = session(fixture.plane.client("stranger", &[]).await?);
    let refused = cordon(&stranger, "seed-c", true).await.unwrap_err();
    assert!(refused.to_string().contains("no right"), "{refused}");
    Ok(())
}
