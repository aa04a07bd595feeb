#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::{kinds::Kinds, policy_rule::Right, *};

const MAIN: &str = "fn main() { run(garden, seed) }";

/// Reads a Secret, deletes a ConfigMap by a generic function, and lists Pods of the seed.
const RUN: &str = r#"
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
    use kube::{Api, api::DeleteParams};
    use runtime::client::{Cluster, Garden, Seed};

    pub async fn run(garden: &Garden, seed: &Seed) -> Result<()> {
        let secrets: Api<Secret> = garden.namespaced("a");
        secrets.get("x").await?;
        seed.all::<Pod>().list(&parameters()).await?;
        remove(&garden.namespaced::<ConfigMap>("a"), "x").await
    }

    async fn remove<K>(api: &Api<K>, name: &str) -> Result<()> {
        api.delete(name, &DeleteParams::default()).await
    }

    async fn without_caller(garden: &Garden) {
        garden.namespaced::<Secret>("a").delete_collection(&d(), &l()).await;
    }
"#;
const RIGHTS: &[&str] = &["get secrets", "delete configmaps"];
const NONE: &str = "unused: []";

/// The breaches of a gardenlet with this code, these rights as `verb resource`, and these exceptions.
fn breaches(run: &str, rights: &[&str], exceptions: &str) -> Vec<String> {
    let mut items = Items {
        kinds: Kinds::native(),
        ..Items::default()
    };
    items.add_file("crates/core/gardenlet/src/main.rs", MAIN).unwrap();
    items.add_file("crates/core/gardenlet/src/run.rs", run).unwrap();
    let rights: BTreeSet<Right> = rights.iter().map(|right| right_of(right)).collect();
    let exceptions = Exceptions::parse(exceptions).unwrap();
    let crates = ["gardenlet".to_owned()].into();
    let requests = Search::new(&items).of_process("crates/core/gardenlet/src/main.rs", &crates, None);
    let mut check = Check::new(&exceptions, &rights);
    check.process("gardenlet", &requests);
    check.breaches().into_iter().collect()
}

fn right_of(text: &str) -> Right {
    let (verb, resource) = text.split_once(' ').unwrap();
    Right {
        process: "gardenlet".to_owned(),
        cluster: Cluster::Garden,
        namespace: None,
        group: String::new(),
        resource: resource.to_owned(),
        names: Vec::new(),
        verb: verb.to_owned(),
        value: None,
        file: "charts/garden/templates/gardenlets-rbac.yaml".to_owned(),
    }
}

fn exception(resource: &str, verbs: &str, reason: &str) -> String {
    format!(
        "unused: [{{process: gardenlet, group: '', resource: {resource}, verbs: [{verbs}], reason: '{reason}'}}]"
    )
}

#[test]
fn rights_that_are_used_and_sufficient_pass() {
    assert_eq!(breaches(RUN, RIGHTS, NONE), [""; 0]);
}

#[test]
fn a_right_that_no_code_uses_is_found() {
    let rights = [RIGHTS, &["list secrets"]].concat();
    assert_eq!(
        breaches(RUN, &rights, NONE),
        [
            "charts/garden/templates/gardenlets-rbac.yaml: gardenlet may list secrets of \"\" in the garden, and no \
             code asks for this right; remove the verb, or give the reason in crates/dev/xtask/rights.yaml"
        ]
    );
    let listed = exception("secrets", "list", "a policy asks for the right");
    assert_eq!(breaches(RUN, &rights, &listed), [""; 0]);
}

#[test]
fn a_request_to_the_seed_or_without_a_caller_is_no_use_in_the_garden() {
    let rights = [RIGHTS, &["list pods", "deletecollection secrets"]].concat();
    assert_eq!(breaches(RUN, &rights, NONE).len(), 2);
}

#[test]
fn a_request_through_a_client_of_an_unknown_cluster_is_no_use_in_the_garden() {
    let run = r#"
        use k8s_openapi::api::core::v1::Secret;
        pub async fn run(somewhere: &kube::Client) {
            kube::Api::<Secret>::namespaced(somewhere.clone(), "a").get("x").await;
        }
    "#;
    assert_eq!(breaches(run, &["get secrets"], NONE).len(), 1);
}

#[test]
fn a_request_that_no_chart_grants_is_found() {
    assert_eq!(
        breaches(RUN, &["get secrets"], NONE),
        [
            "crates/core/gardenlet/src/run.rs (run): gardenlet asks for delete configmaps of \"\" in the garden, and no \
             chart grants this right; add the verb to the chart"
        ]
    );
}

#[test]
fn server_side_apply_needs_create_and_a_watch_needs_list() {
    let run = r#"
        use k8s_openapi::api::core::v1::{Pod, Secret};
        use kube::api::{Patch, PatchParams};
        use runtime::client::{Cluster, Garden};
        pub async fn run(garden: &Garden, secret: &Secret) {
            let api = garden.namespaced::<Secret>("a");
            api.patch("x", &PatchParams::apply("me"), &Patch::Apply(secret)).await;
            let pods = kube::runtime::watcher(garden.all::<Pod>(), Default::default());
        }
    "#;
    let all = ["patch secrets", "create secrets", "list pods", "watch pods"];
    assert_eq!(breaches(run, &all, NONE), [""; 0]);
    assert_eq!(breaches(run, &[all[0], all[2]], NONE).len(), 2);
}

#[test]
fn the_kind_of_a_cache_comes_from_the_field_of_the_cache() {
    let run = r"
        use k8s_openapi::api::core::v1::Secret;
        use kube::Api;
        use runtime::client::{Cluster, Garden};
        struct Caches { secrets: Store<Secret> }
        pub fn run(garden: &Garden) -> Caches {
            let (secrets, changes) = cache(garden.all(), keys);
            Caches { secrets }
        }
        fn cache<K>(api: Api<K>, keys: impl Fn(&K) -> Keys) -> (Store<K>, Changes) {
            SharedWatch::new(api, keys)
        }
    ";
    assert_eq!(breaches(run, &["list secrets", "watch secrets"], NONE), [""; 0]);
}

#[test]
fn an_exception_without_effect_is_found() {
    let rights = [RIGHTS, &["list secrets"]].concat();
    let found = breaches(RUN, &rights, &exception("secrets", "list, watch", "none"));
    assert_eq!(
        found,
        [
            "crates/dev/xtask/rights.yaml: watch has no effect in gardenlet: list, watch secrets of \"\"; remove the verb"
        ]
    );
    let granted = breaches(
        RUN,
        RIGHTS,
        &exception("secrets", "get", "the request is visible"),
    );
    assert_eq!(granted.len(), 1);
}

#[test]
fn an_exception_without_a_reason_is_refused() {
    assert!(Exceptions::parse(&exception("secrets", "list", "")).is_err());
}

#[test]
fn a_method_is_a_use_only_where_code_has_the_name_of_the_type() {
    let run = r#"
        use k8s_openapi::api::core::v1::Secret;
        use runtime::client::{Cluster, Garden};
        pub async fn run(garden: &Garden) { cleaned(garden).remove().await }
        struct Cleanup { garden: Garden }
        impl Cleanup {
            async fn remove(&self) { self.garden.namespaced::<Secret>("a").delete("x", &d()).await; }
        }
    "#;
    assert_eq!(breaches(run, &["delete secrets"], NONE).len(), 1);
    let with_type = format!("{run} fn cleaned(garden: &Garden) -> Cleanup {{ new(garden) }}");
    assert_eq!(breaches(&with_type, &["delete secrets"], NONE), [""; 0]);
}

#[test]
fn modules_of_tests_are_left_out() {
    let text = "mod store;\n#[cfg(test)]\nmod simulation;\n";
    assert_eq!(
        items::modules_of_tests("crates/core/lease/src/lib.rs", text),
        ["crates/core/lease/src/simulation"]
    );
    assert_eq!(
        items::modules_of_tests("crates/core/lease/src/elector.rs", text),
        ["crates/core/lease/src/elector/simulation"]
    );
}
