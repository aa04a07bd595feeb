//! The ManagedResources of the parts in the seed and in the shoot, as findings for conditions: pure
//! decisions.

use api::{
    meta::{ConditionStatus, find_condition},
    resources::ManagedResource,
};
use kube::ResourceExt;
use runtime::workload::manifests::SEED_CLASS;

use super::{inputs::CareInputs, observation::Observation};

/// Conditions that must be `True`, with the message for a missing condition.
const MUST_HOLD: [(&str, &str); 2] = [
    ("ResourcesApplied", "nobody has applied it yet"),
    ("ResourcesHealthy", "nobody has looked at its objects yet"),
];

/// `SystemComponentsHealthy`: the objects that the suite and its extensions keep in the shoot.
pub(super) fn system_components(inputs: &CareInputs) -> Observation {
    let kept: Vec<_> = inputs
        .resources
        .iter()
        .filter(|resource| !is_in_seed(resource))
        .collect();
    if kept.is_empty() {
        return Observation::new(
            ConditionStatus::True,
            "NoSystemComponents",
            "Nothing is kept in the shoot itself.",
        );
    }
    if inputs.api_error.is_some() {
        return Observation::new(
            ConditionStatus::Unknown,
            "SystemComponentsUnknown",
            "The shoot's API is not available.",
        );
    }
    let unwell: Vec<_> = kept.into_iter().filter_map(ails).collect();
    match unwell.split_first() {
        None => Observation::new(
            ConditionStatus::True,
            "SystemComponentsRunning",
            "All system components are healthy.",
        ),
        Some((first, others)) => {
            let more = if others.is_empty() {
                String::new()
            } else {
                format!(" (and {} more)", others.len())
            };
            let message = format!("{}{more}.", first.trim_end_matches('.'));
            Observation::new(ConditionStatus::False, "SystemComponentsUnhealthy", message)
        }
    }
}

/// Findings about the ManagedResources with objects in the seed.
pub(super) fn of_the_seed(inputs: &CareInputs) -> impl Iterator<Item = String> {
    inputs
        .resources
        .iter()
        .filter(|resource| is_in_seed(resource))
        .filter_map(ails)
}

fn is_in_seed(resource: &ManagedResource) -> bool {
    resource.spec.class.as_deref() == Some(SEED_CLASS)
}

/// The finding about a ManagedResource. A deletion or a roll-out is not a finding.
fn ails(resource: &ManagedResource) -> Option<String> {
    if resource.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let name = resource.name_any();
    let status = resource.status.as_ref();
    if status.and_then(|status| status.observed_generation) < resource.metadata.generation {
        return Some(format!(
            "ManagedResource {name}: its last change was not applied yet"
        ));
    }
    let conditions = status
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    MUST_HOLD
        .into_iter()
        .find_map(|(type_, nobody)| match find_condition(conditions, type_) {
            Some(condition) if condition.status == ConditionStatus::True => None,
            Some(condition) => Some(format!("ManagedResource {name}: {}", condition.message)),
            None => Some(format!("ManagedResource {name}: {nobody}")),
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn resource(
        name: &str,
        class: Option<&str>,
        generation: i64,
        applied: &str,
        healthy: &str,
    ) -> ManagedResource {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": format!("{type_} is {status}."),
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
        };
        serde_json::from_value(json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": name, "generation": generation},
            "spec": {"class": class, "secretRefs": []},
            "status": {"observedGeneration": 1, "conditions": [
                condition("ResourcesApplied", applied), condition("ResourcesHealthy", healthy),
                condition("ResourcesProgressing", "True")]},
        }))
        .unwrap()
    }

    fn observe(api: bool, resources: Vec<ManagedResource>) -> CareInputs {
        CareInputs {
            api_error: (!api).then(|| "no answer".to_owned()),
            api_not_asked: false,
            nodes: Ok(Vec::new()),
            webhooks: None,
            deployments: Vec::new(),
            pod_reports: BTreeMap::new(),
            etcds: Vec::new(),
            extensions: Vec::new(),
            resources,
        }
    }

    fn report_health(api: bool, resources: Vec<ManagedResource>) -> (ConditionStatus, &'static str, String) {
        let told = system_components(&observe(api, resources));
        (told.status, told.reason, told.message)
    }

    #[test]
    fn what_is_kept_in_the_shoot_decides_and_what_is_wrong_is_told_by_name() {
        use ConditionStatus::{False, True, Unknown};
        let well = || resource("dns", None, 1, "True", "True");
        assert_eq!(report_health(true, vec![well()]).0, True);
        let ill = |message: &str| (False, "SystemComponentsUnhealthy", message.to_owned());
        for (resource, message) in [
            (
                resource("proxy", None, 1, "False", "True"),
                "ManagedResource proxy: ResourcesApplied is False.",
            ),
            (
                resource("proxy", None, 1, "True", "False"),
                "ManagedResource proxy: ResourcesHealthy is False.",
            ),
            (
                resource("proxy", Some("mine"), 1, "True", "Unknown"),
                "ManagedResource proxy: ResourcesHealthy is Unknown.",
            ),
            (
                resource("proxy", None, 2, "True", "True"),
                "ManagedResource proxy: its last change was not applied yet.",
            ),
        ] {
            assert_eq!(report_health(true, vec![well(), resource.clone()]), ill(message));
            // The API server is the cause, and has a condition of its own.
            assert_eq!(report_health(false, vec![well(), resource]).0, Unknown);
        }
        let two = vec![
            resource("a", None, 2, "True", "True"),
            resource("b", None, 1, "True", "False"),
        ];
        let message = "ManagedResource a: its last change was not applied yet (and 1 more).";
        assert_eq!(report_health(true, two), ill(message));
    }

    #[test]
    fn nobody_said_anything_is_not_well_and_what_goes_away_is_not_ill() {
        let mut new = resource("dns", None, 1, "True", "True");
        new.status.as_mut().unwrap().conditions.clear();
        assert_eq!(
            report_health(true, vec![new.clone()]).2,
            "ManagedResource dns: nobody has applied it yet."
        );
        new.status = None;
        assert_eq!(report_health(true, vec![new.clone()]).0, ConditionStatus::False);
        new.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            jiff::Timestamp::UNIX_EPOCH,
        ));
        assert_eq!(report_health(true, vec![new]).0, ConditionStatus::True);
    }

    #[test]
    fn what_is_in_the_seed_is_a_part_of_the_control_plane() {
        let in_seed = vec![resource("manager", Some("seed"), 1, "True", "False")];
        assert_eq!(report_health(false, in_seed.clone()).1, "NoSystemComponents");
        let wrong: Vec<_> = of_the_seed(&observe(true, in_seed)).collect();
        assert_eq!(wrong, ["ManagedResource manager: ResourcesHealthy is False."]);
        assert_eq!(
            of_the_seed(&observe(true, vec![resource("dns", None, 1, "False", "True")])).count(),
            0
        );
    }
}
