//! A Shoot that etcd refuses with the approval of a move, or with the hand-over of a takeover: both repeat
//! the specification. A hand-over that the API server refuses for a value.

use std::time::Duration;

use api::{
    constants::{
        SHOOT_FORCE_RESTORE,
        condition::{SHOOT_TOO_LARGE, TAKEOVER_POSSIBLE},
    },
    gardencore::Shoot,
};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;
use testkit::eventually;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, try_patch_status, until_refused},
    journey::{approval, beside_the_controller, create, create_on, edit, is_for, make_ready, reason, until},
    renewal::until_event,
    servers,
    takeover::{check_owners, tells},
};

const MOVED: &str = "oversized";
const LOST: &str = "oversized-lost";
const NEXT: &str = "after-oversized";
/// The destination of the planned moves.
const TO: &str = "seed-large";
/// A dead seed.
const DEAD: &str = "seed-large-dead";
const POLICY: &str = "large-etcd-refuses";
/// The refusal of etcd, as a kube-apiserver repeats the refusal.
const REFUSAL: &str = "etcdserver: request is too large";
/// A shoot that meets an attempt of the large Shoot waits for a minute.
const SLOT_WITHIN: Duration = Duration::from_secs(150);
/// The refusal of a value that no smaller write changes.
const INVALID: &str = "status.constraints has a value that is not accepted";
/// Many times the controller's duration, also on a slow machine.
const SOON: Duration = Duration::from_secs(60);

/// The destination takes a single shoot at a time.
pub async fn a_shoot_that_is_too_large_holds_no_slot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.bring(&garden::seed(TO)).await.unwrap();
    make_ready(garden, TO).await;
    for name in [MOVED, NEXT] {
        create(garden, name).await;
    }
    refuse_copies_of_the_specification(garden, MOVED, REFUSAL).await;
    let work = async {
        allowed(edit(garden, MOVED, json!({"seedName": TO})).await);
        let shoot = until(&shoots, MOVED, |shoot| {
            reason(shoot).as_deref() == Some(SHOOT_TOO_LARGE)
        })
        .await;
        assert_eq!(approval(&shoot), None);
        allowed(edit(garden, NEXT, json!({"seedName": TO})).await);
        eventually("the only slot is free", SLOT_WITHIN, || async {
            let shoot = shoots.get(NEXT).await.map_err(|error| error.to_string())?;
            is_for(&shoot, TO)
                .then_some(())
                .ok_or_else(|| format!("it is {:?}", shoot.status))
        })
        .await
        .unwrap();
        // The reports end with the wish for the move.
        allowed(edit(garden, MOVED, json!({"seedName": "seed-a"})).await);
        until(&shoots, MOVED, |shoot| reason(shoot).is_none()).await;
    };
    let limit = ["--concurrent-migrations=1"];
    Box::pin(beside_the_controller(garden, &limit, work)).await;
    allow_copies_of_the_specification(garden).await;
}

/// With the controller of takeovers at work.
pub async fn a_takeover_of_a_shoot_that_is_too_large_is_reported(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.bring(&garden::seed(DEAD)).await.unwrap();
    check_owners(garden, DEAD, true).await;
    create_on(garden, LOST, DEAD).await;
    servers::all_processes_ask(garden, LOST, DEAD).await;
    tells(garden, LOST, "constraints", "ShootStateUpToDate").await;
    refuse_copies_of_the_specification(garden, LOST, INVALID).await;
    allowed(edit(garden, LOST, json!({"seedName": "seed-b"})).await);
    eventually("the takeover is approved", SOON, || async {
        let shoot = shoots.get(LOST).await.map_err(|error| error.to_string())?;
        let record = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
        if record.is_some_and(|record| record.approval.is_some()) {
            return Ok(());
        }
        request_takeover(garden, &shoots, &shoot).await;
        Err(format!("it is {:?}", shoot.status))
    })
    .await
    .unwrap();
    until_event(garden, "TakeoverNotWritten", INVALID).await;
    refuse_copies_of_the_specification(garden, LOST, REFUSAL).await;
    let shoot = eventually("the refusal is reported", SOON, || async {
        let shoot = shoots.get(LOST).await.map_err(|error| error.to_string())?;
        let status = shoot.status.as_ref();
        if status.is_some_and(|status| status.constraint(TAKEOVER_POSSIBLE).is_some()) {
            return Ok(shoot);
        }
        request_takeover(garden, &shoots, &shoot).await;
        Err(format!("it is {:?}", shoot.status))
    })
    .await
    .unwrap();
    let status = shoot.status.unwrap();
    let constraint = status.constraint(TAKEOVER_POSSIBLE).unwrap();
    assert_eq!(constraint.reason, SHOOT_TOO_LARGE);
    assert_eq!(status.seed_name.as_deref(), Some(DEAD));
    until_event(garden, "TakeoverWithdrawn", "the Shoot is too large to move").await;
    // No request is left that could be granted once the policy is gone.
    let settled =
        json!({"metadata": {"annotations": {(SHOOT_FORCE_RESTORE): null}}, "spec": {"seedName": DEAD}});
    allowed(garden.patch(&shoots, LOST, settled).await);
    allow_copies_of_the_specification(garden).await;
}

/// A request is refused while the last sign of life is recent, and each request starts an attempt.
async fn request_takeover(garden: &Garden, shoots: &Api<Shoot>, shoot: &Shoot) {
    if !shoot.annotations().contains_key(SHOOT_FORCE_RESTORE) {
        let request = json!({"metadata": {"annotations": {(SHOOT_FORCE_RESTORE): "true"}}});
        drop(garden.patch(shoots, LOST, request).await);
    }
}

/// Stands for etcd, whose bound a test would meet only with a Shoot of 1.5 MiB.
async fn refuse_copies_of_the_specification(garden: &Garden, name: &'static str, refusal: &str) {
    let version = "admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "operations": ["UPDATE"],
        "resources": ["shoots/status"]});
    let refuses = format!("object.metadata.name != '{name}' || !has(object.status.migration)");
    let policy = json!({
        "apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": refuses, "message": refusal}]},
    });
    let binding = json!({
        "apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    });
    for document in [policy, binding] {
        garden.bring(&document).await.unwrap();
    }
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let approved = json!({"migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}}});
    until_refused(refusal, || try_patch_status(&shoots, name, approved.clone())).await;
}

async fn allow_copies_of_the_specification(garden: &Garden) {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(garden.administrator());
    bindings.delete(POLICY, &DeleteParams::default()).await.unwrap();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(garden.administrator());
    policies.delete(POLICY, &DeleteParams::default()).await.unwrap();
}
