//! Asks one pod to leave, and finds out what keeps it.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::{
    core::v1::Pod,
    policy::v1::{Eviction, PodDisruptionBudget},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::{
    Api, ResourceExt,
    api::ListParams,
    core::{Selector, SelectorExt as _, Status},
};
use runtime::{Cluster as _, Error, Result, Shoot, error::Explain as _};

use super::pods::title;

/// How long an answer is waited for. Clients repeat what was answered with 429 by themselves, for minutes; here the pod is asked
/// again in the next round, and what keeps it is to be known by then.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Asks a pod to leave: exactly this one, not a later one of the same name. Gives who it is and what keeps it, if something does.
pub async fn evict(shoot: &Shoot, pod: &Pod) -> Result<Option<(String, String)>> {
    let asked = shoot.client().request::<Status>(request(pod)?);
    let refusal = match tokio::time::timeout(ANSWERS_WITHIN, asked).await {
        Ok(Ok(_)) => return Ok(None),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => {
            return Ok(None);
        }
        Ok(Err(kube::Error::Api(status))) => status.message.clone(),
        Ok(Err(error)) => return Err(error).context(format_args!("could not evict Pod {}", title(pod))),
        Err(_) => format!("the eviction was not granted within {ANSWERS_WITHIN:?}"),
    };
    let budgets: Api<PodDisruptionBudget> = shoot.namespaced(&pod.namespace().unwrap_or_default());
    let budgets = budgets.list(&ListParams::default()).await;
    let budgets = budgets.context("could not list PodDisruptionBudgets")?;
    let keeps = what_keeps(pod, &budgets.items).unwrap_or(refusal);
    Ok(Some((title(pod), keeps)))
}

/// The request. (That of kube names a field wrongly, so that the server would not see which pod is meant.)
fn request(pod: &Pod) -> Result<Request<Vec<u8>>> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let wrong = |error: &dyn std::fmt::Display| Error::bug(format!("no eviction of Pod {name}: {error}"));
    let eviction = Eviction {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            preconditions: Some(Preconditions {
                uid: pod.uid(),
                resource_version: None,
            }),
            ..DeleteOptions::default()
        }),
    };
    let body = serde_json::to_vec(&eviction).map_err(|error| wrong(&error))?;
    Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"))
        .header("content-type", "application/json")
        .body(body)
        .map_err(|error| wrong(&error))
}

/// The budgets that let a pod not go, with their numbers.
fn what_keeps(pod: &Pod, budgets: &[PodDisruptionBudget]) -> Option<String> {
    let keep = budgets.iter().filter(|budget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
        let none_may_go = budget
            .status
            .as_ref()
            .is_none_or(|status| status.disruptions_allowed <= 0);
        none_may_go && selector.is_some_and(|selector| selector.matches(pod.labels()))
    });
    let told: Vec<_> = keep
        .map(|budget| {
            let status = budget.status.clone().unwrap_or_default();
            format!(
                "the PodDisruptionBudget {} needs {} healthy pods and has {}",
                budget.name_any(),
                status.desired_healthy,
                status.current_healthy
            )
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(
            json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "web"}}}),
        )
        .unwrap()
    }

    #[test]
    fn the_budgets_that_do_not_let_go_are_named() {
        let budget = |name: &str, app: &str, allowed: i32| -> PodDisruptionBudget {
            serde_json::from_value(json!({
                "metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed, "desiredHealthy": 2, "currentHealthy": 2, "expectedPods": 2},
            }))
            .unwrap()
        };
        let all = [
            budget("web", "web", 0),
            budget("lax", "web", 1),
            budget("other", "other", 0),
        ];
        let told = what_keeps(&pod(), &all).unwrap();
        assert_eq!(told, "the PodDisruptionBudget web needs 2 healthy pods and has 2");
        assert_eq!(what_keeps(&pod(), &all[1..]), None);
    }

    #[test]
    fn exactly_this_pod_is_meant() {
        let request = request(&pod()).unwrap();
        assert_eq!(request.uri().path(), "/api/v1/namespaces/n/pods/p/eviction");
        let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
        assert_eq!(body["deleteOptions"]["preconditions"]["uid"], "u");
    }
}
