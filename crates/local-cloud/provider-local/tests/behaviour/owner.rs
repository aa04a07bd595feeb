//! The owner record (R17-10, R17-50): two names that change together and only towards a later epoch, even
//! with late, repeated or concurrent writers. The server is real, and so is the crate that checks owners.

use std::{pin::pin, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use api::{
    constants::{OPERATION, OWNERSHIP_EPOCH, OWNERSHIP_FORGOTTEN, operation},
    extensions::DNSRecord,
};
use cloud_local::dns::{self, Change, Server, absolute};
use extension::{Actuator, Context};
use hickory_proto::{op::ResponseCode, rr::RecordType};
use kube::{Api, ResourceExt};
use ownership::{
    Answer, Authorities, Network, NoWitness, OwnershipClaim, OwnershipLoss, Terms, Watch, Witnesses,
};
use provider_local::{MANAGER, dns_record::DNSRecordActuator};
use runtime::client::{Credentials, Permit, Seed};
use serde_json::json;

use super::{
    World, codes, delete, run, run_created,
    tap::Tap,
    world::{self, MANAGER_OF_TEST, SOON, ZONE, object},
};

/// The namespace with the credentials of the test's actuators.
pub const NAMESPACE: &str = "shoot--dev--owner";

/// The DNSRecord of an owner, as a gardenlet writes the object.
pub fn record(name: &str, namespace: &str, owner: &str, identity: &str, epoch: i64) -> Result<DNSRecord> {
    let spec = json!({"name": owner, "recordType": "TXT", "values": [identity], "ttl": 5});
    let mut record: DNSRecord = object(name, namespace, spec)?;
    record
        .annotations_mut()
        .insert(OWNERSHIP_EPOCH.into(), epoch.to_string());
    Ok(record)
}

/// Runs the actuator for a record, without an object in a seed.
pub async fn act(world: &World, record: &DNSRecord, forget: Option<bool>) -> runtime::Result<()> {
    let mut record = record.clone();
    if forget == Some(true) {
        record
            .annotations_mut()
            .insert(OWNERSHIP_FORGOTTEN.into(), "true".into());
    }
    let context = Context {
        seed: Seed::new(world.seed.clone(), &Permit::sole("a test")),
        manager: MANAGER,
        object: Arc::new(record),
        cluster: None,
    };
    match forget {
        None => DNSRecordActuator.reconcile(&context).await.map(drop),
        Some(_) => DNSRecordActuator.delete(&context).await,
    }
}

/// Writes the record of a shoot over the connection that the credentials of a namespace name.
async fn write_by(world: &World, by: &str, shoot: &str, identity: &str, epoch: i64) -> runtime::Result<()> {
    let wanted = record("owner", by, &owner(shoot), identity, epoch);
    let wanted = wanted.map_err(|error| runtime::Error::bug(error.to_string()))?;
    act(world, &wanted, None).await
}

async fn write(world: &World, shoot: &str, identity: &str, epoch: i64) -> runtime::Result<()> {
    write_by(world, NAMESPACE, shoot, identity, epoch).await
}

fn owner(shoot: &str) -> String {
    format!("owner.{shoot}.dev.{ZONE}")
}

/// Checks the texts of both names.
async fn holds(world: &World, shoot: &str, identity: &[&str], epoch: &[&str]) -> Result<()> {
    let owner = owner(shoot);
    for (name, wanted) in [(owner.clone(), identity), (format!("epoch.{owner}"), epoch)] {
        let found = world.dns.texts(&name).await?;
        ensure!(found == wanted, "{name} has {found:?}, not {wanted:?}");
    }
    Ok(())
}

/// The SOA record; changes with each update that has an effect.
pub async fn version(world: &World) -> Result<Vec<String>> {
    world.dns.records(ZONE, RecordType::SOA).await
}

/// Checks for a permanent refusal with this reason, without a change of the zone.
async fn refused(world: &World, done: runtime::Result<()>, part: &str, before: &[String]) -> Result<()> {
    match done {
        Err(error) if error.class() == "Config" && error.to_string().contains(part) => {}
        other => bail!("it was not refused as it should be ({part}): {other:?}"),
    }
    ensure!(version(world).await? == before, "the zone was changed");
    Ok(())
}

/// The answer to an owner check of a seed, once the answer is not Unknown.
async fn answer(world: &World, shoot: &str, identity: &str, epoch: i64) -> Result<Answer> {
    let is_said = |answer: &Answer| !matches!(answer, Answer::Unknown(_));
    answered(world, shoot, (identity, epoch), is_said).await
}

/// The first answer that satisfies the condition.
async fn answered(
    world: &World,
    shoot: &str,
    (identity, epoch): (&str, i64),
    is_so: impl Fn(&Answer) -> bool,
) -> Result<Answer> {
    let witnesses = Witnesses {
        authorities: Arc::new(Authorities::named(ZONE, [world.dns.address.parse()?])?),
        wire: Arc::new(Network),
        second: Arc::new(NoWitness),
    };
    let claim = OwnershipClaim::new(&owner(shoot), identity, epoch)?;
    let watch = Watch::new(claim, Terms::default(), witnesses, permit::Clock::default())?;
    let (mut reports, told) = (watch.reports(), watch.reports());
    let first = async {
        let report = reports
            .wait_for(|report| report.last.as_ref().is_some_and(|last| is_so(&last.answer)))
            .await?;
        anyhow::Ok(report.last.as_ref().context("no check")?.answer.clone())
    };
    let run = async {
        watch.run().await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = testkit::timeout(SOON, first) => answer.with_context(|| format!("{:?}", told.borrow().last))?,
        () = run => unreachable!(),
    }
}

/// Seed a owns the shoot, hands the shoot over in a planned move, and seed b takes the shoot. The process of
/// a wakes up repeatedly.
pub async fn a_record_is_handed_over(world: &World) -> Result<()> {
    let reconciler = world::dns_record(&world.seed);
    let (of_a, of_b) = ("shoot--owner--a", "shoot--owner--b");
    for namespace in [of_a, of_b] {
        world::namespace(&world.seed, namespace, &world::dns_credentials(&world.dns)).await?;
    }
    let a = record("web-owner", of_a, &owner("web"), "seed-a", 1)?;
    run_created(&reconciler, &a).await?;
    holds(world, "web", &["seed-a"], &["1"]).await?;
    let owned = answer(world, "web", "seed-a", 1).await?;
    ensure!(matches!(owned, Answer::Owned { .. }), "{owned:?}");

    // A repetition writes nothing (R17-12).
    let before = version(world).await?;
    let api: Api<DNSRecord> = Api::namespaced(world.seed.clone(), of_a);
    let ask = || MANAGER_OF_TEST.annotate(&api, "web-owner", OPERATION, Some(operation::RECONCILE));
    ask().await?;
    run(&reconciler, &a).await?;
    ensure!(version(world).await? == before, "it was written again");

    // R17-50: the owner is removed, the epoch stays, and the owner does not return in that epoch.
    act(world, &a, Some(false)).await?;
    holds(world, "web", &[], &["1"]).await?;
    // The removal alone ends no permit (docs/understand/ownership.md, "Who is asked"): the second witness
    // decides.
    let is_deleted =
        |answer: &Answer| matches!(answer, Answer::Unknown(why) if why.contains("names no seed"));
    answered(world, "web", ("seed-a", 1), is_deleted).await?;
    let before = version(world).await?;
    act(world, &a, Some(false)).await?;
    refused(world, act(world, &a, None).await, "ended for ever", &before).await?;

    let b = record("web-owner", of_b, &owner("web"), "seed-b", 2)?;
    run_created(&reconciler, &b).await?;
    holds(world, "web", &["seed-b"], &["2"]).await?;
    let owned = answer(world, "web", "seed-b", 2).await?;
    ensure!(matches!(owned, Answer::Owned { .. }), "{owned:?}");
    ensure!(answer(world, "web", "seed-a", 1).await? == Answer::Lost(OwnershipLoss::LaterEpoch(2)));

    // For every later attempt of a's processes, the object reports the reason of the refusal.
    let before = version(world).await?;
    ask().await?;
    ensure!(run(&reconciler, &a).await.is_err(), "the hand-over was undone");
    let why = codes(&api, "web-owner", "ERR_CONFIGURATION_PROBLEM").await?;
    ensure!(why.contains("went on elsewhere"), "{why}");
    delete(&reconciler, &a).await?;
    act(world, &a, Some(true)).await?;
    ensure!(version(world).await? == before, "the zone was changed");

    // Back to the first seed: the identity is the same as before, the epoch is new.
    write(world, "web", "seed-a", 3).await?;
    let before = version(world).await?;
    refused(
        world,
        write(world, "web", "seed-a", 1).await,
        "went on elsewhere",
        &before,
    )
    .await?;
    refused(
        world,
        write(world, "web", "seed-b", 2).await,
        "went on elsewhere",
        &before,
    )
    .await?;
    refused(
        world,
        write(world, "web", "seed-b", 3).await,
        "has one owner",
        &before,
    )
    .await?;
    holds(world, "web", &["seed-a"], &["3"]).await
}

pub async fn a_shoot_that_goes_leaves_nothing(world: &World) -> Result<()> {
    let gone = record("owner", NAMESPACE, &owner("gone"), "seed-a", 2)?;
    write(world, "gone", "seed-b", 1).await?;
    // A foreign record: the claim of epoch 2 was never written.
    act(world, &gone, Some(true)).await?;
    holds(world, "gone", &["seed-b"], &["1"]).await?;
    act(world, &gone, None).await?;
    act(world, &gone, Some(false)).await?;
    holds(world, "gone", &[], &["2"]).await?;
    act(world, &gone, Some(true)).await?;
    holds(world, "gone", &[], &[]).await?;
    act(world, &gone, Some(true)).await?;
    // The next shoot of this name begins anew, and is deleted at once.
    write(world, "gone", "seed-b", 1).await?;
    act(
        world,
        &record("owner", NAMESPACE, &owner("gone"), "seed-b", 1)?,
        Some(true),
    )
    .await?;
    holds(world, "gone", &[], &[]).await
}

pub async fn what_is_not_ours_is_left_alone(world: &World) -> Result<()> {
    let reconciler = world::dns_record(&world.seed);
    let foreign = |name: String, kind: &str, values: &[&str]| {
        let of = name.replace('.', "-");
        let spec = json!({"name": name, "recordType": kind, "values": values});
        object::<DNSRecord>(&of, NAMESPACE, spec)
    };
    let (spf, two): (&[&str], &[&str]) = (&["v=spf1 -all"], &["seed-a", "seed-b"]);
    let cases = [
        ("spf", owner("spf"), "TXT", spf, "no seed identity"),
        ("two", owner("two"), "TXT", two, "has 2 texts instead of one"),
        ("half", owner("half"), "TXT", &two[..1], "has no epoch"),
        (
            "alias",
            owner("alias"),
            "CNAME",
            &["elsewhere.example"],
            "is an alias",
        ),
        (
            "number",
            format!("epoch.{}", owner("number")),
            "TXT",
            spf,
            "is no epoch",
        ),
        (
            "none",
            format!("epoch.{}", owner("none")),
            "CNAME",
            &["elsewhere.example"],
            "is an alias",
        ),
    ];
    for (shoot, name, kind, values, part) in cases {
        run_created(&reconciler, &foreign(name.clone(), kind, values)?).await?;
        let before = version(world).await?;
        let mut ours = record("owner", NAMESPACE, &owner(shoot), "seed-a", 1)?;
        // An alias hides the zone of the name.
        ours.spec.zone = Some(ZONE.into());
        let done = act(world, &ours, None).await;
        let says = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        ensure!(says.contains(&name), "{name} is not named: {says}");
        refused(world, done, part, &before).await?;
        for forget in [false, true] {
            act(world, &ours, Some(forget)).await?;
        }
        ensure!(version(world).await? == before, "{name} was removed");
    }
    // A former owner record does not become an ordinary record, because an ordinary record would be
    // overwritten regardless of the present value.
    let api: Api<DNSRecord> = Api::namespaced(world.seed.clone(), NAMESPACE);
    let was = record("was", NAMESPACE, &owner("was"), "seed-a", 1)?;
    run_created(&reconciler, &was).await?;
    write(world, "was", "seed-b", 2).await?;
    MANAGER_OF_TEST
        .annotate(&api, "was", OWNERSHIP_EPOCH, None)
        .await?;
    MANAGER_OF_TEST
        .annotate(&api, "was", OPERATION, Some(operation::RECONCILE))
        .await?;
    ensure!(run(&reconciler, &was).await.is_err(), "it lost its epoch");
    codes(&api, "was", "ERR_CONFIGURATION_PROBLEM").await?;
    holds(world, "was", &["seed-b"], &["2"]).await
}

/// R17-21: the server knows the destination's key, but the key has no right to change this zone. The shoot
/// stays with the owner.
pub async fn a_key_that_may_not_write_takes_no_shoot(world: &World) -> Result<()> {
    let namespace = "shoot--owner--reads";
    let right = world::dns_credentials(&world.dns);
    let reads = world::with(&right, "tsigKeyName", world.dns.reading_key_name);
    world::namespace(&world.seed, namespace, &reads).await?;
    write(world, "reads", "seed-a", 1).await?;
    let before = version(world).await?;
    let reconciler = world::dns_record(&world.seed);
    let api: Api<DNSRecord> = Api::namespaced(world.seed.clone(), namespace);
    let b = record("web-owner", namespace, &owner("reads"), "seed-b", 2)?;
    ensure!(
        run_created(&reconciler, &b).await.is_err(),
        "the key may not do that"
    );
    let why = codes(&api, "web-owner", "ERR_INFRA_UNAUTHENTICATED").await?;
    let name = owner("reads");
    for part in [
        name.as_str(),
        "nothing outside of this seed is begun",
        "allow it to update the zone",
        &format!("{namespace}/credentials"),
    ] {
        ensure!(why.contains(part), "{part:?} is missing: {why}");
    }
    ensure!(
        version(world).await? == before,
        "the zone was changed by a key that reads"
    );
    holds(world, "reads", &["seed-a"], &["1"]).await?;
    let owned = answer(world, "reads", "seed-a", 1).await?;
    ensure!(matches!(owned, Answer::Owned { .. }), "{owned:?}");
    let refused = answered(world, "reads", ("seed-b", 2), |_| true).await?;
    ensure!(matches!(refused, Answer::Unknown { .. }), "{refused:?}");
    // Now the key has the right.
    world::set_credentials(&world.seed, namespace, &right).await?;
    run(&reconciler, &b).await?;
    holds(world, "reads", &["seed-b"], &["2"]).await
}

pub async fn of_two_writers_one_has_the_epoch(world: &World) -> Result<()> {
    let mut won = [0, 0];
    for epoch in 1..=20 {
        let (a, b) = tokio::join!(
            write(world, "race", "seed-a", epoch),
            write(world, "race", "seed-b", epoch)
        );
        let (winner, loser) = match (a, b) {
            (Ok(()), Err(lost)) => (0, lost),
            (Err(lost), Ok(())) => (1, lost),
            both => bail!("epoch {epoch}: {both:?}"),
        };
        won[winner] += 1;
        ensure!(loser.to_string().contains("has one owner"), "{loser}");
        holds(
            world,
            "race",
            &[["seed-a", "seed-b"][winner]],
            &[&epoch.to_string()],
        )
        .await?;
    }
    println!("two writers of one epoch: {won:?}");
    for epoch in (21..=40).step_by(2) {
        let (earlier, later) = tokio::join!(
            write(world, "race", "seed-a", epoch),
            write(world, "race", "seed-b", epoch + 1)
        );
        later?;
        ensure!(
            earlier
                .as_ref()
                .err()
                .is_none_or(|lost| lost.to_string().contains("went on elsewhere")),
            "{earlier:?}"
        );
        holds(world, "race", &["seed-b"], &[&(epoch + 1).to_string()]).await?;
    }
    Ok(())
}

/// A namespace whose credentials lead through a tap to the name server.
async fn line(world: &World, namespace: &str) -> Result<Tap> {
    let line = Tap::new(&world.dns.address).await?;
    let credentials = world::with(&world::dns_credentials(&world.dns), "server", &line.address);
    world::namespace(&world.seed, namespace, &credentials).await?;
    Ok(line)
}

/// The writer has read epoch 1, is stopped, and wakes when a later epoch has begun.
pub async fn a_writer_that_slept_changes_nothing(world: &World) -> Result<()> {
    let line = line(world, "shoot--owner--slept").await?;
    write(world, "slept", "seed-b", 1).await?;
    // The queries for zone and epoch are answered; the answer about the owner is held.
    line.hold_after(2);
    let mut sleeper = pin!(write_by(world, "shoot--owner--slept", "slept", "seed-a", 2));
    tokio::select! {
        done = &mut sleeper => bail!("it did not wait: {done:?}"),
        held = line.until_held(SOON) => held?,
    }
    write(world, "slept", "seed-b", 3).await?;
    let before = version(world).await?;
    let said = line.count_sent();
    line.release();
    refused(
        world,
        testkit::timeout(SOON, sleeper).await?,
        "went on elsewhere",
        &before,
    )
    .await?;
    // The writer did send an update, and the server compared: the refusal is not only the result of a fresh
    // read.
    ensure!(line.count_sent() > said + 2, "nothing was tried");
    holds(world, "slept", &["seed-b"], &["3"]).await
}

/// R17-63: the update arrives long after the sender is gone.
pub async fn an_update_that_lands_late_changes_nothing(world: &World) -> Result<()> {
    a_late_update_changes_nothing(world, "late").await
}

/// As [`an_update_that_lands_late_changes_nothing`], for a shoot with this name.
pub async fn a_late_update_changes_nothing(world: &World, shoot: &str) -> Result<()> {
    let credentials = Credentials::new("test/dns", world::dns_credentials(&world.dns));
    let server = Server::new(&credentials, &Permit::sole("a test"))?;
    let zone = absolute(ZONE)?;
    let name = absolute(&owner(shoot))?;
    let text = |text: &str| Some(text.to_owned());
    let changes = |was: [Option<String>; 2]| {
        let [epoch, owner] = was;
        let of_epoch = Change {
            name: name.prepend_label("epoch")?,
            was: epoch,
            becomes: text("2"),
        };
        let of_owner = Change {
            name: name.clone(),
            was: owner,
            becomes: text("seed-a"),
        };
        anyhow::Ok([of_epoch, of_owner])
    };
    let from_nothing = dns::change(&zone, &changes([None, None])?, 5)?;
    write(world, shoot, "seed-b", 1).await?;
    let from_first = dns::change(&zone, &changes([text("1"), text("seed-b")])?, 5)?;
    let from_deleted = dns::change(&zone, &changes([text("1"), None])?, 5)?;
    write(world, shoot, "seed-b", 3).await?;
    let before = version(world).await?;
    for late in [from_nothing, from_first, from_deleted] {
        let code = server.update(late).await?;
        ensure!(
            matches!(
                code,
                ResponseCode::NXRRSet | ResponseCode::YXRRSet | ResponseCode::NXDomain
            ),
            "{code}"
        );
    }
    ensure!(version(world).await? == before, "the zone was changed");
    holds(world, shoot, &["seed-b"], &["3"]).await
}

/// Killed between any two messages, and started again.
pub async fn a_writer_may_end_anywhere(world: &World) -> Result<()> {
    let line = line(world, "shoot--owner--ended").await?;
    // Zone, epoch, owner, update: each answer in turn never arrives.
    for answered in 0..4 {
        line.hold_after(answered);
        let mut writer = Box::pin(write_by(world, "shoot--owner--ended", "ended", "seed-a", 1));
        tokio::select! {
            done = &mut writer => bail!("it did not wait when {answered} were answered: {done:?}"),
            held = line.until_held(SOON) => held?,
        }
        drop(writer);
        line.release();
        line.until_idle(SOON).await?;
    }
    // The update of the last attempt was applied; only the answer was lost.
    holds(world, "ended", &["seed-a"], &["1"]).await?;
    let before = version(world).await?;
    write_by(world, "shoot--owner--ended", "ended", "seed-a", 1).await?;
    ensure!(version(world).await? == before, "it was written again");
    Ok(())
}
