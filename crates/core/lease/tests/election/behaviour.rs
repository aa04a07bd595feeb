//! The effects of a single elector on the Lease and on the work.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::client::ClientBuilder;
use kube::{Api, Client};
use lease::{Elector, Ended, Lock, Lost, Metrics, Timing};
use permit::{NotPermitted, Permit};
use serde_json::json;
use testkit::eventually;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::{LONG, admin, config, elector, free, latecomer, leases, renewed, short, spec, steady};

/// Counts live instances, to detect whether work was dropped.
struct Alive<'a>(&'a AtomicU32);

impl<'a> Alive<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn work_runs_under_the_lease_which_is_given_back() {
    let client = admin().await;
    let metrics = Metrics::default();
    let lock = Lock::new(client.clone(), "default", "given-back", "me");
    // The first renewal must not be before the test's first read of the Lease.
    let elector = Elector::new(lock, Timing::default(), metrics.clone());
    assert!(!metrics.is_active("given-back"));

    let work = async |held: Permit| {
        assert!(held.is_valid());
        assert!(metrics.is_active("given-back"));
        let taken = spec(&client, "given-back").await;
        assert_eq!(taken.holder_identity.as_deref(), Some("me"));
        assert_eq!(taken.lease_duration_seconds, Some(15));
        assert_eq!(taken.lease_transitions, Some(0));
        // On a slow machine the test's read may come after a renewal.
        assert!(taken.acquire_time.is_some() && taken.acquire_time <= taken.renew_time);
        // A renewal changes only the renew time.
        let renewed = eventually("renewed", LONG, async || {
            match spec(&client, "given-back").await {
                now if now.renew_time != taken.renew_time => Ok(now),
                _ => Err("not yet"),
            }
        });
        let renewed = renewed.await.unwrap();
        assert_eq!(renewed.acquire_time, taken.acquire_time);
        assert_eq!(renewed.lease_transitions, Some(0));
        (held, "done")
    };
    let outcome = elector.with_lease(CancellationToken::new(), work).await.unwrap();
    let Ended::Done((held, "done")) = outcome else {
        panic!("it ended otherwise")
    };

    assert!(!held.is_valid(), "proof of holding outlived the lock");
    assert!(!metrics.is_active("given-back"));
    let left = spec(&client, "given-back").await;
    assert_eq!(left.holder_identity.as_deref(), Some(""));
    assert_eq!(left.lease_duration_seconds, Some(1));
    assert_eq!(left.lease_transitions, Some(0));
}

#[tokio::test]
async fn a_released_lock_is_taken_at_once_and_the_hand_over_is_measured_and_told() {
    let client = admin().await;
    free(&client, "handed-over").await;
    // Long durations: a hand-over by a regular read would not be "at once", and a busy machine needs time.
    let [lease, renew, retry] = [120, 100, 60].map(Duration::from_secs);
    let (timing, metrics) = (Timing::new(lease, renew, retry).unwrap(), Metrics::default());
    let (late, second_waits) = latecomer(config("second").await);
    let lock = |client: &Client, who: &str| Lock::new(client.clone(), "default", "handed-over", who);
    let first = Elector::new(lock(&client, "first"), timing, Metrics::default());
    let second = Elector::new(lock(&late, "second"), timing, metrics.clone());

    let (begun, first_works) = oneshot::channel();
    let end_first = CancellationToken::new();
    let first = first.with_lease(end_first.clone(), |_| async {
        begun.send(()).unwrap();
        pending::<()>().await;
    });
    let hand_over = async {
        first_works.await.unwrap();
        // The Event is published beside the work, and not after the end of the work.
        let announced = eventually("the first one is told of", LONG, async || {
            let notes = notes(&client, "handed-over").await?;
            if notes.is_empty() {
                Err("it is not".to_owned())
            } else {
                Ok(())
            }
        });
        announced.await.unwrap();
        let second = second.with_lease(CancellationToken::new(), |_| async {
            assert!(
                end_first.is_cancelled(),
                "it works while the first one holds the lock"
            );
            Instant::now()
        });
        let ending = async {
            second_waits.cancelled().await;
            end_first.cancel();
            Instant::now()
        };
        let (second, ended) = futures::join!(second, ending);
        let Ended::Done(start) = second.unwrap() else {
            panic!("it ended otherwise")
        };
        start - ended
    };
    let (first, took) = futures::join!(first, hand_over);
    assert_eq!(first.unwrap(), Ended::Shutdown);
    println!("hand-over by watch: {took:?}");
    assert!(took < timing.pause(1.0), "{took:?}");
    assert_eq!(spec(&client, "handed-over").await.lease_transitions, Some(2));

    assert!(!metrics.is_active("handed-over"));
    #[cfg(feature = "metrics")]
    assert_hand_over_is_measured(&metrics);

    let told = eventually("all is told", LONG, async || {
        let notes = notes(&client, "handed-over").await?;
        if notes.len() < 3 {
            Err(format!("{notes:?}"))
        } else {
            Ok(notes)
        }
    });
    let told = told.await.unwrap();
    // The second work ended at once; the Event "became leader" may not have been published by then.
    for note in [
        "first became leader",
        "first stopped leading",
        "second stopped leading",
    ] {
        assert!(told.iter().any(|t| t == note), "{told:?}");
    }
}

/// The metrics in the text format of Prometheus.
#[cfg(feature = "metrics")]
fn assert_hand_over_is_measured(metrics: &Metrics) {
    use prometheus_client::{encoding::text::encode, registry::Registry};

    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(text.contains("leader_active{name=\"handed-over\"} 0\n"), "{text}");
    let count = "leader_handover_duration_seconds_count{name=\"handed-over\"} 1\n";
    assert!(text.contains(count), "{text}");
}

/// The notes of the lock's Events, sorted.
async fn notes(client: &Client, lock: &str) -> Result<Vec<String>, String> {
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let all = events.list(&ListParams::default()).await;
    let mut notes: Vec<String> = Vec::new();
    for event in all.map_err(|e| e.to_string())?.items {
        let regarding = event.regarding.unwrap_or_default();
        if regarding.name.as_deref() == Some(lock) {
            assert_eq!(event.reason.as_deref(), Some("LeaderElection"));
            assert_eq!(regarding.kind.as_deref(), Some("Lease"));
            notes.extend(event.note);
        }
    }
    notes.sort();
    Ok(notes)
}

#[tokio::test]
async fn a_lease_that_somebody_else_takes_by_hand_ends_the_work() {
    let client = admin().await;
    let alive = AtomicU32::new(0);
    free(&client, "robbed").await;
    let elector = steady(&client, "robbed", "me");
    let outcome = elector.with_lease(CancellationToken::new(), |_| async {
        let _alive = Alive::new(&alive);
        let robbery = json!({"spec": {"holderIdentity": "robber"}});
        let params = PatchParams::default();
        leases(&client)
            .patch("robbed", &params, &Patch::Merge(robbery))
            .await
            .unwrap();
        pending::<()>().await;
    });
    let lost = testkit::timeout(LONG, outcome).await.unwrap().unwrap_err();
    let expected = Lost::Taken {
        lock: "default/robbed".to_owned(),
        holder: "robber".to_owned(),
    };
    assert_eq!(lost, expected);
    assert_eq!(alive.load(Ordering::SeqCst), 0, "the work was not dropped");
    let kept = spec(&client, "robbed").await.holder_identity;
    assert_eq!(kept.as_deref(), Some("robber"), "what is not ours was released");
}

#[tokio::test]
async fn a_holder_keeps_a_lease_that_others_label_and_their_labels() {
    let client = admin().await;
    free(&client, "labelled").await;
    let elector = steady(&client, "labelled", "me");
    let work = async |held: Permit| {
        let label = json!({"metadata": {"labels": {"team": "blue"}}});
        let params = PatchParams::default();
        leases(&client)
            .patch("labelled", &params, &Patch::Merge(label))
            .await
            .unwrap();
        renewed(&held).await;
        held.is_valid()
    };
    let outcome = elector.with_lease(CancellationToken::new(), work).await.unwrap();
    assert_eq!(outcome, Ended::Done(true));
    let lease = leases(&client).get("labelled").await.unwrap();
    assert_eq!(lease.metadata.labels.unwrap()["team"], "blue");
}

#[tokio::test]
async fn a_deleted_lease_is_made_again_by_its_holder_and_taken_by_nobody() {
    let client = admin().await;
    free(&client, "deleted").await;
    let (late, other_waits) = latecomer(config("late").await);
    let (holder, other) = (
        steady(&client, "deleted", "holder"),
        steady(&late, "deleted", "other"),
    );
    let (begun, works) = oneshot::channel();
    let end = CancellationToken::new();
    let holding = holder.with_lease(CancellationToken::new(), async |held: Permit| {
        begun.send(()).unwrap();
        other_waits.cancelled().await;
        leases(&client)
            .delete("deleted", &DeleteParams::default())
            .await
            .unwrap();
        renewed(&held).await;
        let holder = spec(&client, "deleted").await.holder_identity;
        // Before the release: from then on any candidate may take the lock.
        end.cancel();
        (held.is_valid(), holder)
    });
    let waiting = async {
        works.await.unwrap();
        other
            .with_lease(end.clone(), |_| async {
                panic!("it took the lock of a holder that lived")
            })
            .await
    };
    let (held, other) = futures::join!(holding, waiting);
    assert_eq!(held, Ok(Ended::Done((true, Some("holder".to_owned())))));
    assert_eq!(other, Ok(Ended::<()>::Shutdown));
}

#[tokio::test]
async fn a_prepared_lease_without_a_spec_is_free() {
    let client = admin().await;
    let empty: Lease = serde_json::from_value(json!({"metadata": {"name": "prepared"}})).unwrap();
    leases(&client)
        .create(&kube::api::PostParams::default(), &empty)
        .await
        .unwrap();
    let elector = steady(&client, "prepared", "me");
    let outcome = elector.with_lease(CancellationToken::new(), |_| async {
        spec(&client, "prepared").await.lease_transitions
    });
    assert_eq!(outcome.await.unwrap(), Ended::Done(Some(1)));
}

#[tokio::test]
async fn shutdown_while_waiting_ends_without_work() {
    let client = admin().await;
    let other = json!({"metadata": {"name": "taken"}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600}});
    let other: Lease = serde_json::from_value(other).unwrap();
    leases(&client)
        .create(&kube::api::PostParams::default(), &other)
        .await
        .unwrap();
    let end = CancellationToken::new();
    let elector = elector(&client, "taken", "me");
    let waiting = elector.with_lease(end.clone(), |_| async { panic!("it works without the lock") });
    let ending = async {
        tokio::time::sleep(short().retry_period * 3).await;
        end.cancel();
    };
    let (outcome, ()) = futures::join!(waiting, ending);
    assert!(matches!(outcome, Ok(Ended::Shutdown)));
    assert_eq!(
        spec(&client, "taken").await.holder_identity.as_deref(),
        Some("other")
    );
}

/// Clients as the work should use clients: a request after the end reaches no server.
#[tokio::test]
async fn a_fenced_client_writes_only_while_the_lock_is_held() {
    let client = admin().await;
    let config = config("worker").await;
    free(&client, "fenced").await;
    let elector = steady(&client, "fenced", "me");
    let work = async |held: Permit| {
        let layered = ClientBuilder::try_from(config)
            .unwrap()
            .with_layer(&held.layer())
            .build();
        let fenced = [("layered", layered)];
        let fenced = fenced.map(|(name, client)| (name, Api::<ConfigMap>::namespaced(client, "default")));
        for (name, maps) in &fenced {
            write(maps, &format!("{name}-while-held")).await.unwrap();
        }
        fenced
    };
    let outcome = elector.with_lease(CancellationToken::new(), work).await.unwrap();
    let Ended::Done(fenced) = outcome else {
        panic!("it ended otherwise")
    };
    let all: Api<ConfigMap> = Api::namespaced(client, "default");
    for (name, maps) in fenced {
        let error = write(&maps, &format!("{name}-after")).await.unwrap_err();
        let kube::Error::Service(refused) = &error else {
            panic!("another error: {error:?}")
        };
        assert!(refused.is::<NotPermitted>(), "{error:?}");
        assert!(
            all.get_opt(&format!("{name}-while-held"))
                .await
                .unwrap()
                .is_some()
        );
        assert!(all.get_opt(&format!("{name}-after")).await.unwrap().is_none());
    }
}

async fn write(maps: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    maps.create(&kube::api::PostParams::default(), &map).await
}
