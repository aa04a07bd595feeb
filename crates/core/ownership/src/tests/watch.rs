//! The loop: times of the questions, reports, and the meaning of the loop's end.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{SOA, TXT};
use hickory_proto::rr::{RData, Record};
use permit::Clock;
use tokio::sync::{Notify, watch::Receiver};
use tokio::time::{Instant, sleep, timeout};

use super::claim;
use crate::{
    Answer, Authorities, AuthoritiesError, Flow, NoWitness, OwnershipLoss, Question, Report, SecondWitness,
    ServerResponse, Settings, Standing, Terms, Testimony, Transport, Watch, Wire, Witnesses,
};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Authorities that never answer; records the times of the questions.
#[derive(Clone, Default)]
struct Dead(Arc<Mutex<Vec<(Instant, Transport)>>>);

impl Dead {
    /// Number of checks begun: each check asks once by UDP alone.
    fn asked_from(&self) -> usize {
        let asked = self.0.lock().unwrap();
        let moments: std::collections::BTreeSet<_> = asked.iter().map(|(when, _)| *when).collect();
        moments.len().div_ceil(2)
    }
}

impl Wire for Dead {
    fn connect(&self, _: SocketAddr, transport: Transport) -> BoxFuture<'_, io::Result<Box<dyn Flow>>> {
        self.0.lock().unwrap().push((Instant::now(), transport));
        Box::pin(std::future::pending())
    }
}

/// A second witness with a scripted testimony.
#[derive(Clone)]
struct Told(Arc<Mutex<Testimony>>, Arc<AtomicBool>);

impl Told {
    fn new() -> Self {
        let owned = Testimony::Owned { epoch: 3, left: None };
        Self(Arc::new(Mutex::new(owned)), Arc::default())
    }

    fn set(&self, testimony: Testimony) {
        *self.0.lock().unwrap() = testimony;
    }

    fn pass_sealing(&self) {
        self.1.store(true, Ordering::SeqCst);
    }
}

impl SecondWitness for Told {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        let testimony = self.0.lock().unwrap().clone();
        Box::pin(async move { testimony })
    }

    fn sealing_was_reported(&self, epoch: i64) -> bool {
        epoch == 3 && self.1.load(Ordering::SeqCst)
    }
}

/// An authority with both names; records the flows and questions.
#[derive(Clone)]
struct Zone(Arc<Mutex<Texts>>);

struct Texts {
    epoch: &'static str,
    owner: Option<&'static str>,
    flows: Vec<Vec<String>>,
}

impl Zone {
    fn with(epoch: &'static str, owner: Option<&'static str>) -> Self {
        let flows = Vec::new();
        Self(Arc::new(Mutex::new(Texts { epoch, owner, flows })))
    }

    fn write(&self, epoch: &'static str, owner: Option<&'static str>) {
        let mut texts = self.0.lock().unwrap();
        (texts.epoch, texts.owner) = (epoch, owner);
    }
}

impl Wire for Zone {
    fn connect(&self, _: SocketAddr, _: Transport) -> BoxFuture<'_, io::Result<Box<dyn Flow>>> {
        let number = {
            let flows = &mut self.0.lock().unwrap().flows;
            flows.push(Vec::new());
            flows.len() - 1
        };
        let flow: Box<dyn Flow> = Box::new(ToZone(self.clone(), number));
        Box::pin(async move { Ok(flow) })
    }
}

struct ToZone(Zone, usize);

impl Flow for ToZone {
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<ServerResponse>> {
        let name = question.name().clone();
        let text = {
            let mut texts = self.0.0.lock().unwrap();
            let is_epoch = name.to_ascii().starts_with("epoch.");
            texts.flows[self.1].push(name.to_ascii());
            if is_epoch { Some(texts.epoch) } else { texts.owner }
        };
        let mut answer = Message::response(question.id(), OpCode::Query);
        answer.metadata.authoritative = true;
        if let Some(text) = text {
            let text = RData::TXT(TXT::new(vec![text.to_owned()]));
            answer.add_answer(Record::from_rdata(name, 10, text));
        } else {
            answer.metadata.response_code = ResponseCode::NXDomain;
            let zone = super::name("internal.example");
            let soa = SOA::new(zone.clone(), zone.clone(), 1, 60, 60, 600, 5);
            answer.add_authority(Record::from_rdata(zone, 5, RData::SOA(soa)));
        }
        Box::pin(async move { Ok(ServerResponse::Answer(Box::new(answer))) })
    }
}

fn authorities(zone: &str) -> Arc<Authorities> {
    Arc::new(Authorities::named(zone, [SocketAddr::from(([192, 0, 2, 1], 53))]).unwrap())
}

fn watch(wire: &(impl Wire + Clone + 'static), second: impl SecondWitness + 'static) -> Watch {
    watch_by(wire, second, Settings::default())
}

fn watch_by(
    wire: &(impl Wire + Clone + 'static),
    second: impl SecondWitness + 'static,
    settings: Settings,
) -> Watch {
    let witnesses = Witnesses {
        authorities: authorities("internal.example"),
        wire: Arc::new(wire.clone()),
        second: Arc::new(second),
    };
    let terms = Terms::new(settings).unwrap();
    Watch::new(claim(), terms, witnesses, Clock::default()).unwrap()
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
            // The next check begins an interval after the start of this check.
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
        // The question of the last answer left two seconds after the start, and no further answer arrives.
        told.set(Testimony::Missing);
        sleep(Duration::from_millis(10_990)).await;
        assert!(is_owner(&reports));
        sleep(Duration::from_millis(20)).await;
        // Reported at the moment of expiry, not with the next check.
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
        assert_eq!(checked.answer, Answer::Lost(OwnershipLoss::Sealed));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        lost = watch.run() => assert_eq!(lost, OwnershipLoss::Sealed),
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

/// Effects without a caller are finished while the right is valid.
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

/// A planned move waits until the source's etcd notices the deleted record, while the shoot's API is down.
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

/// The first report that `wanted` accepts.
async fn reported(reports: &mut Receiver<Report>, wanted: impl FnMut(&Report) -> bool) -> Report {
    reports.wait_for(wanted).await.unwrap().clone()
}

/// The bucket's Owned extends the permit for as long as the record is missing.
#[tokio::test(start_paused = true)]
async fn a_deleted_identity_takes_nothing_from_a_shoot_whose_bucket_says_owned() {
    let (zone, told) = (Zone::with("3", Some("seed-a")), Told::new());
    let watch = watch(&zone, told.clone());
    let reports = watch.reports();
    let story = async {
        sleep(s(3)).await;
        zone.write("3", None);
        for _ in 0..120 {
            sleep(s(1)).await;
            assert!(is_owner(&reports));
        }
        zone.write("3", Some("seed-a"));
        told.set(Testimony::Silent("cut off".to_owned()));
        sleep(s(60)).await;
        assert!(is_owner(&reports), "the record that is written back is enough");
        zone.write("3", None);
        sleep(s(20)).await;
        assert!(!is_owner(&reports), "neither witness confirms the seed");
    };
    tokio::select! {
        lost = watch.run() => panic!("{lost:?}"),
        () = story => {}
    }
}

/// R17-50: no answer of the bucket is needed, and a silent record alone seals no epoch.
#[tokio::test(start_paused = true)]
async fn a_deleted_identity_ends_an_epoch_that_has_passed_sealing() {
    let (zone, told) = (Zone::with("3", Some("seed-a")), Told::new());
    let watch = watch(&zone, told.clone());
    let reports = watch.reports();
    let story = async {
        told.pass_sealing();
        sleep(s(30)).await;
        assert!(is_owner(&reports), "the record is there");
        told.set(Testimony::Silent("cut off".to_owned()));
        zone.write("3", None);
        sleep(s(5)).await;
        panic!("it is not lost");
    };
    tokio::select! {
        lost = watch.run() => assert_eq!(lost, OwnershipLoss::Deleted),
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn phase_sealing_seals_nothing_beside_a_silent_record() {
    let told = Told::new();
    told.pass_sealing();
    let watch = watch(&Dead::default(), told);
    let reports = watch.reports();
    let story = async {
        sleep(s(60)).await;
        assert!(is_owner(&reports));
    };
    tokio::select! {
        lost = watch.run() => panic!("{lost:?}"),
        () = story => {}
    }
}

/// A replica shows the new epoch beside the former owner for a moment.
#[tokio::test(start_paused = true)]
async fn a_replica_in_the_middle_of_an_update_does_not_take_what_was_just_won() {
    let (zone, told) = (Zone::with("2", Some("seed-b")), Told::new());
    told.set(Testimony::Missing);
    let watch = watch(&zone, told);
    let mut reports = watch.reports();
    let story = async {
        sleep(s(30)).await;
        zone.write("3", Some("seed-b"));
        let unknown = |report: &Report| {
            let answer = report.last.as_ref().map(|checked| &checked.answer);
            matches!(answer, Some(Answer::Unknown(why)) if why.contains("names seed-b"))
        };
        reported(&mut reports, unknown).await;
        zone.write("3", Some("seed-a"));
        let owner = |report: &Report| matches!(report.standing, Standing::Owner(_));
        reported(&mut reports, owner).await;
        // P has passed long ago.
        sleep(s(10)).await;
        zone.write("3", Some("seed-b"));
        sleep(s(5)).await;
        panic!("it is not lost");
    };
    tokio::select! {
        lost = watch.run() => assert_eq!(lost, OwnershipLoss::AnotherIdentity("seed-b".to_owned())),
        () = story => {}
    }
}

/// A cache shows the former owner for as long as `dnsCacheTTL` beside an authority that has the new epoch.
#[tokio::test(start_paused = true)]
async fn a_cache_that_is_behind_does_not_take_what_was_just_won() {
    let (zone, told) = (Zone::with("3", Some("seed-b")), Told::new());
    told.set(Testimony::Missing);
    let caches = Settings {
        dns_cache_ttl: s(30),
        fence: s(60),
        ..Settings::default()
    };
    let watch = watch_by(&zone, told, caches);
    let mut reports = watch.reports();
    let confirmed = std::cell::Cell::new(false);
    let story = async {
        sleep(s(25)).await;
        assert!(!is_owner(&reports));
        zone.write("3", Some("seed-a"));
        let owner = |report: &Report| matches!(report.standing, Standing::Owner(_));
        reported(&mut reports, owner).await;
        confirmed.set(true);
        // P and the TTL have passed.
        sleep(s(20)).await;
        zone.write("3", Some("seed-b"));
        sleep(s(5)).await;
        panic!("it is not lost");
    };
    tokio::select! {
        lost = watch.run() => {
            assert!(confirmed.get(), "{lost:?} by what a cache has kept");
            assert_eq!(lost, OwnershipLoss::AnotherIdentity("seed-b".to_owned()));
        }
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn both_names_are_asked_for_in_one_flow_the_epoch_first() {
    let zone = Zone::with("3", Some("seed-a"));
    let _ = timeout(s(3), watch(&zone, Told::new()).run()).await;
    let flows = zone.0.lock().unwrap().flows.clone();
    let owner = "owner.demo.dev.internal.example.";
    assert_eq!(flows, [[format!("epoch.{owner}"), owner.to_owned()]]);
}
