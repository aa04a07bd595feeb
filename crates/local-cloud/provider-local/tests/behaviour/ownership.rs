//! The owner of the shoot, checked at a real name server while an actuator works. While the name server is
//! silent, a fake process beside etcd answers (R17-13, R17-14, R17-43, R17-60..62, RX-41, RX-42).

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::OPERATION,
    extensions::{Cluster, DNSRecord, ExtensionObject, Infrastructure},
    meta::{LastOperationState, LastOperationType},
};
use extension::{
    Actuator, ExtensionReconciler, Operation, OwnerChecks,
    reconciler::{LEFT_BEHIND, namespaced},
};
use extension_contract::run_until_ready;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt, api::ListParams};
use provider_local::{controllers, dns_record::DNSRecordActuator, infrastructure::InfrastructureActuator};
use runtime::{
    Error,
    client::{Permit, Seed},
    controller::Next,
    process::metrics::Metrics,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Notify,
    task::JoinSet,
};

use super::{
    World, owner, roles, run,
    world::{self, MANAGER_OF_TEST, SOON, THIS_SEED, ZONE, create, object},
};

/// This seed, in owner records.
const IDENTITY: &str = "landscape-this-seed";

/// A fake process beside etcd with answers that the test sets; silent at first.
struct Sidecar {
    url: String,
    says: Arc<Mutex<Option<Value>>>,
    _serving: JoinSet<()>,
}

impl Sidecar {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/{{namespace}}", listener.local_addr()?);
        let says = Arc::<Mutex<Option<Value>>>::default();
        let (mut serving, told) = (JoinSet::new(), Arc::clone(&says));
        serving.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = client.read(&mut request).await.unwrap_or_default();
                let asked = String::from_utf8_lossy(request.get(..read).unwrap_or_default()).into_owned();
                let said = told.lock().unwrap().clone();
                let Some(said) = said.filter(|_| asked.contains("/ownership ")) else {
                    continue;
                };
                let said = said.to_string();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
                    said.len()
                );
                let _ = client.write_all(answer.as_bytes()).await;
            }
        });
        Ok(Self {
            url,
            says,
            _serving: serving,
        })
    }

    fn say(&self, answer: &str, milliseconds: u64) {
        let said = json!({"epoch": 1, "answer": answer, "validForMilliseconds": milliseconds, "why": "a test says so"});
        *self.says.lock().unwrap() = Some(said);
    }
}

/// A shoot whose seed checks owners at this name server.
async fn shoot(world: &World, name: &str, authority: &str) -> Result<String> {
    let namespace = format!("shoot--owned--{name}");
    world::namespace(&world.seed, &namespace, &world.cloud).await?;
    let cluster: Cluster = world::named(json!({"metadata": {"name": namespace}, "spec": {
        "cloudProfile": {},
        "seed": {
            "metadata": {"name": THIS_SEED},
            "spec": {
                "settings": {"ownerChecks": {"enabled": true, "authorities": [authority]}},
                "dns": {"internal": {"type": "local", "domain": ZONE, "credentialsRef": {}}},
            },
            "status": {"clusterIdentity": IDENTITY},
        },
        "shoot": {"status": {"seedName": THIS_SEED, "advertisedAddresses": [
            {"name": "internal", "url": format!("https://api.{name}.dev.{ZONE}")},
        ]}},
    }}))?;
    MANAGER_OF_TEST
        .apply(&Api::all(world.seed.clone()), &cluster)
        .await?;
    Ok(namespace)
}

fn reconciler<K, A>(world: &World, owners: &OwnerChecks, actuator: A) -> ExtensionReconciler<K, A>
where
    K: ExtensionObject + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    A: Actuator<K>,
{
    let seed = Seed::new(world.seed.clone(), &Permit::sole("a test"));
    ExtensionReconciler::new(controllers::provider(&seed, owners), namespaced, actuator)
}

async fn is_made(world: &World, namespace: &str) -> Result<bool> {
    Ok(world::networks(&world.seed).await?.get(namespace).is_some())
}

async fn ask(api: &Api<Infrastructure>, operation: &str) -> Result<Infrastructure> {
    MANAGER_OF_TEST
        .annotate(api, "infra", OPERATION, Some(operation))
        .await?;
    Ok(api.get("infra").await?)
}

pub async fn a_lost_record_ends_the_work(world: &World) -> Result<()> {
    let namespace = &shoot(world, "taken", &world.dns.address).await?;
    let metrics = Metrics::default();
    let owners = &OwnerChecks::new(&metrics);
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);

    let real = reconciler(world, owners, InfrastructureActuator);
    let infra = nothing_is_made_without_a_record(world, namespace, &real).await?;
    write_the_record(world, owners, namespace).await?;
    run_until_ready(&real, &infra).await?;
    ensure!(is_made(world, namespace).await?, "no network was made");

    // Work that needs only the seed and the cloud, and never ends.
    let begun = Arc::new(Notify::new());
    let endless = reconciler(world, owners, roles::Endless(Arc::clone(&begun)));
    let infra = ask(&api, "reconcile").await?;
    let losing = async {
        begun.notified().await;
        another_seed_takes_it(world, "taken").await
    };
    let (ended, taken) = tokio::join!(testkit::timeout(SOON, run_until_ready(&endless, &infra)), losing);
    taken?;
    let error = ended.context("it worked on")?.unwrap_err();
    let is_told = matches!(&error, Error::NotOwner(why) if why.contains("epoch 2 has begun"));
    ensure!(is_told, "{error:?}");
    nothing_begins(world, &real, &api).await?;
    let counted = metrics.encode();
    ensure!(
        counted.contains(r#"extension_owner_refusals_total{kind="Infrastructure",why="Lost"} 3"#),
        "{counted}"
    );

    // RX-42.
    let infra = ask(&api, "migrate").await?;
    run_until_ready(&real, &infra).await?;
    let left = api.get("infra").await?;
    let status = left.status.as_ref().context("no status")?;
    let last = status
        .default
        .last_operation
        .as_ref()
        .context("nothing was done")?;
    ensure!(
        last.type_ == LastOperationType::Migrate && last.state == LastOperationState::Succeeded,
        "{last:?}"
    );
    ensure!(left.finalizers().is_empty(), "{:?}", left.finalizers());
    ensure!(is_made(world, namespace).await?, "migrate took the network away");
    Ok(())
}

/// The record does not exist yet: no seed owns the shoot, and no loss is reported.
async fn nothing_is_made_without_a_record(
    world: &World,
    namespace: &str,
    real: &Real,
) -> Result<Infrastructure> {
    let infra: Infrastructure = object("infra", namespace, json!({}))?;
    create(&real.api_of(&infra), &infra).await?;
    let early = run(real, &infra).await.unwrap_err();
    ensure!(matches!(early, Error::NotReady { .. }), "{early:?}");
    ensure!(!is_made(world, namespace).await?, "a network was made before");
    Ok(infra)
}

/// As [`nothing_is_made_without_a_record`], for a shoot with this name.
pub async fn nothing_is_made_for_an_unconfirmed_owner(world: &World, name: &str) -> Result<()> {
    let namespace = &shoot(world, name, &world.dns.address).await?;
    let owners = &OwnerChecks::new(&Metrics::default());
    let real = reconciler(world, owners, InfrastructureActuator);
    nothing_is_made_without_a_record(world, namespace, &real)
        .await
        .map(drop)
}

/// The owner record needs no confirmation: the writes are conditional.
async fn write_the_record(world: &World, owners: &OwnerChecks, namespace: &str) -> Result<()> {
    let name = format!("owner.taken.dev.{ZONE}");
    let dns = "shoot--owned--dns";
    world::namespace(&world.seed, dns, &world::dns_credentials(&world.dns)).await?;
    let mut record = owner::record("taken-owner", dns, &name, IDENTITY, 1)?;
    record.metadata.namespace = Some(namespace.to_owned());
    let records: ExtensionReconciler<DNSRecord, _> = reconciler(world, owners, DNSRecordActuator);
    super::run_created(&records, &record).await
}

async fn another_seed_takes_it(world: &World, name: &str) -> Result<()> {
    let owner = format!("owner.{name}.dev.{ZONE}");
    let record = owner::record("theirs", "shoot--owned--dns", &owner, "seed-b", 2)?;
    Ok(owner::act(world, &record, None).await?)
}

/// R17-03: no actuator acts on a former request or on a deletion; and the object reports nothing new.
async fn nothing_begins(
    world: &World,
    real: &ExtensionReconciler<Infrastructure, InfrastructureActuator>,
    api: &Api<Infrastructure>,
) -> Result<()> {
    let stale = ask(api, "reconcile").await?;
    for _ in 0..2 {
        let error = run(real, &stale).await.unwrap_err();
        ensure!(matches!(error, Error::NotOwner(_)), "{error:?}");
    }
    let after = api.get("infra").await?;
    ensure!(
        after.resource_version() == stale.resource_version(),
        "it was written"
    );
    let events: Api<Event> = Api::namespaced(world.seed.clone(), &stale.namespace().unwrap_or_default());
    let events = events.list(&ListParams::default()).await?;
    let told: Vec<_> = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("OwnershipLost"))
        .collect();
    ensure!(told.len() == 1, "{told:?}");
    let note = told
        .first()
        .and_then(|event| event.note.clone())
        .unwrap_or_default();
    ensure!(note.contains("epoch 2 has begun"), "{note}");
    Ok(())
}

/// R17-47: the authority is gone, and the process beside etcd still has the shoot.
pub async fn one_silent_witness_ends_nothing(world: &World) -> Result<()> {
    let sidecar = Sidecar::start().await?;
    sidecar.say("Owned", 60_000);
    let (namespace, real, infra) = silent(world, "relayed", &sidecar).await?;
    run_until_ready(&real, &infra).await?;
    ensure!(is_made(world, &namespace).await?, "no network was made");

    // The process beside etcd has sealed: the ownership is over here, too.
    sidecar.say("Sealed", 0);
    let api = real.api_of(&infra);
    let infra = ask(&api, "reconcile").await?;
    let error = run_until_ready(&real, &infra).await.unwrap_err();
    let is_told = matches!(&error, Error::NotOwner(why) if why.contains("sealed"));
    ensure!(is_told, "{error:?}");
    Ok(())
}

/// R17-47, R17-48, and a forced deletion that does not wait for ever.
pub async fn without_witnesses_nothing_is_done(world: &World) -> Result<()> {
    let sidecar = Sidecar::start().await?;
    let (namespace, real, infra) = silent(world, "silent", &sidecar).await?;
    let error = run(&real, &infra).await.unwrap_err();
    ensure!(matches!(error, Error::NotReady { .. }), "{error:?}");
    ensure!(!is_made(world, &namespace).await?, "a network was made");
    let api = real.api_of(&infra);
    let status = api.get("infra").await?.status.context("it is not told")?;
    ensure!(status.default.last_error.is_none(), "it is told as a failure");
    let last = status.default.last_operation.context("it is not told")?;
    ensure!(
        last.state == LastOperationState::Processing
            && last.description.contains("no authority answers")
            && last.description.contains("etcd-backup-restore"),
        "{last:?}"
    );

    sidecar.say("Owned", 60_000);
    run_until_ready(&real, &infra).await?;
    ensure!(is_made(world, &namespace).await?, "no network was made");

    *sidecar.says.lock().unwrap() = None;
    MANAGER_OF_TEST
        .annotate(
            &api,
            "infra",
            api::constants::CONFIRMATION_FORCE_DELETION,
            Some("true"),
        )
        .await?;
    runtime::client::apply::delete(&api, "infra").await?;
    let next = testkit::timeout(SOON, run(&real, &infra))
        .await
        .context("it waits on")??;
    ensure!(next == Next::Change, "{next:?}");
    ensure!(api.get_opt("infra").await?.is_none(), "it is still there");
    ensure!(
        is_made(world, &namespace).await?,
        "somebody's network was taken away"
    );
    let events: Api<Event> = Api::namespaced(world.seed.clone(), &namespace);
    let events = events.list(&ListParams::default()).await?;
    ensure!(
        events
            .iter()
            .any(|event| event.reason.as_deref() == Some(LEFT_BEHIND)),
        "nobody is told what {:?} has left",
        Operation::ForceDelete
    );
    Ok(())
}

type Real = ExtensionReconciler<Infrastructure, InfrastructureActuator>;

/// A shoot without an answering name server, with a network to create.
async fn silent(world: &World, name: &str, sidecar: &Sidecar) -> Result<(String, Real, Infrastructure)> {
    // No process listens at this address.
    let closed = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let namespace = shoot(world, name, &closed.to_string()).await?;
    let owners = OwnerChecks::with_sidecars_at(&sidecar.url, &Metrics::default());
    let infra: Infrastructure = object("infra", &namespace, json!({}))?;
    let real = reconciler(world, &owners, InfrastructureActuator);
    create(&real.api_of(&infra), &infra).await?;
    Ok((namespace, real, infra))
}
