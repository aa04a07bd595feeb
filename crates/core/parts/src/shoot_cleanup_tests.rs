//! The clean-up of a simulated shoot, whose controllers re-create, hold or refuse.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // the client reaches no server
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use runtime::client::Permit;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::service_fn;

use super::*;

const BOUND: Duration = Duration::from_secs(60);
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MANAGED: &str = "shoot--dev--web/extension-addon";

/// A reaction of the simulated shoot to the deletion of an object.
#[derive(Clone, Copy)]
enum Reaction {
    /// A controller creates the object again.
    Recreated,
    /// A webhook refuses the request.
    Refused,
    /// A finalizer stays.
    Held,
}

/// A simulated API, with pvc-protection and the StatefulSet controller.
struct Simulated {
    objects: BTreeMap<String, Value>,
    reactions: BTreeMap<&'static str, Reaction>,
    deletions: Vec<String>,
    start: Instant,
}

impl Simulated {
    fn new(objects: &[(&str, Value)]) -> Arc<Mutex<Self>> {
        let mut simulated = Self {
            objects: BTreeMap::new(),
            reactions: BTreeMap::new(),
            deletions: Vec::new(),
            start: Instant::now(),
        };
        for (path, object) in objects {
            simulated.create(path, object.clone());
        }
        Arc::new(Mutex::new(simulated))
    }

    fn create(&mut self, path: &str, mut object: Value) {
        let seconds = self.start.elapsed().as_secs();
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(path.rsplit('/').next());
        if let Some((_, within)) = path.split_once("/namespaces/")
            && let Some((namespace, _)) = within.split_once('/')
        {
            metadata["namespace"] = json!(namespace);
        }
        let time = format!("2026-01-01T00:{:02}:{:02}Z", seconds / 60, seconds % 60);
        metadata["creationTimestamp"] = json!(time);
        metadata.as_object_mut().unwrap().remove("deletionTimestamp");
        self.objects.insert(path.to_owned(), object);
    }

    fn list(&mut self, path: &str) -> Value {
        if !self.objects.keys().any(|path| path.contains("/default/pods/")) {
            let is_gone = |path: &String, object: &mut Value| {
                path.contains("/persistentvolumeclaims/")
                    && !object["metadata"]["deletionTimestamp"].is_null()
            };
            let _ = self.objects.extract_if(.., is_gone).count();
        }
        let items: Vec<_> = self
            .objects
            .iter()
            .filter(|(object, _)| list_of(object) == path)
            .map(|(_, object)| object)
            .collect();
        json!({"metadata": {}, "items": items})
    }

    fn delete(&mut self, path: &str) -> (StatusCode, Value) {
        self.deletions.push(path.to_owned());
        let Some(mut object) = self.objects.get(path).cloned() else {
            return (StatusCode::NOT_FOUND, status(404, "NotFound", "gone"));
        };
        let is_claim = path.contains("/persistentvolumeclaims/");
        match self.reactions.get(path) {
            Some(Reaction::Refused) => {
                let denied = "admission webhook \"deny.example.test\" denied the request";
                return (StatusCode::FORBIDDEN, status(403, "Forbidden", denied));
            }
            Some(Reaction::Recreated) => self.create(path, object),
            reaction if is_claim || reaction.is_some() => {
                object["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
                self.objects.insert(path.to_owned(), object);
            }
            _ => {
                self.objects.remove(path);
                let has_controller = self.objects.keys().any(|path| path.contains("/statefulsets/"));
                if path.contains("/pods/") && has_controller {
                    self.create(path, object);
                }
            }
        }
        (StatusCode::OK, status(200, "", ""))
    }
}

/// The path of the list, over all namespaces, that contains the object of this path.
fn list_of(object: &str) -> String {
    let (parent, _) = object.rsplit_once('/').unwrap();
    match parent.split_once("/namespaces/") {
        Some((api, within)) => format!("{api}/{}", within.split_once('/').unwrap().1),
        None => parent.to_owned(),
    }
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    let status = if code < 300 { "Success" } else { "Failure" };
    json!({"kind": "Status", "apiVersion": "v1", "status": status, "reason": reason, "message": message, "code": code})
}

fn cleanup(simulated: &Arc<Mutex<Simulated>>) -> Cleanup {
    let simulated = simulated.clone();
    let answer = move |request: Request<Body>| {
        let mut simulated = simulated.lock().unwrap();
        let path = request.uri().path();
        let (code, body) = match *request.method() {
            Method::DELETE => simulated.delete(path),
            _ => (StatusCode::OK, simulated.list(path)),
        };
        let body = Body::from(serde_json::to_vec(&body).unwrap());
        let response = Response::builder().status(code).body(body).unwrap();
        std::future::ready(Ok::<_, std::io::Error>(response))
    };
    let shoot = Shoot::new(
        Client::new(service_fn(answer), "default"),
        &Permit::sole("a test"),
    );
    Cleanup::new(shoot, BTreeSet::from([MANAGED.to_owned()]))
}

fn left(simulated: &Arc<Mutex<Simulated>>) -> Vec<String> {
    simulated.lock().unwrap().objects.keys().cloned().collect()
}

fn with_origin(origin: &str) -> Value {
    json!({"metadata": {"annotations": {"resources.gardener.cloud/origin": origin}}})
}

#[tokio::test(start_paused = true)]
async fn objects_of_an_extension_stay_until_their_managed_resource_goes() {
    let labelled = json!({"metadata": {"labels": {"shoot.gardener.cloud/no-cleanup": "true"}}});
    let service = json!({"metadata": labelled["metadata"], "spec": {"type": "LoadBalancer"}});
    let api = json!({"metadata": with_origin(MANAGED)["metadata"], "spec": {"service": {"name": "metrics"}}});
    let simulated = Simulated::new(&[
        (&format!("{WEBHOOKS}/applied"), with_origin(MANAGED)),
        (&format!("{WEBHOOKS}/stale"), with_origin("shoot--dev--web/gone")),
        (&format!("{DEFINITIONS}/applied"), with_origin(MANAGED)),
        (&format!("{DEFINITIONS}/labelled"), labelled.clone()),
        (&format!("{DEFINITIONS}/of-users"), json!({"metadata": {}})),
        ("/apis/apiregistration.k8s.io/v1/apiservices/v1.metrics", api),
        ("/api/v1/namespaces/addon", labelled.clone()),
        ("/api/v1/namespaces/web", json!({"metadata": {}})),
        // These objects keep resources in the cloud.
        ("/api/v1/namespaces/addon/services/labelled", service),
        (
            "/api/v1/namespaces/addon/persistentvolumeclaims/labelled",
            labelled.clone(),
        ),
        ("/api/v1/persistentvolumes/labelled", labelled),
    ]);
    let outcome = cleanup(&simulated).run_within(BOUND).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(
        left(&simulated),
        [
            "/api/v1/namespaces/addon".to_owned(),
            format!("{WEBHOOKS}/applied"),
            format!("{DEFINITIONS}/applied"),
            format!("{DEFINITIONS}/labelled"),
            "/apis/apiregistration.k8s.io/v1/apiservices/v1.metrics".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_obstacle_that_is_re_created_does_not_hold_up_the_deletion() {
    const AGAIN: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/again";
    let simulated = Simulated::new(&[
        (AGAIN, json!({"metadata": {}})),
        ("/api/v1/namespaces/web", json!({"metadata": {}})),
    ]);
    simulated
        .lock()
        .unwrap()
        .reactions
        .insert(AGAIN, Reaction::Recreated);
    let outcome = cleanup(&simulated).run_within(BOUND).await;
    assert_eq!(outcome, Ok(()));
    let simulated = simulated.lock().unwrap();
    assert!(!simulated.objects.contains_key("/api/v1/namespaces/web"));
    let deletions = simulated
        .deletions
        .iter()
        .filter(|path| path.starts_with(WEBHOOKS));
    assert!(deletions.count() > 2, "each later poll deletes it again");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_re_created_is_waited_for() {
    const PATH: &str = "/api/v1/namespaces/web/services/again";
    let simulated = Simulated::new(&[(PATH, json!({"metadata": {}, "spec": {"type": "LoadBalancer"}}))]);
    simulated
        .lock()
        .unwrap()
        .reactions
        .insert(PATH, Reaction::Recreated);
    let error = cleanup(&simulated).run_within(BOUND).await.unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrCleanupClusterResources]);
    assert!(error.to_string().contains("Service web/again"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_former_obstacle_with_a_finalizer_holds_up_the_deletion() {
    const HELD: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/held";
    let simulated = Simulated::new(&[
        (HELD, json!({"metadata": {}})),
        ("/api/v1/namespaces/web", json!({"metadata": {}})),
    ]);
    simulated.lock().unwrap().reactions.insert(HELD, Reaction::Held);
    let error = cleanup(&simulated).run_within(BOUND).await.unwrap_err();
    assert!(
        error.to_string().contains("ValidatingWebhookConfiguration held"),
        "{error}"
    );
    assert_eq!(left(&simulated).len(), 2, "no later wave has begun");
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_allows_a_forced_one() {
    const PATH: &str = "/api/v1/namespaces/web";
    let simulated = Simulated::new(&[(PATH, json!({"metadata": {}}))]);
    simulated
        .lock()
        .unwrap()
        .reactions
        .insert(PATH, Reaction::Refused);
    let error = cleanup(&simulated).run_within(BOUND).await.unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrCleanupClusterResources]);
    let text = error.to_string();
    assert!(
        text.contains("Namespace web") && text.contains("deny.example.test"),
        "{text}"
    );

    // A webhook that answers again after a while.
    simulated.lock().unwrap().reactions.clear();
    assert_eq!(cleanup(&simulated).run_within(BOUND).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_use_goes_after_the_pods_that_use_it() {
    let claims = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let pod = json!({"metadata": {}, "spec": {"volumes": claims}});
    let template =
        json!({"metadata": {}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    let agent =
        json!({"metadata": {}, "spec": {"volumes": [{"name": "keys", "secret": {"secretName": "keys"}}]}});
    let simulated = Simulated::new(&[
        ("/apis/apps/v1/namespaces/default/statefulsets/db", template),
        ("/api/v1/namespaces/default/pods/db-0", pod),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims/data",
            json!({"metadata": {}}),
        ),
        ("/api/v1/namespaces/kube-system/pods/tunnel-agent", agent),
    ]);
    let outcome = cleanup(&simulated).run_within(BOUND).await;
    assert_eq!(outcome, Ok(()));
    assert_eq!(
        left(&simulated),
        ["/api/v1/namespaces/kube-system/pods/tunnel-agent"]
    );
}

#[test]
fn workloads_are_known_by_the_claims_of_their_pods() {
    let pod = |volume: Value| json!({"spec": {"volumes": [{"name": "a", "emptyDir": {}}, volume]}});
    let claim = pod(json!({"name": "b", "persistentVolumeClaim": {"claimName": "b"}}));
    let job = json!({"spec": {"template": claim}});
    for (object, expected) in [
        (claim.clone(), true),
        (pod(json!({"name": "b", "ephemeral": {}})), true),
        (pod(json!({"name": "b", "configMap": {"name": "b"}})), false),
        (json!({"spec": {"template": claim}}), true),
        (json!({"spec": {"jobTemplate": job}}), true),
        (json!({"spec": {"volumeClaimTemplates": [{}]}}), true),
        (json!({"spec": {"volumeClaimTemplates": []}}), false),
    ] {
        let mut object = object;
        object["metadata"] = json!({"name": "a"});
        assert_eq!(
            has_claims(&BTreeSet::new(), &parse_object(object.clone())),
            expected,
            "{object}"
        );
    }
}

fn parse_object(object: Value) -> CleanupObject {
    serde_json::from_value(object).unwrap()
}

#[test]
fn namespaces_of_the_cluster_itself_are_kept() {
    let none = BTreeSet::new();
    let named = |name: &str| parse_object(json!({"metadata": {"name": name}}));
    assert!(is_users(&none, &named("web")));
    assert!(
        SYSTEM_NAMESPACES
            .iter()
            .all(|name| !is_users(&none, &named(name)))
    );
}

// A parser of a type that keeps the content stops at a depth of 128.
#[test]
fn a_schema_of_any_depth_is_read_over() {
    let schema = "{\"items\":".repeat(10_000) + "{}" + &"}".repeat(10_000);
    let text = format!(r#"{{"metadata":{{"name":"deep"}},"spec":{{"versions":[{schema}]}}}}"#);
    let seen: CleanupObject = serde_json::from_str(&text).unwrap();
    assert_eq!(seen.metadata.name, "deep");
    assert!(!is_extended(&seen) && !is_load_balancer(&seen));
}

#[test]
fn what_is_held_outside_is_known_by_its_spec() {
    let with = |spec: Value| parse_object(json!({"metadata": {"name": "a"}, "spec": spec}));
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
    let told = sentence(&many, None);
    assert!(told.contains("Namespace n9 and 3 more"), "{told}");
}
