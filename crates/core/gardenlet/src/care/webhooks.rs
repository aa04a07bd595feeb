//! Webhooks of users in the shoot that can stop a wake-up or the start in a different seed: the constraint
//! `HibernationPossible`.
//!
//! A webhook that refuses deletions of Pods or Nodes delays the sleep, and the Pods end without grace. A
//! shoot that sleeps has no nodes, and so no Pods that answer a webhook; after a move the Pods answer only
//! when the tunnel is up. A webhook on objects that the control plane or the nodes write then refuses or
//! delays the very writes that bring nodes back. Webhooks with `matchConditions` are ignored, as the
//! gardenlet does not evaluate CEL.

use std::{ops::ControlFlow, time::Duration};

use api::{
    constants::condition::{HIBERNATION_POSSIBLE, PROBLEMATIC_WEBHOOKS, WEBHOOKS_ON_LEASES},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, ErrorCode, find_condition},
};
use k8s_openapi::{
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use placement::Role;
use runtime::{
    Result,
    client::{Cluster, Shoot as ShootCluster},
    clock,
    controller::conditions,
};

use super::webhook::{Effect, SeenConfiguration};
use crate::{Context, MANAGER, name_list::names};

/// Reason of the Event before a sleep.
const SLEEPS_WITH_WEBHOOKS: &str = "SleepsWithProblematicWebhooks";

/// How long the lists are waited for. Shorter than the period of care.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most webhooks that are kept. A constraint names fewer.
const MOST: usize = 100;

/// The webhooks that can stop the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Webhooks {
    /// On Leases: no controller of the control plane becomes the leader, and no node is ready.
    on_leases: Vec<String>,
    /// On further objects of the control plane and of nodes.
    others: Vec<String>,
}

/// Writes a changed constraint, and warns users of a webhook that is reported for the first time. The warning
/// comes before a sleep, as the API of a shoot that sleeps does not answer.
pub(super) async fn report(context: &Context, shoot: &Shoot, webhooks: &Webhooks) -> Result<()> {
    let now = clock::now_k8s();
    let reported = shoot.status.as_ref().map(|status| status.constraints.clone());
    let reported = reported.unwrap_or_default();
    let mut wanted = reported.clone();
    webhooks.set_condition(&now, &mut wanted);
    if wanted == reported {
        return Ok(());
    }
    let shoots: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let name = shoot.name_any();
    // A watch may be late: a former seed must not write to the Shoot.
    let newest = shoots.get_opt(&name).await?;
    if !newest.is_some_and(|newest| {
        newest.uid() == shoot.uid() && placement::role(&newest, &context.seed_name) == Role::Owner
    }) {
        return Ok(());
    }
    let written = conditions::change(MANAGER, &shoots, &name, "constraints", |list| {
        webhooks.set_condition(&now, list);
    })
    .await?;
    if written && let Some(sentence) = webhooks.news(&reported, &now) {
        let events = &context.garden_events;
        events
            .answer_with_warning(shoot, PROBLEMATIC_WEBHOOKS, &sentence)
            .await;
    }
    Ok(())
}

/// Warns users of a shoot that is put to sleep although a webhook can stop its wake-up.
pub(super) async fn warn_of_sleep(context: &Context, shoot: &Shoot) {
    if placement::is_asleep(shoot) {
        return;
    }
    let constraint = shoot.status.as_ref();
    let constraint = constraint.and_then(|status| status.constraint(HIBERNATION_POSSIBLE));
    if let Some(constraint) = constraint.filter(|constraint| constraint.status == ConditionStatus::False) {
        let sentence = format!(
            "The shoot is put to sleep and may not wake up. {}",
            constraint.message
        );
        let events = &context.garden_events;
        events
            .answer_with_warning(shoot, SLEEPS_WITH_WEBHOOKS, &sentence)
            .await;
    }
}

/// Lists the webhooks of the shoot. After an error the constraint stays unchanged.
pub(super) async fn survey(shoot: &ShootCluster) -> std::result::Result<Webhooks, String> {
    let mut found = Webhooks::default();
    tokio::time::timeout(PATIENCE, async {
        survey_kind::<ValidatingWebhookConfiguration>(shoot, &mut found).await?;
        survey_kind::<MutatingWebhookConfiguration>(shoot, &mut found).await
    })
    .await
    .map_err(|_| format!("the webhooks were not listed within {PATIENCE:?}"))?
    .map_err(|error| format!("the webhooks could not be listed: {error}"))?;
    Ok(found)
}

async fn survey_kind<K>(shoot: &ShootCluster, found: &mut Webhooks) -> kube::Result<()>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let (configurations, all) = (shoot.cluster_wide::<K>(), ListParams::default());
    runtime::bounds::survey(&configurations, &all, |configuration: SeenConfiguration| {
        found.add(&K::kind(&()), &configuration);
        ControlFlow::Continue(())
    })
    .await
}

impl Webhooks {
    fn add(&mut self, kind: &str, configuration: &SeenConfiguration) {
        for webhook in &configuration.webhooks.first {
            let list = match webhook.effect() {
                Effect::None => continue,
                Effect::StopsLeaderElection => &mut self.on_leases,
                Effect::StopsControlPlane => &mut self.others,
            };
            if list.len() < MOST {
                let name = &configuration.metadata.name;
                list.push(format!("{kind} {name} ({})", webhook.describe()));
            }
        }
    }

    /// The constraint that reports these webhooks.
    fn constraint(&self, now: &Time) -> Condition {
        let (mut reason, mut sentences) = ("NoProblematicWebhooks", Vec::new());
        if !self.others.is_empty() {
            reason = PROBLEMATIC_WEBHOOKS;
            sentences.push(format!(
                "Webhooks that can stop a sleep or a wake-up, as they match objects of the control plane or of nodes: {} (remedy: exclude the \
                 namespaces kube-system and default by a namespaceSelector, or set failurePolicy Ignore with timeoutSeconds of at \
                 most 15).",
                names(&self.others)
            ));
        }
        if !self.on_leases.is_empty() {
            reason = WEBHOOKS_ON_LEASES;
            sentences.insert(
                0,
                format!(
                    "Webhooks on Leases, by which no controller of the control plane becomes the leader when the webhook does not \
                     answer: {} (remedy: exclude the namespaces kube-system and kube-node-lease by a namespaceSelector, or set \
                     failurePolicy Ignore with timeoutSeconds of at most 3).",
                    names(&self.on_leases)
                ),
            );
        }
        let is_possible = sentences.is_empty();
        let (status, message) = if is_possible {
            let message = "No webhook in the shoot can stop a sleep or a wake-up.".to_owned();
            (ConditionStatus::True, message)
        } else {
            (ConditionStatus::False, sentences.join(" "))
        };
        let mut constraint = Condition::new(HIBERNATION_POSSIBLE, status, reason, &message, now.clone());
        if !is_possible {
            constraint.codes = vec![ErrorCode::ErrProblematicWebhook];
        }
        constraint
    }

    /// Puts the constraint into a list.
    pub(super) fn set_condition(&self, now: &Time, constraints: &mut Vec<Condition>) {
        self.constraint(now).merge_into(constraints);
    }

    /// The sentence of a Warning for users, where the constraint does not report it yet.
    pub(super) fn news(&self, constraints: &[Condition], now: &Time) -> Option<String> {
        let new = self.constraint(now);
        let is_known = find_condition(constraints, HIBERNATION_POSSIBLE)
            .is_some_and(|old| old.status == new.status && old.message == new.message);
        (new.status == ConditionStatus::False && !is_known).then_some(new.message)
    }
}

#[cfg(test)]
#[path = "webhooks_tests.rs"]
mod tests;
