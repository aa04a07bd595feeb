//! The loop: when it asks, what it tells, and what its end means.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use permit::Clock;
use tokio::sync::{Notify, watch::Receiver};
use tokio::time::{Instant, sleep, timeout};

use super::claim;
use crate::{
    Answer, Authorities, AuthoritiesError, Heard, Loss, NoWitness, Question, Report, SecondWitness, Settings,
    Standing, Terms, Testimony, Transport, Watch, Wire, Witnesses,
};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Authorities that never answer, and when they were asked.
#[derive(Clone, Default)]
struct Dead(Arc<Mutex<Vec<(Instant, Transport)>>>);

impl Dead {
    /// Checks that were begun: each asks once by UDP alone.
    fn asked_from(&self) -> usize {
        let asked = self.0.lock().unwrap();
        let moments: std::collections::BTreeSet<_> = asked.iter().map(|(when, _)| *when).collect();
        moments.len().div_ceil(2)
    }
}

impl Wire for Dead {
    fn ask<'a>(
        &'a self,
        _: SocketAddr,
        transport: Transport,
        _: &'a Question,
    ) -> BoxFuture<'a, io::Result<Heard>> {
        self.0.lock().unwrap().push((Instant::now(), transport));
        Box::pin(std::future::pending())
    }
}

/// A second witness that says what it is told to say.
#[derive(Clone)]
struct Told(Arc<Mutex<Testimony>>);

impl Told {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Testimony::Owned { epoch: 3, left: None })))
    }

    fn set(&self, testimony: Testimony) {
        *self.0.lock().unwrap() = testimony;
    }
}

impl SecondWitness for Told {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        let testimony = self.0.lock().unwrap().clone();
        Box::pin(async move { testimony })
    }
}

fn authorities(zone: &str) -> Arc<Authorities> {
    Arc::new(Authorities::named(zone, [SocketAddr::from(([192, 0, 2, 1], 53))]).unwrap())
}

fn watch(wire: &Dead, second: impl SecondWitness + 'static) -> Watch {
    let witnesses = Witnesses {
        authorities: authorities("internal.example"),
        wire: Arc::new(wire.clone()),
        second: Arc::new(second),
    };
    Watch::new(claim(), Terms::default(), witnesses, Clock::default()).unwrap()
}

fn is_owner(reports: &Receiver<Report>) -> bool {
    matches!(&reports.borrow().standing, Standing::Owner(permit) if permit.is_valid())
}

#[tokio::test(start_paused = true)]
async fn a_record_outside_of_the_zone_is_refused_at_once() {
    let witnesses = Witnesses {
        authorities: authorities("other.example"),
        wire: Arc::new(Dead::default()),
        second: Arc::new(NoWitness),
    };
    let refused = Watch::new(claim(), Terms::default(), witnesses, Clock::default());
    assert!(matches!(refused, Err(AuthoritiesError::OutsideZone { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_authority_is_asked_twice_and_the_second_time_both_ways() {
    let wire = Dead::default();
    let _ = timeout(s(7), watch(&wire, NoWitness).run()).await;
    let asked = wire.0.lock().unwrap().clone();
    let start = asked[0].0;
    let told: Vec<(u64, Transport)> = asked
        .iter()
        .map(|(at, transport)| ((*at - start).as_secs(), *transport))
        .collect();
    assert_eq!(
        told,
        [
            (0, Transport::Udp),
            (1, Transport::Udp),
            (1, Transport::Tcp),
            // The next check begins an interval after this one began.
            (4, Transport::Udp),
            (5, Transport::Udp),
            (5, Transport::Tcp),
        ]
    );
}

/// Ten minutes without DNS (decision 19).
#[tokio::test(start_paused = true)]
async fn one_witness_is_enough_for_as_long_as_it_takes() {
    let watch = watch(&Dead::default(), Told::new());
    let reports = watch.reports();
    let looks = async {
        sleep(s(3)).await;
        for _ in 0..600 {
            assert!(is_owner(&reports));
            sleep(s(1)).await;
        }
    };
    tokio::select! {
        lost = watch.run() => panic!("{lost:?}"),
        () = looks => {}
    }
}

/// R17-47, R17-48, R17-49.
#[tokio::test(start_paused = true)]
async fn silence_of_both_ends_it_in_time_and_each_word_counts_afterwards() {
    let told = Told::new();
    let watch = watch(&Dead::default(), told.clone());
    let mut reports = watch.reports();
    let story = async {
        sleep(s(3)).await;
        assert!(is_owner(&reports));
        // The answer was asked for two seconds after the start, and no other one comes.
        told.set(Testimony::Missing);
        sleep(Duration::from_millis(10_990)).await;
        assert!(is_owner(&reports));
        sleep(Duration::from_millis(20)).await;
        // Told as soon as it is so, not with the next check.
        assert!(matches!(reports.borrow().standing, Standing::Unconfirmed));
        told.set(Testimony::Owned { epoch: 3, left: None });
        reports
            .wait_for(|report| matches!(report.standing, Standing::Owner(_)))
            .await
            .unwrap();
        assert!(is_owner(&reports));
        told.set(Testimony::Sealed { epoch: 3 });
        let end = reports
            .wait_for(|report| matches!(report.standing, Standing::Lost(_)))
            .await;
        let checked = end.unwrap().last.clone().unwrap();
        assert_eq!(checked.answer, Answer::Lost(Loss::Sealed));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        lost = watch.run() => assert_eq!(lost, Loss::Sealed),
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_witness_that_hangs_is_not_waited_for() {
    struct Hangs;
    impl SecondWitness for Hangs {
        fn ask(&self) -> BoxFuture<'_, Testimony> {
            Box::pin(std::future::pending())
        }
    }
    let watch = watch(&Dead::default(), Hangs);
    let mut reports = watch.reports();
    let first = async {
        let start = Instant::now();
        reports.wait_for(|report| report.last.is_some()).await.unwrap();
        assert_eq!(start.elapsed(), Settings::default().check_takes());
    };
    tokio::select! {
        lost = watch.run() => panic!("{lost:?}"),
        () = first => {}
    }
    let last = reports.borrow().last.clone().unwrap();
    assert!(matches!(last.answer, Answer::Unknown(_)), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn the_permit_ends_with_the_watch() {
    let watch = watch(&Dead::default(), Told::new());
    let reports = watch.reports();
    let mut run = Box::pin(watch.run());
    assert!(timeout(s(5), &mut run).await.is_err());
    let Standing::Owner(permit) = reports.borrow().standing.clone() else {
        panic!("no owner");
    };
    assert!(permit.is_valid());
    drop(run);
    assert!(!permit.is_valid());
}

/// What has left and lost its caller is done while the right is there.
#[tokio::test(start_paused = true)]
async fn effects_without_a_caller_are_finished() {
    let watch = watch(&Dead::default(), Told::new());
    let mut reports = watch.reports();
    let done = Arc::new(Mutex::new(false));
    let story = async {
        let found = reports
            .wait_for(|report| matches!(report.standing, Standing::Owner(_)))
            .await;
        let Standing::Owner(permit) = found.unwrap().standing.clone() else {
            panic!("no owner");
        };
        let told = Arc::clone(&done);
        let mut effect = permit.effect(async move {
            sleep(s(2)).await;
            *told.lock().unwrap() = true;
        });
        assert!((&mut effect).now_or_never().is_none());
        drop(effect);
        sleep(s(3)).await;
    };
    tokio::select! {
        lost = watch.run() => panic!("{lost:?}"),
        () = story => {}
    }
    assert!(*done.lock().unwrap());
}

/// A planned move waits for the source's etcd to notice that the record is gone, while the shoot's API is down.
#[tokio::test(start_paused = true)]
async fn who_expects_a_change_need_not_wait_for_the_interval() {
    let wire = Dead::default();
    let prompt = Arc::new(Notify::new());
    let watch = watch(&wire, Told::new()).prompted_by(Arc::clone(&prompt));
    let begun = Instant::now();
    // Each check of a silent authority takes two seconds.
    let asks = async {
        for _ in 0..300 {
            prompt.notify_one();
            sleep(Duration::from_millis(100)).await;
        }
    };
    let prompted = async {
        sleep(Duration::from_millis(2500)).await;
        let before = wire.asked_from();
        prompt.notify_one();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(
            wire.asked_from(),
            before + 1,
            "at once, as the last one began long ago"
        );
        asks.await;
        let checks = wire.asked_from();
        assert!(checks <= 20, "{checks} checks in {:?}", begun.elapsed());
    };
    tokio::select! {
        lost = watch.run() => panic!("{lost:?}"),
        () = prompted => {}
    }
}
