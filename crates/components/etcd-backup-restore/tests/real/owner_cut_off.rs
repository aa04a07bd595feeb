//! A source that can reach only its clients: measures how long the source continues to serve after the
//! record's change, with the default settings of a Seed.

use crate::lab::{EPOCH, Road, Stay, Writer, Zone, now};
use futures::{StreamExt, stream};
use std::time::Duration;

/// V of docs/understand/ownership.md.
const VALIDITY: Duration = Duration::from_secs(12);
/// H of docs/understand/ownership.md: a pause of the machine between the gate's check of its permit and its
/// write.
const REQUESTS: Duration = Duration::from_secs(5);
/// I of docs/understand/ownership.md: the changes are spread over the time between two checks.
const INTERVAL: Duration = Duration::from_secs(4);
/// Sources that are cut off at a time. Each source mostly waits.
const AT_A_TIME: usize = 8;

/// R17-47, R17-49: the source does not learn that it has lost the shoot, and stops all the same; after the
/// source learns of the loss, the gate stays shut. `REPOT_CUTS` sets the number of measurements:
/// docs/understand/etcd-backup-restore.md has the figure.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_cut_off_acknowledges_nothing_soon_after_the_records_change() {
    let cuts = u32::try_from(testkit::size("REPOT_CUTS", 2).unwrap()).unwrap();
    let sources = (0..cuts).map(|number| Box::pin(served_on(INTERVAL * number / cuts)));
    let mut measured: Vec<_> = stream::iter(sources).buffer_unordered(AT_A_TIME).collect().await;
    measured.sort();
    let rank = |percent: usize| measured[(measured.len() * percent).div_ceil(100) - 1];
    println!(
        "from the record's change to the last acknowledged write of a source that is cut off, {cuts} times: median {:.1?}, \
         p95 {:.1?}, longest {:.1?}",
        rank(50),
        rank(95),
        rank(100)
    );
    assert!(rank(100) <= VALIDITY + REQUESTS, "{measured:?}");
}

/// How long a source continued to serve that was cut off `after` its start, at the moment in which the record
/// was changed.
async fn served_on(after: Duration) -> Duration {
    let zone = Zone::start().await;
    let road = Road::to(&zone.server.address).await;
    let stay = Stay::asking(zone, &road.address, &[]).await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    // A fixed delay instead of a condition: the cut must fall on any moment between two checks.
    tokio::time::sleep(after).await;
    road.cut();
    stay.lab.s3.hang();
    let changed = now();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Suspended").await;
    let acknowledged = writer.settled().await;
    assert!(stay.finals().is_empty(), "it has not heard of its loss");
    road.mend();
    stay.is_fenced("Sealed").await;
    assert_eq!(
        writer.settled().await.len(),
        acknowledged.len(),
        "it served again"
    );
    let [sent, released] = acknowledged.last().unwrap().since(changed);
    assert!(sent <= VALIDITY, "a write was sent {sent:?} after the change");
    released
}
