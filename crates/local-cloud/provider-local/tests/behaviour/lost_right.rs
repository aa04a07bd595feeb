//! After the end of the permit, an actuator sends nothing outside of the seed. Every operation runs
//! repeatedly; the permit ends while the first answer is awaited, then the second answer, and so on until the
//! operation completes. The servers are real; a tap on the connection counts the requests.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::extensions::{BackupBucket, BackupEntry, DNSRecord, ExtensionObject, Infrastructure};
use cloud_local::{Account, LoadBalancers, Source};
use extension::{Actuator, Context};
use ipnet::Ipv4Net;
use permit::{Clock, Issuer};
use provider_local::{
    MANAGER, backup_bucket::BackupBucketActuator, backup_entry::BackupEntryActuator,
    dns_record::DNSRecordActuator, infrastructure::InfrastructureActuator,
};
use runtime::{
    Error,
    client::{Permit, Seed},
};
use serde_json::json;
use testkit::Relay;

use super::{
    World,
    tap::Tap,
    world::{self, SOON, ZONE, object},
};

/// Validity of a permit that does not end: longer than the test.
const LONG: Duration = Duration::from_secs(3600);

/// The tapped connection to a server.
enum Line {
    /// To a server of any protocol.
    Tcp(Tap),
    /// To an API server.
    Api(Relay),
}

impl Line {
    fn count_sent(&self) -> usize {
        match self {
            Self::Tcp(tap) => tap.count_sent(),
            Self::Api(relay) => relay.asked().len(),
        }
    }

    fn hold_after(&self, answered: usize) {
        match self {
            Self::Tcp(tap) => tap.hold_after(answered),
            Self::Api(relay) => relay.hold_after(answered),
        }
    }

    async fn until_held(&self) -> Result<()> {
        match self {
            Self::Tcp(tap) => tap.until_held(SOON).await,
            Self::Api(relay) => relay.until_held(1, SOON).await,
        }
    }

    fn release(&self) {
        match self {
            Self::Tcp(tap) => tap.release(),
            Self::Api(relay) => relay.release(),
        }
    }
}

/// Ends the permit at each answer in turn. `work` may be repeated and dropped anywhere (I5). Returns the
/// number of ended permits.
async fn lost_at_each_answer<F>(line: &Line, work: impl Fn(Permit) -> F) -> Result<usize>
where
    F: Future<Output = runtime::Result<()>>,
{
    for answered in 0.. {
        let clock = Clock::default();
        let until = clock.now() + LONG;
        let issuer = Issuer::new("the lock of a test", clock, until);
        let permit = issuer.permit();
        line.hold_after(answered);
        let mut working = pin!(work(permit.clone()));
        let ended = tokio::select! {
            biased;
            ended = &mut working => Some(ended),
            held = line.until_held() => held.map(|()| None)?,
        };
        if let Some(ended) = ended {
            line.release();
            ended.with_context(|| format!("it failed when {answered} pieces were answered"))?;
            return Ok(answered);
        }
        issuer.end("it was lost");
        let said = line.count_sent();
        // Immediately, although the answer never arrives.
        not_permitted(testkit::timeout(SOON, working).await.context("it waits on")?)?;
        line.release();
        not_permitted(work(permit).await)?;
        ensure!(
            line.count_sent() == said,
            "{} pieces were said after the right was lost when {answered} were answered",
            line.count_sent() - said
        );
    }
    unreachable!("an operation has an end")
}

fn not_permitted(ended: runtime::Result<()>) -> Result<()> {
    match ended {
        Err(Error::NotOwner(why)) => {
            ensure!(why.contains("it was lost"), "{why}");
            Ok(())
        }
        ended => Err(anyhow::anyhow!("it ended otherwise: {ended:?}")),
    }
}

/// The operation of an actuator.
#[derive(Clone, Copy)]
enum Asked {
    Reconcile,
    Delete,
}

/// Calls an actuator without the reconciler, because the reconciler's guard must not be the reason for the
/// silence.
async fn act<K: ExtensionObject, A: Actuator<K>>(
    world: &World,
    line: &Line,
    actuator: &A,
    object: &K,
    asked: Asked,
) -> Result<usize> {
    let object = Arc::new(object.clone());
    lost_at_each_answer(line, |permit| {
        let context = Context {
            seed: Seed::new(world.seed.clone(), &permit),
            manager: MANAGER,
            object: Arc::clone(&object),
            cluster: None,
        };
        async move {
            match asked {
                Asked::Reconcile => actuator.reconcile(&context).await.map(drop),
                Asked::Delete => actuator.delete(&context).await,
            }
        }
    })
    .await
}

pub async fn nothing_reaches_an_object_store(world: &World) -> Result<()> {
    let server = world.store.endpoint.trim_start_matches("http://");
    let line = Tap::new(server).await?;
    let credentials = world::with(
        &world::store_credentials(&world.store),
        "endpoint",
        &format!("http://{}", line.address),
    );
    let line = Line::Tcp(line);
    world::namespace(&world.seed, "shoot--lost--store", &credentials).await?;
    let bucket: BackupBucket = object("lost-bucket", "shoot--lost--store", json!({}))?;
    let made = act(world, &line, &BackupBucketActuator, &bucket, Asked::Reconcile).await?;
    ensure!(world.store.folder().join("lost-bucket").is_dir(), "no bucket");
    let entry: BackupEntry = object(
        "shoot--lost--store--uid",
        "shoot--lost--store",
        json!({"bucketName": "lost-bucket"}),
    )?;
    let claimed = act(world, &line, &BackupEntryActuator, &entry, Asked::Reconcile).await?;
    let folder = world.store.folder().join("lost-bucket/shoot--lost--store--uid");
    ensure!(folder.join("etcd-main/ownership.json").is_file(), "no claim");
    let removed = act(world, &line, &BackupEntryActuator, &entry, Asked::Delete).await?;
    ensure!(!folder.join("etcd-main/ownership.json").exists(), "not removed");
    std::fs::write(world.store.folder().join("lost-bucket/rest"), "x")?;
    let emptied = act(world, &line, &BackupBucketActuator, &bucket, Asked::Delete).await?;
    ensure!(!world.store.folder().join("lost-bucket").exists(), "it is there");
    for (what, times) in [
        ("make", made),
        ("claim", claimed),
        ("remove", removed),
        ("empty", emptied),
    ] {
        ensure!(times > 0, "{what}: the right was never lost");
    }
    println!("object store: lost {} times", made + claimed + removed + emptied);
    Ok(())
}

pub async fn nothing_reaches_a_name_server(world: &World) -> Result<()> {
    let line = Tap::new(&world.dns.address).await?;
    let credentials = world::with(&world::dns_credentials(&world.dns), "server", &line.address);
    let line = Line::Tcp(line);
    world::namespace(&world.seed, "shoot--lost--dns", &credentials).await?;
    let name = format!("api.lost.dev.{ZONE}");
    let spec = json!({"name": name, "recordType": "A", "values": ["192.0.2.7"], "ttl": 5});
    let record: DNSRecord = object("record", "shoot--lost--dns", spec)?;
    let written = act(world, &line, &DNSRecordActuator, &record, Asked::Reconcile).await?;
    ensure!(
        world.dns.addresses(&name).await? == ["192.0.2.7"],
        "no record was written"
    );
    let removed = act(world, &line, &DNSRecordActuator, &record, Asked::Delete).await?;
    ensure!(world.dns.addresses(&name).await?.is_empty(), "it is there");
    // The first query is for the zone.
    ensure!(written > 1 && removed > 1, "lost {written} and {removed} times");
    let owner = format!("owner.lost.dev.{ZONE}");
    let record = super::owner::record("owner", "shoot--lost--dns", &owner, "seed-a", 1)?;
    let claimed = act(world, &line, &DNSRecordActuator, &record, Asked::Reconcile).await?;
    ensure!(
        world.dns.texts(&owner).await?.len() == 1,
        "no owner record was written"
    );
    let left = act(world, &line, &DNSRecordActuator, &record, Asked::Delete).await?;
    ensure!(world.dns.texts(&owner).await?.is_empty(), "it is there");
    // Both names are read before the change.
    ensure!(claimed > 3 && left > 3, "lost {claimed} and {left} times");
    println!("name server: lost {} times", written + removed + claimed + left);
    Ok(())
}

pub async fn nothing_reaches_a_cloud(world: &World) -> Result<()> {
    let relay = Relay::start(world.control_plane.admin()).await?;
    let kubeconfig = serde_json::to_string(&relay.kubeconfig()?)?;
    let credentials = world::with(&world.cloud, "kubeconfig", &kubeconfig);
    let line = Line::Api(relay);
    world::namespace(&world.seed, "shoot--lost--cloud", &credentials).await?;
    let network: Infrastructure = object("infra", "shoot--lost--cloud", json!({}))?;
    let made = act(world, &line, &InfrastructureActuator, &network, Asked::Reconcile).await?;
    ensure!(
        world::networks(&world.seed).await?["shoot--lost--cloud"].is_object(),
        "no network was made"
    );
    let removed = act(world, &line, &InfrastructureActuator, &network, Asked::Delete).await?;
    let left = world::networks(&world.seed).await?;
    ensure!(left.get("shoot--lost--cloud").is_none(), "{left}");
    let balanced = a_load_balancer(&line, &kubeconfig).await?;
    ensure!(
        made > 3 && removed > 2 && balanced > 1,
        "lost {made}, {removed} and {balanced} times"
    );
    println!("cloud: lost {} times", made + removed + balanced);
    Ok(())
}

/// Like the cloud-controller-manager.
async fn a_load_balancer(line: &Line, kubeconfig: &str) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig)?;
    let range: Ipv4Net = "192.0.2.0/28".parse()?;
    lost_at_each_answer(line, |permit| {
        let source = Source::Kubeconfig {
            path: path.clone(),
            namespace: world::ACCOUNT.to_owned(),
        };
        let account = Account::new(source, MANAGER, Arc::new(move |cloud| cloud.client(&permit)));
        async move {
            let balancers = LoadBalancers::new(Arc::new(account), "shoot--lost--cloud", range);
            balancers.ensure("uid", "default/web", None).await.map(drop)
        }
    })
    .await
}
