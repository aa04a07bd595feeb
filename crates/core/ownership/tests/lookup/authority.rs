//! A real authority (knot): the records of the zone, and the resulting answers.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use ownership::{
    Answer, Authorities, OwnershipLoss, Report, Settings, Standing, Terms, Testimony, shown_by_all,
};
use permit::Permit;
use testkit::NameServer;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use crate::world::{EPOCH, OWNER, Second, ZONE, check, check_at, claim, patient, watch, witnesses, write};

const OWNED: Answer = Answer::Owned { at_most: None };

fn address(server: &NameServer) -> SocketAddr {
    server.address.parse().unwrap()
}

/// A validity of 5 s.
fn quick() -> Result<Terms> {
    let half = Duration::from_millis(500);
    Ok(Terms::new(Settings {
        interval: half * 3,
        timeout: half,
        store_timeout: half,
        validity: half * 10,
        ..Settings::default()
    })?)
}

/// Waits for a valid permit.
async fn owner(reports: &mut Receiver<Report>) -> Result<Permit> {
    let report = reports
        .wait_for(|report| matches!(&report.standing, Standing::Owner(permit) if permit.is_valid()))
        .await?;
    match &report.standing {
        Standing::Owner(permit) => Ok(permit.clone()),
        other => bail!("{other:?}"),
    }
}

fn is_unknown(answer: &Answer, word: &str) -> bool {
    matches!(answer, Answer::Unknown(why) if why.contains(word))
}

/// R17-14: each row of the table that the record decides, with a real server.
#[tokio::test]
async fn what_the_records_say_is_what_is_answered() -> Result<()> {
    let server = NameServer::start(&[ZONE]).await?;
    let at = address(&server);
    let nothing = check_at([at]).await;
    assert!(is_unknown(&nothing, "there is no epoch"), "{nothing:?}");

    write(&server, &[(EPOCH, &["3"]), (OWNER, &["seed-a"])]).await?;
    assert_eq!(check_at([at]).await, OWNED);

    write(&server, &[(EPOCH, &["4"]), (OWNER, &["seed-a"])]).await?;
    assert_eq!(check_at([at]).await, Answer::Lost(OwnershipLoss::LaterEpoch(4)));

    write(&server, &[(EPOCH, &["3"]), (OWNER, &["seed-b"])]).await?;
    // In the first check the epoch is fresh: the update may be under way.
    let another = check_at([at]).await;
    assert!(is_unknown(&another, "names seed-b"), "{another:?}");

    // The record is deleted and the epoch stays. The second witness decides.
    write(&server, &[(OWNER, &[])]).await?;
    let deleted = check_at([at]).await;
    assert!(is_unknown(&deleted, "names no seed"), "{deleted:?}");

    write(&server, &[(EPOCH, &["2"]), (OWNER, &["seed-b"])]).await?;
    let earlier = check_at([at]).await;
    assert!(is_unknown(&earlier, "still at epoch 2"), "{earlier:?}");

    write(&server, &[(EPOCH, &["3"]), (OWNER, &["seed-a", "seed-b"])]).await?;
    let several = check_at([at]).await;
    assert!(is_unknown(&several, "2 texts instead of one"), "{several:?}");

    write(&server, &[(OWNER, &["\"seed-b\""])]).await?;
    let quoted = check_at([at]).await;
    assert!(is_unknown(&quoted, "no seed identity"), "{quoted:?}");

    write(&server, &[(EPOCH, &[]), (OWNER, &["seed-b"])]).await?;
    let alone = check_at([at]).await;
    assert!(is_unknown(&alone, "there is no epoch"), "{alone:?}");
    Ok(())
}

/// Too much for a datagram: the server truncates the answer, and sends the whole answer over TCP.
#[tokio::test]
async fn a_heap_of_records_is_read_over_tcp_and_decides_nothing() -> Result<()> {
    let server = NameServer::start(&[ZONE]).await?;
    let texts: Vec<String> = (0..60)
        .map(|number| format!("seed-{number}-{}", "x".repeat(190)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    write(&server, &[(EPOCH, &["3"]), (OWNER, &texts)]).await?;
    let many = check_at([address(&server)]).await;
    assert!(is_unknown(&many, "60 texts instead of one"), "{many:?}");

    let long = "x".repeat(20_000);
    write(&server, &[(OWNER, &[&long])]).await?;
    let long = check_at([address(&server)]).await;
    assert!(is_unknown(&long, "no seed identity"), "{long:?}");
    Ok(())
}

#[tokio::test]
async fn a_server_of_another_zone_says_nothing() -> Result<()> {
    let (right, wrong) = (
        NameServer::start(&[ZONE]).await?,
        NameServer::start(&["example"]).await?,
    );
    write(&right, &[(EPOCH, &["3"]), (OWNER, &["seed-a"])]).await?;
    // The server is the authority of the parent zone, and denies the names with the parent's SOA.
    let denied = check_at([address(&wrong)]).await;
    assert!(is_unknown(&denied, "as the authority of example."), "{denied:?}");
    assert_eq!(check_at([address(&wrong), address(&right)]).await, OWNED);
    Ok(())
}

#[tokio::test]
async fn authorities_that_disagree_decide_nothing() -> Result<()> {
    let (new, old) = (
        NameServer::start(&[ZONE]).await?,
        NameServer::start(&[ZONE]).await?,
    );
    write(&old, &[(EPOCH, &["3"]), (OWNER, &["seed-a"])]).await?;
    write(&new, &[(EPOCH, &["4"]), (OWNER, &["seed-b"])]).await?;
    let apart = check_at([address(&new), address(&old)]).await;
    assert!(is_unknown(&apart, "disagree"), "{apart:?}");
    write(&old, &[(EPOCH, &["4"]), (OWNER, &["seed-b"])]).await?;
    let lost = check_at([address(&new), address(&old)]).await;
    assert_eq!(lost, Answer::Lost(OwnershipLoss::LaterEpoch(4)));
    Ok(())
}

/// The condition for the start of a destination's fence.
#[tokio::test]
async fn a_claim_is_shown_by_all_when_the_last_server_shows_it() -> Result<()> {
    let (first, mut last) = (
        NameServer::start(&[ZONE]).await?,
        NameServer::start(&[ZONE]).await?,
    );
    let second = Second::new();
    let authorities = Authorities::named(ZONE, [address(&first), address(&last)])?;
    let witnesses = witnesses(authorities, &second);
    let (claim, terms) = (claim(), patient()?);
    let both = [(EPOCH, ["3"].as_slice()), (OWNER, ["seed-a"].as_slice())];
    write(&first, &both).await?;
    let why = shown_by_all(&claim, &terms, &witnesses).await.unwrap_err();
    assert!(why.contains("there is no epoch"), "{why}");
    write(&last, &both).await?;
    let why = shown_by_all(&claim, &terms, &witnesses).await.unwrap_err();
    assert!(why.contains("second witness"), "{why}");
    *second.0.lock().unwrap() = Testimony::Claimed { epoch: 3 };
    assert_eq!(shown_by_all(&claim, &terms, &witnesses).await, Ok(()));
    last.stop();
    let why = shown_by_all(&claim, &terms, &witnesses).await.unwrap_err();
    assert!(why.contains("not every authority"), "{why}");
    Ok(())
}

#[tokio::test]
async fn the_servers_of_a_zone_are_found_by_a_resolver() -> Result<()> {
    let server = NameServer::start(&[ZONE]).await?;
    write(&server, &[(EPOCH, &["3"]), (OWNER, &["seed-a"])]).await?;
    let at = address(&server);
    // knot also acts as the resolver: the zone has the name ns.internal.example, the address of knot itself.
    let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = at.port();
    }
    let upstream = NameServerConfig::new(at.ip(), true, connections.into());
    let config = ResolverConfig::from_name_servers(vec![upstream]);
    let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()).build()?;
    assert_eq!(
        check(Authorities::discover_with(ZONE, resolver.clone(), at.port())?).await?,
        OWNED
    );

    let nowhere = Authorities::discover_with("example", resolver, at.port())?;
    let unknown = check(nowhere).await?;
    assert!(is_unknown(&unknown, "cannot be found"), "{unknown:?}");
    Ok(())
}

/// A complete sequence (R17-14, R17-47..49): confirmed, the server gone and back, taken over.
#[tokio::test]
async fn a_server_that_is_gone_takes_nothing_while_the_second_witness_answers() -> Result<()> {
    let mut server = NameServer::start(&[ZONE]).await?;
    write(&server, &[(EPOCH, &["3"]), (OWNER, &["seed-a"])]).await?;
    let second = Second::new();
    let watch = watch(Authorities::named(ZONE, [address(&server)])?, &second, quick()?)?;
    let mut reports = watch.reports();
    let story = async {
        let mut permit = owner(&mut reports).await?;
        *second.0.lock().unwrap() = Testimony::Owned { epoch: 3, left: None };
        server.stop();
        // Longer than the validity. A machine that stands still may end a permit too; the count then starts
        // again.
        let (mut seconds, mut stood_still) = (0, 0);
        while seconds < 8 {
            let looked = Instant::now();
            tokio::time::sleep(Duration::from_secs(1)).await;
            if looked.elapsed() > Duration::from_secs(2) && stood_still < 10 {
                permit = owner(&mut reports).await?;
                (seconds, stood_still) = (0, stood_still + 1);
            } else {
                permit.check()?;
                seconds += 1;
            }
        }
        // Both witnesses are silent, so the permit ends.
        *second.0.lock().unwrap() = Testimony::Silent("cut off".to_owned());
        reports
            .wait_for(|report| matches!(report.standing, Standing::Unconfirmed))
            .await?;
        assert!(permit.check().is_err());
        // The server is back, and the seed is still the owner: a new permit.
        server.resume().await?;
        // A test server does not persist records from updates.
        write(&server, &[(EPOCH, &["3"]), (OWNER, &["seed-a"])]).await?;
        let again = owner(&mut reports).await?;
        assert!(again.is_valid() && permit.check().is_err());
        // Taken over. Only the epoch changes: a check that began before would see another owner first.
        write(&server, &[(EPOCH, &["4"])]).await?;
        reports
            .wait_for(|report| matches!(report.standing, Standing::Lost(_)))
            .await?;
        assert!(again.check().is_err());
        Ok(())
    };
    let lost = async { Ok::<_, anyhow::Error>(watch.run().await) };
    let (lost, ()) = tokio::try_join!(lost, story)?;
    assert_eq!(lost, OwnershipLoss::LaterEpoch(4));
    Ok(())
}
