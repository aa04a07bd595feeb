//! A zone with the two records of a single shoot, and watches of the shoot.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::BoxFuture;
use hickory_proto::rr::Name;
use ownership::{
    Answer, Authorities, Network, OwnershipClaim, SecondWitness, Settings, Terms, Testimony, Watch, Witnesses,
};
use permit::Clock;
use testkit::NameServer;

pub const ZONE: &str = "internal.example";
pub const OWNER: &str = "owner.demo.dev.internal.example";
pub const EPOCH: &str = "epoch.owner.demo.dev.internal.example";

/// Longer than a check takes on a busy machine, also where some servers do not answer.
const WITHIN: Duration = Duration::from_secs(60);

pub fn claim() -> OwnershipClaim {
    OwnershipClaim::new(OWNER, "seed-a", 3).unwrap()
}

/// A second witness with a scripted testimony; at first `Missing`.
#[derive(Clone)]
pub struct Second(pub Arc<Mutex<Testimony>>);

impl Second {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Testimony::Missing)))
    }
}

impl SecondWitness for Second {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        let testimony = self.0.lock().unwrap().clone();
        Box::pin(async move { testimony })
    }
}

pub fn witnesses(authorities: Authorities, second: &Second) -> Witnesses {
    Witnesses {
        authorities: Arc::new(authorities),
        wire: Arc::new(Network),
        second: Arc::new(second.clone()),
    }
}

pub fn watch(authorities: Authorities, second: &Second, terms: Terms) -> Result<Watch> {
    let witnesses = witnesses(authorities, second);
    Ok(Watch::new(claim(), terms, witnesses, Clock::default())?)
}

/// Long bounds: a busy machine may delay an answer, and the answer must still count.
pub fn patient() -> Result<Terms> {
    let long = Duration::from_secs(15);
    Ok(Terms::new(Settings {
        interval: long * 3,
        timeout: long,
        store_timeout: long,
        validity: long * 9,
        fence: long * 12,
        ..Settings::default()
    })?)
}

/// The answer of a single check.
pub async fn check(authorities: Authorities) -> Result<Answer> {
    let watch = watch(authorities, &Second::new(), patient()?)?;
    let mut reports = watch.reports();
    let first = async {
        let report = reports.wait_for(|report| report.last.is_some()).await?;
        let last = report.last.as_ref().context("no check")?;
        Ok::<_, anyhow::Error>(last.answer.clone())
    };
    let run = async {
        watch.run().await;
        // Lost: the report came before.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = testkit::timeout(WITHIN, first) => answer?,
        () = run => unreachable!(),
    }
}

/// As [`check`], with a list of named servers.
pub async fn check_at(servers: impl IntoIterator<Item = SocketAddr>) -> Answer {
    check(Authorities::named(ZONE, servers).unwrap()).await.unwrap()
}

/// Sets the names to exactly these texts in a single update, as a claimant does.
pub async fn write(server: &NameServer, records: &[(&str, &[&str])]) -> Result<()> {
    server.write_texts(ZONE, records).await
}

pub fn name(text: &str) -> Result<Name> {
    let mut name = Name::from_ascii(text)?;
    name.set_fqdn(true);
    Ok(name)
}
