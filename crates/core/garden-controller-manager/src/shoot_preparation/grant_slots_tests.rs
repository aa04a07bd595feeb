//! Slots, the order of requests, and the expiry of grants; no cluster.

#![allow(clippy::unwrap_used)]
use api::{constants::MIGRATION_PREPARE, meta::Condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A Shoot with a grant for this seed.
fn shoot(uid: &str, seed: Option<&str>) -> Arc<Shoot> {
    let preparation = seed.map(|seed| {
        json!({"uid": uid, "source": "a", "destination": seed, "epoch": 1, "expiry": "2026-01-01T00:00:00Z"})
    });
    serde_json::from_value(json!({
        "metadata": {"name": uid, "uid": uid},
        "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
        "status": {"seedName": "a", "liveMigration": {"preparation": preparation}},
    }))
    .map(Arc::new)
    .unwrap()
}

#[test]
fn recorded_and_reserved_grants_count_for_their_seed() {
    let slots = GrantSlots::new(2);
    let known = [
        shoot("recorded", Some("b")),
        shoot("elsewhere", Some("c")),
        shoot("early", None),
        shoot("late", None),
    ];
    assert_eq!(slots.reserve(&known[2], "b", &known, NOW), Ok(()));
    // The store does not show the grant of `early` yet.
    assert_eq!(slots.reserve(&known[3], "b", &known, NOW), Err(2));
    // A grant that is written again needs no second slot.
    assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
    assert_eq!(slots.reserve(&known[3], "c", &known, NOW), Ok(()));
    slots.release(&known[2]);
    assert_eq!(slots.reserve(&known[3], "b", &known, NOW), Ok(()));
}

/// A change of the destination frees the slot of the former destination.
#[test]
fn a_shoot_has_one_slot() {
    let slots = GrantSlots::new(1);
    let known = [shoot("mover", None), shoot("other", None)];
    assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
    assert_eq!(slots.reserve(&known[0], "c", &known, NOW), Ok(()));
    assert_eq!(slots.reserve(&known[1], "b", &known, NOW), Ok(()));
    assert_eq!(slots.reserve(&known[1], "c", &known, NOW), Err(1));
}

/// The host may remove the field at any time. A change of the host, of the epoch or of the request needs
/// a new judgement instead.
#[test]
fn a_grant_that_the_host_has_removed_is_known() {
    let slots = GrantSlots::new(1);
    let on = |host: &str, epoch: i64, wanted: &str, granted: bool| -> Shoot {
        let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": "2026-01-01T00:00:00Z"});
        let grant = granted.then_some(grant);
        serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": "u", "annotations": {(MIGRATION_PREPARE): wanted}},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": host, "ownership": {"epoch": epoch}, "liveMigration": {"preparation": grant}},
        }))
        .unwrap()
    };
    let (recorded, removed) = (on("a", 3, "b", true), on("a", 3, "b", false));
    assert!(!slots.is_grant_removed(&removed), "a first request");
    slots
        .reserve(&removed, "b", &[Arc::new(removed.clone())], NOW)
        .unwrap();
    assert!(!slots.is_grant_removed(&recorded));
    assert!(slots.is_grant_removed(&removed));
    for (host, epoch, wanted) in [("c", 3, "b"), ("a", 4, "b"), ("a", 3, "c"), ("a", 3, "")] {
        let changed = on(host, epoch, wanted, false);
        assert!(!slots.is_grant_removed(&changed));
    }
    slots.release(&removed);
    assert!(!slots.is_grant_removed(&removed), "withdrawn by this process");
    // After a restart of the process.
    slots.note_recorded(&removed);
    assert!(!slots.is_grant_removed(&removed));
    slots.note_recorded(&recorded);
    assert!(slots.is_grant_removed(&removed));
}

#[test]
fn a_shoot_that_is_gone_holds_no_slot() {
    let slots = GrantSlots::new(1);
    let known = [shoot("gone", None), shoot("next", None)];
    assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
    assert_eq!(slots.reserve(&known[1], "b", &known, NOW), Err(1));
    assert_eq!(slots.reserve(&known[1], "b", &known[1..], NOW), Ok(()));
}

fn at(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

fn of_project(project: &str, shoot: &Arc<Shoot>) -> Arc<Shoot> {
    let mut shoot = Shoot::clone(shoot);
    shoot.metadata.namespace = Some(project.to_owned());
    Arc::new(shoot)
}

/// A Shoot of the project that requests a grant for seed `b`.
fn requesting(project: &str, uid: &str) -> Arc<Shoot> {
    let mut shoot = Arc::unwrap_or_clone(of_project(project, &shoot(uid, None)));
    shoot
        .annotations_mut()
        .insert(MIGRATION_PREPARE.to_owned(), "b".to_owned());
    Arc::new(shoot)
}

/// The same with a report that the shoot waits since this time.
fn with_report(shoot: &Arc<Shoot>, since: Timestamp) -> Arc<Shoot> {
    let mut shoot = Shoot::clone(shoot);
    let waits = Condition::new(PREPARED, ConditionStatus::False, BUSY, "m", Time(since));
    let status = shoot.status.get_or_insert_default();
    status.live_migration.get_or_insert_default().conditions = vec![waits];
    Arc::new(shoot)
}

#[test]
fn the_shoot_that_has_waited_longest_is_next() {
    let slots = GrantSlots::new(2);
    let full = [
        of_project("p", &shoot("holder", Some("b"))),
        of_project("p", &shoot("former", Some("b"))),
        requesting("q", "first"),
        requesting("r", "second"),
    ];
    assert_eq!(slots.reserve(&full[2], "b", &full, at(0)), Err(2));
    assert_eq!(slots.reserve(&full[3], "b", &full, at(10)), Err(2));
    let known = [
        Arc::clone(&full[0]),
        Arc::clone(&full[2]),
        Arc::clone(&full[3]),
        requesting("s", "new"),
    ];
    let reserve = |shoot: &Shoot, now| slots.reserve(shoot, "b", &known, now);
    assert_eq!(reserve(&known[2], at(20)), Err(1));
    assert_eq!(reserve(&known[3], at(20)), Err(1), "a new request comes last");
    // Slots of a different seed.
    assert_eq!(slots.reserve(&known[3], "c", &known, at(20)), Ok(()));
    slots.release(&known[3]);
    // The first shoot makes no request.
    let late = at(20) + SignedDuration::from_mins(4);
    assert_eq!(reserve(&known[2], late), Ok(()));
    assert_eq!(reserve(&known[1], late), Err(2));
}

/// The destination of a grant writes the condition of the Shoot, too, with any time.
#[test]
fn a_time_in_the_status_gives_no_place_before_other_shoots() {
    let slots = GrantSlots::new(1);
    let honest = requesting("q", "honest");
    let full = [of_project("p", &shoot("holder", Some("b"))), Arc::clone(&honest)];
    assert_eq!(slots.reserve(&honest, "b", &full, at(0)), Err(1));
    let forged = with_report(&requesting("r", "forged"), at(-1000));
    let known = [Arc::clone(&honest), Arc::clone(&forged)];
    assert_eq!(slots.reserve(&forged, "b", &known, at(10)), Err(0));
    assert_eq!(slots.reserve(&honest, "b", &known, at(10)), Ok(()));
}

#[test]
fn a_shoot_that_a_former_process_has_refused_comes_before_new_requests() {
    let slots = GrantSlots::new(1);
    let refused = with_report(&requesting("q", "former"), at(-10));
    let known = [refused, requesting("r", "new")];
    assert_eq!(slots.reserve(&known[1], "b", &known, at(0)), Err(0));
    assert_eq!(slots.reserve(&known[0], "b", &known, at(0)), Ok(()));
}

/// Otherwise one project holds all grants of a seed for a day, and requests each grant again.
#[test]
fn a_project_with_half_of_the_grants_comes_after_other_projects() {
    let (longest, other) = (requesting("p", "longest"), requesting("q", "other"));
    let both_wait = |slots: &GrantSlots, holders: &[Arc<Shoot>]| {
        let waiting = [&longest, &other];
        let full: Vec<Arc<Shoot>> = holders.iter().chain(waiting).cloned().collect();
        let most = Err(holders.len());
        assert_eq!(slots.reserve(&longest, "b", &full, at(0)), most);
        assert_eq!(slots.reserve(&other, "b", &full, at(10)), most);
    };
    let holder = of_project("p", &shoot("holder", Some("b")));
    let former = of_project("z", &shoot("former", Some("b")));
    let slots = GrantSlots::new(2);
    both_wait(&slots, &[Arc::clone(&holder), Arc::clone(&former)]);
    let known = [holder, Arc::clone(&longest), Arc::clone(&other)];
    assert_eq!(slots.reserve(&longest, "b", &known, at(20)), Err(1));
    assert_eq!(slots.reserve(&other, "b", &known, at(20)), Ok(()));
    slots.release(&other);
    let alone = slots.reserve(&longest, "b", &known[..2], at(20));
    assert_eq!(alone, Ok(()), "no other project waits");
    // A project may have a single slot.
    let slots = GrantSlots::new(1);
    both_wait(&slots, &[former]);
    let free = &known[1..];
    assert_eq!(slots.reserve(&other, "b", free, at(20)), Err(0));
    assert_eq!(slots.reserve(&longest, "b", free, at(20)), Ok(()));
}

/// The destination can end each grant, by the condition of its own Seed, and gets a further grant.
#[test]
fn a_further_grant_ends_before_the_former_grant() {
    let slots = GrantSlots::new(1);
    let web = requesting("p", "web");
    assert_eq!(slots.next_expiry(&web, "b", at(100)), at(100));
    // The write of the grant has failed.
    assert_eq!(slots.next_expiry(&web, "b", at(101)), at(101));
    slots.note_granted(&web, "b", at(100));
    slots.release(&web);
    assert_eq!(slots.next_expiry(&web, "b", at(150)), at(99));
    slots.note_granted(&web, "b", at(99));
    // While the destination is silent, no grant is recorded.
    assert_eq!(slots.expired(&web, at(98)), None);
    assert_eq!(slots.expired(&web, at(99)), Some(at(99)));
    // A request for a different seed, and a new request.
    assert_eq!(slots.next_expiry(&web, "c", at(150)), at(150));
    slots.note_granted(&web, "c", at(150));
    assert_eq!(slots.expired(&web, at(150)), None);
    assert_eq!(slots.next_expiry(&web, "b", at(150)), at(150));
    slots.note_granted(&web, "b", at(150));
    slots.forget(&web);
    assert_eq!(slots.expired(&web, at(200)), None);
    assert_eq!(slots.next_expiry(&web, "b", at(200)), at(200));
    // A grant of a former process.
    let recorded = shoot("old", Some("b"));
    slots.note_recorded(&recorded);
    let former: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let longest = former + SignedDuration::from_hours(24);
    let further = slots.next_expiry(&recorded, "b", longest);
    assert_eq!(further, former - SignedDuration::from_secs(1));
}

/// A user removes the request, and the host removes the grant before the next reconciliation.
#[test]
fn a_shoot_with_a_slot_is_reconciled_without_a_request() {
    let slots = GrantSlots::new(1);
    let mut ended = Shoot::clone(&shoot("web", None));
    ended.status.get_or_insert_default().live_migration = None;
    let known = [Arc::new(ended), shoot("next", None)];
    assert!(!slots.concerns(&known[0]));
    assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
    assert!(slots.concerns(&known[0]));
    assert_eq!(slots.reserve(&known[1], "b", &known, NOW), Err(1));
    slots.forget(&known[0]);
    assert!(!slots.concerns(&known[0]));
    assert_eq!(slots.reserve(&known[1], "b", &known, NOW), Ok(()));
}
