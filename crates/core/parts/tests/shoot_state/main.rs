//! A ShootState of any size, on a real API server. The collected data come back byte for byte. A crash
//! between any two writes leaves a readable state, and a changed chunk is detected before any entry is
//! applied (R7-26..R7-28, I7).

#![allow(clippy::unwrap_used, clippy::panic)]

mod cost;
mod keys;
mod late;
mod left_out;
mod limit;
mod planted;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::Result;
use api::{
    extensions,
    gardencore::{InternalSecret, ShootState as Object, ShootStateSpec},
    machine,
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use parts::{Deploy, Facts, Infrastructure, Namespace, Operation, Secrets, Settings, ShootState};
use parts_fixture::{NAMESPACE, PROJECT, World};
use runtime::client::{Garden, Permit};
use serde_json::{Value, json};
use tokio::sync::Notify;

const EXTENSIONS: &str = "extensions.gardener.cloud/v1alpha1";
const MIB: usize = 1024 * 1024;
/// Number and size of the objects.
const OBJECTS: u32 = 56;
const LARGE: usize = 960_000;
/// Enough objects for several chunks.
const FEW: u32 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shoot_state_of_any_size() -> Result<()> {
    let world = Box::pin(shoot("shoot-state")).await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    ShootState::persist(&facts).await?;
    assert!(
        state(&world).await?.spec.in_chunks.is_none(),
        "what is small stands in the ShootState"
    );
    Box::pin(a_crash_between_any_two_writes_is_harmless(&world, &facts)).await?;
    machines_are_carried_once(&world, &facts).await?;
    fifty_mebibytes_are_carried_byte_for_byte(&world, &facts).await?;
    nothing_new_writes_nothing(&world, &facts).await?;
    one_change_writes_little(&world, &facts).await?;
    what_goes_takes_its_chunks_along(&world, &facts).await?;
    Box::pin(what_is_altered_is_noticed(&world)).await?;
    Box::pin(what_is_gone_is_forgotten(&world, &facts)).await?;
    Box::pin(late::a_former_owner_writes_nothing(&world, &facts)).await
}

async fn fifty_mebibytes_are_carried_byte_for_byte(world: &World, facts: &Facts) -> Result<()> {
    let all = stream::iter(0..OBJECTS).map(|number| grow(world, number, LARGE, 1));
    all.buffer_unordered(4).try_collect::<Vec<()>>().await?;

    let began = Instant::now();
    ShootState::persist(facts).await?;
    let collected = began.elapsed();
    let written = state(world).await?;
    let chunks = written.spec.in_chunks.clone().unwrap();
    assert!(usize::try_from(chunks.size)? > 50 * MIB, "{}", chunks.size);
    assert!(written.spec.extensions.is_empty() && written.spec.resources.is_empty());
    let beside: Vec<_> = written.spec.gardener.iter().map(|entry| &entry.name).collect();
    let mut own = parts::secrets::config::CARRIED.to_vec();
    own.sort_unstable();
    assert_eq!(beside, own, "the keys stand in the ShootState itself");
    let began = Instant::now();
    let whole = ShootState::whole(facts).await?.unwrap();
    println!(
        "{} MiB in {} chunks: collected in {collected:?}, read twice in {:?}",
        usize::try_from(chunks.size)? / MIB,
        chunks.chunks.len(),
        began.elapsed()
    );
    for number in 0..OBJECTS {
        let name = format!("e{number:03}");
        let entry = whole
            .extensions
            .iter()
            .find(|entry| entry.name.as_deref() == Some(&name));
        assert_eq!(
            entry.unwrap().state.as_ref().unwrap().0,
            content(number, LARGE, 1)
        );
    }
    assert_eq!(
        whole
            .gardener
            .iter()
            .filter(|entry| entry.type_ == "secret")
            .count(),
        parts::secrets::config::CARRIED.len()
    );
    stored_below_a_mebibyte(world).await
}

/// A shoot that was created here, with the shoot's keys and an Infrastructure.
async fn shoot(name: &str) -> Result<World> {
    let world = World::start(name).await?;
    world.make_shoot_state(ShootStateSpec::default()).await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&facts).await?;
    Secrets::deploy(&facts).await?;
    Infrastructure::deploy(&facts).await?;
    let status = json!({"state": {"networkID": "n1"}});
    world.status(EXTENSIONS, "Infrastructure", "web", status).await?;
    Ok(world)
}

/// Creates or updates an Extension with a state of this size.
async fn grow(world: &World, number: u32, size: usize, version: u64) -> Result<()> {
    let name = format!("e{number:03}");
    world
        .apply(
            EXTENSIONS,
            "Extension",
            Some(NAMESPACE),
            &name,
            json!({"spec": {"type": "test"}}),
        )
        .await?;
    let status = json!({"state": content(number, size, version)});
    world.status(EXTENSIONS, "Extension", &name, status).await
}

/// Text that hardly compresses, always the same.
fn content(number: u32, size: usize, version: u64) -> Value {
    let mut state = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version;
    let mut text = String::with_capacity(size);
    while text.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for shift in 0..8 {
            text.push(char::from(
                b'0' + u8::try_from(state >> (8 * shift) & 0x3f).unwrap(),
            ));
        }
    }
    json!({"version": version, "blob": text})
}

async fn state(world: &World) -> Result<Object> {
    Ok(Api::<Object>::namespaced(world.client(), PROJECT)
        .get("web")
        .await?)
}

fn internal_secrets(world: &World) -> Api<InternalSecret> {
    Api::namespaced(world.client(), PROJECT)
}

async fn names(world: &World) -> Result<BTreeSet<String>> {
    let found = internal_secrets(world)
        .list_metadata(&ListParams::default())
        .await?;
    Ok(found.iter().map(ResourceExt::name_any).collect())
}

async fn referred_to(world: &World) -> Result<BTreeSet<String>> {
    let chunks = state(world).await?.spec.in_chunks.unwrap_or_default().chunks;
    Ok(chunks.into_iter().map(|chunk| chunk.name).collect())
}

async fn stored_below_a_mebibyte(world: &World) -> Result<()> {
    let uid = state(world).await?.uid();
    let mut all = stream::iter(names(world).await?)
        .map(|name| async move { internal_secrets(world).get(&name).await })
        .buffer_unordered(4);
    while let Some(found) = all.try_next().await? {
        assert!(serde_json::to_vec(&found)?.len() < MIB);
        assert_eq!(found.owner_references()[0].uid, uid.clone().unwrap());
    }
    Ok(())
}

async fn nothing_new_writes_nothing(world: &World, facts: &Facts) -> Result<()> {
    let (before, chunks) = (state(world).await?, names(world).await?);
    let kept = ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert!(!kept.changed && kept.chunks == chunks.len(), "{kept:?}");
    assert_eq!(state(world).await?.resource_version(), before.resource_version());
    assert_eq!(names(world).await?, chunks);
    Ok(())
}

async fn what_goes_takes_its_chunks_along(world: &World, facts: &Facts) -> Result<()> {
    let api: Api<extensions::Extension> = Api::namespaced(world.client(), NAMESPACE);
    let names: Vec<_> = (FEW..OBJECTS).map(|number| format!("e{number:03}")).collect();
    let nothing = DeleteParams::default();
    let all = names.iter().map(|name| api.delete(name, &nothing));
    stream::iter(all)
        .buffer_unordered(8)
        .try_collect::<Vec<_>>()
        .await?;
    let kept = ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert!(kept.changed && kept.chunks < 7, "{kept:?}");
    assert_eq!(self::names(world).await?, referred_to(world).await?);
    Ok(())
}

async fn one_change_writes_little(world: &World, facts: &Facts) -> Result<()> {
    let before = names(world).await?;
    grow(world, 1, LARGE, 2).await?;
    let kept = ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert!(kept.changed);
    let after = names(world).await?;
    assert!(
        after.difference(&before).count() <= 4,
        "only the chunks of what changed are new"
    );
    assert_eq!(after, referred_to(world).await?, "and the old ones are gone");
    let attempt = state(world).await?.spec.chunk_attempt.unwrap();
    assert!(
        attempt.leftovers.is_empty() && attempt.unfinished.is_empty(),
        "{attempt:?}"
    );
    Ok(())
}

/// A changed or lost chunk is detected, also on access to a different piece. No state is applied, and the
/// keys depend on no chunk.
async fn what_is_altered_is_noticed(world: &World) -> Result<()> {
    let infrastructures: Api<extensions::Infrastructure> = Api::namespaced(world.client(), NAMESPACE);
    infrastructures.delete("web", &DeleteParams::default()).await?;
    let secrets = internal_secrets(world);
    let last = state(world)
        .await?
        .spec
        .in_chunks
        .unwrap()
        .chunks
        .pop()
        .unwrap()
        .name;
    let honest = secrets.get(&last).await?;
    let with = |data: &[u8]| {
        let mut secret = InternalSecret::new(&last, honest.spec.clone());
        secret
            .spec
            .data
            .insert("chunk".into(), k8s_openapi::ByteString(data.to_vec()));
        secret
            .metadata
            .owner_references
            .clone_from(&honest.metadata.owner_references);
        secret
    };
    let bytes = honest.spec.data["chunk"].0.clone();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    for altered in [Some(with(&flipped)), Some(with(&[])), None] {
        secrets.delete(&last, &DeleteParams::default()).await?;
        if let Some(altered) = &altered {
            secrets.create(&PostParams::default(), altered).await?;
        }
        let destination = world.facts(Operation::Restore, Settings::default()).await?;
        Secrets::deploy(&destination).await?;
        let refused = Infrastructure::deploy(&destination).await.unwrap_err();
        assert_eq!(refused.class(), "Config");
        assert!(
            refused.to_string().contains(&format!("InternalSecret {last}")),
            "{refused}"
        );
        let waiting: extensions::Infrastructure = world.read("web").await?;
        assert_eq!(
            waiting.annotations()["gardener.cloud/operation"],
            "wait-for-state"
        );
        assert!(waiting.status.is_none_or(|status| status.default.state.is_none()));
        if altered.is_none() {
            secrets.create(&PostParams::default(), &with(&bytes)).await?;
        }
    }
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    Infrastructure::deploy(&destination).await?;
    let restored: extensions::Infrastructure = world.read("web").await?;
    assert_eq!(
        restored.status.unwrap().default.state.unwrap().0,
        json!({"networkID": "n1"})
    );
    Ok(())
}

/// State of deleted objects is not carried for ever, and small state is stored in the ShootState again. A
/// move loses no state.
async fn what_is_gone_is_forgotten(world: &World, facts: &Facts) -> Result<()> {
    let all: Api<extensions::Extension> = Api::namespaced(world.client(), NAMESPACE);
    all.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    ShootState::persist(facts).await?;
    assert_eq!(
        names(world).await?.len(),
        state(world).await?.spec.in_chunks.unwrap().chunks.len()
    );
    let whole = ShootState::whole(facts).await?.unwrap();
    assert_eq!(
        whole.extensions.len(),
        usize::try_from(FEW)? + 1,
        "a flow only adds"
    );
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    let now = state(world).await?.spec;
    assert_eq!((now.extensions.len(), now.in_chunks), (1, None));
    assert!(names(world).await?.is_empty());

    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(world.client(), NAMESPACE);
    secrets.delete("ca-etcd", &DeleteParams::default()).await?;
    let refused = ShootState::sync(&facts.garden, &facts.residency, &facts.shoot)
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("Secret ca-etcd is not there"),
        "{refused}"
    );
    assert_eq!(
        state(world).await?.spec.gardener.len(),
        15,
        "a poorer look loses no key"
    );
    Ok(())
}

/// The process dies after each write, before the answer arrives. Either the earlier or the new content is
/// readable.
async fn a_crash_between_any_two_writes_is_harmless(world: &World, facts: &Facts) -> Result<()> {
    for (number, size) in [(0, LARGE / 8), (1, LARGE), (2, LARGE / 8)] {
        grow(world, number, size, 0).await?;
    }
    ShootState::persist(facts).await?;
    let mut before = 0;
    for writes in 1.. {
        let now = writes as u64;
        grow(world, 1, LARGE, now).await?;
        if Box::pin(dies_after(world, facts, writes)).await? {
            assert!(
                writes > 5,
                "claim, two chunks, commit, two deletions, note: {writes}"
            );
            break;
        }
        let whole = ShootState::whole(facts).await?.unwrap();
        let entry = whole
            .extensions
            .iter()
            .find(|entry| entry.name.as_deref() == Some("e001"))
            .unwrap();
        let found = entry.state.as_ref().unwrap().0["version"].as_u64().unwrap();
        assert!(
            found == before || found == now,
            "{found} is neither {before} nor {now}"
        );
        assert_eq!(entry.state.as_ref().unwrap().0, content(1, LARGE, found));
        let (there, needed) = (names(world).await?, referred_to(world).await?);
        assert!(there.is_superset(&needed));
        before = found;
        // In half of the rounds, the next attempt meets the leftovers of this attempt.
        if writes % 2 == 0 {
            ShootState::persist(facts).await?;
            assert_eq!(names(world).await?, referred_to(world).await?, "after {writes}");
            before = now;
        }
    }
    assert_eq!(names(world).await?, referred_to(world).await?);
    Ok(())
}

/// Whether the run ended before this number of writes.
async fn dies_after(world: &World, facts: &Facts, writes: usize) -> Result<bool> {
    let dead = Arc::new(Notify::new());
    let mut facts = facts.clone();
    facts.garden = Garden::new(
        mortal(world.client(), writes, Arc::clone(&dead)),
        &Permit::sole("a test"),
    );
    tokio::select! {
        done = ShootState::persist(&facts) => done.map(|()| true).map_err(Into::into),
        () = dead.notified() => Ok(false),
    }
}

/// A client of a process that dies after the n-th write, before the answer arrives.
fn mortal(client: Client, writes: usize, dead: Arc<Notify>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let left = Arc::new(AtomicUsize::new(writes));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, left, dead) = (client.clone(), Arc::clone(&left), Arc::clone(&dead));
        async move {
            let is_write = request.method() != http::Method::GET;
            let answer = client.send(request).await;
            if is_write && left.fetch_sub(1, Ordering::SeqCst) == 1 {
                dead.notify_one();
                std::future::pending::<()>().await;
            }
            answer
        }
    });
    #[allow(clippy::disallowed_methods)] // a test client needs no permit
    Client::new(service, namespace)
}

/// R7-12; gardener#12579, #12821: as a separate entry, and not also in the state of the Worker.
async fn machines_are_carried_once(world: &World, facts: &Facts) -> Result<()> {
    let version = "machine.sapcloud.io/v1alpha1";
    let machine =
        json!({"spec": {"class": {"kind": "MachineClass", "name": "c"}, "providerID": "local:///m-1"}});
    world
        .apply(version, "Machine", Some(NAMESPACE), "m-1", machine)
        .await?;
    let worker = json!({"spec": {"type": "local", "region": "local", "secretRef": {"name": "cloudprovider"}, "pools": []}});
    world
        .apply(EXTENSIONS, "Worker", Some(NAMESPACE), "web", worker)
        .await?;
    let sizes = json!({"metadata": {"annotations": {(machine::labels::SIZES_BEFORE_ISOLATION): "{}"}}});
    let workers = world.any(EXTENSIONS, "Worker", Some(NAMESPACE));
    let (params, patch) = (PatchParams::default(), Patch::Merge(&sizes));
    workers.patch("web", &params, &patch).await?;
    let stale = json!({"state": {"state": "c3RhbGU="}});
    world.status(EXTENSIONS, "Worker", "web", stale).await?;
    ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    let whole = ShootState::whole(facts).await?.unwrap();
    let entries: Vec<_> = whole
        .gardener
        .iter()
        .filter(|entry| entry.type_ == machine::state::ENTRY)
        .collect();
    let carried = machine::state::decode(&entries[0].data)?;
    assert_eq!(carried.machines(), 1);
    assert_eq!(carried.sizes_before_isolation.as_deref(), Some("{}"));
    assert_eq!(entries.len(), 1);
    assert!(
        whole.extensions.iter().all(|entry| entry.kind != "Worker"),
        "not twice"
    );
    Ok(())
}
