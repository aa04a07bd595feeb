//! The conditions of a ControllerInstallation. Pure.

use api::{
    meta::{Condition, ConditionStatus, find_condition},
    resources::ManagedResource,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(super) const VALID: &str = "Valid";
pub(super) const INSTALLED: &str = "Installed";
pub(super) const HEALTHY: &str = "Healthy";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REQUIRED: &str = "Required";

/// Objects that are named in a sentence.
const EXAMPLES: usize = 3;

/// An observation without a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConditionReport {
    pub(super) type_: &'static str,
    pub(super) status: ConditionStatus,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl ConditionReport {
    pub(super) fn new(
        type_: &'static str,
        status: ConditionStatus,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            status,
            reason,
            message: message.into(),
        }
    }

    pub(super) fn at(&self, now: &Time) -> Condition {
        Condition::new(self.type_, self.status, self.reason, &self.message, now.clone())
    }
}

/// `Required`: whether the seed has extension objects that the extension serves.
pub(super) fn required(in_use: &[String]) -> ConditionReport {
    if in_use.is_empty() {
        let message = "There is no object of its kinds in the seed.";
        return ConditionReport::new(REQUIRED, ConditionStatus::False, "NoExtensionObjects", message);
    }
    let some: Vec<_> = in_use.iter().take(EXAMPLES).map(String::as_str).collect();
    let message = format!(
        "There are objects that it serves in the seed, e.g. {}.",
        some.join(", ")
    );
    ConditionReport::new(REQUIRED, ConditionStatus::True, "ExtensionObjectsExist", message)
}

/// `Required`, if the registration is missing and the objects are unknown.
pub(super) fn unknown(why: &str) -> ConditionReport {
    ConditionReport::new(
        REQUIRED,
        ConditionStatus::Unknown,
        "RegistrationNotFound",
        format!("{why}."),
    )
}

/// `Installed`, if the objects could not be written into the seed.
pub(super) fn failed(why: &str) -> ConditionReport {
    ConditionReport::new(
        INSTALLED,
        ConditionStatus::False,
        "InstallationFailed",
        format!("{}.", why.trim_end_matches('.')),
    )
}

/// A chart that cannot be rendered is invalid. The earlier installation stays, and its conditions are still
/// reported.
pub(super) fn invalid(why: &str) -> ConditionReport {
    ConditionReport::new(
        VALID,
        ConditionStatus::False,
        "ChartCannotBeRendered",
        format!("{}.", why.trim_end_matches('.')),
    )
}

pub(super) fn valid() -> ConditionReport {
    ConditionReport::new(
        VALID,
        ConditionStatus::True,
        "RegistrationValid",
        "The chart could be rendered.",
    )
}

/// Conditions of an extension that the operator installs without a ControllerDeployment.
pub(super) fn by_other_means() -> [ConditionReport; 4] {
    let why = "The registration names no ControllerDeployment: whoever installs it looks after it.";
    [
        ConditionReport::new(VALID, ConditionStatus::True, "RegistrationValid", why),
        ConditionReport::new(INSTALLED, ConditionStatus::True, "InstalledByOtherMeans", why),
        ConditionReport::new(HEALTHY, ConditionStatus::True, "NotLookedAt", why),
        ConditionReport::new(PROGRESSING, ConditionStatus::False, "NotLookedAt", why),
    ]
}

/// `Installed`, `Healthy` and `Progressing`, as the resource-manager reports the objects with this checksum.
pub(super) fn of_resource(
    resource: Option<&ManagedResource>,
    checksum: Option<&str>,
) -> [ConditionReport; 3] {
    use ConditionStatus::{False, True, Unknown};
    let status = resource.and_then(|resource| resource.status.as_ref());
    let condition = |type_| status.and_then(|status| find_condition(&status.conditions, type_));
    let acted = resource
        .zip(checksum)
        .is_some_and(|(resource, checksum)| has_acted(resource, checksum));
    let installed = match (acted, condition("ResourcesApplied")) {
        (true, Some(applied)) if applied.status == True => ConditionReport::new(
            INSTALLED,
            True,
            "InstallationSuccessful",
            "All objects of the chart are applied.",
        ),
        (_, Some(applied)) if applied.status == False => {
            ConditionReport::new(INSTALLED, False, "InstallationFailed", &applied.message)
        }
        (true, Some(applied)) => {
            ConditionReport::new(INSTALLED, False, "InstallationPending", &applied.message)
        }
        _ if resource.is_none() => ConditionReport::new(
            INSTALLED,
            False,
            "InstallationPending",
            "Nothing of it is installed.",
        ),
        _ => {
            let message = "The resource-manager of the seed has not acted on it yet.";
            ConditionReport::new(INSTALLED, False, "InstallationPending", message)
        }
    };
    let healthy = match condition("ResourcesHealthy") {
        Some(found) if found.status == True => {
            ConditionReport::new(HEALTHY, True, "ControllerHealthy", &found.message)
        }
        Some(found) if found.status == Unknown => {
            ConditionReport::new(HEALTHY, Unknown, "ControllerNotHealthy", &found.message)
        }
        Some(found) => ConditionReport::new(HEALTHY, False, "ControllerNotHealthy", &found.message),
        None => ConditionReport::new(
            HEALTHY,
            Unknown,
            "ControllerNotHealthy",
            "Nothing is known of its objects yet.",
        ),
    };
    let progressing = match condition("ResourcesProgressing") {
        Some(found) if found.status == False => {
            ConditionReport::new(PROGRESSING, False, "ControllerRolledOut", &found.message)
        }
        Some(found) => ConditionReport::new(PROGRESSING, True, "ControllerNotRolledOut", &found.message),
        None => ConditionReport::new(
            PROGRESSING,
            Unknown,
            "ControllerNotRolledOut",
            "Nothing is known of its objects yet.",
        ),
    };
    [installed, healthy, progressing]
}

/// Whether the resource-manager has acted on the objects with this checksum.
fn has_acted(resource: &ManagedResource, checksum: &str) -> bool {
    resource.status.as_ref().is_some_and(|status| {
        status.observed_generation == resource.metadata.generation
            && status.secrets_data_checksum.as_deref() == Some(checksum)
    })
}

/// `Healthy`, if all objects are healthy but the extension no longer renews its Lease. A failure that the
/// resource-manager reports takes precedence, because that failure is nearer to the cause.
pub(super) fn without_sign_of_life(told: &mut [ConditionReport], lease: &str, renewed: Timestamp) {
    let healthy = told.iter_mut().find(|told| told.type_ == HEALTHY);
    if let Some(healthy) = healthy.filter(|told| told.status != ConditionStatus::False) {
        let message = format!("There was no sign of life since {renewed}: it does not renew Lease {lease}.");
        *healthy = ConditionReport::new(HEALTHY, ConditionStatus::False, "NoSignOfLife", message);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    /// Of generation 2 and with this of the status.
    fn resource(observed: i64, checksum: &str, conditions: &[(&str, &str)]) -> ManagedResource {
        let time = "2026-01-01T00:00:00Z";
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": format!("{type_} said so"),
                    "lastTransitionTime": time, "lastUpdateTime": time})
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": "m", "generation": 2}, "spec": {"secretRefs": []},
            "status": {"observedGeneration": observed, "secretsDataChecksum": checksum, "conditions": conditions},
        }))
        .unwrap()
    }

    fn statuses(
        resource: Option<&ManagedResource>,
        checksum: Option<&str>,
    ) -> [(ConditionStatus, &'static str); 3] {
        of_resource(resource, checksum).map(|told| (told.status, told.reason))
    }

    const GOOD: &[(&str, &str)] = &[
        ("ResourcesApplied", "True"),
        ("ResourcesHealthy", "True"),
        ("ResourcesProgressing", "False"),
    ];

    #[test]
    fn only_exactly_this_chart_is_installed() {
        use ConditionStatus::{False, True};
        let installed = |observed, checksum, wanted| {
            let resource = resource(observed, checksum, GOOD);
            statuses(Some(&resource), wanted)[0]
        };
        assert_eq!(installed(2, "a", Some("a")), (True, "InstallationSuccessful"));
        assert_eq!(installed(1, "a", Some("a")), (False, "InstallationPending"));
        assert_eq!(installed(2, "old", Some("a")), (False, "InstallationPending"));
        assert_eq!(installed(2, "a", None), (False, "InstallationPending"));
        assert_eq!(statuses(None, Some("a"))[0], (False, "InstallationPending"));
    }

    #[test]
    fn the_rest_is_what_the_resource_manager_says() {
        use ConditionStatus::{False, True, Unknown};
        let told = |conditions: &[(&str, &str)]| statuses(Some(&resource(2, "a", conditions)), Some("a"));
        assert_eq!(
            told(GOOD)[1..],
            [(True, "ControllerHealthy"), (False, "ControllerRolledOut")]
        );
        assert_eq!(
            told(&[])[1..],
            [
                (Unknown, "ControllerNotHealthy"),
                (Unknown, "ControllerNotRolledOut")
            ]
        );
        let bad = told(&[
            ("ResourcesApplied", "False"),
            ("ResourcesHealthy", "False"),
            ("ResourcesProgressing", "True"),
        ]);
        assert_eq!(
            bad,
            [
                (False, "InstallationFailed"),
                (False, "ControllerNotHealthy"),
                (True, "ControllerNotRolledOut")
            ]
        );
        let waits = told(&[
            ("ResourcesApplied", "Progressing"),
            ("ResourcesHealthy", "Unknown"),
        ]);
        assert_eq!(
            waits[..2],
            [(False, "InstallationPending"), (Unknown, "ControllerNotHealthy")]
        );
    }

    #[test]
    fn without_a_sign_of_life_good_objects_are_not_enough() {
        use ConditionStatus::{False, True};
        let told = |conditions: &[(&str, &str)]| {
            let mut told = of_resource(Some(&resource(2, "a", conditions)), Some("a"));
            without_sign_of_life(&mut told, "n/l", "2026-01-01T00:00:00Z".parse().unwrap());
            told
        };
        let [installed, healthy, progressing] = told(GOOD);
        assert_eq!((installed.status, progressing.status), (True, False));
        assert_eq!((healthy.status, healthy.reason), (False, "NoSignOfLife"));
        assert_eq!(
            healthy.message,
            "There was no sign of life since 2026-01-01T00:00:00Z: it does not renew Lease n/l."
        );
        assert_eq!(told(&[])[1].reason, "NoSignOfLife", "nothing else is known");
        assert_eq!(
            told(&[("ResourcesHealthy", "False")])[1].reason,
            "ControllerNotHealthy"
        );
    }

    #[test]
    fn what_is_required_names_some() {
        assert_eq!(required(&[]).status, ConditionStatus::False);
        let many: Vec<_> = (0..9)
            .map(|number| format!("Network n/{number} of type mesh"))
            .collect();
        let told = required(&many);
        assert_eq!(told.status, ConditionStatus::True);
        assert!(
            told.message.contains("n/2") && !told.message.contains("n/3"),
            "{}",
            told.message
        );
    }
}
