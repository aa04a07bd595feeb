//! The protocol's pure functions: permitted writers, marks at the witnesses, and the gates.

use std::time::Duration;

use rstest::rstest;

use crate::claim_state::ClaimState;
use crate::{
    Answer, Approval, Chain, ClaimRefusal, Evidence, Mark, Ownership, OwnershipLoss, OwnershipObject, Phase,
    Record, Refused, SealProgress, SealStep, SeedEpoch, Settings, Silence, Step, Terms, Testimony, Wait,
    Writer, forwards, keeps_data, may_act, may_open,
};

const A: Writer<&str> = Writer::Seed("a");
const B: Writer<&str> = Writer::Seed("b");

fn seed_epoch(seed: &'static str, epoch: i64) -> SeedEpoch<&'static str> {
    SeedEpoch { seed, epoch }
}

fn hand_over(final_seen: bool) -> Step<&'static str> {
    Step::HandOver {
        to: "b",
        final_seen,
        drained: true,
    }
}

fn grant(from: SeedEpoch<&'static str>, to: &'static str) -> Step<&'static str> {
    Step::Grant(Approval { from, to })
}

/// The state of the garden after these steps, each taken by the permitted writer.
fn after(steps: &[Step<&'static str>]) -> Ownership<&'static str> {
    steps.iter().fold(Ownership::first("a"), |now, step| {
        let by = match step {
            Step::Grant(_) => Writer::Garden,
            _ => Writer::Seed(now.now.seed),
        };
        let write = now.step(&by, step.clone()).unwrap();
        write.applied_to(&now).unwrap()
    })
}

/// An event in the history of a shoot.
enum HistoryEvent {
    GrantTo(&'static str),
    /// The present owner chooses the data.
    Open,
}

const OPEN: HistoryEvent = HistoryEvent::Open;

fn to(seed: &'static str) -> HistoryEvent {
    HistoryEvent::GrantTo(seed)
}

fn claiming() -> Ownership<&'static str> {
    after(&[grant(seed_epoch("a", 1), "b")])
}

fn handed_over() -> Ownership<&'static str> {
    after(&[Step::Leave, Step::Seal, hand_over(true)])
}

/// The destination dies after the hand-over. The source has the data until the destination opens etcd.
#[test]
fn the_source_gets_a_shoot_back_until_the_destination_opens_the_data() {
    let given = after(&[Step::Leave, Step::Seal, hand_over(true)]);
    assert!(given.may_return_to(&seed_epoch("a", 1)));
    // The claimant has no data, and an epoch that has not ended is no earlier residency.
    assert!(!given.may_return_to(&seed_epoch("b", 2)));
    assert!(!given.may_return_to(&seed_epoch("a", 2)));
    let grant_back = grant(seed_epoch("b", 2), "a");
    let returned = given.step(&Writer::Garden, grant_back).unwrap().becomes;
    assert_eq!(
        (returned.now.clone(), returned.phase),
        (seed_epoch("a", 3), Phase::Claiming)
    );
    // The former destination is fenced like every owner that hands nothing over.
    assert_eq!(returned.source, Some(seed_epoch("a", 1)));
    assert!(!returned.drained);
    let late = returned.step(&B, Step::Open(Chain::Final));
    assert_eq!(late.unwrap_err(), Refused::Writer);
    let opened = given.step(&B, Step::Open(Chain::Final)).unwrap().becomes;
    assert!(!opened.may_return_to(&seed_epoch("a", 1)));
    let held = opened.step(&B, Step::Hold).unwrap().becomes;
    assert!(!held.may_return_to(&seed_epoch("a", 1)));
    assert!(!after(&[Step::Leave]).may_return_to(&seed_epoch("a", 1)));
}

/// The garden's record alone proves which residency has the newest data: `source` is the last epoch that was
/// opened. Each case is a history of grants and openings, the residency with which a seed is left, the epoch
/// of the data that the seed still has, whether the shoot may return, and whether the seed opened nothing.
#[rstest]
#[case::back_once(&[to("b")], seed_epoch("a", 1), Some(1), true, false)]
#[case::back_twice(&[to("b"), to("a"), to("b")], seed_epoch("a", 3), Some(1), true, false)]
#[case::back_thrice(&[to("b"), to("a"), to("b"), to("a"), to("c")], seed_epoch("a", 5), Some(1), true, false)]
#[case::back_then_to_a_third_seed(&[to("b"), to("a"), to("c")], seed_epoch("a", 3), Some(1), true, false)]
#[case::renewed_then_taken_over(&[to("a"), to("b")], seed_epoch("a", 2), Some(1), true, false)]
#[case::back_and_opened(&[to("b"), to("a"), OPEN, to("b")], seed_epoch("a", 3), Some(3), true, false)]
#[case::before_it_was_opened(&[to("b"), to("a"), OPEN, to("b")], seed_epoch("a", 1), None, false, false)]
#[case::the_claimant_has_opened(&[to("b"), OPEN], seed_epoch("a", 1), Some(1), false, false)]
#[case::back_then_opened_elsewhere(&[to("b"), to("a"), to("c"), OPEN], seed_epoch("a", 3), Some(1), false, false)]
#[case::opened_elsewhere(&[to("b"), to("a"), to("c"), OPEN, to("b")], seed_epoch("a", 3), None, false, false)]
#[case::the_present_owner(&[to("b")], seed_epoch("b", 2), None, false, false)]
#[case::a_claimant(&[to("b"), to("a")], seed_epoch("b", 2), None, false, true)]
#[case::a_claimant_of_two(&[to("b"), to("c"), to("a")], seed_epoch("b", 2), None, false, true)]
#[case::a_claimant_whose_successor_opens(&[to("b"), to("a"), OPEN], seed_epoch("b", 2), None, false, true)]
#[case::a_claimant_of_long_ago(&[to("b"), to("c"), OPEN, to("d")], seed_epoch("b", 2), None, false, false)]
fn the_data_go_back_only_to_where_they_were_opened_last(
    #[case] history: &[HistoryEvent],
    #[case] residency: SeedEpoch<&'static str>,
    #[case] data: Option<i64>,
    #[case] returns: bool,
    #[case] opened_nothing: bool,
) {
    let garden = history.iter().fold(Ownership::first("a"), |now, event| {
        let (by, step) = match event {
            HistoryEvent::GrantTo(seed) => (Writer::Garden, grant(now.now.clone(), seed)),
            HistoryEvent::Open => (Writer::Seed(now.now.seed), Step::Open(Chain::Last)),
        };
        now.step(&by, step).unwrap().becomes
    });
    let source = garden.source.clone().unwrap();
    let kept = source.is_kept_in(&residency, garden.now.epoch);
    assert_eq!(kept.then_some(source.epoch), data);
    assert_eq!(garden.may_return_to(&residency), returns);
    assert_eq!(garden.opened_nothing_in(&residency), opened_nothing);
}

/// The choice of the data ends every return: a second seed could otherwise continue from an older history.
#[test]
fn no_seed_gets_a_shoot_back_once_the_data_are_opened() {
    let taken_back = after(&[grant(seed_epoch("a", 1), "b"), grant(seed_epoch("b", 2), "a")]);
    let third = taken_back
        .step(&Writer::Garden, grant(seed_epoch("a", 3), "c"))
        .unwrap();
    assert!(third.becomes.may_return_to(&seed_epoch("a", 3)));
    let opened = third.becomes.step(&Writer::Seed("c"), Step::Open(Chain::Last));
    let opened = opened.unwrap().becomes;
    for epoch in [1, 3] {
        assert!(!opened.may_return_to(&seed_epoch("a", epoch)), "{epoch}");
    }
    // The claim of the earlier epoch wakes up late.
    let late = opened.step(&A, Step::Open(Chain::Last));
    assert_eq!(late.unwrap_err(), Refused::Writer);
}

#[test]
fn a_planned_move_has_its_order() {
    let garden = after(&[Step::Leave, Step::Seal, hand_over(true)]);
    assert_eq!(
        (garden.now.clone(), garden.phase),
        (seed_epoch("b", 2), Phase::Claiming)
    );
    assert_eq!(garden.source, Some(seed_epoch("a", 1)));
    assert!(garden.drained);
    let opened = garden.step(&B, Step::Open(Chain::Final)).unwrap().becomes;
    assert_eq!((opened.phase, opened.chain), (Phase::Opening, Some(Chain::Final)));
    assert_eq!(opened.step(&B, Step::Hold).unwrap().becomes.phase, Phase::Held);
}

#[rstest]
#[case::the_source_grants_itself(claiming(), A, grant(seed_epoch("b", 2), "a"), Refused::Writer)]
#[case::the_source_goes_on(claiming(), A, Step::Leave, Refused::Writer)]
#[case::the_source_holds_for_another(claiming(), A, Step::Hold, Refused::Writer)]
#[case::the_garden_opens(claiming(), Writer::Garden, Step::Open(Chain::Last), Refused::Writer)]
#[case::the_destination_before_its_time(after(&[Step::Leave, Step::Seal]), B, hand_over(true), Refused::Writer)]
#[case::no_final_snapshot(after(&[Step::Leave, Step::Seal]), A, hand_over(false), Refused::NoFinalSnapshot)]
#[case::not_sealed(after(&[Step::Leave]), A, hand_over(true), Refused::Phase)]
#[case::sealed_is_for_ever(after(&[Step::Leave, Step::Seal]), A, Step::CancelLeave, Refused::Phase)]
#[case::held_before_opened(claiming(), B, Step::Hold, Refused::Phase)]
#[case::doubted_without_a_hand_over(claiming(), B, Step::DoubtHandOver, Refused::Phase)]
#[case::doubted_by_the_source(handed_over(), A, Step::DoubtHandOver, Refused::Writer)]
#[case::doubted_too_late(after(&[Step::Leave, Step::Seal, hand_over(true), Step::Open(Chain::Final)]), B, Step::DoubtHandOver, Refused::Phase)]
#[case::opened_twice(after(&[grant(seed_epoch("a", 1), "b"), Step::Open(Chain::Last)]), B, Step::Open(Chain::Final), Refused::Phase)]
#[case::an_approval_is_used_twice(
    claiming(),
    Writer::Garden,
    grant(seed_epoch("a", 1), "b"),
    Refused::Approval
)]
#[case::an_approval_of_a_later_time(
    claiming(),
    Writer::Garden,
    grant(seed_epoch("b", 3), "a"),
    Refused::Approval
)]
fn what_is_no_step(
    #[case] garden: Ownership<&'static str>,
    #[case] by: Writer<&'static str>,
    #[case] step: Step<&'static str>,
    #[case] refused: Refused,
) {
    assert_eq!(garden.step(&by, step), Err(refused));
}

#[test]
fn a_write_that_comes_late_is_refused_also_in_the_same_epoch() {
    let garden = claiming();
    let third = garden
        .step(&Writer::Garden, grant(seed_epoch("b", 2), "c"))
        .unwrap();
    let opened = garden.step(&B, Step::Open(Chain::Last)).unwrap().becomes;
    assert_eq!(
        third.applied_to(&opened),
        None,
        "it takes the data of a, b has opened"
    );
}

#[test]
fn a_third_seed_takes_the_data_of_whoever_opened_last() {
    let died_before = after(&[grant(seed_epoch("a", 1), "b"), grant(seed_epoch("b", 2), "c")]);
    assert_eq!(died_before.source, Some(seed_epoch("a", 1)));
    let died_after = after(&[
        grant(seed_epoch("a", 1), "b"),
        Step::Open(Chain::Last),
        grant(seed_epoch("b", 2), "c"),
    ]);
    assert_eq!(died_after.source, Some(seed_epoch("b", 2)));
    assert_eq!((died_after.chain, died_after.drained), (None, false));
}

#[rstest]
#[case::held(after(&[]), true, Testimony::Owned { epoch: 1, left: None })]
#[case::leaving(after(&[Step::Leave]), false, Testimony::Owned { epoch: 1, left: None })]
#[case::sealing(after(&[Step::Leave, Step::Seal]), false, Testimony::Sealed { epoch: 1 })]
#[case::called_off(after(&[Step::Leave, Step::CancelLeave]), true, Testimony::Owned { epoch: 1, left: None })]
#[case::claiming(claiming(), false, Testimony::Owned { epoch: 2, left: None })]
fn what_the_garden_says(
    #[case] garden: Ownership<&'static str>,
    #[case] deletes: bool,
    #[case] says: Testimony,
) {
    assert_eq!(garden.may_be_deleted_by(&garden.now.seed), deletes);
    assert!(!garden.may_be_deleted_by(&"z"));
    assert_eq!(garden.testimony(&garden.now.seed), says);
    let epoch = garden.now.epoch;
    assert_eq!(garden.testimony(&"z"), Testimony::Claimed { epoch });
}

#[test]
fn the_record_goes_up_only() {
    let first = Record {
        identity: Some("a"),
        epoch: Some(1),
    };
    let second = first.claim("b", 2).unwrap().unwrap();
    assert_eq!(first.claim("a", 1), Ok(None));
    assert_eq!(
        first.claim("b", 1),
        Err(ClaimRefusal::AnotherOwner { identity: "a" })
    );
    assert_eq!(first.leave(&"b", 1), None);
    let left = first.leave(&"a", 1).unwrap();
    assert_eq!((left.becomes.identity, left.becomes.epoch), (None, Some(1)));
    assert_eq!(left.becomes.claim("a", 1), Err(ClaimRefusal::Ended));
    assert_eq!(left.becomes.delete(&"a", 1).unwrap().becomes.epoch, None);
    let now = second.applied_to(&first).unwrap();
    let later = ClaimRefusal::LaterEpoch {
        epoch: 2,
        identity: Some("b"),
    };
    assert_eq!(now.claim("a", 1), Err(later));
    // The source wakes in the middle of an update.
    assert_eq!(left.applied_to(&now), None);
    assert_eq!(now.delete(&"a", 1), None);
    assert_eq!(now.delete(&"c", 3), None);
    assert_eq!(now.delete(&"b", 3).unwrap().becomes.epoch, None);
    let nothing = now.delete(&"b", 2).unwrap().becomes;
    assert_eq!((nothing.identity, nothing.epoch), (None, None));
    assert_eq!(nothing.delete(&"b", 2), None);
    assert!(nothing.claim("a", 1).unwrap().is_some());
    let half = Record {
        identity: Some("a"),
        epoch: None,
    };
    assert_eq!(half.claim("a", 3), Err(ClaimRefusal::NoEpoch { identity: "a" }));
}

#[test]
fn the_object_goes_up_only_and_is_not_created_by_who_seals() {
    let object = |epoch, mark| OwnershipObject { epoch, mark };
    let owned = object(1, Mark::Owned);
    assert_eq!(OwnershipObject::seal(None, 1), None);
    assert_eq!(OwnershipObject::seal(Some(&object(2, Mark::Claimed)), 1), None);
    assert_eq!(OwnershipObject::seal(Some(&object(1, Mark::Claimed)), 1), None);
    assert_eq!(OwnershipObject::seal(Some(&object(1, Mark::Sealed)), 1), None);
    let sealed = OwnershipObject::seal(Some(&owned), 1).unwrap();
    assert_eq!(sealed.becomes, Some(object(1, Mark::Sealed)));
    let claimed = OwnershipObject::claim(Some(&owned), 2).unwrap().becomes;
    assert_eq!(sealed.applied_to(&claimed), None);
    assert_eq!(OwnershipObject::claim(claimed.as_ref(), 2), None);
    assert_eq!(
        OwnershipObject::own(claimed.as_ref(), 2).unwrap().becomes,
        Some(object(2, Mark::Owned))
    );
    // The next owner was faster.
    assert_eq!(OwnershipObject::own(Some(&object(3, Mark::Claimed)), 2), None);
    assert_eq!(OwnershipObject::testimony(None), Testimony::Missing);
}

#[test]
fn the_object_says_whose_end_lies_beside_it() {
    for (mark, origin, expected) in [
        (Mark::Owned, None, Some(3)),
        (Mark::Owned, Some(2), Some(3)),
        (Mark::Sealed, Some(2), Some(3)),
        (Mark::Claimed, Some(2), Some(2)),
        (Mark::Claimed, None, None),
    ] {
        assert_eq!(
            OwnershipObject { epoch: 3, mark }.data_epoch(origin),
            expected,
            "{mark:?}"
        );
    }
}

#[test]
fn a_seal_has_its_order() {
    let mut sealed = SealProgress::default();
    assert_eq!(sealed.next_step(), Some(SealStep::Marker));
    assert!(forwards(sealed, true) && !forwards(sealed, false));
    sealed.marker = true;
    assert!(!forwards(sealed, true));
    assert_eq!(sealed.next_step(), Some(SealStep::Object));
    sealed.object = true;
    assert_eq!(sealed.next_step(), Some(SealStep::FinalSnapshot));
    sealed.final_snapshot = true;
    assert_eq!(sealed.next_step(), None);
}

#[rstest]
#[case::nothing(false, false, None, Err(Wait::Source))]
#[case::before_the_fence(false, false, Some(Chain::Last), Err(Wait::Source))]
#[case::not_copied(false, true, None, Err(Wait::Copy(Chain::Last)))]
#[case::the_fence(false, true, Some(Chain::Last), Ok(Chain::Last))]
#[case::the_final_snapshot(true, false, Some(Chain::Final), Ok(Chain::Final))]
#[case::the_final_snapshot_is_better(true, true, Some(Chain::Last), Err(Wait::Copy(Chain::Final)))]
fn when_etcd_is_opened(
    #[case] final_seen: bool,
    #[case] fence_passed: bool,
    #[case] copied: Option<Chain>,
    #[case] expected: Result<Chain, Wait>,
) {
    let seen = Evidence {
        earlier_pods_gone: true,
        final_seen,
        fence_passed,
        copied,
    };
    let me = seed_epoch("b", 2);
    assert_eq!(may_open(&claiming(), &me, seen), expected);
    assert_eq!(
        may_open(&claiming(), &seed_epoch("a", 1), seen),
        Err(Wait::NotGranted)
    );
    let with_pods = Evidence {
        earlier_pods_gone: false,
        ..seen
    };
    assert_eq!(may_open(&claiming(), &me, with_pods), Err(Wait::EarlierPods));
}

#[test]
fn what_was_chosen_stands() {
    let garden = after(&[grant(seed_epoch("a", 1), "b"), Step::Open(Chain::Last)]);
    let late = Evidence {
        earlier_pods_gone: true,
        final_seen: true,
        fence_passed: false,
        copied: Some(Chain::Last),
    };
    assert_eq!(may_open(&garden, &seed_epoch("b", 2), late), Ok(Chain::Last));
    let source = garden.source.as_ref().map(|source| source.epoch);
    let keeps = |data: i64| keeps_data(garden.now.epoch, source, data);
    assert!(keeps(1) && keeps(2) && !keeps(3));
    assert!(!keeps_data(2, None, 1));
}

#[test]
fn clouds_wait_for_the_source_s_actuators_also_after_the_final_snapshot() {
    let (forced, planned) = (
        grant(seed_epoch("a", 1), "b"),
        [Step::Leave, Step::Seal, hand_over(true)],
    );
    let forced = after(&[forced, Step::Open(Chain::Final)]);
    assert!(!may_act(&forced, &seed_epoch("b", 2), false) && may_act(&forced, &seed_epoch("b", 2), true));
    assert!(!may_act(&forced, &seed_epoch("a", 1), true));
    let [leave, seal, over] = planned;
    let drained = after(&[leave, seal, over, Step::Open(Chain::Final)]);
    assert!(may_act(&drained, &seed_epoch("b", 2), false));
}

/// The record of a doubted hand-over is the record of a takeover: clouds and etcd wait for the fence.
#[test]
fn a_hand_over_that_is_not_confirmed_needs_a_fence() {
    let doubted = handed_over().step(&B, Step::DoubtHandOver).unwrap().becomes;
    assert_eq!(doubted, claiming());
    let evidence = |fence_passed| Evidence {
        earlier_pods_gone: true,
        ..Evidence::after_copy(&doubted, Some(Chain::Final), false, fence_passed)
    };
    let me = seed_epoch("b", 2);
    assert_eq!(may_open(&doubted, &me, evidence(false)), Err(Wait::Source));
    assert_eq!(may_open(&doubted, &me, evidence(true)), Ok(Chain::Final));
    let opened = doubted.step(&B, Step::Open(Chain::Final)).unwrap().becomes;
    assert!(!may_act(&opened, &me, false) && may_act(&opened, &me, true));
}

/// Security: a stolen certificate of the destination records phases that the gardenlet has not reached.
#[test]
fn phases_that_the_seed_has_not_noted_need_a_fence() {
    let opened = after(&[Step::Leave, Step::Seal, hand_over(true), Step::Open(Chain::Last)]);
    let held = opened.step(&B, Step::Hold).unwrap().becomes;
    let leaving = held.step(&B, Step::Leave).unwrap().becomes;
    let sealing = leaving.step(&B, Step::Seal).unwrap().becomes;
    for recorded in [opened, held, leaving] {
        assert_eq!(recorded.as_noted(true), recorded);
        let relied_on = recorded.as_noted(false);
        // The record of a takeover: not drained, and without a chain.
        assert_eq!(relied_on, claiming());
        let evidence = |fence_passed| Evidence {
            earlier_pods_gone: true,
            ..Evidence::after_copy(&relied_on, Some(Chain::Last), false, fence_passed)
        };
        let me = seed_epoch("b", 2);
        assert_eq!(may_open(&relied_on, &me, evidence(false)), Err(Wait::Source));
        assert_eq!(may_open(&relied_on, &me, evidence(true)), Ok(Chain::Last));
        assert!(!may_act(&relied_on, &me, true));
    }
    // An epoch without a claim, and phases in which no seed begins to act.
    for recorded in [Ownership::first("a"), sealing, claiming(), handed_over()] {
        assert_eq!(recorded.as_noted(false), recorded);
    }
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn what_follows_from_answers() {
    let terms = Terms::default();
    let yes = Answer::Owned { at_most: None };
    let relayed = Answer::Owned { at_most: Some(s(3)) };
    let unconfirmed = ClaimState::<Duration>::Unconfirmed;
    let owner = ClaimState::Owner { until: s(112) };
    assert_eq!(
        unconfirmed.clone().apply_answer(s(105), s(100), &yes, &terms),
        owner
    );
    assert_eq!(
        unconfirmed.clone().apply_answer(s(112), s(100), &yes, &terms),
        unconfirmed
    );
    assert_eq!(
        unconfirmed.clone().apply_answer(s(103), s(100), &relayed, &terms),
        unconfirmed
    );
    assert_eq!(
        owner.clone().apply_answer(s(105), s(104), &relayed, &terms),
        owner
    );
    assert_eq!(
        owner
            .clone()
            .apply_answer(s(105), s(104), &Answer::Unknown(String::new()), &terms),
        owner
    );
    assert_eq!(owner.clone().at(s(112)), ClaimState::Unconfirmed);
    let lost = owner.apply_answer(s(105), s(104), &Answer::Lost(OwnershipLoss::Deleted), &terms);
    assert_eq!(lost, ClaimState::Lost(OwnershipLoss::Deleted));
    assert_eq!(lost.clone().apply_answer(s(105), s(104), &yes, &terms), lost);
}

#[test]
fn a_fence_needs_to_have_been_seen_and_to_have_passed() {
    let terms = Terms::default();
    assert!(!terms.fence_has_passed(None, s(1000)));
    assert!(!terms.fence_has_passed(Some(s(100)), s(123)));
    assert!(terms.fence_has_passed(Some(s(100)), s(124)));
    let tolerant = Terms::new(Settings {
        silence: Silence::Tolerate,
        ..Settings::default()
    });
    assert!(!tolerant.unwrap().fence_has_passed(Some(s(100)), s(1_000_000)));
}
