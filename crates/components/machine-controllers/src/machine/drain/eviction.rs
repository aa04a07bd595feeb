//! Evicts pods, and finds the PodDisruptionBudgets that prevent an eviction.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use http::Request;
use k8s_openapi::api::{
    core::v1::Pod,
    policy::v1::{Eviction, PodDisruptionBudget},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    DeleteOptions, LabelSelector, ObjectMeta, Preconditions,
};
use kube::{
    ResourceExt,
    api::ListParams,
    core::{Selector, SelectorExt as _, Status},
};
use runtime::{
    Error, Result,
    client::{Cluster as _, Shoot},
    error::Explain as _,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::pods::{Refusals, format_name};

/// The longest time for the answers to the evictions of a round. Longer than the API server waits for a
/// webhook (30 s), because a request that is dropped earlier has no effect. A refusal (429) comes at once,
/// because no [`runtime::client::Connection`] repeats a request.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(35);

/// A pod that was not evicted, and the reason that the API has given.
pub type Refused<'p> = (&'p Pod, String);

/// Evicts exactly this pod, not a later pod of the same name. Returns the refusal, if the API has refused or
/// has not answered until `deadline`.
pub async fn evict<'p>(shoot: &Shoot, pod: &'p Pod, deadline: Instant) -> Result<Option<Refused<'p>>> {
    let call = shoot.client().request::<Status>(build_request(pod)?);
    let refusal = match tokio::time::timeout_at(deadline, call).await {
        Ok(Ok(_)) => return Ok(None),
        Ok(Err(kube::Error::Api(status))) if status.is_not_found() || status.is_conflict() => {
            return Ok(None);
        }
        Ok(Err(kube::Error::Api(status))) => status.message.clone(),
        Ok(Err(error)) => {
            return Err(error).context(format_args!("could not evict Pod {}", format_name(pod)));
        }
        Err(_) => format!("the eviction was not granted within {ANSWERS_WITHIN:?}"),
    };
    Ok(Some((pod, refusal)))
}

/// The reason for each refusal: the budgets that keep the pod, else the answer of the API. Budgets are listed
/// once, however many pods were refused.
pub async fn explain(shoot: &Shoot, refused: Vec<Refused<'_>>) -> Result<Refusals> {
    if refused.is_empty() {
        return Ok(Refusals::new());
    }
    let namespaces: BTreeSet<_> = refused.iter().filter_map(|(pod, _)| pod.namespace()).collect();
    let mut budgets = Vec::new();
    let (api, all) = (shoot.all::<PodDisruptionBudget>(), ListParams::default());
    let survey = runtime::bounds::survey(&api, &all, |budget: Budget| {
        if budget.is_used_up() && namespaces.contains(&budget.metadata.namespace) {
            budgets.push(budget);
        }
        ControlFlow::Continue(())
    });
    survey.await.context("could not list PodDisruptionBudgets")?;
    let reason = |(pod, answer)| {
        let blocking = find_blocking_budgets(pod, &budgets);
        (format_name(pod), blocking.unwrap_or(answer))
    };
    Ok(refused.into_iter().map(reason).collect())
}

/// The part of a `PodDisruptionBudget` that counts here.
#[derive(Deserialize)]
struct Budget {
    metadata: BudgetMeta,
    spec: Option<BudgetSpec>,
    #[serde(default)]
    status: BudgetStatus,
}

#[derive(Deserialize)]
struct BudgetMeta {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
struct BudgetSpec {
    selector: Option<LabelSelector>,
}

/// Without a status the controller of budgets has not counted the budget yet, and the budget allows no
/// disruption.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BudgetStatus {
    disruptions_allowed: i32,
    desired_healthy: i32,
    current_healthy: i32,
}

impl Budget {
    fn is_used_up(&self) -> bool {
        self.status.disruptions_allowed <= 0
    }

    fn selects(&self, pod: &Pod) -> bool {
        let selector = self.spec.as_ref().and_then(|spec| spec.selector.clone());
        let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
        pod.namespace().as_ref() == Some(&self.metadata.namespace)
            && selector.is_some_and(|selector| selector.matches(pod.labels()))
    }
}

/// The request for the eviction. The request of kube has a wrong field name, so that the server would not see
/// the precondition.
fn build_request(pod: &Pod) -> Result<Request<Vec<u8>>> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let refused = || Error::bug(format!("no eviction of Pod {name}"));
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
    let body = serde_json::to_vec(&eviction).map_err(|error| refused().caused_by(error))?;
    Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction"))
        .header("content-type", "application/json")
        .body(body)
        .map_err(|error| refused().caused_by(error))
}

/// The budgets that prevent the eviction of a pod, with the numbers of each budget.
fn find_blocking_budgets(pod: &Pod, budgets: &[Budget]) -> Option<String> {
    let keep = budgets
        .iter()
        .filter(|budget| budget.is_used_up() && budget.selects(pod));
    let descriptions: Vec<_> = keep
        .map(|budget| {
            format!(
                "the PodDisruptionBudget {} needs {} healthy pods and has {}",
                budget.metadata.name, budget.status.desired_healthy, budget.status.current_healthy
            )
        })
        .collect();
    (!descriptions.is_empty()).then(|| descriptions.join(", "))
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
        let budget = |name: &str, app: &str, allowed: i32| -> Budget {
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "n"}, "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed, "desiredHealthy": 2, "currentHealthy": 2, "expectedPods": 2},
            }))
            .unwrap()
        };
        let all = [
            budget("web", "web", 0),
            budget("lax", "web", 1),
            budget("other", "other", 0),
        ];
        let described = find_blocking_budgets(&pod(), &all).unwrap();
        assert_eq!(
            described,
            "the PodDisruptionBudget web needs 2 healthy pods and has 2"
        );
        assert_eq!(find_blocking_budgets(&pod(), &all[1..]), None);
        let mut elsewhere = budget("web", "web", 0);
        elsewhere.metadata.namespace = "m".into();
        assert_eq!(find_blocking_budgets(&pod(), &[elsewhere]), None);
    }

    #[test]
    fn exactly_this_pod_is_meant() {
        let request = build_request(&pod()).unwrap();
        assert_eq!(request.uri().path(), "/api/v1/namespaces/n/pods/p/eviction");
        let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
        assert_eq!(body["deleteOptions"]["preconditions"]["uid"], "u");
    }
}
