//! The consequence of answers, on paused time (R17-47..49).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use permit::{Clock, Permit};
use tokio::time::{advance, timeout};

use crate::tracker::{Checked, OwnershipTracker};
use crate::{Answer, OwnershipLoss, Settings, Silence, Standing, Terms};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const OWNED: Answer = Answer::Owned { at_most: None };

fn unknown() -> Answer {
    Answer::Unknown("nobody answers".to_owned())
}

fn lost() -> Answer {
    Answer::Lost(OwnershipLoss::LaterEpoch(4))
}

struct Scene {
    clock: Clock,
    tracker: OwnershipTracker,
}

impl Scene {
    fn new(silence: Silence) -> Self {
        Self::by(Clock::default(), silence)
    }

    fn by(clock: Clock, silence: Silence) -> Self {
        let terms = Terms::new(Settings {
            silence,
            ..Settings::default()
        })
        .unwrap();
        Self {
            tracker: OwnershipTracker::new("ownership of demo".to_owned(), clock.clone(), terms),
            clock,
        }
    }

    /// An answer to a question that is asked now, received after `later`.
    async fn hear(&mut self, answer: Answer, later: Duration) -> bool {
        let asked = self.clock.now();
        advance(later).await;
        self.tracker.apply_answer(&Checked {
            asked,
            answer,
            silent: None,
        })
    }

    fn permit(&self) -> Permit {
        match self.tracker.standing() {
            Standing::Owner(permit) => permit,
            other => panic!("{other:?}"),
        }
    }

    fn is_unconfirmed(&self) -> bool {
        matches!(self.tracker.standing(), Standing::Unconfirmed)
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_no_right_before_the_first_owned() {
    let mut scene = Scene::new(Silence::Deactivate);
    assert!(scene.is_unconfirmed());
    assert!(!scene.hear(unknown(), s(1)).await);
    assert!(scene.is_unconfirmed());
}

#[tokio::test(start_paused = true)]
async fn owned_is_good_from_when_it_was_asked_for() {
    let mut scene = Scene::new(Silence::Deactivate);
    assert!(scene.hear(OWNED, s(3)).await);
    let permit = scene.permit();
    advance(Duration::from_millis(8999)).await;
    assert!(permit.is_valid());
    advance(Duration::from_millis(1)).await;
    assert!(!permit.is_valid());
}

#[tokio::test(start_paused = true)]
async fn owned_extends_the_same_permit_and_unknown_does_not() {
    let mut scene = Scene::new(Silence::Deactivate);
    scene.hear(OWNED, s(0)).await;
    let permit = scene.permit();
    for _ in 0..100 {
        advance(s(4)).await;
        assert!(!scene.hear(OWNED, s(1)).await);
    }
    assert!(permit.is_valid());
    assert!(!scene.hear(unknown(), s(3)).await);
    assert!(permit.is_valid());
    advance(s(7)).await;
    assert!(permit.is_valid());
    assert!(!scene.hear(unknown(), Duration::from_millis(999)).await);
    assert!(permit.is_valid());
    advance(Duration::from_millis(1)).await;
    assert!(!permit.is_valid());
}

/// R17-47, R17-48.
#[tokio::test(start_paused = true)]
async fn what_has_run_out_is_not_revived_and_owned_brings_a_new_one() {
    let mut scene = Scene::new(Silence::Deactivate);
    scene.hear(OWNED, s(0)).await;
    let former = scene.permit();
    advance(s(12)).await;
    assert!(scene.tracker.expire());
    assert!(scene.is_unconfirmed());
    assert!(scene.hear(OWNED, s(1)).await);
    assert!(scene.permit().is_valid());
    assert!(!former.is_valid());
    assert_eq!(
        former.check().unwrap_err().why,
        "ownership was not confirmed in time"
    );
}

#[tokio::test(start_paused = true)]
async fn an_owned_that_comes_after_its_own_time_gives_nothing() {
    let mut scene = Scene::new(Silence::Deactivate);
    assert!(!scene.hear(OWNED, s(12)).await);
    assert!(scene.is_unconfirmed());
    // Also where a permit has expired meanwhile.
    scene.hear(OWNED, s(0)).await;
    let permit = scene.permit();
    assert!(scene.hear(OWNED, s(3600)).await);
    assert!(scene.is_unconfirmed() && !permit.is_valid());
}

#[tokio::test(start_paused = true)]
async fn an_owned_that_meets_the_end_of_a_permit_brings_a_new_one() {
    let mut scene = Scene::new(Silence::Deactivate);
    scene.hear(OWNED, s(0)).await;
    let former = scene.permit();
    advance(s(10)).await;
    assert!(scene.hear(OWNED, s(3)).await);
    assert!(scene.permit().is_valid() && !former.is_valid());
}

/// R17-49.
#[tokio::test(start_paused = true)]
async fn lost_ends_it_at_once_and_for_ever() {
    let mut scene = Scene::new(Silence::Deactivate);
    scene.hear(OWNED, s(0)).await;
    let permit = scene.permit();
    assert!(scene.hear(lost(), s(1)).await);
    assert_eq!(permit.check().unwrap_err().why, "epoch 4 has begun");
    for answer in [OWNED, unknown(), lost()] {
        assert!(!scene.hear(answer, s(0)).await);
        assert!(matches!(
            scene.tracker.standing(),
            Standing::Lost(OwnershipLoss::LaterEpoch(4))
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn lost_after_the_time_was_over_is_lost() {
    let mut scene = Scene::new(Silence::Deactivate);
    scene.hear(OWNED, s(0)).await;
    assert!(scene.hear(lost(), s(100)).await);
    assert!(matches!(scene.tracker.standing(), Standing::Lost(_)));
}

#[tokio::test(start_paused = true)]
async fn what_is_passed_on_is_good_for_as_long_as_it_is_there_and_takes_nothing_back() {
    let relayed = |seconds| Answer::Owned {
        at_most: Some(s(seconds)),
    };
    let mut scene = Scene::new(Silence::Deactivate);
    scene.hear(relayed(5), s(1)).await;
    let permit = scene.permit();
    advance(s(3)).await;
    assert!(permit.is_valid());
    scene.hear(relayed(100), s(0)).await;
    advance(s(2)).await;
    assert!(permit.is_valid());
    // Less than the validity of the earlier answer.
    scene.hear(relayed(1), s(0)).await;
    advance(s(9)).await;
    assert!(permit.is_valid());
    advance(s(1)).await;
    assert!(!permit.is_valid());
    assert!(scene.hear(relayed(0), s(0)).await);
    assert!(scene.is_unconfirmed());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_suspended_wakes_without_its_right() {
    let suspended = Arc::new(AtomicU64::new(0));
    let clock = {
        let suspended = Arc::clone(&suspended);
        Clock::with_suspension(move || s(suspended.load(Ordering::SeqCst)))
    };
    let mut scene = Scene::by(clock, Silence::Deactivate);
    scene.hear(OWNED, s(0)).await;
    let permit = scene.permit();
    suspended.store(11, Ordering::SeqCst);
    assert!(permit.is_valid());
    suspended.store(3600, Ordering::SeqCst);
    assert!(!permit.is_valid());
    // A late answer from before the expiry does not help.
    assert!(scene.hear(unknown(), s(0)).await);
    assert!(scene.is_unconfirmed());
}

#[tokio::test(start_paused = true)]
async fn who_tolerates_silence_serves_until_it_is_lost() {
    let mut scene = Scene::new(Silence::Tolerate);
    scene.hear(unknown(), s(0)).await;
    assert!(scene.is_unconfirmed());
    scene.hear(OWNED, s(0)).await;
    let permit = scene.permit();
    advance(s(30 * 24 * 3600)).await;
    assert!(!scene.hear(unknown(), s(3)).await);
    assert!(permit.is_valid());
    assert!(scene.hear(lost(), s(0)).await);
    assert!(!permit.is_valid());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_permit_is_noticed_when_it_comes() {
    let mut scene = Scene::new(Silence::Deactivate);
    assert!(timeout(s(100), scene.tracker.wait_for_expiry()).await.is_err());
    scene.hear(OWNED, s(0)).await;
    assert!(timeout(s(11), scene.tracker.wait_for_expiry()).await.is_err());
    assert!(timeout(s(2), scene.tracker.wait_for_expiry()).await.is_ok());
}
