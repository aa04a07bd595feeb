//! Shoots that sleep at night.

use api::gardencore::Shoot;
use kube::Api;
use runtime::clock;
use serde_json::json;
use testkit::eventually;

use crate::{
    SOON,
    garden::{Garden, NAMESPACE, allowed},
};

/// A time that came while the controller was not running takes effect once; a later edit of a user has
/// precedence.
pub async fn are_kept_and_nobody_else_is_put_to_sleep(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    for name in ["nightly", "wakeful"] {
        garden
            .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
            .await;
    }
    let an_hour_ago = clock::now() - jiff::SignedDuration::from_hours(1);
    let triggered = json!({"lastHibernationTriggerTime": an_hour_ago.to_string()});
    garden.status(&shoots, "nightly", triggered.clone()).await;
    garden.status(&shoots, "wakeful", triggered).await;
    // A minute of this hour that is over: no further time comes while this test runs.
    let minute = (clock::now() - jiff::SignedDuration::from_mins(30))
        .strftime("%M")
        .to_string();
    // The first schedule is reported and skipped.
    let schedules = json!([{"start": format!("{minute} * * * *"), "location": "Europe/Nowhere"},
        {"start": format!("{minute} * * * *"), "location": "Europe/Berlin"}]);
    let body = json!({"spec": {"hibernation": {"enabled": false, "schedules": schedules}}});
    allowed(garden.patch(&shoots, "nightly", body).await);
    let asleep = || async {
        let shoot = shoots.get("nightly").await.map_err(|error| error.to_string())?;
        let enabled = shoot.spec.hibernation.and_then(|hibernation| hibernation.enabled);
        let triggered = shoot
            .status
            .and_then(|status| status.last_hibernation_trigger_time);
        let told = triggered.is_some_and(|time| time.0 > an_hour_ago);
        (enabled == Some(true) && told)
            .then_some(())
            .ok_or_else(|| format!("enabled {enabled:?}, told {told}"))
    };
    eventually("a shoot is put to sleep", SOON, asleep).await.unwrap();
    let awake = json!({"spec": {"hibernation": {"enabled": false}}});
    allowed(garden.patch(&shoots, "nightly", awake).await);
    // By the time at which a second shoot is put to sleep, the controller has also checked this shoot.
    let body = json!({"spec": {"hibernation": {"schedules": [{"start": format!("{minute} * * * *")}]}}});
    allowed(garden.patch(&shoots, "wakeful", body).await);
    eventually("another shoot is put to sleep", SOON, || async {
        let shoot = shoots.get("wakeful").await.map_err(|error| error.to_string())?;
        let enabled = shoot.spec.hibernation.and_then(|hibernation| hibernation.enabled);
        (enabled == Some(true))
            .then_some(())
            .ok_or("it is awake".to_owned())
    })
    .await
    .unwrap();
    let shoot = shoots.get("nightly").await.unwrap();
    assert_eq!(shoot.spec.hibernation.unwrap().enabled, Some(false));
}
