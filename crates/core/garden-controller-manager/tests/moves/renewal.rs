//! A seed keeps its shoot in a new epoch on an operator's request, once.

use std::time::Duration;

use api::{
    constants::SHOOT_RENEW_OWNERSHIP,
    gardencore::{
        Shoot,
        shoot::{ApprovedBy, OwnershipPhase},
    },
    meta::{LastOperationState as State, LastOperationType as Type},
};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt, api::ListParams};
use placement::{Operation, OwnerAction};
use serde_json::json;
use testkit::eventually;

use crate::{
    garden::{Garden, NAMESPACE, operation},
    journey::{create, edit, make_ready, until},
    takeover::{ask_for, check_owners},
};

const SOON: Duration = Duration::from_secs(60);
const RENEWED: &str = "renewed";

/// The seed is healthy or unhealthy: its owner record was deleted, and its etcd has sealed its epoch.
pub async fn a_seed_keeps_its_shoot_in_a_new_epoch(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, RENEWED).await;
    make_ready(garden, "seed-a").await;
    let dead = json!({"ownership": {"epoch": 4, "phase": "Held"}, "lastOperation": operation("Reconcile", "Error"),
        "lastErrors": [{"description": "seed seed-a has lost the shoot in ownership epoch 4"}]});
    garden.status(&shoots, RENEWED, dead).await;
    it_is_refused_without_owner_checks(garden, &shoots).await;
    check_owners(garden, "seed-a", true).await;
    ask(garden).await;
    let shoot = until(&shoots, RENEWED, |shoot| {
        shoot.status.as_ref().is_some_and(|status| status.epoch() > 4)
    })
    .await;
    assert!(!is_asked(&shoot));
    assert_eq!(
        placement::wanted(&shoot),
        OwnerAction::Operation(Operation::Restore)
    );
    let status = shoot.status.unwrap();
    let record = status.ownership.unwrap();
    assert_eq!((record.epoch, record.phase), (5, Some(OwnershipPhase::Claiming)));
    let source = record.source.unwrap();
    assert_eq!((source.name.as_str(), source.epoch), ("seed-a", 4));
    let approval = record.approval.unwrap();
    assert!(approval.renews());
    assert_eq!((approval.epoch, approval.by), (4, ApprovedBy::Operator));
    assert_eq!(status.seed_name.as_deref(), Some("seed-a"));
    assert!(status.former_seeds.is_empty() && status.last_errors.is_empty());
    let operation_then = status.last_operation.unwrap();
    assert_eq!(
        (operation_then.type_, operation_then.state),
        (Type::Migrate, State::Aborted)
    );
    until_event(garden, "EpochRenewed", "goes on in epoch 5").await;
    // The renewal has not ended there.
    ask(garden).await;
    let shoot = until(&shoots, RENEWED, |shoot| !is_asked(shoot)).await;
    assert_eq!(shoot.status.unwrap().epoch(), 5);
    until_event(
        garden,
        "RenewRefused",
        "has not restored it yet: status.lastErrors",
    )
    .await;
    let held = json!({"ownership": {"phase": "Held"}, "lastOperation": operation("Restore", "Succeeded")});
    garden.status(&shoots, RENEWED, held).await;
}

async fn it_is_refused_without_owner_checks(garden: &Garden, shoots: &Api<Shoot>) {
    check_owners(garden, "seed-a", false).await;
    ask(garden).await;
    let shoot = until(shoots, RENEWED, |shoot| !is_asked(shoot)).await;
    assert_eq!(shoot.status.unwrap().epoch(), 4);
    until_event(
        garden,
        "RenewRefused",
        "does not say in DNS which shoots are its own",
    )
    .await;
}

/// The approval beside the epoch that it began has no further effect.
pub async fn the_annotation_has_worked_once(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    // Any change triggers the controller.
    edit(garden, RENEWED, json!({"purpose": "testing"}))
        .await
        .unwrap();
    ask_for(garden, RENEWED, ("x", "y")).await;
    let shoot = shoots.get(RENEWED).await.unwrap();
    let record = shoot.status.unwrap().ownership.unwrap();
    assert_eq!((record.epoch, record.phase), (5, Some(OwnershipPhase::Held)));
}

async fn ask(garden: &Garden) {
    ask_for(garden, RENEWED, (SHOOT_RENEW_OWNERSHIP, "true")).await;
}

fn is_asked(shoot: &Shoot) -> bool {
    shoot.annotations().contains_key(SHOOT_RENEW_OWNERSHIP)
}

pub async fn until_event(garden: &Garden, reason: &str, part: &str) {
    let events: Api<Event> = garden.admin(NAMESPACE);
    eventually(&format!("Event {reason}: {part}"), SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let notes: Vec<_> = all
            .iter()
            .filter(|event| event.reason.as_deref() == Some(reason))
            .filter_map(|event| event.note.clone())
            .collect();
        if notes.iter().any(|note| note.contains(part)) {
            Ok(())
        } else {
            Err(format!("there are {notes:?}"))
        }
    })
    .await
    .unwrap();
}
