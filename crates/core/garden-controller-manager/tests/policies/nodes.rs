//! Worker pools: values that a user cannot set, and values that a user cannot change later. The seed would
//! otherwise carry the load, or the shoot would not survive.

use api::gardencore::Shoot;
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, bounded_profile, refused, shoot_with_pools};

fn pool(name: &str, minimum: i32, maximum: i32) -> Value {
    json!({"name": name, "machine": {"type": "local"}, "minimum": minimum, "maximum": maximum})
}

fn pools(pools: &[Value]) -> Value {
    json!({"spec": {"provider": {"workers": pools}}})
}

/// Without its pools a shoot would lose its network and its DNS, and with them its workload: the choice is
/// made once.
pub async fn a_shoot_has_nodes_or_has_none(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("bare", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let words = "the last worker pool cannot be removed, nor pools be added to a shoot that was made without";
    refused(
        garden.patch(&shoots, "bare", pools(&[pool("a", 1, 1)])).await,
        words,
    );
    let made = shoot_with_pools("peopled", "local", &json!([pool("a", 1, 2), pool("b", 1, 2)]));
    allowed(garden.apply(&shoots, "peopled", made).await);
    let patch = |pools| garden.patch(&shoots, "peopled", pools);
    for none in [json!([]), Value::Null] {
        refused(
            patch(json!({"spec": {"provider": {"workers": none}}})).await,
            words,
        );
    }
    allowed(patch(pools(&[pool("b", 0, 0)])).await);
    allowed(patch(pools(&[pool("b", 0, 0), pool("c", 1, 2)])).await);
}

/// Settings that nodes can run: a value that would only replace all machines, and a kubelet that is newer
/// than its API server, are refused.
pub async fn pools_have_what_nodes_can_run(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let make = |over: Value| {
        let mut pool = pool("a", 1, 1);
        for (field, value) in over.as_object().into_iter().flatten() {
            pool[field] = value.clone();
        }
        garden.apply(
            &shoots,
            "equipped",
            shoot_with_pools("equipped", "local", &json!([pool])),
        )
    };
    refused(
        make(json!({"cri": {"name": "docker"}})).await,
        "no other name has an effect",
    );
    allowed(make(json!({"cri": {"name": "containerd"}})).await);
    let kubernetes = |version: &str| json!({"kubernetes": {"version": version}});
    for version in ["1.35.0", "v1.35", "2.0.0", "1.35+local"] {
        refused(
            make(kubernetes(version)).await,
            "must not be of a newer minor version than",
        );
    }
    refused(make(kubernetes("newest")).await, "should match");
    for version in ["1.34.9", "v1.34", "1.33.2", "1.34-rc.1"] {
        allowed(make(kubernetes(version)).await);
    }
}

/// Each machine needs several objects in the seed's own etcd, which all tenants share.
pub async fn pools_have_bounds(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.bring(&bounded_profile(10)).await.unwrap();
    // The policy knows CloudProfiles from a cache that follows later.
    crate::garden::until_refused("the 10 nodes that CloudProfile bounded allows", || {
        let pools = json!([pool("a", 1, 11)]);
        crate::garden::try_apply(&shoots, "bounded", shoot_with_pools("bounded", "bounded", &pools))
    })
    .await;
    let make = |profile, all: &[Value]| {
        garden.apply(
            &shoots,
            "bounded",
            shoot_with_pools("bounded", profile, &json!(all)),
        )
    };
    refused(
        make("local", &[pool("a", 0, 100_000)]).await,
        "should be less than or equal to 5000",
    );
    refused(
        make("local", &[pool("a", 3, 2)]).await,
        "minimum must not be greater than maximum",
    );
    refused(
        make("local", &[pool("a", 0, 5000), pool("b", 0, 1)]).await,
        "maximum of all worker pools together must be 5000 at most",
    );
    refused(
        make("bounded", &[pool("a", 1, 10), pool("b", 1, 11)]).await,
        "maximum of worker pools b is greater than the 10 nodes that CloudProfile bounded allows",
    );
    refused(
        make("bounded", &[pool("a", 6, 10), pool("b", 5, 10)]).await,
        "the worker pools have at least 11 nodes together, and CloudProfile bounded allows 10",
    );
    allowed(make("bounded", &[pool("a", 5, 10), pool("b", 5, 10)]).await);
    // A bound that is added later does not block any other edit.
    garden.bring(&bounded_profile(4)).await.unwrap();
    let words = "allows for a shoot";
    crate::garden::until_refused(words, || {
        crate::garden::try_patch(&shoots, "bounded", &pools(&[pool("a", 5, 9)]))
    })
    .await;
    refused(
        garden.patch(&shoots, "bounded", pools(&[pool("a", 5, 9)])).await,
        words,
    );
    let other = json!({"spec": {"kubernetes": {"version": "1.34.5"}}});
    allowed(garden.patch(&shoots, "bounded", other).await);
    allowed(garden.patch(&shoots, "bounded", pools(&[pool("a", 4, 4)])).await);
}
