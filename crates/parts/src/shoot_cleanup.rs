//! Empties a shoot that is deleted, through its own API, so that its own controllers release what they hold outside:
//! volumes, load balancers. Bounded: what does not go in time is told with a code that allows a forced deletion.
//!
//! Order: what can get in the way of deletions first (webhooks, extended APIs), then custom resources, then what holds
//! something outside, then namespaces with all the rest.

use std::{ops::ControlFlow, time::Duration};

use api::meta::ErrorCode;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams},
    core::ApiResource,
};
use runtime::{Cluster, Error, Result, Shoot, apply::Object, error::Explain, words::some_of};
use serde::{Deserialize, de::IgnoredAny};

use crate::{Facts, dynamic};

/// Annotation: the cleaning is left out, by a user who knows that nothing outside is lost.
const SKIP: &str = "shoot.gardener.cloud/skip-cleanup";
/// Namespaces that a cluster cannot be without.
const KEPT: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Pause between two looks: many kinds at once, each a watch of its own, would cost more than it saves. Much shorter than
/// the wait as a whole.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// So many objects of a kind are deleted after one look.
const AT_A_TIME: usize = 1000;
/// How many names an error quotes.
const QUOTED: usize = 10;

/// What is read of an object of any of these kinds. Their types of Kubernetes would let a schema of a user's fill the memory.
#[derive(Deserialize)]
struct Seen {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(rename = "type")]
    type_: Option<String>,
    service: Option<IgnoredAny>,
}

/// What users made in the shoot.
#[derive(Debug)]
pub struct ShootObjects;

impl ShootObjects {
    /// "Cleaning kubernetes resources".
    pub async fn clean(f: &Facts) -> Result<()> {
        if f.shoot
            .annotations()
            .get(SKIP)
            .is_some_and(|value| value == "true")
        {
            return Ok(());
        }
        let shoot = f.shoot_client().await?;
        let mut remains = Vec::new();
        let work = async {
            for step in [
                Wave::Obstacles,
                Wave::CustomResources,
                Wave::External,
                Wave::Namespaces,
            ] {
                loop {
                    remains = clean(&shoot, step).await?;
                    if remains.is_empty() {
                        break;
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Ok(())
        };
        match tokio::time::timeout(f.settings.timeouts.cleanup, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::config(
                ErrorCode::ErrCleanupClusterResources,
                sentence(&remains),
            )),
        }
    }
}

/// One step of the order.
#[derive(Clone, Copy, Debug)]
enum Wave {
    Obstacles,
    CustomResources,
    External,
    Namespaces,
}

/// Asks for the deletion of all that the step is about, and says what is still there.
async fn clean(shoot: &Shoot, step: Wave) -> Result<Vec<String>> {
    let mut remains = Vec::new();
    match step {
        Wave::Obstacles => {
            remains.extend(clean_kind::<ValidatingWebhookConfiguration>(shoot, |_| true).await?);
            remains.extend(clean_kind::<MutatingWebhookConfiguration>(shoot, |_| true).await?);
            remains.extend(clean_kind::<APIService>(shoot, is_extended).await?);
        }
        Wave::CustomResources => {
            remains.extend(clean_kind::<CustomResourceDefinition>(shoot, |_| true).await?);
        }
        Wave::External => {
            remains.extend(clean_kind::<Ingress>(shoot, |_| true).await?);
            remains.extend(clean_kind::<Service>(shoot, is_load_balancer).await?);
            remains.extend(clean_kind::<PersistentVolumeClaim>(shoot, |_| true).await?);
            remains.extend(clean_kind::<PersistentVolume>(shoot, |_| true).await?);
        }
        Wave::Namespaces => remains.extend(clean_kind::<Namespace>(shoot, is_users).await?),
    }
    Ok(remains)
}

async fn clean_kind<K: Object>(shoot: &Shoot, concerns: fn(&Seen) -> bool) -> Result<Vec<String>> {
    let kind = ApiResource::erase::<K>(&());
    let (mut to_delete, mut remains) = (Vec::new(), Vec::new());
    // Its users make as many as they like. What is too many is deleted after the next look, and not told.
    let (objects, all) = (shoot.all::<K>(), ListParams::default());
    let survey = runtime::survey(&objects, &all, |object: Seen| {
        if concerns(&object) {
            let Metadata {
                name,
                namespace,
                deletion_timestamp,
            } = object.metadata;
            if remains.len() < AT_A_TIME {
                let place = namespace.as_ref().map_or(String::new(), |of| format!("{of}/"));
                remains.push(format!("{} {place}{name}", kind.kind));
            }
            if deletion_timestamp.is_none() {
                to_delete.push((namespace, name));
            }
        }
        if to_delete.len() < AT_A_TIME {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    let surveyed = survey.await;
    surveyed.context(format_args!("could not list {} in the shoot", kind.kind))?;
    for (namespace, name) in to_delete {
        let api = api_of(shoot, namespace.as_deref(), &kind);
        dynamic::delete(&api, &kind, &name, None).await?;
    }
    Ok(remains)
}

/// The Api in which one object can be deleted, whatever its scope is.
fn api_of(shoot: &Shoot, namespace: Option<&str>, kind: &ApiResource) -> Api<DynamicObject> {
    let client = shoot.client().clone();
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, kind),
        None => Api::all_with(client, kind),
    }
}

/// An extended API: served by a pod, which will be gone.
fn is_extended(service: &Seen) -> bool {
    service.spec.service.is_some()
}

fn is_load_balancer(service: &Seen) -> bool {
    service.spec.type_.as_deref() == Some("LoadBalancer")
}

fn is_users(namespace: &Seen) -> bool {
    !KEPT.contains(&namespace.metadata.name.as_str())
}

fn sentence(remains: &[String]) -> String {
    let quoted = some_of(remains, QUOTED);
    format!(
        "objects in the shoot are still being deleted: {quoted}. Remove what holds them (their finalizers' controllers); \
         or delete the Shoot by force, and clean up in the infrastructure by hand"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn seen(object: Value) -> Seen {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn namespaces_of_the_cluster_itself_are_kept() {
        let named = |name: &str| seen(json!({"metadata": {"name": name}}));
        assert!(is_users(&named("web")));
        assert!(KEPT.iter().all(|name| !is_users(&named(name))));
    }

    // The parser of a type that keeps what it reads gives up at 128.
    #[test]
    fn a_schema_of_any_depth_is_read_over() {
        let schema = "{\"items\":".repeat(10_000) + "{}" + &"}".repeat(10_000);
        let text = format!(r#"{{"metadata":{{"name":"deep"}},"spec":{{"versions":[{schema}]}}}}"#);
        let seen: Seen = serde_json::from_str(&text).unwrap();
        assert_eq!(seen.metadata.name, "deep");
        assert!(!is_extended(&seen) && !is_load_balancer(&seen));
    }

    #[test]
    fn what_is_held_outside_is_known_by_its_spec() {
        let with = |spec: Value| seen(json!({"metadata": {"name": "a"}, "spec": spec}));
        assert!(is_load_balancer(&with(json!({"type": "LoadBalancer"}))));
        assert!(!is_load_balancer(&with(json!({"type": "ClusterIP"}))));
        assert!(is_extended(&with(
            json!({"service": {"name": "metrics", "namespace": "kube-system"}})
        )));
        assert!(!is_extended(&with(json!({"service": null, "group": "apps"}))));
        assert!(!is_extended(&with(json!({}))));
    }

    #[test]
    fn a_long_list_is_cut() {
        let many: Vec<String> = (0..13).map(|number| format!("Namespace n{number}")).collect();
        let told = sentence(&many);
        assert!(told.contains("Namespace n9 and 3 more"), "{told}");
    }
}
