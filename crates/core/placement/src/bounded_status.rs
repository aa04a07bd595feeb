//! The bounded status of a Shoot, which leaves the next seed room for its own writes.
//!
//! Policy `gardenlet-size` gives all seeds the same bound for a status. A hostile host could fill the status
//! up to the bound, and the first write of the next seed would be refused. So each hand-over bounds the
//! status, and policy `gardenlet-size` allows a seed to hand over half of the bound. The gardenlet also
//! bounds a large status at the begin of each operation, so that no padding stops a host.
//!
//! The bounded status keeps conditions and constraints of the suite, and no field that no process reads.
//! Texts and lists of a seed are cut.

use api::{
    constants::condition::{
        API_SERVER_AVAILABLE, CONTROL_PLANE_HEALTHY, DATA_COMPLETE, EVERY_NODE_READY, HIBERNATION_POSSIBLE,
        MIGRATION_DRY_RUN, OBSERVABILITY_COMPONENTS_HEALTHY, OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED,
        READY_FOR_MIGRATION, RECONCILIATION_POSSIBLE, SHOOT_STATE_COMPLETE, SHOOT_STATE_UP_TO_DATE,
        SYSTEM_COMPONENTS_HEALTHY, ZONE_ISOLATION, ZONE_ISOLATION_DRY_RUN,
    },
    gardencore::{
        Shoot,
        shoot::{FormerSeed, Ownership, RestoredData, ShootStatus, ZoneIsolation},
    },
    meta::{Condition, ErrorCode, GardenerInfo, LastError, LastOperation, find_condition},
};
use serde_json::{Map, Value, json};

use crate::last_errors::MOST_ERRORS;

const CONDITIONS: [&str; 9] = [
    API_SERVER_AVAILABLE,
    CONTROL_PLANE_HEALTHY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    EVERY_NODE_READY,
    SYSTEM_COMPONENTS_HEALTHY,
    OWNERSHIP_VERIFIED,
    OWNER_CHECKS_COMPLETE,
    ZONE_ISOLATION,
    ZONE_ISOLATION_DRY_RUN,
];
const CONSTRAINTS: [&str; 7] = [
    SHOOT_STATE_UP_TO_DATE,
    SHOOT_STATE_COMPLETE,
    DATA_COMPLETE,
    READY_FOR_MIGRATION,
    MIGRATION_DRY_RUN,
    RECONCILIATION_POSSIBLE,
    HIBERNATION_POSSIBLE,
];
/// Bytes of a message for people, as [`stored_bytes`] counts.
const LONGEST_MESSAGE: usize = 512;
/// Bytes of a reason for programs.
const LONGEST_REASON: usize = 64;
const LONGEST_NAME: usize = 128;
/// As many as the schema allows.
const MOST_RESTORED_BEFORE: usize = 5;
const MOST_LEFT_ASIDE: usize = 5;
/// Half of the bounds of policy `gardenlet-size` for a status: bytes, and fields and entries.
const LARGE: usize = 32_768;
const MANY_PARTS: usize = 3000;

/// The status with the fields that the suite reads, each of bounded size. Constraint `ReadyForMigration`
/// stays as is, because no seed may change the constraint.
#[must_use]
pub fn bounded_status(status: &ShootStatus) -> ShootStatus {
    ShootStatus {
        conditions: bounded_conditions(&status.conditions, &CONDITIONS),
        constraints: bounded_conditions(&status.constraints, &CONSTRAINTS),
        gardener: status.gardener.as_ref().map(|gardener| GardenerInfo {
            id: bounded_text(&gardener.id, LONGEST_NAME),
            name: bounded_text(&gardener.name, LONGEST_NAME),
            version: bounded_text(&gardener.version, LONGEST_NAME),
        }),
        hibernated: status.hibernated,
        last_operation: status.last_operation.as_ref().map(|last| LastOperation {
            description: bounded_text(&last.description, LONGEST_MESSAGE),
            ..last.clone()
        }),
        last_errors: bounded_errors(&status.last_errors),
        observed_generation: status.observed_generation,
        reconciled_spec_hash: status.reconciled_spec_hash.clone(),
        retry_cycle_start_time: status.retry_cycle_start_time.clone(),
        seed_name: status.seed_name.clone(),
        settled_seed_name: status.settled_seed_name.clone(),
        technical_id: status.technical_id.clone(),
        uid: status.uid.clone(),
        reserved_domain: status.reserved_domain.clone(),
        cluster_identity: status
            .cluster_identity
            .as_deref()
            .map(|identity| bounded_text(identity, LONGEST_MESSAGE)),
        advertised_addresses: Vec::new(),
        migration_start_time: None,
        credentials: None,
        last_hibernation_trigger_time: status.last_hibernation_trigger_time.clone(),
        last_maintenance: None,
        encrypted_resources: Vec::new(),
        networking: None,
        in_place_updates: None,
        manual_worker_pool_rollout: None,
        // A preparation ends with a hand-over. Otherwise garden-controller-manager grants the right anew.
        live_migration: None,
        ownership: status.ownership.as_ref().map(bounded_ownership),
        // Policy shoot-ownership bounds the next two lists, and garden-controller-manager writes the third
        // field.
        former_seeds: status.former_seeds.clone(),
        owner_checks: status.owner_checks.clone(),
        migration: status.migration.clone(),
        zone_isolation: status.zone_isolation.as_ref().and_then(bounded_isolation),
    }
}

/// The Shoot with its bounded status.
#[must_use]
pub fn bounded(shoot: &Shoot) -> Shoot {
    Shoot {
        status: shoot.status.as_ref().map(bounded_status),
        ..shoot.clone()
    }
}

/// The Shoot, with its bounded status if the status is large.
#[must_use]
pub fn with_room(shoot: Shoot) -> Shoot {
    if is_large(&shoot) { bounded(&shoot) } else { shoot }
}

/// The changes to the bounded status, by field: `null` removes a field. Of the ownership record only the
/// fields that change. The other fields of the record have rules of their own.
#[must_use]
pub fn bounds(status: &ShootStatus) -> Map<String, Value> {
    let (before, after) = (json!(status), json!(bounded_status(status)));
    let changed = before
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(field, old)| {
            let new = &after[field.as_str()];
            (new != old).then(|| {
                let new = if field == "ownership" {
                    changes_within(old, new)
                } else {
                    new.clone()
                };
                (field.clone(), new)
            })
        });
    changed.collect()
}

/// Adds the bounds of the present status to a merge patch of the status. A field that the patch writes stays
/// as in the patch.
#[must_use]
pub fn add_bounds(shoot: &Shoot, mut patch: Value) -> Value {
    let bounds = shoot.status.as_ref().map(bounds).unwrap_or_default();
    for (field, bound) in bounds {
        match (patch.get_mut(&field), bound) {
            (None, bound) => patch[field.as_str()] = bound,
            (Some(Value::Object(written)), Value::Object(bound)) if field == "ownership" => {
                for (field, bound) in bound {
                    written.entry(field).or_insert(bound);
                }
            }
            _ => {}
        }
    }
    patch
}

/// [`add_bounds`] if the status is large.
#[must_use]
pub fn add_bounds_if_large(shoot: &Shoot, patch: Value) -> Value {
    if is_large(shoot) {
        add_bounds(shoot, patch)
    } else {
        patch
    }
}

/// Whether the status has more than half of the bytes or parts that policy `gardenlet-size` allows. The
/// approval of a move and the owner checks do not count there.
fn is_large(shoot: &Shoot) -> bool {
    let Some(status) = &shoot.status else {
        return false;
    };
    let counted = ShootStatus {
        owner_checks: Vec::new(),
        migration: None,
        ..status.clone()
    };
    let text = json!(counted).to_string();
    text.chars().map(stored_bytes).sum::<usize>() > LARGE || text.matches(is_separator).count() > MANY_PARTS
}

fn changes_within(old: &Value, new: &Value) -> Value {
    let new = new.as_object().into_iter().flatten();
    let changed = new.filter(|(field, new)| &old[field.as_str()] != *new);
    changed
        .map(|(field, new)| (field.clone(), new.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// The first condition of each known type.
fn bounded_conditions(conditions: &[Condition], known: &[&str]) -> Vec<Condition> {
    let mut kept: Vec<Condition> = Vec::new();
    for condition in conditions {
        let type_ = condition.type_.as_str();
        if type_ == READY_FOR_MIGRATION && known.contains(&type_) {
            kept.push(condition.clone());
        } else if known.contains(&type_) && find_condition(&kept, type_).is_none() {
            kept.push(Condition {
                reason: bounded_text(&condition.reason, LONGEST_REASON),
                message: bounded_text(&condition.message, LONGEST_MESSAGE),
                codes: distinct(&condition.codes),
                ..condition.clone()
            });
        }
    }
    kept
}

/// Also errors about resources left behind: a hostile host could fill the status with these, too.
fn bounded_errors(errors: &[LastError]) -> Vec<LastError> {
    let errors = errors.iter().take(MOST_ERRORS);
    errors
        .map(|error| LastError {
            description: bounded_text(&error.description, LONGEST_MESSAGE),
            task_id: error.task_id.as_deref().map(|id| bounded_text(id, LONGEST_NAME)),
            codes: distinct(&error.codes),
            last_update_time: error.last_update_time.clone(),
        })
        .collect()
}

/// Policy `shoot-ownership` decides about the other fields of the record.
fn bounded_ownership(record: &Ownership) -> Ownership {
    let before = record.restored_before.iter().take(MOST_RESTORED_BEFORE);
    Ownership {
        restored: record.restored.as_ref().map(bounded_restored),
        restored_before: before.map(bounded_restored).collect(),
        ..record.clone()
    }
}

fn bounded_restored(restored: &RestoredData) -> RestoredData {
    let left_aside = restored.left_aside.iter().take(MOST_LEFT_ASIDE);
    RestoredData {
        source: restored.source.as_ref().map(|source| FormerSeed {
            name: bounded_text(&source.name, LONGEST_NAME),
            epoch: source.epoch,
        }),
        unknown: restored
            .unknown
            .as_deref()
            .map(|why| bounded_text(why, LONGEST_MESSAGE)),
        left_aside: left_aside.map(|name| bounded_text(name, LONGEST_NAME)).collect(),
        ..restored.clone()
    }
}

/// `None` where the zone has no name of a cloud: a cut name could be the name of a different zone.
fn bounded_isolation(isolation: &ZoneIsolation) -> Option<ZoneIsolation> {
    let zone = &isolation.isolated_zone_id;
    (bounded_text(zone, LONGEST_NAME) == *zone).then(|| ZoneIsolation {
        isolated_zone_code: isolation
            .isolated_zone_code
            .as_deref()
            .map(|code| bounded_text(code, LONGEST_NAME)),
        ..isolation.clone()
    })
}

fn distinct(codes: &[ErrorCode]) -> Vec<ErrorCode> {
    let mut distinct = Vec::new();
    for code in codes {
        if !distinct.contains(code) {
            distinct.push(*code);
        }
    }
    distinct
}

/// The beginning of a text. Policy `gardenlet-size` also counts separators as parts. So a separator takes the
/// room of several characters.
fn bounded_text(text: &str, most: usize) -> String {
    let mut taken = 0;
    let fits = |letter: &char| {
        taken += stored_bytes(*letter);
        if is_separator(*letter) {
            taken += 7;
        }
        taken <= most
    };
    text.chars().take_while(fits).collect()
}

/// The most bytes that policy `gardenlet-size` counts for a character. Outside of ASCII, the policy counts an
/// escape sequence if the API server's version of Unicode cannot print the character.
fn stored_bytes(letter: char) -> usize {
    match letter {
        '"' | '\\' => 2,
        '<' | '>' | '&' => 6,
        ' '..='~' => 1,
        '\0'..='\u{ffff}' => 6,
        _ => 10,
    }
}

fn is_separator(letter: char) -> bool {
    matches!(letter, ',' | '[' | '{')
}

#[cfg(test)]
#[path = "bounded_status_tests.rs"]
mod tests;
