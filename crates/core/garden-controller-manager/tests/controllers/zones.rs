//! Zones that are cut off until a time.

use api::gardencore::Shoot;
use jiff::SignedDuration;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::clock;
use serde_json::json;
use testkit::eventually;

use crate::{
    SOON,
    garden::{Garden, NAMESPACE, allowed, shoot_with_pools},
};

const ISOLATED: &str = "shoot.gardener.cloud/isolated-zone";
const EXPIRES: &str = "shoot.gardener.cloud/isolated-zone-expires";

/// At the time of the annotation, and neither before the time nor without a time.
pub async fn are_taken_back_at_their_time(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let pools =
        json!([{"name": "a", "machine": {"type": "local"}, "minimum": 1, "maximum": 1, "zones": ["a", "b"]}]);
    for name in ["timeless", "long", "short", "back"] {
        allowed(
            garden
                .apply(&shoots, name, shoot_with_pools(name, "local", &pools))
                .await,
        );
    }
    // No past time is admitted, so Shoot short is first and the time is not too near.
    let soon = clock::now() + SignedDuration::from_secs(15);
    let far = clock::now() + SignedDuration::from_hours(9000);
    let soon_text = soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (name, expires) in [
        ("short", Some(soon_text)),
        ("timeless", None),
        ("long", Some(far.to_string())),
        ("back", Some(far.to_string())),
    ] {
        let expires =
            expires.map(|text| text.split('.').next().unwrap().trim_end_matches('Z').to_owned() + "Z");
        let annotations = json!({ISOLATED: "id-a", EXPIRES: expires});
        let body = json!({"metadata": {"annotations": annotations}});
        allowed(garden.patch(&shoots, name, body).await);
    }
    let said = |name: &'static str| {
        let shoots = shoots.clone();
        async move {
            let shoot = shoots.get(name).await.map_err(|error| error.to_string())?;
            let has = |key: &str| shoot.annotations().contains_key(key);
            Ok::<_, String>([has(ISOLATED), has(EXPIRES)])
        }
    };
    // By hand, before its time: the next zone must not inherit that time.
    let by_hand = json!({"metadata": {"annotations": {ISOLATED: null}}});
    allowed(garden.patch(&shoots, "back", by_hand).await);
    for name in ["short", "back"] {
        eventually("its annotations are gone", SOON, || async {
            match said(name).await? {
                [false, false] => Ok(()),
                there => Err(format!("{name}: {there:?}")),
            }
        })
        .await
        .unwrap();
    }
    assert!(
        clock::now() >= soon.round(jiff::Unit::Second).unwrap() - SignedDuration::from_secs(1),
        "it was too early"
    );
    assert_eq!(said("timeless").await.unwrap(), [true, false]);
    assert_eq!(said("long").await.unwrap(), [true, true]);
    let events: Api<Event> = garden.admin(NAMESPACE);
    eventually("it is told", SOON, || async {
        let all = events
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let told = all.iter().any(|event| {
            event.reason.as_deref() == Some("ZoneIsolationExpired")
                && event.regarding.as_ref().and_then(|shoot| shoot.name.as_deref()) == Some("short")
        });
        if told { Ok(()) } else { Err("no Event".to_owned()) }
    })
    .await
    .unwrap();
}
