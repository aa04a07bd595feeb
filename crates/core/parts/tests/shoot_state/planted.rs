//! The lists of chunks in a ShootState that a hostile seed wrote: the next owner of the shoot deletes and
//! reads chunks of this ShootState alone.

use anyhow::Result;
use api::gardencore::{InternalSecret, ShootState as Object, ShootStateSpec};
use kube::{
    Api, Resource,
    api::{Patch, PatchParams, PostParams},
};
use parts::{Facts, Operation, Settings, ShootState};
use parts_fixture::{PROJECT, World};
use serde_json::{Value, json};

use super::{FEW, LARGE, grow, internal_secrets, names, referred_to, shoot, state};

#[tokio::test]
async fn a_hostile_list_leads_to_no_chunk_of_another_shoot() -> Result<()> {
    let world = Box::pin(shoot("planted")).await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    for number in 0..FEW {
        grow(&world, number, LARGE, 1).await?;
    }
    ShootState::persist(&facts).await?;
    // The name of the neighbour begins with the name of the shoot.
    let states: Api<Object> = Api::namespaced(world.client(), PROJECT);
    let neighbour = Object::new("web2", ShootStateSpec::default());
    let neighbour = states.create(&PostParams::default(), &neighbour).await?;
    deletes_own_chunks_alone(&world, &facts, &neighbour).await?;
    reads_own_chunks_alone(&world, &facts).await
}

async fn deletes_own_chunks_alone(world: &World, facts: &Facts, neighbour: &Object) -> Result<()> {
    let own = state(world).await?;
    let needed = referred_to(world).await?;
    let attempt = own.spec.chunk_attempt.clone().unwrap_or_default().number;
    let foreign = ["web2.state-1-0", "web.state-91-0", "web.state-93-0"];
    for name in foreign {
        make(world, name, neighbour).await?;
    }
    for name in [
        "web.state-92-0",
        "web.state-93-1",
        "web.state-94-0",
        "web.state-94-1",
    ] {
        make(world, name, &own).await?;
    }
    let mut leftovers = vec!["web2.state-1-0", "web.state-91-0", "web.state-92-0"];
    leftovers.extend(needed.iter().map(String::as_str));
    let lists = json!({"number": 100, "leftovers": leftovers, "unfinished": [attempt, 93, 94]});
    write(world, json!({"chunkAttempt": lists})).await?;

    ShootState::persist(facts).await?;
    let mut expected = needed.clone();
    expected.extend(foreign.map(str::to_owned));
    assert_eq!(names(world).await?, expected);
    assert_eq!(referred_to(world).await?, needed);
    assert!(ShootState::whole(facts).await?.is_some(), "the state can be read");
    let lists = state(world).await?.spec.chunk_attempt.unwrap_or_default();
    assert!(
        lists.leftovers.is_empty() && lists.unfinished.is_empty(),
        "{lists:?}"
    );
    Ok(())
}

/// The hashes agree, because the hostile seed knows the content of the chunk.
async fn reads_own_chunks_alone(world: &World, facts: &Facts) -> Result<()> {
    let chunks = state(world).await?.spec.in_chunks.unwrap_or_default();
    let honest = internal_secrets(world).get(&chunks.chunks[0].name).await?;
    for (name, reason) in [
        ("web2.state-1-0", "no name of a chunk of this shoot"),
        ("web.state-91-0", "no owner of the chunk is the ShootState"),
    ] {
        let planted = internal_secrets(world).get(name).await?;
        let mut copy = InternalSecret::new(name, honest.spec.clone());
        copy.metadata.owner_references = planted.metadata.owner_references;
        internal_secrets(world)
            .delete(name, &kube::api::DeleteParams::default())
            .await?;
        internal_secrets(world)
            .create(&PostParams::default(), &copy)
            .await?;
        let mut listed = chunks.clone();
        name.clone_into(&mut listed.chunks[0].name);
        write(world, json!({"inChunks": listed})).await?;

        let refused = ShootState::whole(facts).await.unwrap_err();
        assert_eq!(refused.class(), "Config");
        assert!(refused.to_string().contains(reason), "{refused}");
        // The next sync writes the chunk again, under a name of this shoot.
        ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
        assert!(!referred_to(world).await?.contains(name));
        assert!(ShootState::whole(facts).await?.is_some());
        assert!(names(world).await?.contains(name), "{name} stays");
    }
    Ok(())
}

/// Creates an InternalSecret that is owned by this ShootState.
async fn make(world: &World, name: &str, owner: &Object) -> Result<()> {
    let mut secret: InternalSecret =
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"chunk": "eA=="}}))?;
    secret.metadata.owner_references = owner.owner_ref(&()).map(|owner| vec![owner]);
    internal_secrets(world)
        .create(&PostParams::default(), &secret)
        .await?;
    Ok(())
}

pub(super) async fn write(world: &World, spec: Value) -> Result<()> {
    let states: Api<Object> = Api::namespaced(world.client(), PROJECT);
    let patch = Patch::Merge(json!({"spec": spec}));
    states.patch("web", &PatchParams::default(), &patch).await?;
    Ok(())
}
