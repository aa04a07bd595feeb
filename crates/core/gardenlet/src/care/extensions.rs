//! Conditions in the extension objects of a shoot, merged into the conditions of the Shoot.
//!
//! A provider reports in `status.conditions` of any extension object. A condition of a type that the Shoot
//! also has counts towards that condition of the Shoot. All remaining types belong to the provider and are
//! ignored.

use std::ops::ControlFlow;

use api::{
    extensions::{
        BackupEntry, ContainerRuntime, ControlPlane, DNSRecord, Infrastructure, Network,
        OperatingSystemConfig, Worker,
    },
    meta::{Condition, ConditionStatus, LastError, LastOperation, find_condition},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, api::ListParams};
use runtime::{Result, client::Cluster, error::Explain as _};
use serde::Deserialize;

use super::{inputs::Extension, label::rank, observation::Observation};
use crate::Context;

/// The part of an extension object that counts. Specifications and the state for a restore are large, and are
/// not read.
#[derive(Deserialize)]
struct Report {
    metadata: Name,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    last_operation: Option<LastOperation>,
    last_error: Option<LastError>,
    conditions: Vec<Condition>,
}

/// The reports of all extension objects of a shoot but Bastions and SubnetIsolations. Bastions serve single
/// users; SubnetIsolations have a separate condition (`ZoneIsolation`). `backup_entry`: name of the shoot's
/// `BackupEntry`. The lists come in sequence: each request under way costs a connection, and many shoots are
/// checked at once.
pub(super) async fn reports(
    context: &Context,
    namespace: &str,
    backup_entry: &str,
) -> Result<Vec<Extension>> {
    let only = ListParams::default().fields(&format!("metadata.name={backup_entry}"));
    let mut reports = in_namespace::<Infrastructure>(context, namespace).await?;
    reports.extend(in_namespace::<ControlPlane>(context, namespace).await?);
    reports.extend(in_namespace::<DNSRecord>(context, namespace).await?);
    reports.extend(in_namespace::<Network>(context, namespace).await?);
    reports.extend(in_namespace::<OperatingSystemConfig>(context, namespace).await?);
    reports.extend(in_namespace::<Worker>(context, namespace).await?);
    reports.extend(in_namespace::<ContainerRuntime>(context, namespace).await?);
    reports.extend(in_namespace::<api::extensions::Extension>(context, namespace).await?);
    reports.extend(list(context.seed.cluster_wide::<BackupEntry>(), only).await?);
    Ok(reports)
}

async fn in_namespace<K>(context: &Context, namespace: &str) -> Result<Vec<Extension>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone,
{
    list(context.seed.namespaced::<K>(namespace), ListParams::default()).await
}

async fn list<K>(api: Api<K>, params: ListParams) -> Result<Vec<Extension>>
where
    K: Resource<DynamicType = ()> + Clone,
{
    let mut extensions = Vec::new();
    let survey = runtime::bounds::survey(&api, &params, |report: Report| {
        extensions.push(Extension {
            title: format!("{} {}", K::kind(&()), report.metadata.name),
            last_operation: report.status.last_operation,
            last_error: report.status.last_error,
            conditions: report.status.conditions,
        });
        ControlFlow::Continue(())
    });
    survey
        .await
        .context(format_args!("could not list {}", K::plural(&())))?;
    Ok(extensions)
}

/// The worse of two findings about an aspect of the shoot: the observation of the gardenlet and the reports
/// of the extension objects.
pub(super) fn worse(type_: &str, observed: Observation, extensions: &[Extension]) -> Observation {
    let reports = extensions.iter().filter_map(|extension| {
        let condition = find_condition(&extension.conditions, type_)?;
        (rank(condition.status) > 0).then_some((extension, condition))
    });
    let reports: Vec<_> = reports.collect();
    let Some(worst) = reports.iter().map(|(_, condition)| rank(condition.status)).max() else {
        return observed;
    };
    if rank(observed.status) >= worst {
        return observed;
    }
    let mut worst_reports = reports
        .iter()
        .filter(|(_, condition)| rank(condition.status) == worst);
    let Some((extension, condition)) = worst_reports.next() else {
        return observed;
    };
    let more = match worst_reports.count() {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    let reason = match condition.status {
        ConditionStatus::False => "ExtensionUnhealthy",
        ConditionStatus::Unknown => "ExtensionUnknown",
        ConditionStatus::Progressing | ConditionStatus::True => "ExtensionProgressing",
    };
    let message = condition.message.trim_end_matches('.');
    let mut codes: Vec<_> = reports
        .iter()
        .flat_map(|(_, condition)| condition.codes.clone())
        .collect();
    codes.sort_unstable();
    codes.dedup();
    Observation {
        codes,
        ..Observation::new(
            condition.status,
            reason,
            format!("{} reports: {message}{more}.", extension.title),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ConditionStatus::{False, Progressing, True, Unknown};
    use api::meta::ErrorCode;
    use serde_json::json;

    use super::*;

    fn report(name: &str, conditions: &[(&str, &str)]) -> Extension {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": format!("{name} is {status}."),
                    "codes": ["ERR_INFRA_QUOTA_EXCEEDED"],
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        Extension {
            title: format!("Worker {name}"),
            last_operation: None,
            last_error: None,
            conditions: serde_json::from_value(json!(conditions)).unwrap(),
        }
    }

    fn observe(status: ConditionStatus) -> Observation {
        Observation::new(status, "Own", "own.")
    }

    #[test]
    fn a_condition_of_a_provider_counts_towards_that_of_the_shoot() {
        let type_ = "EveryNodeReady";
        let well = report("a", &[(type_, "True")]);
        assert_eq!(
            worse(type_, observe(True), std::slice::from_ref(&well)),
            observe(True)
        );
        for (status, became, reason) in [
            ("False", False, "ExtensionUnhealthy"),
            ("Unknown", Unknown, "ExtensionUnknown"),
            ("Progressing", Progressing, "ExtensionProgressing"),
        ] {
            let told = worse(
                type_,
                observe(True),
                &[well.clone(), report("b", &[(type_, status)])],
            );
            assert_eq!((told.status, told.reason), (became, reason));
            assert_eq!(told.message, format!("Worker b reports: b is {status}."));
            assert_eq!(told.codes, [ErrorCode::ErrInfraQuotaExceeded]);
        }
    }

    #[test]
    fn the_worst_of_all_reports_is_named_and_equals_are_counted() {
        let type_ = "ControlPlaneHealthy";
        let reports = [
            report("a", &[(type_, "Progressing")]),
            report("b", &[(type_, "False")]),
            report("c", &[(type_, "False")]),
        ];
        let told = worse(type_, observe(Unknown), &reports);
        assert_eq!(told.message, "Worker b reports: b is False (and 1 more).");
        // The observation of the gardenlet is as bad as the report, and nearer to the cause.
        assert_eq!(worse(type_, observe(False), &reports), observe(False));
    }

    #[test]
    fn a_condition_of_a_type_that_the_shoot_lacks_counts_nowhere() {
        let own = [report(
            "a",
            &[("MachinesPoweredByUnicorns", "False"), ("", "Unknown")],
        )];
        for type_ in ["ControlPlaneHealthy", "SystemComponentsHealthy", "EveryNodeReady"] {
            assert_eq!(worse(type_, observe(True), &own), observe(True));
        }
    }

    #[test]
    fn an_object_counts_whatever_else_its_provider_writes() {
        let object = json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Network",
            "metadata": {"name": "web", "labels": {"x": "y"}},
            "spec": {"type": "third-party", "providerConfig": {"deep": [[1]]}},
            "status": {"providerStatus": {"any": 1}, "state": {"x": [1, {}]}, "newField": {"a": null}},
        });
        let report: Report = serde_json::from_value(object).unwrap();
        assert!(report.status.conditions.is_empty() && report.status.last_operation.is_none());
        let bare: Report = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
        assert_eq!(bare.metadata.name, "web");
    }
}
