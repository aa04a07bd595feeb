//! Names beside the owner record change only in the shoot's present epoch, at any time of arrival of an
//! update (R17-63). The server is real.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use api::extensions::{Cluster, DNSRecord};
use cloud_local::dns::{self, Records, Server, absolute};
use extension::{Actuator, Context};
use hickory_proto::op::ResponseCode;
use provider_local::{MANAGER, dns_record::DNSRecordActuator};
use runtime::client::{Credentials, Permit, Seed};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::JoinSet,
};

use super::{
    World,
    owner::{self, version},
    world::{self, ZONE, named, object},
};

/// The namespace with the credentials of the test's actuators.
pub const NAMESPACE: &str = "shoot--dev--address";
/// Address of the edge of the seed that owns the shoot in the first and in the third epoch.
const FRONT: &str = "192.0.2.1";

fn domain(shoot: &str) -> String {
    format!("{shoot}.dev.{ZONE}")
}

/// A hand-over of the shoot to a seed in this epoch.
async fn hand_over(world: &World, shoot: &str, identity: &str, epoch: i64) -> Result<()> {
    let owner = format!("owner.{}", domain(shoot));
    owner::act(
        world,
        &owner::record("owner", NAMESPACE, &owner, identity, epoch)?,
        None,
    )
    .await?;
    Ok(())
}

/// The input of an actuator whose seed owns the shoot in this epoch.
fn context(world: &World, shoot: &str, epoch: i64, address: &str) -> Result<Context<DNSRecord>> {
    let api = format!("api.{}", domain(shoot));
    let cluster: Cluster = named(json!({"metadata": {"name": NAMESPACE}, "spec": {
        "cloudProfile": {},
        "seed": {
            "spec": {
                "settings": {"ownerChecks": {"enabled": true}},
                "dns": {"internal": {"type": "local", "domain": ZONE, "credentialsRef": {}}},
            },
            "status": {"clusterIdentity": "seed-a"},
        },
        "shoot": {"status": {
            "ownership": {"epoch": epoch},
            "advertisedAddresses": [{"name": "internal", "url": format!("https://{api}")}],
        }},
    }}))?;
    let spec = json!({"name": api, "recordType": "A", "values": [address], "ttl": 5});
    Ok(Context {
        seed: Seed::new(world.seed.clone(), &Permit::sole("a test")),
        manager: MANAGER,
        object: Arc::new(object("internal", NAMESPACE, spec)?),
        cluster: Some(cluster),
    })
}

/// Checks for a wait: no failure and no write.
fn waits(done: runtime::Result<()>, part: &str) -> Result<()> {
    match done {
        Err(error) if error.class() == "NotReady" && error.to_string().contains(part) => Ok(()),
        other => bail!("it does not wait as it should ({part}): {other:?}"),
    }
}

async fn has(world: &World, shoot: &str, addresses: &[&str]) -> Result<()> {
    let found = world.dns.addresses(&format!("api.{}", domain(shoot))).await?;
    ensure!(found == addresses, "{shoot} has {found:?}, not {addresses:?}");
    Ok(())
}

/// Seed a owns the shoot, then seed b, then a again. A message that a sent in the first epoch arrives in the
/// third epoch, and names exactly the present address.
pub async fn an_address_that_lands_late_changes_nothing(world: &World) -> Result<()> {
    let credentials = Credentials::new("test/dns", world::dns_credentials(&world.dns));
    let server = Server::new(&credentials, &Permit::sole("a test"))?;
    let (zone, epoch) = (
        absolute(ZONE)?,
        absolute(&format!("epoch.owner.{}", domain("late-name")))?,
    );
    let name = format!("api.{}", domain("late-name"));
    let records = Records::new(&name, api::extensions::RecordType::A, &[FRONT.into()], Some(5))?;
    let of_first = |update| dns::only_while(update, &epoch, "1");
    let late = [
        of_first(dns::replace(&zone, &records)?)?,
        of_first(dns::remove(&zone, &records)?)?,
    ];
    hand_over(world, "late-name", "seed-a", 1).await?;
    DNSRecordActuator
        .reconcile(&context(world, "late-name", 1, FRONT)?)
        .await?;
    has(world, "late-name", &[FRONT]).await?;

    hand_over(world, "late-name", "seed-b", 2).await?;
    let of_b = context(world, "late-name", 2, "192.0.2.2")?;
    DNSRecordActuator.reconcile(&of_b).await?;
    has(world, "late-name", &["192.0.2.2"]).await?;
    hand_over(world, "late-name", "seed-a", 3).await?;
    let back = context(world, "late-name", 3, FRONT)?;
    DNSRecordActuator.reconcile(&back).await?;

    let before = version(world).await?;
    for late in late {
        let code = server.update(late).await?;
        ensure!(code == ResponseCode::NXRRSet, "{code}");
    }
    for (epoch, address) in [(1, FRONT), (2, "192.0.2.2"), (4, FRONT)] {
        let other = context(world, "late-name", epoch, address)?;
        let part = format!("says \"3\", and the shoot is in ownership epoch {epoch} here");
        waits(DNSRecordActuator.reconcile(&other).await.map(drop), &part)?;
        waits(DNSRecordActuator.delete(&other).await, &part)?;
    }
    // In the present epoch, different values still belong to a different writer.
    DNSRecordActuator
        .delete(&context(world, "late-name", 3, "192.0.2.9")?)
        .await?;
    ensure!(version(world).await? == before, "the zone was changed");
    has(world, "late-name", &[FRONT]).await?;
    DNSRecordActuator.delete(&back).await?;
    has(world, "late-name", &[]).await
}

/// Two seeds write a name in a zone where the server cannot compare the epoch. A message of the first seed is
/// delivered again after the write of the second seed, as after a network failure.
pub async fn an_update_outside_of_the_owners_zone_that_lands_late_changes_nothing(
    world: &World,
) -> Result<()> {
    let name = format!("elsewhere.{ZONE}");
    let copied = Copied::start(&world.dns.address).await?;
    let through = world::with(&world::dns_credentials(&world.dns), "server", &copied.address);
    for (namespace, credentials) in [
        ("shoot--elsewhere--a", through),
        ("shoot--elsewhere--b", world::dns_credentials(&world.dns)),
    ] {
        world::namespace(&world.seed, namespace, &credentials).await?;
    }
    let write = async |namespace: &str, address: &str| {
        let spec = json!({"name": name, "recordType": "A", "values": [address], "ttl": 5, "zone": ZONE});
        let of_seed = Context {
            seed: Seed::new(world.seed.clone(), &Permit::sole("a test")),
            manager: MANAGER,
            object: Arc::new(object("elsewhere", namespace, spec)?),
            cluster: None,
        };
        DNSRecordActuator.reconcile(&of_seed).await?;
        ensure!(
            world.dns.addresses(&name).await? == [address],
            "{address} was not written"
        );
        anyhow::Ok(())
    };
    // First the name is new, then the name has different values.
    for (first, second) in [("192.0.2.1", "192.0.2.2"), ("192.0.2.3", "192.0.2.4")] {
        write("shoot--elsewhere--a", first).await?;
        write("shoot--elsewhere--b", second).await?;
        let before = version(world).await?;
        copied.send_again().await?;
        ensure!(version(world).await? == before, "the zone was changed");
        ensure!(
            world.dns.addresses(&name).await? == [second],
            "a late update replaced {second}"
        );
    }
    Ok(())
}

/// A proxy before the DNS server that keeps a copy of each message.
struct Copied {
    address: String,
    server: String,
    messages: Arc<Mutex<Vec<Vec<u8>>>>,
    _line: JoinSet<()>,
}

impl Copied {
    async fn start(server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, messages) = (
            listener.local_addr()?.to_string(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let (to, copies, mut line) = (server.to_owned(), Arc::clone(&messages), JoinSet::new());
        line.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let pass = async {
                    let mut message = vec![0; usize::from(client.read_u16().await?)];
                    client.read_exact(&mut message).await?;
                    let answer = exchange(&to, &message).await?;
                    copies.lock().await.push(message);
                    client.write_all(&answer).await
                };
                if pass.await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            address,
            server: server.to_owned(),
            messages,
            _line: line,
        })
    }

    /// Delivers all messages once more.
    async fn send_again(&self) -> Result<()> {
        let messages = self.messages.lock().await;
        ensure!(!messages.is_empty(), "nothing was sent");
        for message in messages.iter() {
            exchange(&self.server, message).await?;
        }
        Ok(())
    }
}

/// The answer with the length prefix.
async fn exchange(server: &str, message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    stream
        .write_u16(u16::try_from(message.len()).map_err(std::io::Error::other)?)
        .await?;
    stream.write_all(message).await?;
    let length = stream.read_u16().await?;
    let mut answer = length.to_be_bytes().to_vec();
    answer.resize(2 + usize::from(length), 0);
    stream.read_exact(&mut answer[2..]).await?;
    Ok(answer)
}

pub async fn without_an_owner_record_nothing_is_written(world: &World) -> Result<()> {
    let before = version(world).await?;
    let first = context(world, "unowned", 1, FRONT)?;
    waits(
        DNSRecordActuator.reconcile(&first).await.map(drop),
        "says nothing",
    )?;
    ensure!(version(world).await? == before, "the zone was changed");
    Ok(())
}
