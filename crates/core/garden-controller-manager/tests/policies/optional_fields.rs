//! `null`, an absent value and an empty value in each optional field that a policy may read.
//!
//! An error of an expression ("no such key", "no such overload") refuses every later write of the object
//! where the policy fails closed, also the end of a deletion. Where the policy fails open, the rule has no
//! effect. So no such write may end in an error of an expression. The test replaces each validation by an
//! expression that is true for each result and keeps the errors: no refusal hides an error of a further
//! policy.

use std::{collections::BTreeSet, time::Duration};

use futures::{StreamExt, stream};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    garden::{Garden, NAMESPACE, seed},
    samples::{Sample, samples},
};

/// The words of the API server in the place of the message of a policy.
const EXPRESSION_ERROR: &str = "resulted in error";
/// Objects under test at the same time.
const AT_A_TIME: usize = 8;
/// Less than the number of objects that the schemas give. Fewer objects prove nothing.
const LEAST_OBJECTS: usize = 150;
/// Longer than the API server takes to read a policy.
const SOON: Duration = Duration::from_secs(90);

/// Users whose writes meet the policies.
struct Writers {
    administrator: Client,
    gardenlet: Client,
    manager: Client,
}

impl Writers {
    fn all(&self) -> [&Client; 3] {
        [&self.administrator, &self.gardenlet, &self.manager]
    }
}

/// The last scenario of this garden, because no policy refuses anything after this scenario.
pub async fn no_optional_field_ends_in_an_error_of_a_policy(garden: &Garden) {
    for resource in ["shootstates", "internalsecrets"] {
        for verb in ["create", "patch"] {
            garden
                .grant_gardenlets("core.gardener.cloud", resource, verb)
                .await;
        }
    }
    keep_only_errors(garden).await;
    let writers = Writers {
        administrator: garden.administrator(),
        gardenlet: garden.seed_a.clone(),
        manager: garden.manager.clone(),
    };
    let samples = samples();
    let known: BTreeSet<_> = samples.iter().map(|sample| sample.plural).collect();
    for resource in resources_of_policies() {
        assert!(known.contains(resource.as_str()), "no sample of {resource}");
    }
    let mut objects = 0;
    for sample in &samples {
        let base = sample.named("full");
        let outcome = sample.bring(&writers.administrator, &base).await;
        if let Err(error) = outcome {
            testkit::record_gap(&format!("the sample of {} is refused: {error}", sample.plural));
            continue;
        }
        let variants = variants(&sample.object, &schema_of(&sample.object));
        let tried = stream::iter(variants.into_iter().enumerate()).map(|(number, (field, object))| {
            let writers = &writers;
            let base = &base;
            async move {
                sample
                    .try_variant(writers, base, &format!("n{number}"), &field, &object)
                    .await
            }
        });
        let created: Vec<bool> = tried.buffer_unordered(AT_A_TIME).collect().await;
        objects += created.into_iter().filter(|created| *created).count();
        let deleted = sample
            .api(&writers.administrator)
            .delete("full", &DeleteParams::default())
            .await;
        report(sample.plural, "the deletion of the sample", deleted.map(drop));
    }
    assert!(objects >= LEAST_OBJECTS, "only {objects} objects were created");
    parameters_with_nulls(garden, &samples).await;
}

/// Replaces each policy by a policy that refuses only errors of its expressions, and waits for the change.
async fn keep_only_errors(garden: &Garden) {
    for (_, text) in crate::garden::files_of_policies() {
        for mut document in crate::garden::documents_in(&text) {
            let is_policy = document["kind"] == "ValidatingAdmissionPolicy";
            let spec = &mut document["spec"];
            if is_policy {
                spec["failurePolicy"] = json!("Fail");
                for validation in spec["validations"].as_array_mut().unwrap() {
                    let expression = validation["expression"].as_str().unwrap();
                    *validation = json!({"expression": format!("[{expression}].size() == 1")});
                }
            } else {
                spec["validationActions"] = json!(["Deny"]);
            }
            garden.bring(&document).await.unwrap();
        }
    }
    // The API server reads all policies at once, so the last policy shows that each policy is replaced.
    let name = json!({"name": "canary"});
    let rule = json!({"apiGroups": ["core.gardener.cloud"], "apiVersions": ["v1beta1"], "resources": ["projects"], "operations": ["CREATE"]});
    let canary = json!({
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "is-canary", "expression": "object.metadata.name == 'canary'"}],
        "validations": [{"expression": "[object.spec.description + ''].size() == 1"}],
    });
    let binding = json!({"policyName": "canary", "validationActions": ["Deny"]});
    for (kind, spec) in [
        ("ValidatingAdmissionPolicy", canary),
        ("ValidatingAdmissionPolicyBinding", binding),
    ] {
        let document = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": name, "spec": spec});
        garden.bring(&document).await.unwrap();
    }
    let project = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": name,
        "spec": {"namespace": "canary", "description": null},
    });
    let projects = api(&garden.administrator(), "projects", &project, None);
    let project: DynamicObject = serde_json::from_value(project).unwrap();
    let params = dry_run();
    eventually("the policies are replaced", SOON, || async {
        match projects.create(&params, &project).await {
            Err(error) if error.to_string().contains(EXPRESSION_ERROR) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
}

/// Shoots are written while a Seed, a CloudProfile and a Project have nulls: these objects are parameters of
/// policies about Shoots.
async fn parameters_with_nulls(garden: &Garden, samples: &[Sample]) {
    let administrator = garden.administrator();
    let shoot = samples.iter().find(|sample| sample.plural == "shoots").unwrap();
    for plural in ["seeds", "cloudprofiles", "projects"] {
        let sample = samples.iter().find(|sample| sample.plural == plural).unwrap();
        let variants = variants(&sample.object, &schema_of(&sample.object));
        for (number, (field, variant)) in variants.into_iter().enumerate() {
            let name = format!("p{number}");
            let mut object = variant;
            object["metadata"]["name"] = json!(name);
            if sample.bring(&administrator, &object).await.is_err() {
                continue;
            }
            // A policy reads its parameters from a cache. A late parameter meets the next Shoot.
            let mut written = shoot.named("params");
            match plural {
                "seeds" => written["spec"]["seedName"] = json!(name),
                "cloudprofiles" => written["spec"]["cloudProfile"]["name"] = json!(name),
                _ => {}
            }
            let written: DynamicObject = serde_json::from_value(written).unwrap();
            let created = shoot.api(&administrator).create(&dry_run(), &written).await;
            let what = format!("a Shoot, with {field} of the parameter");
            report(plural, &what, created.map(drop));
        }
    }
    // The policies have read the last parameter when a Shoot meets this Seed.
    let mut last = seed("last");
    let credentials = json!({"kind": "Secret", "name": "dns"});
    let domain = json!({"type": "local", "domain": "last.test", "credentialsRef": credentials});
    last["spec"]["dns"] = json!({"defaults": [domain]});
    garden.bring(&last).await.unwrap();
    for _ in 0..20 {
        let written: DynamicObject = serde_json::from_value(shoot.named("params")).unwrap();
        let created = shoot.api(&administrator).create(&dry_run(), &written).await;
        report("shoots", "a Shoot, with all parameters", created.map(drop));
    }
}

impl Sample {
    fn named(&self, name: &str) -> Value {
        let mut object = self.object.clone();
        object["metadata"]["name"] = json!(name);
        object
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        api(
            client,
            self.plural,
            &self.object,
            self.is_namespaced.then_some(NAMESPACE),
        )
    }

    /// Creates the object with its status as the administrator.
    async fn bring(&self, administrator: &Client, object: &Value) -> Result<(), kube::Error> {
        let api = self.api(administrator);
        let name = object["metadata"]["name"].as_str().unwrap();
        let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        api.create(&PostParams::default(), &typed).await?;
        let Some(status) = object.get("status") else {
            return Ok(());
        };
        let patch = patch(&json!([{"op": "add", "path": "/status", "value": status}]));
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
    }

    /// Writes with this variant as the old and as the new object. Returns whether the object was created.
    async fn try_variant(
        &self,
        writers: &Writers,
        base: &Value,
        name: &str,
        field: &str,
        variant: &Value,
    ) -> bool {
        let dry = PatchParams::default().dry_run();
        for client in writers.all() {
            let api = self.api(client);
            let to_variant = api.patch("full", &dry, &patch(&operations(base, variant))).await;
            report(
                self.plural,
                &format!("the change of {field}"),
                to_variant.map(drop),
            );
            if let Some(status) = variant.get("status") {
                let change = patch(&json!([{"op": "add", "path": "/status", "value": status}]));
                let to_variant = api.patch_status("full", &dry, &change).await;
                report(
                    self.plural,
                    &format!("the change of {field}"),
                    to_variant.map(drop),
                );
            }
        }
        let mut object = variant.clone();
        object["metadata"]["name"] = json!(name);
        let created = self.bring(&writers.administrator, &object).await;
        let is_created = created.is_ok();
        report(self.plural, &format!("the creation with {field}"), created);
        if !is_created {
            let _ = self
                .api(&writers.administrator)
                .delete(name, &DeleteParams::default())
                .await;
            return false;
        }
        for client in writers.all() {
            let api = self.api(client);
            let touched: Patch<Value> = Patch::Merge(json!({"metadata": {"finalizers": ["x/y"]}}));
            let touched = api.patch(name, &dry, &touched).await;
            report(self.plural, &format!("an unchanged {field}"), touched.map(drop));
            let from_variant = api.patch(name, &dry, &patch(&operations(variant, base))).await;
            report(
                self.plural,
                &format!("the repair of {field}"),
                from_variant.map(drop),
            );
            if let Some(status) = base.get("status") {
                let change = patch(&json!([{"op": "add", "path": "/status", "value": status}]));
                let from_variant = api.patch_status(name, &dry, &change).await;
                report(
                    self.plural,
                    &format!("the repair of {field}"),
                    from_variant.map(drop),
                );
            }
        }
        let deleted = self
            .api(&writers.administrator)
            .delete(name, &DeleteParams::default())
            .await;
        report(
            self.plural,
            &format!("the deletion with {field}"),
            deleted.map(drop),
        );
        true
    }
}

/// Any answer but an error of an expression is right: the schema refuses some of these values.
fn report(plural: &str, what: &str, outcome: Result<(), kube::Error>) {
    if let Err(error) = outcome
        && error.to_string().contains(EXPRESSION_ERROR)
    {
        testkit::record_gap(&format!("{plural}: {what}: {error}"));
    }
}

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
}

fn patch(operations: &Value) -> Patch<Value> {
    Patch::Json(serde_json::from_value(operations.clone()).unwrap())
}

fn api(client: &Client, plural: &str, object: &Value, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// The change of all fields but metadata and status. A merge patch could write no null.
fn operations(from: &Value, to: &Value) -> Value {
    let names = |object: &Value| -> BTreeSet<String> {
        let names = object.as_object().unwrap().keys().cloned();
        let without = ["apiVersion", "kind", "metadata", "status"];
        names.filter(|name| !without.contains(&name.as_str())).collect()
    };
    let (old, new) = (names(from), names(to));
    let added = new
        .iter()
        .map(|name| json!({"op": "add", "path": format!("/{name}"), "value": to[name]}));
    let removed = old
        .difference(&new)
        .map(|name| json!({"op": "remove", "path": format!("/{name}")}));
    added.chain(removed).collect()
}

/// The object with `null`, without and with an empty value in each optional field, one at a time, with the
/// path of the field. Fields that the object does not have are set to `null` where their parent is there.
fn variants(object: &Value, schema: &Value) -> Vec<(String, Value)> {
    let mut pointers = Vec::new();
    optional_fields(object, schema, "", &mut pointers);
    let mut variants = Vec::new();
    for (pointer, is_nullable) in pointers {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let mut with = |what: &str, value: Option<Value>| {
            let mut variant = object.clone();
            let parent = variant.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            match value {
                Some(value) => parent.insert(field.to_owned(), value),
                None => parent.remove(field),
            };
            variants.push((format!("{what} {pointer}"), variant));
        };
        if is_nullable {
            with("null", Some(Value::Null));
        }
        let empty = match object.pointer(&pointer) {
            Some(Value::Object(_)) => json!({}),
            Some(Value::Array(_)) => json!([]),
            Some(Value::String(_)) => json!(""),
            Some(_) => Value::Null,
            None => continue,
        };
        with("absent", None);
        if !empty.is_null() {
            with("empty", Some(empty));
        }
    }
    variants
}

/// The paths of all optional fields below objects that are there, and whether each field may be `null`.
fn optional_fields(object: &Value, schema: &Value, path: &str, found: &mut Vec<(String, bool)>) {
    if let Some(items) = object.as_array() {
        for (index, item) in items.iter().enumerate() {
            optional_fields(item, &schema["items"], &format!("{path}/{index}"), found);
        }
        return;
    }
    let (Some(fields), Some(properties)) = (object.as_object(), schema["properties"].as_object()) else {
        return;
    };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, schema) in properties {
        if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            continue;
        }
        let (pointer, is_nullable) = (format!("{path}/{name}"), schema["nullable"] == true);
        let is_optional = is_nullable || !required.contains(&json!(name));
        if is_optional && (is_nullable || fields.contains_key(name)) {
            found.push((pointer.clone(), is_nullable));
        }
        if let Some(value) = fields.get(name) {
            optional_fields(value, schema, &pointer, found);
        }
    }
}

fn schema_of(object: &Value) -> Value {
    let mut crds = api::all_crds().into_iter();
    let crd = crds.find(|crd| {
        let spec = &crd.definition.spec;
        object["kind"] == spec.names.kind && object["apiVersion"].as_str().unwrap().starts_with(&spec.group)
    });
    let schema = crd.unwrap().definition.spec.versions[0].schema.clone();
    serde_json::to_value(schema.unwrap().open_api_v3_schema).unwrap()
}

/// The resources of the garden's own groups that a policy names.
fn resources_of_policies() -> BTreeSet<String> {
    let mut resources = BTreeSet::new();
    for (_, text) in crate::garden::files_of_policies() {
        for document in crate::garden::documents_in(&text) {
            let rules = document["spec"]["matchConstraints"]["resourceRules"]
                .as_array()
                .cloned();
            for rule in rules.unwrap_or_default() {
                let groups = rule["apiGroups"].to_string();
                if !groups.contains(".gardener.cloud") {
                    continue;
                }
                for resource in rule["resources"].as_array().unwrap() {
                    let resource = resource.as_str().unwrap().split('/').next().unwrap_or_default();
                    if resource != "*" {
                        resources.insert(resource.to_owned());
                    }
                }
            }
        }
    }
    resources
}
