//! A deletion by accident in a seed is refused, and the deletions of the project's own processes are not.
//! Policies and roles come from the charts.

use std::time::Duration;

use serde_json::json;
use testkit::{ControlPlane, eventually};

use crate::programs::{Desk, ProgramOutput, REGISTRIES};

/// A policy is in force some seconds after the creation, and a new kind is found every half minute.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(90);
const NAMESPACE: &str = "shoot--dev--demo";
const CONFIRMATION: &str = "confirmation.gardener.cloud/deletion=true";
const GARDENLET: &str = "system:serviceaccount:garden:gardenlet";
const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";
const RESOURCE_MANAGER: &str = "system:serviceaccount:garden:resource-manager";
const PROVIDER: &str = "system:serviceaccount:extension-provider-local:provider-local";

/// Deletes as a dry run, as the administrator or as a different user.
async fn try_delete(desk: &Desk, user: Option<&str>, object: &[&str]) -> ProgramOutput {
    let mut args = vec!["delete", "--dry-run=server", "--wait=false"];
    if let Some(user) = user {
        args.extend(["--as", user]);
    }
    args.extend(object);
    desk.run("kubectl", &args).await.unwrap()
}

async fn is_refused(desk: &Desk, user: Option<&str>, object: &[&str]) {
    let said = try_delete(desk, user, object).await;
    assert!(
        !said.success && said.err.contains("is protected, because"),
        "{user:?} {object:?}: {said:?}"
    );
}

/// Waits until the policy refuses the deletion to the administrator.
async fn becomes_protected(desk: &Desk, object: &[&str]) {
    let refusal = || async {
        let said = try_delete(desk, None, object).await;
        if said.err.contains("is protected, because") {
            Ok(())
        } else {
            Err(format!("{said:?}"))
        }
    };
    eventually(&format!("{object:?} is protected"), IN_FORCE_WITHIN, refusal)
        .await
        .unwrap();
}

async fn is_allowed(desk: &Desk, user: Option<&str>, object: &[&str]) {
    let said = try_delete(desk, user, object).await;
    assert!(said.success, "{user:?} {object:?}: {said:?}");
}

async fn kubectl(desk: &Desk, args: &[&str]) -> String {
    let said = desk.run("kubectl", args).await.unwrap();
    said.or_fail(&format!("kubectl {args:?}")).unwrap()
}

/// A control plane like a gardenlet's, as far as policies read the objects.
async fn make_control_plane(desk: &Desk) {
    let extensions = "extensions.gardener.cloud/v1alpha1";
    let name = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let secret = json!({"name": "cloud", "namespace": NAMESPACE});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"gardener.cloud/role": "shoot"}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        {"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": name("etcd-main"),
         "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "labels": {"a": "b"}, "etcd": {}, "backup": {}}},
        {"apiVersion": extensions, "kind": "Infrastructure", "metadata": name("demo"),
         "spec": {"type": "local", "region": "local", "secretRef": secret}},
        {"apiVersion": extensions, "kind": "Infrastructure", "metadata": {"name": "demo", "namespace": "other"},
         "spec": {"type": "local", "region": "local", "secretRef": secret}},
        {"apiVersion": extensions, "kind": "Network", "metadata": name("demo"),
         "spec": {"type": "local", "podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"}},
        {"apiVersion": extensions, "kind": "Riddle", "metadata": name("demo")},
        {"apiVersion": extensions, "kind": "BackupEntry", "metadata": {"name": "t--u"},
         "spec": {"type": "local", "region": "local", "bucketName": "b", "secretRef": secret}},
    ]});
    desk.write("control-plane.json", &objects.to_string()).unwrap();
    eventually("objects can be made", IN_FORCE_WITHIN, || async {
        desk.run("kubectl", &["apply", "-f", "control-plane.json"])
            .await?
            .or_fail("kubectl apply")
    })
    .await
    .unwrap();
}

/// A kind that only a provider knows. The provider's chart binds the usual verbs on the kind to the
/// gardenlet.
async fn make_foreign_kind(desk: &Desk) {
    let group = "extensions.gardener.cloud";
    let rbac = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [group], "resources": ["riddles"], "verbs": ["get", "list", "watch", "patch", "delete"]}]);
    let role = json!({"apiGroup": rbac, "kind": "ClusterRole", "name": "riddles"});
    let account = json!({"kind": "ServiceAccount", "name": "gardenlet", "namespace": "garden"});
    let version = json!({"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let kind = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
         "metadata": {"name": format!("riddles.{group}")},
         "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Riddle", "plural": "riddles"}, "versions": [version]}},
        {"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "riddles"}, "rules": rules},
        {"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "riddles"},
         "roleRef": role, "subjects": [account]},
    ]});
    desk.write("kind.json", &kind.to_string()).unwrap();
    kubectl(desk, &["apply", "-f", "kind.json"]).await;
}

/// The backup controllers run in provider-local, as guests.
const GUESTS: &str = "provider-local.garden.kubeconfigSecret=garden,provider-local.garden.seedName=seed-a,\
                      provider-local.garden.backupEntryDeletionGracePeriodHours=0";

const OBJECTS: [&[&str]; 7] = [
    &["etcd", "-n", NAMESPACE, "etcd-main"],
    &["infrastructure", "-n", NAMESPACE, "demo"],
    &["network", "-n", NAMESPACE, "demo"],
    &["riddle", "-n", NAMESPACE, "demo"],
    &["backupentries.extensions.gardener.cloud", "t--u"],
    &["namespace", NAMESPACE],
    // Each object of a collection is judged.
    &["infrastructures", "-n", NAMESPACE, "--all"],
];

/// Cases 6 and 10. The administrator has the right of the suite's processes by wildcard, and has to confirm
/// nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_by_accident_in_a_seed_is_refused() {
    let plane = ControlPlane::start("seed").await.unwrap();
    let desk = Desk::at(plane.admin_kubeconfig_file()).unwrap();
    let install = [
        "install",
        "seed",
        "charts/seed",
        "-n",
        "garden",
        "--create-namespace",
    ];
    desk.run(
        "helm",
        &[&install[..], &REGISTRIES[..], &["--set", GUESTS]].concat(),
    )
    .await
    .unwrap()
    .or_fail("helm install")
    .unwrap();
    make_foreign_kind(&desk).await;
    make_control_plane(&desk).await;
    let definitions = [
        "machines.machine.sapcloud.io",
        "etcds.druid.gardener.cloud",
        "workers.extensions.gardener.cloud",
        "managedresources.resources.gardener.cloud",
    ];
    for object in OBJECTS {
        becomes_protected(&desk, object).await;
        // The controllers of Kubernetes delete all objects in a namespace, and all objects without an owner.
        is_refused(&desk, Some(NAMESPACE_CONTROLLER), object).await;
        is_refused(
            &desk,
            Some("system:serviceaccount:kube-system:generic-garbage-collector"),
            object,
        )
        .await;
        is_allowed(&desk, Some(GARDENLET), object).await;
    }
    for name in definitions {
        becomes_protected(&desk, &["crd", name]).await;
    }
    is_allowed(&desk, None, &["namespace", "other"]).await;
    is_allowed(&desk, Some(PROVIDER), OBJECTS[4]).await;

    only_the_gardenlet_marks_a_namespace(&desk).await;
    the_users_confirmation_counts(&desk, &definitions).await;
    a_confirmed_namespace_goes_with_all_its_objects(&desk).await;
    objects_stay_where_no_policy_asks_for_the_namespace(&desk).await;
}

/// A left namespace without a Shoot is cleaned up. So the right to patch namespaces is not the right to mark
/// a namespace as left, as the namespace of another Shoot, as opened, or as prepared.
async fn only_the_gardenlet_marks_a_namespace(desk: &Desk) {
    let marks = [
        "shoot.gardener.cloud/left-in-epoch=1",
        "shoot.gardener.cloud/uid=of-another-shoot",
        "shoot.gardener.cloud/stopped-for-epoch=1",
        "shoot.gardener.cloud/opened-in-epoch=1",
        "shoot.gardener.cloud/prepared-in-epoch=1",
    ];
    let try_mark = |user: &'static str, mark: &'static str| async move {
        let args = [
            "annotate",
            "--overwrite",
            "--dry-run=server",
            "--as",
            user,
            "namespace",
        ];
        desk.run("kubectl", &[&args[..], &[NAMESPACE, mark]].concat())
            .await
            .unwrap()
    };
    for mark in marks {
        let refusal = || async {
            let said = try_mark(RESOURCE_MANAGER, mark).await;
            if !said.success && said.err.contains("are changed by the gardenlet only") {
                Ok(())
            } else {
                Err(format!("{said:?}"))
            }
        };
        eventually(&format!("{mark} is protected"), IN_FORCE_WITHIN, refusal)
            .await
            .unwrap();
        let said = try_mark(GARDENLET, mark).await;
        assert!(said.success, "{mark}: {said:?}");
    }
    let said = try_mark(RESOURCE_MANAGER, "example.org/any=thing").await;
    assert!(said.success, "other annotations are free: {said:?}");
}

async fn the_users_confirmation_counts(desk: &Desk, definitions: &[&str]) {
    for object in OBJECTS.iter().filter(|object| !object.contains(&"--all")) {
        for (value, is_enough) in [
            ("confirmation.gardener.cloud/deletion=false", false),
            (CONFIRMATION, true),
        ] {
            kubectl(desk, &[&["annotate", "--overwrite"], *object, &[value]].concat()).await;
            if is_enough {
                is_allowed(desk, None, object).await;
            } else {
                is_refused(desk, None, object).await;
            }
        }
        kubectl(
            desk,
            &[&["annotate"], *object, &["confirmation.gardener.cloud/deletion-"]].concat(),
        )
        .await;
    }
    kubectl(desk, &["annotate", "crd", definitions[0], CONFIRMATION]).await;
    is_allowed(desk, None, &["crd", definitions[0]]).await;
}

/// The namespace controller removes objects without a separate confirmation, because the deletion of the
/// namespace was confirmed. Otherwise the namespace of a shoot would be Terminating for ever.
async fn a_confirmed_namespace_goes_with_all_its_objects(desk: &Desk) {
    kubectl(desk, &["annotate", "namespace", NAMESPACE, CONFIRMATION]).await;
    kubectl(
        desk,
        &["delete", "namespace", NAMESPACE, "--wait=true", "--timeout=120s"],
    )
    .await;
}

/// The namespace of no shoot can be deleted without a confirmation. The extension objects keep the namespace
/// Terminating until the namespace is confirmed.
async fn objects_stay_where_no_policy_asks_for_the_namespace(desk: &Desk) {
    let infrastructure = ["infrastructure", "-n", "other", "demo"];
    kubectl(desk, &["delete", "namespace", "other", "--wait=false"]).await;
    is_refused(desk, Some(NAMESPACE_CONTROLLER), &infrastructure).await;
    kubectl(desk, &["annotate", "namespace", "other", CONFIRMATION]).await;
    kubectl(
        desk,
        &["wait", "--for=delete", "namespace/other", "--timeout=120s"],
    )
    .await;
}
