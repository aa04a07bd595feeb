#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::pending;
use http::{Request, Response};
use kube::{Client, client::Body};
use ownership::{Answer, Checked, OwnershipLoss, Terms};
use permit::{Clock, Issuer, Permit};
use tokio::{
    sync::watch::{self, Sender},
    time::{Instant, sleep},
};
use tower::service_fn;

use super::*;
use crate::OwnerClaim;

const NAMESPACE: &str = "shoot--dev--web";

/// Answers as the test scripts, and counts how many checks begin.
#[derive(Default)]
struct Scripted {
    begun: AtomicUsize,
    /// Number of polls of all checks.
    polled: Arc<AtomicUsize>,
    last: Mutex<Option<Sender<Report>>>,
}

impl Scripted {
    fn say(&self, standing: Standing, answer: Answer) {
        let asked = Clock::default().now();
        let report = Report {
            standing,
            last: Some(Checked {
                asked,
                answer,
                silent: None,
            }),
        };
        let sender = self.last.lock().unwrap();
        sender.as_ref().unwrap().send_replace(report);
    }

    fn unknown(&self) {
        self.say(Standing::Unconfirmed, Answer::Unknown("nobody answers".into()));
    }

    fn owned(&self) -> Issuer {
        let clock = Clock::default();
        let until = clock.now() + Duration::from_secs(12);
        let issuer = Issuer::new("a test", clock, until);
        self.say(Standing::Owner(issuer.permit()), Answer::Owned { at_most: None });
        issuer
    }

    fn lost(&self) {
        let loss = OwnershipLoss::LaterEpoch(9);
        self.say(Standing::Lost(loss.clone()), Answer::Lost(loss));
    }
}

impl CheckSource for Scripted {
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        cluster.map_or(Ok(None), OwnerClaim::from_cluster)
    }

    fn begin(&self, _: &OwnerClaim, _: &Seed, _: &str) -> Result<RunningCheck> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let (sender, reports) = watch::channel(Report {
            standing: Standing::Unconfirmed,
            last: None,
        });
        *self.last.lock().unwrap() = Some(sender);
        let polled = Arc::clone(&self.polled);
        let run = Box::pin(async move {
            loop {
                polled.fetch_add(1, Ordering::SeqCst);
                sleep(Duration::from_secs(4)).await;
            }
        });
        Ok(RunningCheck { reports, run })
    }
}

fn seed() -> Seed {
    let nobody = |_: Request<Body>| pending::<std::io::Result<Response<Body>>>();
    Seed::new(Client::new(service_fn(nobody), "n"), &Permit::sole("a test"))
}

fn wanted(epoch: i64) -> OwnerClaim {
    OwnerClaim {
        shoot_uid: "0841c87f".into(),
        name: "owner.web.dev.internal.example".into(),
        identity: "seed-a".into(),
        zone: "internal.example".into(),
        authorities: Vec::new(),
        epoch,
        terms: Terms::default(),
    }
}

fn checks() -> (Arc<Scripted>, SharedChecks) {
    let script = Arc::<Scripted>::default();
    (Arc::clone(&script), SharedChecks::with_source(script))
}

async fn confirmed(
    checks: &SharedChecks,
    epoch: i64,
    script: impl FnOnce(),
) -> Result<OwnershipRight, OwnershipError> {
    confirmed_claim(checks, wanted(epoch), script).await
}

async fn confirmed_claim(
    checks: &SharedChecks,
    claim: OwnerClaim,
    script: impl FnOnce(),
) -> Result<OwnershipRight, OwnershipError> {
    let seed = seed();
    let confirming = checks.confirm(&seed, NAMESPACE, claim, Patience::FirstAnswer);
    let saying = async {
        sleep(Duration::from_millis(1)).await;
        script();
    };
    tokio::join!(confirming, saying).0
}

fn refused(confirmed: Result<OwnershipRight, OwnershipError>) -> OwnershipError {
    match confirmed {
        Ok(_) => panic!("it was confirmed"),
        Err(refusal) => refusal,
    }
}

/// R17-60: one check for each shoot and epoch, from the first work to the last.
#[tokio::test(start_paused = true)]
async fn all_that_work_for_a_shoot_share_one_check_and_nobody_else_asks() {
    let (script, checks) = checks();
    let mut issued = None;
    let first = confirmed(&checks, 3, || issued = Some(script.owned()))
        .await
        .unwrap();
    let second = confirmed(&checks, 3, || {}).await.unwrap();
    assert_eq!((script.begun.load(Ordering::SeqCst), checks.kept()), (1, 1));
    assert!(first.permit.is_valid() && second.permit.is_valid());

    // The check continues beside the second work after the work that began the check has ended.
    drop(first);
    let before = script.polled.load(Ordering::SeqCst);
    second.beside(sleep(Duration::from_secs(9))).await;
    assert!(script.polled.load(Ordering::SeqCst) >= before + 2);
    assert!(second.ended().is_none());

    drop(second);
    assert_eq!(checks.kept(), 0);
    let third = confirmed(&checks, 3, || issued = Some(script.owned())).await;
    assert_eq!(script.begun.load(Ordering::SeqCst), 2);
    drop(third);
    assert_eq!(checks.kept(), 0);
}

/// R17-49, R17-61: no check begins again in that epoch.
#[tokio::test(start_paused = true)]
async fn what_was_lost_stays_lost_until_a_later_epoch() {
    let (script, checks) = checks();
    let mut issued = None;
    let work = confirmed(&checks, 3, || issued = Some(script.owned()))
        .await
        .unwrap();
    issued.take().unwrap().end("lost");
    script.lost();
    assert!(matches!(work.ended(), Some(OwnershipError::Lost(why)) if why.contains("epoch 9 has begun")));
    drop(work);
    for epoch in [3, 2, 3] {
        let refusal = refused(confirmed(&checks, epoch, || {}).await);
        assert!(
            matches!(&refusal, OwnershipError::Lost(why) if why.contains("epoch 3")),
            "{refusal:?}"
        );
    }
    assert_eq!(script.begun.load(Ordering::SeqCst), 1);
    assert!(checks.is_first_report(NAMESPACE, "Infrastructure one".into()));
    assert!(!checks.is_first_report(NAMESPACE, "Infrastructure one".into()));
    assert!(checks.is_first_report(NAMESPACE, "Worker one".into()));

    let again = confirmed(&checks, 4, || issued = Some(script.owned()))
        .await
        .unwrap();
    assert_eq!((again.epoch(), script.begun.load(Ordering::SeqCst)), (4, 2));
}

/// R17-49: a Cluster from a cache that is behind begins no check beside the check of a later epoch.
#[tokio::test(start_paused = true)]
async fn an_earlier_epoch_does_not_replace_the_check_of_a_later_epoch() {
    let (script, checks) = checks();
    let mut issued = None;
    let work = confirmed(&checks, 6, || issued = Some(script.owned()))
        .await
        .unwrap();
    let refusal = refused(confirmed(&checks, 5, || {}).await);
    assert!(
        matches!(&refusal, OwnershipError::OtherEpoch(why) if why.contains("checks epoch 6")),
        "{refusal:?}"
    );
    let shared = confirmed(&checks, 6, || {}).await.unwrap();
    assert!(work.ended().is_none() && shared.ended().is_none());
    assert_eq!((script.begun.load(Ordering::SeqCst), checks.kept()), (1, 1));
    drop((work, shared));
    assert_eq!(checks.kept(), 0);
}

/// R17-61: a shoot that is deleted and created again has the namespace, the record name and the epoch of the
/// lost shoot.
#[tokio::test(start_paused = true)]
async fn a_shoot_that_is_made_anew_under_its_name_does_not_inherit_a_loss() {
    let (script, checks) = checks();
    let mut issued = None;
    let old = confirmed(&checks, 3, || issued = Some(script.owned()))
        .await
        .unwrap();
    let new = || OwnerClaim {
        shoot_uid: "anew".into(),
        ..wanted(3)
    };
    issued.take().unwrap().end("lost");
    script.lost();
    assert!(matches!(old.ended(), Some(OwnershipError::Lost(_))));
    assert!(checks.is_first_report(NAMESPACE, "Worker one".into()));
    let work = confirmed_claim(&checks, new(), || issued = Some(script.owned()))
        .await
        .unwrap();
    // The last work for the old shoot ends during the work for the new shoot.
    drop(old);
    assert!(work.ended().is_none() && work.permit.is_valid());
    assert!(matches!(
        refused(confirmed(&checks, 3, || {}).await),
        OwnershipError::Lost(_)
    ));

    issued.take().unwrap().end("lost");
    script.lost();
    assert!(matches!(work.ended(), Some(OwnershipError::Lost(_))));
    assert!(
        checks.is_first_report(NAMESPACE, "Worker one".into()),
        "of the new shoot"
    );
    assert!(!checks.is_first_report(NAMESPACE, "Worker one".into()));
    let refusal = refused(confirmed_claim(&checks, new(), || {}).await);
    assert!(matches!(refusal, OwnershipError::Lost(_)));
    assert_eq!(script.begun.load(Ordering::SeqCst), 2);
}

/// The loss counts also where the work ended before the work could notice.
#[tokio::test(start_paused = true)]
async fn a_loss_that_nobody_looked_at_is_remembered() {
    let (script, checks) = checks();
    let mut issued = None;
    let work = confirmed(&checks, 3, || issued = Some(script.owned()))
        .await
        .unwrap();
    script.lost();
    drop(work);
    assert!(matches!(
        refused(confirmed(&checks, 3, || {}).await),
        OwnershipError::Lost(_)
    ));
    assert_eq!(script.begun.load(Ordering::SeqCst), 1);
}

/// R17-47, R17-48.
#[tokio::test(start_paused = true)]
async fn what_is_not_confirmed_may_be_later() {
    let (script, checks) = checks();
    let refusal = refused(confirmed(&checks, 3, || script.unknown()).await);
    let gives_reason = |why: &str| why.contains("nobody answers") && why.contains("epoch 3");
    assert!(
        matches!(&refusal, OwnershipError::Unconfirmed(why) if gives_reason(why)),
        "{refusal:?}"
    );
    assert_eq!(checks.kept(), 0);

    let mut issued = None;
    let work = confirmed(&checks, 3, || issued = Some(script.owned()))
        .await
        .unwrap();
    // No answer extends the right, so the clock ends the right.
    work.beside(sleep(Duration::from_secs(13))).await;
    assert!(matches!(work.ended(), Some(OwnershipError::Unconfirmed(why)) if why.contains("too old")));
}

/// A forced deletion waits through a short outage, but only as long as its patience.
#[tokio::test(start_paused = true)]
async fn who_has_patience_waits_for_a_decision() {
    let (script, checks) = checks();
    let (seed, begin) = (seed(), Instant::now());
    let patient = || {
        checks.confirm(
            &seed,
            NAMESPACE,
            wanted(3),
            Patience::Decision(Duration::from_secs(20)),
        )
    };
    let hiccup = async {
        sleep(Duration::from_secs(1)).await;
        script.unknown();
        sleep(Duration::from_secs(5)).await;
        script.owned()
    };
    let (work, issued) = tokio::join!(patient(), hiccup);
    assert!(work.is_ok());
    assert_eq!(begin.elapsed(), Duration::from_secs(6));
    drop((work, issued));

    let (work, ()) = tokio::join!(patient(), async {
        sleep(Duration::from_secs(1)).await;
        script.unknown();
    });
    assert!(matches!(refused(work), OwnershipError::Unconfirmed(_)));
    assert_eq!(begin.elapsed(), Duration::from_secs(26));
}
