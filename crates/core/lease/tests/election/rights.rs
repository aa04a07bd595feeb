//! The rights of a candidate, and the behaviour without such a right.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::PostParams;
use kube::config::KubeConfigOptions;
use kube::{Api, Client, Config};
use lease::{Elector, Ended, Lock, Metrics, Timing};
use rstest::rstest;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::{admin, latecomer, plane};

async fn grant(client: &Client, user: &str, rules: serde_json::Value) {
    let role: Role = serde_json::from_value(json!({"metadata": {"name": user}, "rules": rules})).unwrap();
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }))
    .unwrap();
    let all_roles: Api<Role> = Api::namespaced(client.clone(), "default");
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), "default");
    all_roles.create(&PostParams::default(), &role).await.unwrap();
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

/// The smallest role, bound to a single name (RK-30); and the same without `watch`: slower, and within the
/// retry period.
#[rstest]
#[case::with_watch("watcher", json!(["get", "update", "watch"]))]
#[case::without_watch("poller", json!(["get", "update"]))]
#[tokio::test]
async fn a_released_lock_is_taken_within_the_retry_period(
    #[case] user: &str,
    #[case] verbs: serde_json::Value,
) {
    let client = admin().await;
    let rules = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs, "resourceNames": [user]},
    ]);
    grant(&client, user, rules).await;
    let restricted = plane().await.client(user, &[]).await.unwrap();
    let kubeconfig = plane().await.kubeconfig(user, &[]).unwrap();
    let options = KubeConfigOptions::default();
    let restricted_too = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let (late, second_waits) = latecomer(restricted_too);
    let elector = |client: &Client, who: &str, timing: Timing| {
        let lock = Lock::new(client.clone(), "default", user, who);
        Elector::new(lock, timing, Metrics::default())
    };
    // The candidate that creates the Lease waits for the lease duration.
    let making = elector(&restricted, "maker", Timing::default());
    let made = making.with_lease(CancellationToken::new(), |_| async {}).await;
    assert_eq!(made, Ok(Ended::Done(())));
    // Long durations: the delay of a busy machine must be small in comparison.
    let [lease, renew, retry] = [120, 100, 10].map(Duration::from_secs);
    let timing = Timing::new(lease, renew, retry).unwrap();
    let (first, second) = (
        elector(&restricted, "first", timing),
        elector(&late, "second", timing),
    );

    let end = CancellationToken::new();
    let (begun, works) = oneshot::channel();
    let first = first.with_lease(end.clone(), |_| async {
        begun.send(()).unwrap();
        pending::<()>().await;
    });
    let second = async {
        works.await.unwrap();
        let second = second.with_lease(CancellationToken::new(), |_| async { Instant::now() });
        let ending = async {
            second_waits.cancelled().await;
            end.cancel();
            Instant::now()
        };
        let (second, ended) = futures::join!(second, ending);
        let Ended::Done(start) = second.unwrap() else {
            panic!("it ended otherwise")
        };
        start - ended
    };
    let (first, took) = futures::join!(first, second);
    assert_eq!(first.unwrap(), Ended::Shutdown);
    println!("hand-over of a {user}: {took:?}");
    // On a busy machine the requests of the release and of the takeover add to the pause. Far less than the
    // lease duration.
    let requests = Duration::from_secs(50);
    assert!(took <= timing.retry_period + requests, "{took:?}");
}
