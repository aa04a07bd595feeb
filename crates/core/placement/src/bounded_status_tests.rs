#![allow(clippy::unwrap_used)]
use super::*;

const NOW: &str = "2026-01-01T00:00:00.123456789Z";

fn shoot(status: &Value) -> Shoot {
    serde_json::from_value(json!({"metadata": {"name": "web"},
        "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"}, "status": status}))
    .unwrap()
}

const CODES: [ErrorCode; 11] = [
    ErrorCode::ErrInfraUnauthenticated,
    ErrorCode::ErrInfraUnauthorized,
    ErrorCode::ErrInfraQuotaExceeded,
    ErrorCode::ErrInfraRateLimitsExceeded,
    ErrorCode::ErrInfraDependencies,
    ErrorCode::ErrRetryableInfraDependencies,
    ErrorCode::ErrInfraResourcesDepleted,
    ErrorCode::ErrCleanupClusterResources,
    ErrorCode::ErrConfigurationProblem,
    ErrorCode::ErrRetryableConfigurationProblem,
    ErrorCode::ErrProblematicWebhook,
];

fn condition(type_: &str, text: &str) -> Value {
    let codes = [CODES; 20].concat();
    json!({"type": type_, "status": "Progressing", "reason": text, "message": text, "codes": codes,
        "lastTransitionTime": NOW, "lastUpdateTime": NOW})
}

/// A status that a hostile host has filled with this text wherever a seed may write.
fn filled(text: &str) -> Value {
    let all = |known: &[&str]| {
        let known = known.iter().filter(|type_| **type_ != READY_FOR_MIGRATION);
        let mut all: Vec<_> = known.map(|type_| condition(type_, text)).collect();
        all.push(condition(text, text));
        all.push(condition(API_SERVER_AVAILABLE, text));
        all
    };
    let restored = json!({"epoch": 2, "lastRevision": 1, "saved": NOW, "fenced": NOW, "unknown": text, "lostRevisions": 1,
        "source": {"name": text, "epoch": 1}, "leftAside": vec![text; 9]});
    json!({
        "seedName": "a", "technicalID": "shoot--dev--web", "uid": "u", "observedGeneration": 1,
        "conditions": all(&CONDITIONS), "constraints": all(&CONSTRAINTS),
        "gardener": {"id": text, "name": text, "version": text},
        "lastOperation": {"type": "Reconcile", "state": "Error", "progress": 5, "description": text, "lastUpdateTime": NOW},
        "lastErrors": vec![json!({"description": text, "taskID": text, "lastUpdateTime": NOW}); 100],
        "clusterIdentity": text, "advertisedAddresses": [{"name": text, "url": text}], "migrationStartTime": NOW,
        "credentials": {"encryptionAtRest": {"resources": [text]}},
        "lastMaintenance": {"description": text, "triggeredTime": NOW, "state": "Succeeded"},
        "encryptedResources": vec![text; 100], "networking": {"pods": [text]},
        "inPlaceUpdates": {"pendingWorkerUpdates": {"autoInPlaceUpdate": [text]}},
        "manualWorkerPoolRollout": {"pendingWorkersRollouts": [{"name": text}]},
        "liveMigration": {"conditions": [condition(text, text)]},
        "ownership": {"epoch": 2, "phase": "Held", "restored": restored, "restoredBefore": vec![restored.clone(); 9]},
        "zoneIsolation": {"isolatedZoneID": "z", "isolatedZoneCode": text, "phase": "Failover", "status": "Done",
            "lastUpdateTime": NOW},
    })
}

/// As policy `gardenlet-size` counts: the bytes of JSON as the API server stores a status, with a space after
/// each separator, and with an escape sequence for each character that cannot be printed.
fn size(status: &ShootStatus) -> (usize, usize) {
    let text = json!(status).to_string();
    let spaces = text.matches([',', ':']).count();
    let escaped = |letter: char| match letter {
        '<' | '>' | '&' | '\u{7f}' | '\u{200b}' => 6,
        '\u{e0001}' => 10,
        printed => printed.len_utf8(),
    };
    (
        text.chars().map(escaped).sum::<usize>() + spaces,
        text.matches(is_separator).count() + 2,
    )
}

/// The next seed has the other half.
#[test]
fn a_filled_status_is_bounded_to_half_of_the_bound_of_seeds() {
    for text in [
        "x",
        "\u{200b}",
        ",",
        "{",
        "\"",
        "\\",
        "\u{1f980}",
        "<",
        "&",
        "\u{7}",
        "\u{7f}",
        "\u{e0001}",
    ] {
        let filled = shoot(&filled(&text.repeat(5000)));
        let bounded = bounded_status(filled.status.as_ref().unwrap());
        // A hand-over removes these fields.
        let mut handed_over = bounded.clone();
        handed_over.last_errors.clear();
        let of_the_seed = |condition: &Condition| {
            [OWNERSHIP_VERIFIED, OWNER_CHECKS_COMPLETE].contains(&condition.type_.as_str())
        };
        handed_over.conditions.retain(|condition| !of_the_seed(condition));
        let (bytes, parts) = size(&handed_over);
        assert!(bytes <= LARGE - 2048, "{text:?}: {bytes}");
        assert!(parts <= MANY_PARTS - 500, "{text:?}: {parts}");
        // At the begin of an operation some errors stay.
        let (bytes, parts) = size(&bounded);
        assert!(bytes <= 40_000, "{text:?}: {bytes}");
        assert!(parts <= 4000, "{text:?}: {parts}");
        let written = add_bounds_if_large(&filled, json!({"lastErrors": null}));
        let mut after = json!(filled.status);
        json_patch::merge(&mut after, &written);
        let expected = ShootStatus {
            last_errors: Vec::new(),
            ..bounded
        };
        // JSON has no fractions of seconds.
        let after: ShootStatus = serde_json::from_value(after).unwrap();
        assert_eq!(json!(after), json!(expected));
    }
}

#[test]
fn the_status_of_an_honest_host_stays() {
    let ready = condition(READY_FOR_MIGRATION, &"m, ".repeat(500));
    let mut healthy = condition(EVERY_NODE_READY, "All nodes are ready: a, b, c.");
    healthy["codes"] = json!(["ERR_INFRA_UNAUTHORIZED"]);
    let status = json!({
        "seedName": "a", "technicalID": "shoot--dev--web", "uid": "u", "hibernated": true, "observedGeneration": 7,
        "conditions": [healthy], "constraints": [ready, ready], "reconciledSpecHash": "h", "settledSeedName": "a",
        "gardener": {"id": "i", "name": "gardenlet", "version": "1"}, "clusterIdentity": "shoot--dev--web-u-garden",
        "lastOperation": {"type": "Reconcile", "state": "Error", "progress": 5, "description": "d", "lastUpdateTime": NOW},
        "lastErrors": [{"description": "d", "taskID": "t"}], "retryCycleStartTime": NOW, "lastHibernationTriggerTime": NOW,
        "ownership": {"epoch": 2, "phase": "Held", "restored": {"epoch": 2, "fenced": NOW, "leftAside": ["Incr-0-99-1.Z"]}},
        "formerSeeds": [{"name": "b", "epoch": 1}], "ownerChecks": [{"seedName": "a", "epoch": 2}],
        "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}},
        "zoneIsolation": {"isolatedZoneID": "z", "phase": "Failover", "status": "Done", "lastUpdateTime": NOW},
    });
    let shoot = shoot(&status);
    assert_eq!(bounds(shoot.status.as_ref().unwrap()), Map::new());
    assert_eq!(bounded(&shoot), shoot);
    assert_eq!(add_bounds(&shoot, json!({"uid": "u"})), json!({"uid": "u"}));
}

/// A write to the record of an epoch must not repeat fields of the former epoch.
#[test]
fn bounds_of_the_record_are_added_beside_the_fields_of_a_patch() {
    let long = "x".repeat(5000);
    let restored = json!({"epoch": 2, "fenced": NOW, "unknown": long});
    let shoot =
        shoot(&json!({"seedName": "a", "ownership": {"epoch": 2, "phase": "Held", "restored": restored}}));
    let patch = add_bounds(&shoot, json!({"ownership": {"epoch": 3}}));
    let record = patch["ownership"].as_object().unwrap();
    assert_eq!(record.keys().collect::<Vec<_>>(), ["epoch", "restored"]);
    assert_eq!(record["epoch"], 3);
    assert_eq!(
        record["restored"]["unknown"].as_str().unwrap().len(),
        LONGEST_MESSAGE
    );
}

#[test]
fn a_small_status_of_a_host_is_not_bounded_at_the_begin_of_an_operation() {
    let foreign = shoot(&json!({"seedName": "a", "conditions": [condition("OfSomeTool", "m")]}));
    assert_eq!(with_room(foreign.clone()), foreign);
    assert_eq!(add_bounds_if_large(&foreign, json!({})), json!({}));
    let many = vec![condition("OfSomeTool", "m"); 200];
    let padded = shoot(&json!({"seedName": "a", "conditions": many}));
    assert_eq!(with_room(padded.clone()).status.unwrap().conditions, []);
    assert_eq!(
        add_bounds_if_large(&padded, json!({})),
        json!({"conditions": null})
    );
}

#[test]
fn a_zone_with_a_cut_name_is_no_zone() {
    let isolation = json!({"isolatedZoneID": "z".repeat(5000), "phase": "Failover", "status": "Done", "lastUpdateTime": NOW});
    let padded = shoot(&json!({"seedName": "a", "zoneIsolation": isolation}));
    assert_eq!(bounded(&padded).status.unwrap().zone_isolation, None);
}
