//! The dry run of a failover (annotation `shoot.gardener.cloud/isolated-zone-dry-run`): reports the machines
//! and pods that would move, and changes no object. The answer is a condition and an Event. The gardenlet
//! removes the annotation with the answer, so that a user can request a further dry run.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    constants::{SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_DRY_RUN, condition::ZONE_ISOLATION_DRY_RUN},
    gardencore::Shoot,
    machine::{Machine, labels},
    meta::{Condition, ConditionStatus},
};
use kube::{Api, ResourceExt, api::ListParams};
use parts::Facts;
use placement::{
    Isolation, Operation, OwnerAction, Role,
    isolation::{asked_zone, planned_zone, recorded},
    role, wanted,
};
use runtime::{Result, client::Cluster, clock, error::Explain};
use serde_json::{Value, json};

use crate::{
    context::{Context, MANAGER},
    name_list::names,
    zone_isolation,
};

/// Reason and sentences of an answer.
struct Answer {
    reason: &'static str,
    message: String,
}

/// Answers a requested dry run, and returns the Shoot after the answer. `None` after a concurrent write: the
/// next run answers.
///
/// # Errors
/// The answer could not be written. A fact that could not be read is part of the answer.
pub(crate) async fn answer(context: &Context, shoot: Arc<Shoot>) -> Result<Option<Arc<Shoot>>> {
    let Some(zone) = planned_zone(&shoot) else {
        return Ok(Some(shoot));
    };
    // During a move or a deletion there is no answer. The destination answers after the move.
    let is_here = role(&shoot, &context.seed_name) == Role::Owner
        && matches!(wanted(&shoot), OwnerAction::Operation(Operation::Reconcile));
    if !is_here {
        return Ok(Some(shoot));
    }
    let answer = Box::pin(survey_zone(context, &shoot, zone))
        .await
        .unwrap_or_else(|error| Answer {
            reason: "NotLookedAt",
            message: format!("What would move from zone {zone} could not be looked at: {error}. Ask again."),
        });
    let told = shoot.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let mut conditions = told.to_vec();
    let now = clock::now_k8s();
    let condition = Condition::new(
        ZONE_ISOLATION_DRY_RUN,
        ConditionStatus::True,
        answer.reason,
        &answer.message,
        now,
    );
    condition.merge_into(&mut conditions);
    let api: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let told = json!({"conditions": conditions});
    let Some(written) = MANAGER.try_merge_status_of(&api, &shoot, &told).await? else {
        return Ok(None);
    };
    let events = &context.garden_events;
    events
        .normal(&written, "ZoneIsolationDryRun", &answer.message)
        .await;
    let taken = json!({"metadata": {"annotations": {SHOOT_ISOLATED_ZONE_DRY_RUN: Value::Null}}});
    let taken = MANAGER.try_merge_of(&api, &written, &taken).await?;
    Ok(taken.map(Arc::new))
}

async fn survey_zone(context: &Context, shoot: &Shoot, zone: &str) -> Result<Answer> {
    if let Some(other) = asked_zone(shoot).or_else(|| Some(recorded(shoot)?.isolated_zone_id.as_str())) {
        return Ok(Answer {
            reason: "OneIsAway",
            message: format!(
                "Zone {other} is cut off, or not back yet: no other zone can be cut off meanwhile."
            ),
        });
    }
    // The facts of the same Shoot with a requested failover.
    let mut asking = shoot.clone();
    asking
        .annotations_mut()
        .insert(SHOOT_ISOLATED_ZONE.to_owned(), zone.to_owned());
    let facts = Facts::new(
        context.garden.clone(),
        context.seed.clone(),
        Arc::clone(&context.settings),
        &context.seed_name,
        Arc::new(asking),
        Operation::Reconcile,
    )
    .await?;
    let refused = |message: &str| Answer {
        reason: "WouldBeRefused",
        message: format!("A failover of zone {zone} would be refused. {message}"),
    };
    if let Isolation::Refused(refusal) = &facts.isolation {
        return Ok(refused(&refusal.message));
    }
    let survey = zone_isolation::survey::collect_facts(&facts, &context.config.zone_id_labels).await?;
    let name = survey.zone_name(&facts.shoot, zone);
    let verdict = zone_isolation::judgement::judge(zone, name, &survey);
    if let Some(refusal) = verdict.refusal {
        return Ok(refused(&refusal.message));
    }
    let Some(name) = name else {
        return Ok(Answer {
            reason: "ZoneUnknown",
            message: format!(
                "What would move is not known: neither the Infrastructure nor a Node of the shoot says that a zone has the ID {zone}, and \
                 no pool has a zone of this name."
            ),
        });
    };
    let machines: Api<Machine> = facts.residency.seed.namespaced(&facts.residency.namespace);
    let machines = machines.list(&ListParams::default()).await;
    let machines = machines.context("could not list the shoot's machines")?.items;
    // A hibernated shoot has neither Nodes nor pods.
    let pods = if survey.nodes.is_none() {
        Vec::new()
    } else {
        zone_isolation::survey::bound_pods(&facts.residency, name).await?
    };
    Ok(plan(shoot, zone, name, &machines, &pods, &verdict.warnings))
}

/// The number of machines of each pool: in this zone, and in all zones.
fn counted(machines: &[Machine], zone: &str) -> BTreeMap<String, [i32; 2]> {
    let mut pools = BTreeMap::<String, [i32; 2]>::new();
    for machine in machines {
        let label = |key: &str| machine.labels().get(key);
        let [here, all] = pools
            .entry(label(labels::POOL).cloned().unwrap_or_default())
            .or_default();
        *here += i32::from(label(labels::ZONE).is_some_and(|of| of == zone));
        *all += 1;
    }
    pools
}

fn plan(
    shoot: &Shoot,
    zone: &str,
    name: &str,
    machines: &[Machine],
    pods: &[String],
    told: &[String],
) -> Answer {
    let counted = counted(machines, name);
    let (mut leaving, mut missing, mut pools) = (0, 0, Vec::new());
    for pool in &shoot.spec.provider.workers {
        let [here, all] = counted.get(&pool.name).copied().unwrap_or_default();
        if !pool.zones.iter().any(|other| other == name) {
            continue;
        }
        let has_other = pool.zones.iter().any(|other| other != name);
        let room = if has_other { pool.maximum } else { 0 };
        let lost = (all - room).clamp(0, here);
        leaving += here;
        missing += lost;
        pools.push(match (lost, has_other) {
            (0, _) => format!(
                "{}: {here} of {all}, replaced within its maximum of {}",
                pool.name, pool.maximum
            ),
            (_, true) => format!(
                "{}: {here} of {all}, {lost} of them without a successor, as its maximum is {}",
                pool.name, pool.maximum
            ),
            (_, false) => format!(
                "{}: {here} of {all}, none replaced, as it has no other zone",
                pool.name
            ),
        });
    }
    let mut message = if pools.is_empty() {
        format!("No worker pool is in zone {zone} ({name}): a failover of it would be given up.")
    } else {
        format!(
            "{leaving} machines would leave zone {zone} ({name}), {missing} of them without a successor. Pools: {}.",
            names(&pools)
        )
    };
    if !pods.is_empty() {
        let bound = format!(
            " {} pods have volumes of the zone and would wait until it is back: {}.",
            pods.len(),
            names(pods)
        );
        message.push_str(&bound);
    }
    for sentence in told {
        message.push(' ');
        message.push_str(sentence);
    }
    let reason = match (pools.is_empty(), missing) {
        (true, _) => "NotUsed",
        (false, 0) => "Fits",
        (false, _) => "DoesNotFit",
    };
    Answer { reason, message }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot() -> Shoot {
        let pool = |name: &str, maximum: i32, zones: &[&str]| json!({"name": name, "machine": {"type": "m"}, "minimum": 1, "maximum": maximum, "zones": zones});
        serde_json::from_value(json!({
            "metadata": {"name": "demo"},
            "spec": {"region": "r", "provider": {"type": "metal", "workers": [
                pool("a", 4, &["one", "two"]), pool("b", 2, &["one"]), pool("c", 2, &["two"])]}},
        }))
        .unwrap()
    }

    /// `pool/zone`, each one machine.
    fn machines(all: &str) -> Vec<Machine> {
        let machine = |text: &str| {
            let (pool, zone) = text.split_once('/').unwrap();
            serde_json::from_value(json!({
                "metadata": {"name": "m", "labels": {labels::POOL: pool, labels::ZONE: zone}}, "spec": {},
            }))
            .unwrap()
        };
        all.split_whitespace().map(machine).collect()
    }

    #[test]
    fn what_would_move_is_told_and_whether_it_fits() {
        for (there, zone, reason, parts) in [
            (
                "a/one a/two",
                "one",
                "Fits",
                [
                    "1 machines would leave",
                    "a: 1 of 2, replaced within its maximum of 4",
                ],
            ),
            (
                "a/one b/one",
                "one",
                "DoesNotFit",
                ["2 machines would leave", "b: 1 of 1, none replaced"],
            ),
            // It has grown beyond its maximum, for a zone that was cut off before.
            (
                "a/one a/one a/two a/two a/two",
                "one",
                "DoesNotFit",
                ["1 of them without a successor", "as its maximum is 4"],
            ),
            (
                "c/two",
                "one",
                "Fits",
                ["0 machines would leave zone z (one)", "a: 0 of 0"],
            ),
            (
                "",
                "three",
                "NotUsed",
                ["No worker pool is in zone z (three)", "given up"],
            ),
        ] {
            let answer = plan(&shoot(), "z", zone, &machines(there), &[], &[]);
            assert_eq!(answer.reason, reason, "{there}");
            for part in parts {
                assert!(answer.message.contains(part), "{there}: {}", answer.message);
            }
        }
    }

    #[test]
    fn pods_that_cannot_follow_are_told_a_few_by_name() {
        let pods: Vec<_> = (0..7).map(|number| format!("dev/db-{number}")).collect();
        let answer = plan(&shoot(), "z", "one", &[], &pods, &["Nobody knows.".into()]);
        assert!(
            answer.message.contains("7 pods have volumes of the zone"),
            "{}",
            answer.message
        );
        assert!(
            answer.message.contains("dev/db-4 and 2 more. Nobody knows."),
            "{}",
            answer.message
        );
    }
}
