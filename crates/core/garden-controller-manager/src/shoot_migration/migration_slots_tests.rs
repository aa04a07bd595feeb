use api::{
    gardencore::{ShootSpec, ShootStatus, shoot::MigrationApproval},
    meta::{Condition, LastOperation, LastOperationType as Type},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

#[path = "next_shoots_tests.rs"]
mod next_shoots;

const B: &str = "seed-b";

/// Wants to move from seed-a.
fn shoot(name: &str, to: &str) -> Shoot {
    let spec = ShootSpec {
        seed_name: Some(to.to_owned()),
        ..ShootSpec::default()
    };
    let mut shoot = Shoot::new(name, spec);
    shoot.metadata.uid = Some(format!("uid-of-{name}"));
    shoot.status = Some(ShootStatus {
        seed_name: Some("seed-a".into()),
        ..ShootStatus::default()
    });
    shoot
}

fn at(name: &str, to: &str, type_: Type, state: State) -> Arc<Shoot> {
    let mut shoot = shoot(name, to);
    let status = shoot.status.get_or_insert_default();
    status.migration = Some(MigrationApproval {
        source: "seed-a".into(),
        destination: to.into(),
        ..MigrationApproval::default()
    });
    status.last_operation = Some(LastOperation {
        description: String::new(),
        last_update_time: Time(Timestamp::UNIX_EPOCH),
        progress: 0,
        state,
        type_,
    });
    Arc::new(shoot)
}

fn waiting(name: &str, since: i64) -> Arc<Shoot> {
    let mut shoot = shoot(name, B);
    let since = Time(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(since));
    let constraint = Condition::new(READY_FOR_MIGRATION, ConditionStatus::False, BUSY, "", since);
    shoot.status.get_or_insert_default().constraints.push(constraint);
    Arc::new(shoot)
}

#[test]
fn as_many_as_may_be_begin_and_the_next_one_when_one_has_arrived() {
    let (slots, now, nobody) = (
        MigrationSlots::new(2),
        Timestamp::UNIX_EPOCH,
        Vec::<Arc<Shoot>>::new(),
    );
    let reserve = |name: &str| slots.reserve(&shoot(name, B), B, None, &nobody, now);
    assert_eq!((reserve("one"), reserve("two")), (Ok(()), Ok(())));
    assert_eq!(reserve("three"), Err(NoSlot::Busy(2)));
    assert_eq!(reserve("one"), Ok(()), "it has a place");
    assert_eq!(
        slots.reserve(&shoot("other", "seed-c"), "seed-c", None, &nobody, now),
        Ok(())
    );
    slots.release(&shoot("two", B), now);
    assert_eq!(reserve("three"), Ok(()));
}

/// The API server refuses the approval of a shoot that is too large, at each attempt.
#[test]
fn a_shoot_whose_approval_is_refused_holds_no_slot() {
    let (slots, now, nobody) = (
        MigrationSlots::new(1),
        Timestamp::UNIX_EPOCH,
        Vec::<Arc<Shoot>>::new(),
    );
    let reserve = |name: &str| slots.reserve(&shoot(name, B), B, None, &nobody, now);
    for _ in 0..2 {
        assert_eq!(reserve("large"), Ok(()));
        assert_eq!(reserve("other"), Err(NoSlot::Busy(1)));
        slots.cancel(&shoot("large", B));
    }
    assert_eq!(reserve("other"), Ok(()));
    // A failed write beside the approval takes no slot away, although no cache shows the approval.
    slots.cancel(&at("other", B, Type::Reconcile, State::Succeeded));
    assert_eq!(reserve("large"), Err(NoSlot::Busy(1)));
}

/// Approvals of a former process count, each once.
#[test]
fn who_is_on_its_way_is_counted_once() {
    let mut arrived = Shoot::clone(&at("arrived", B, Type::Restore, State::Succeeded));
    arrived.status.get_or_insert_default().seed_name = Some(B.into());
    let known = [
        at("leaving", B, Type::Migrate, State::Error),
        at("arriving", B, Type::Migrate, State::Succeeded),
        at("restoring", B, Type::Restore, State::Processing),
        at("elsewhere", "seed-c", Type::Migrate, State::Processing),
        Arc::new(arrived),
        at("given-up", B, Type::Restore, State::Failed),
        // The source has not begun. The source also writes the state of the operation before the move.
        at("approved", B, Type::Reconcile, State::Failed),
        Arc::new(shoot("new", B)),
    ];
    let slots = MigrationSlots::new(4);
    assert_eq!(
        slots.reserve(&shoot("new", B), B, None, &known, Timestamp::UNIX_EPOCH),
        Err(NoSlot::Busy(4))
    );
    assert_eq!(
        slots.reserve(&known[0], B, None, &known, Timestamp::UNIX_EPOCH),
        Ok(()),
        "it is one of them"
    );
    let slots = MigrationSlots::new(5);
    assert_eq!(
        slots.reserve(&known[0], B, None, &known, Timestamp::UNIX_EPOCH),
        Ok(())
    );
    assert_eq!(
        slots.reserve(&shoot("new", B), B, None, &known, Timestamp::UNIX_EPOCH),
        Ok(())
    );
    assert_eq!(
        slots.reserve(&shoot("more", B), B, None, &known, Timestamp::UNIX_EPOCH),
        Err(NoSlot::Busy(5))
    );
}

/// A tenant whose shoots never come up does not keep the shoots of other tenants from moving.
#[test]
fn who_does_not_get_on_is_in_nobodys_way() {
    let mut stuck = Shoot::clone(&at("stuck", B, Type::Restore, State::Error));
    stuck.status.get_or_insert_default().retry_cycle_start_time = Some(Time(Timestamp::UNIX_EPOCH));
    let known = [Arc::new(stuck)];
    let after = |time| {
        MigrationSlots::new(1).reserve(&shoot("new", B), B, None, &known, Timestamp::UNIX_EPOCH + time)
    };
    assert_eq!(after(LONGEST), Err(NoSlot::Busy(1)));
    assert_eq!(after(LONGEST * 2), Ok(()));
}

/// The gardenlet of a hostile source writes `retryCycleStartTime` and `lastOperation`, and would keep the
/// slots of a destination for ever.
#[test]
fn a_move_that_its_source_never_ends_frees_its_slot() {
    let mut endless = Shoot::clone(&at("endless", B, Type::Migrate, State::Processing));
    let future = Timestamp::UNIX_EPOCH + LONGEST * 1000;
    endless.status.get_or_insert_default().retry_cycle_start_time = Some(Time(future));
    let known = [Arc::new(endless)];
    let slots = MigrationSlots::new(1);
    let after = |time| slots.reserve(&shoot("new", B), B, None, &known, Timestamp::UNIX_EPOCH + time);
    assert_eq!(after(SignedDuration::ZERO), Err(NoSlot::Busy(1)));
    assert_eq!(after(LONGEST), Err(NoSlot::Busy(1)));
    assert_eq!(after(LONGEST * 2), Ok(()));
}

/// Security: a hostile source begins, reports a reconciliation before the 15 minutes have passed, and gets a
/// new approval of the same generation.
#[test]
fn a_new_approval_of_a_generation_has_the_time_that_is_left() {
    let (slots, start) = (MigrationSlots::new(1), Timestamp::UNIX_EPOCH);
    let after = |minutes| start + SignedDuration::from_mins(minutes);
    let new_one = |known: &[Arc<Shoot>], now| slots.reserve(&shoot("new", B), B, None, known, now);
    let begun = [on_the_way("renewed")];
    for minutes in [0, 14] {
        assert_eq!(new_one(&begun, after(minutes)), Err(NoSlot::Busy(1)));
    }
    slots.release(&at("renewed", B, Type::Reconcile, State::Succeeded), after(14));
    let wants = [Arc::new(shoot("renewed", B))];
    assert_eq!(slots.reserve(&wants[0], B, None, &wants, after(15)), Ok(()));
    assert_eq!(new_one(&begun, after(15)), Err(NoSlot::Busy(1)));
    assert_eq!(new_one(&begun, after(17)), Ok(()), "14 minutes count");
    // A user has edited the Shoot. Only a user changes the generation.
    let mut edited = Shoot::clone(&begun[0]);
    let status = edited.status.get_or_insert_default();
    status.migration.get_or_insert_default().generation = 2;
    assert_eq!(new_one(&[Arc::new(edited)], after(17)), Err(NoSlot::Busy(1)));
}

/// Security: a hostile source does not begin approved moves, and gets a new approval half a minute after each
/// withdrawal.
#[test]
fn a_move_whose_approvals_have_used_up_the_time_comes_last() {
    let (slots, mut now) = (MigrationSlots::new(1), Timestamp::UNIX_EPOCH);
    let approved = at("idle", B, Type::Reconcile, State::Succeeded);
    for _ in 0..6 {
        assert!(!slots.is_withdrawn(&approved, now));
        now += BEGUN_WITHIN + SignedDuration::from_secs(1);
        assert!(slots.is_withdrawn(&approved, now));
        slots.release(&approved, now);
        now += WITHDRAWN_FOR;
    }
    let known = [waiting("idle", 1), waiting("next", 2)];
    let reserve = |shoot: &Shoot, known: &[Arc<Shoot>]| slots.reserve(shoot, B, None, known, now);
    assert_eq!(reserve(&known[0], &known), Err(NoSlot::LeftToOthers(0)));
    assert_eq!(slots.next(&known[0], B, &known, now)[0].name_any(), "next");
    assert_eq!(reserve(&known[1], &known), Ok(()));
    slots.cancel(&known[1]);
    assert_eq!(reserve(&known[0], &known[..1]), Ok(()), "no other shoot waits");
    slots.cancel(&known[0]);
    // The present approval ends soon. Without a slot, a source would collect approvals.
    assert_eq!(reserve(&shoot("new", B), &[approved]), Err(NoSlot::Busy(1)));
    assert_eq!(reserve(&shoot("new", B), &[on_the_way("idle")]), Ok(()));
}

/// Security: a hostile source collects approvals, and hands over all shoots at once.
#[test]
fn an_approval_that_its_source_does_not_begin_is_withdrawn() {
    let (slots, start) = (MigrationSlots::new(1), Timestamp::UNIX_EPOCH);
    let approved = at("collected", B, Type::Reconcile, State::Succeeded);
    let known = [Arc::clone(&approved)];
    let new_one = |time| slots.reserve(&shoot("new", B), B, None, &known, start + time);
    for time in [SignedDuration::ZERO, BEGUN_WITHIN] {
        assert!(!slots.is_withdrawn(&approved, start + time));
        assert_eq!(new_one(time), Err(NoSlot::Busy(1)), "the approved shoot counts");
    }
    let late = BEGUN_WITHIN + SignedDuration::from_secs(1);
    assert!(slots.is_withdrawn(&approved, start + late));
    slots.release(&approved, start + late);
    // Without approval, and with waiting shoots first.
    let without = shoot("collected", B);
    assert!(slots.is_withdrawn(&without, start + late));
    assert!(!slots.is_withdrawn(&without, start + late + WITHDRAWN_FOR));
    // A second approval has its own time.
    assert!(!slots.is_withdrawn(&approved, start + late + WITHDRAWN_FOR));
    let told = not_begun("seed-a", B);
    assert!(
        !told.ready && told.message.contains("within 3 minutes"),
        "{told:?}"
    );
}

#[test]
fn a_move_that_has_begun_keeps_its_approval() {
    let slots = MigrationSlots::new(1);
    for (type_, state) in [
        (Type::Migrate, State::Processing),
        (Type::Migrate, State::Failed),
        (Type::Migrate, State::Succeeded),
        (Type::Restore, State::Processing),
    ] {
        let begun = at("begun", B, type_, state);
        for time in [SignedDuration::ZERO, LONGEST * 2] {
            assert!(
                !slots.is_withdrawn(&begun, Timestamp::UNIX_EPOCH + time),
                "{type_:?} {state:?}"
            );
        }
    }
}

/// Otherwise the shoots of one source keep the shoots of all other sources from moving.
#[test]
fn one_source_gets_half_of_the_slots_while_another_waits() {
    let of_c = at_seed_c(&waiting("of-c", 1));
    let known = [
        at("first", B, Type::Migrate, State::Processing),
        at("second", B, Type::Migrate, State::Processing),
        Arc::clone(&of_c),
    ];
    let reserve = |shoot: &Shoot, known: &[Arc<Shoot>]| {
        MigrationSlots::new(4).reserve(shoot, B, None, known, Timestamp::UNIX_EPOCH)
    };
    assert_eq!(reserve(&shoot("third", B), &known), Err(NoSlot::LeftToOthers(2)));
    assert_eq!(reserve(&of_c, &known), Ok(()));
    assert_eq!(
        reserve(&shoot("third", B), &known[..2]),
        Ok(()),
        "no other source waits"
    );
}

fn at_seed_c(shoot: &Arc<Shoot>) -> Arc<Shoot> {
    let mut shoot = Shoot::clone(shoot);
    shoot.status.get_or_insert_default().seed_name = Some("seed-c".into());
    Arc::new(shoot)
}

fn of_project(project: &str, shoot: &Arc<Shoot>) -> Arc<Shoot> {
    let mut shoot = Shoot::clone(shoot);
    shoot.metadata.namespace = Some(project.to_owned());
    Arc::new(shoot)
}

fn on_the_way(name: &str) -> Arc<Shoot> {
    at(name, B, Type::Migrate, State::Processing)
}

/// Otherwise the shoots of one project, which break after their approval, hold all slots.
#[test]
fn a_project_gets_half_of_the_slots_while_a_different_project_waits() {
    let known = [
        of_project("p", &on_the_way("first")),
        of_project("p", &on_the_way("second")),
        of_project("q", &waiting("of-q", 5)),
    ];
    let next_of_p = of_project("p", &waiting("third", 1));
    let reserve = |at_most: usize, shoot: &Shoot, known: &[Arc<Shoot>]| {
        MigrationSlots::new(at_most).reserve(shoot, B, None, known, Timestamp::UNIX_EPOCH)
    };
    assert_eq!(reserve(4, &next_of_p, &known), Err(NoSlot::LeftToOthers(2)));
    assert_eq!(reserve(4, &known[2], &known), Ok(()));
    assert_eq!(reserve(2, &next_of_p, &known[1..]), Err(NoSlot::LeftToOthers(1)));
    assert_eq!(reserve(2, &known[2], &known[1..]), Ok(()));
    assert_eq!(
        reserve(4, &next_of_p, &known[..2]),
        Ok(()),
        "no other project waits"
    );
    assert_eq!(reserve(1, &next_of_p, &known[2..]), Ok(()), "at least one slot");
    let told = left_to_others("seed-a", B, 2);
    assert!(
        !told.ready && told.message.contains("a different project or source"),
        "{told:?}"
    );
}

/// Both projects have their share, and the source has its share. Without an order of the rules, each shoot
/// would leave the slot to the other shoot.
#[test]
fn a_free_slot_has_a_shoot_that_may_take_the_slot() {
    let reserve = |at_most: usize, shoot: &Shoot, known: &[Arc<Shoot>]| {
        MigrationSlots::new(at_most).reserve(shoot, B, None, known, Timestamp::UNIX_EPOCH)
    };
    let known = [
        of_project("p", &on_the_way("of-p")),
        of_project("q", &on_the_way("of-q")),
        of_project("p", &waiting("next-of-p", 1)),
        of_project("q", &waiting("next-of-q", 2)),
    ];
    assert_eq!(reserve(3, &known[2], &known), Ok(()));
    assert_eq!(reserve(3, &known[3], &known), Ok(()));
}

/// Security: a project with shoots at two sources would get all slots, because a drain of the first source
/// has the share of this source.
#[test]
fn the_share_of_the_project_counts_before_the_share_of_the_source() {
    let known = [
        of_project("p", &on_the_way("broken")),
        of_project("p", &at_seed_c(&waiting("of-c", 1))),
        of_project("q", &waiting("of-q", 2)),
    ];
    let reserve =
        |shoot: &Shoot| MigrationSlots::new(2).reserve(shoot, B, None, &known, Timestamp::UNIX_EPOCH);
    assert_eq!(reserve(&known[1]), Err(NoSlot::LeftToOthers(1)));
    assert_eq!(reserve(&known[2]), Ok(()));
}

/// Security: edits without a pause keep the checks of the shoot at a second source from their end, while the
/// constraint of the shoot stays.
#[test]
fn a_waiting_shoot_that_asks_for_no_slot_holds_up_no_other_source() {
    let (slots, start) = (MigrationSlots::new(2), Timestamp::UNIX_EPOCH);
    let known = [
        of_project("p", &on_the_way("held")),
        of_project("p", &waiting("next", 1)),
        of_project("p", &at_seed_c(&waiting("silent", 2))),
    ];
    let after = |time| slots.reserve(&known[1], B, None, &known, start + time);
    assert_eq!(after(SignedDuration::ZERO), Err(NoSlot::LeftToOthers(1)));
    assert_eq!(after(SignedDuration::from_mins(4)), Ok(()));
}

/// Otherwise the project that has waited with many shoots gets each slot, one after the other.
#[test]
fn projects_take_turns() {
    let (slots, start) = (MigrationSlots::new(1), Timestamp::UNIX_EPOCH);
    let held = of_project("p", &on_the_way("held"));
    let known = [
        of_project("p", &waiting("of-p", 1)),
        of_project("q", &waiting("of-q", 2)),
    ];
    let mut during = known.to_vec();
    during.push(held);
    assert_eq!(
        slots.reserve(&known[1], B, None, &during, start),
        Err(NoSlot::Busy(1))
    );
    // The shoot has arrived.
    let next = slots.next(&during[2], B, &known, start);
    let names: Vec<_> = next.iter().map(|shoot| shoot.name_any()).collect();
    assert_eq!(names, ["of-q"]);
    let soon = start + SignedDuration::from_secs(1);
    let reserve = |shoot: &Shoot, now| slots.reserve(shoot, B, None, &known, now);
    assert_eq!(reserve(&known[0], soon), Err(NoSlot::LeftToOthers(0)));
    assert_eq!(reserve(&known[1], soon), Ok(()));
    assert_eq!(reserve(&known[0], soon), Err(NoSlot::Busy(1)));
    // The approval cannot be written: the turn is over.
    slots.cancel(&known[1]);
    assert_eq!(reserve(&known[0], soon), Ok(()));
}

/// An error in the checks of one move keeps no slot free for ever.
#[test]
fn a_waiting_shoot_that_asks_for_no_slot_holds_up_no_other_project() {
    let (slots, start) = (MigrationSlots::new(2), Timestamp::UNIX_EPOCH);
    let known = [
        of_project("p", &on_the_way("held")),
        of_project("p", &waiting("of-p", 1)),
        of_project("q", &waiting("silent", 2)),
    ];
    let after = |time| slots.reserve(&known[1], B, None, &known, start + time);
    assert_eq!(after(SignedDuration::ZERO), Err(NoSlot::LeftToOthers(1)));
    assert_eq!(after(SignedDuration::from_mins(2)), Err(NoSlot::LeftToOthers(1)));
    assert_eq!(after(SignedDuration::from_mins(4)), Ok(()));
}

#[test]
fn a_place_that_nobody_takes_is_given_to_another() {
    let (slots, now, nobody) = (
        MigrationSlots::new(1),
        Timestamp::UNIX_EPOCH,
        Vec::<Arc<Shoot>>::new(),
    );
    assert_eq!(slots.reserve(&shoot("dead", B), B, None, &nobody, now), Ok(()));
    assert_eq!(
        slots.reserve(&shoot("new", B), B, None, &nobody, now + RESERVED_FOR / 2),
        Err(NoSlot::Busy(1))
    );
    assert_eq!(
        slots.reserve(&shoot("new", B), B, None, &nobody, now + RESERVED_FOR),
        Ok(())
    );
}

#[test]
fn only_a_move_that_would_begin_now_needs_a_place() {
    let verdict = |ready| Verdict {
        ready,
        ..busy("seed-a", B, 2)
    };
    assert!(needs_slot(&shoot("new", B), &verdict(true)));
    assert!(!needs_slot(&shoot("new", B), &verdict(false)));
    let going = [
        (Type::Migrate, State::Processing),
        (Type::Restore, State::Error),
        (Type::Reconcile, State::Succeeded),
    ];
    for (type_, state) in going {
        assert!(!needs_slot(&at("approved", B, type_, state), &verdict(true)));
    }
    let told = busy("seed-a", B, 2);
    assert!(
        !told.ready
            && told
                .message
                .starts_with("2 shoots are on their way to seed seed-b")
    );
    assert_eq!(
        told.codes(),
        [api::meta::ErrorCode::ErrRetryableInfraDependencies]
    );
}

#[test]
fn the_last_room_of_a_seed_is_given_once() {
    let (slots, now) = (MigrationSlots::new(5), Timestamp::UNIX_EPOCH);
    let known = [at("here", B, Type::Reconcile, State::Succeeded)];
    let reserve = |name: &str| slots.reserve(&shoot(name, B), B, Some(2), &known, now);
    assert_eq!(reserve("one"), Ok(()));
    assert_eq!(reserve("one"), Ok(()), "the shoot has the room already");
    assert_eq!(reserve("two"), Err(NoSlot::Full { room: 2, taken: 2 }));
    slots.release(&shoot("one", B), now);
    assert_eq!(reserve("two"), Ok(()));
}
