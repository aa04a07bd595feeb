//! An attacker that has taken over garden-controller-manager.

use std::time::Duration;

use api::{
    constants::finalizer,
    gardencore::{
        BackupBucket, BackupEntry, InternalSecret, InternalSecretFields, Project, ProjectPhase, Seed, Shoot,
        ShootState,
    },
};
use k8s_openapi::api::{
    core::v1::{Namespace, ResourceQuota, Secret},
    events::v1::Event,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::task::JoinSet;

use crate::garden::{
    self, Garden, NAMESPACE, allowed, bucket, project_of, refused, try_create, try_delete, try_patch,
    until_allowed, until_refused,
};

/// Longer than garden-controller-manager takes for a change on a slow machine.
const SOON: Duration = Duration::from_secs(60);

/// A quota of zero Pods would stop the processes of the garden.
pub async fn it_bounds_projects_alone(garden: &Garden) {
    let quota = |name: &str, resource: &str| -> ResourceQuota {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"hard": {resource: "0"}}}))
            .unwrap()
    };
    let count = "count/internalsecrets.core.gardener.cloud";
    let quotas = |namespace: &str| Api::<ResourceQuota>::namespaced(garden.manager.clone(), namespace);
    for (namespace, name, resource) in [
        ("garden", "gardener", count),
        ("kube-system", "gardener", "pods"),
        (NAMESPACE, "gardener", "requests.cpu"),
        (NAMESPACE, "gardener", "count/resourcequotas"),
        (NAMESPACE, "other", count),
    ] {
        let created = quotas(namespace)
            .create(&PostParams::default(), &quota(name, resource))
            .await;
        refused(
            created.map(drop),
            "it writes only ResourceQuota gardener in namespaces of projects",
        );
    }
    for resource in [
        count,
        "count/secretbindings.core.gardener.cloud",
        "count/credentialsbindings.security.gardener.cloud",
        "pods",
        "count/configmaps",
    ] {
        allowed(try_create(&quotas(NAMESPACE), quota("gardener", resource)).await);
    }
    // An operator bounds more in the same ResourceQuota.
    let operators: Api<ResourceQuota> = garden.admin(NAMESPACE);
    operators
        .create(&PostParams::default(), &quota("gardener", "requests.cpu"))
        .await
        .unwrap();
    let hard = |resource: &str, number: &str| json!({"spec": {"hard": {resource: number}}});
    allowed(try_patch(&quotas(NAMESPACE), "gardener", &hard(count, "1")).await);
    for resource in ["requests.cpu", "count/resourcequotas"] {
        refused(
            try_patch(&quotas(NAMESPACE), "gardener", &hard(resource, "1")).await,
            "only counts of objects of groups *.gardener.cloud",
        );
    }
    // The bound of the operator also stays.
    let without_bound = json!({"spec": {"hard": {"requests.cpu": null}}});
    refused(
        try_patch(&quotas(NAMESPACE), "gardener", &without_bound).await,
        "only counts of objects of groups *.gardener.cloud",
    );
    operators
        .delete("gardener", &DeleteParams::default())
        .await
        .unwrap();
    it_stops_no_pods_of_the_garden(garden, &quota("gardener", count), &quota("gardener", "pods")).await;
}

/// The namespace of the process may be of a project, too. A bound of zero Pods would end the process there.
async fn it_stops_no_pods_of_the_garden(garden: &Garden, count: &ResourceQuota, pods: &ResourceQuota) {
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let label = |project: Value| json!({"metadata": {"labels": {"project.gardener.cloud/name": project}}});
    allowed(garden.patch(&namespaces, "garden", label(json!("garden"))).await);
    let quotas: Api<ResourceQuota> = Api::namespaced(garden.manager.clone(), "garden");
    // The API server has read the label.
    until_allowed(|| try_create(&quotas, count.clone())).await;
    allowed(try_create(&quotas, count.clone()).await);
    refused(
        try_create(&quotas, pods.clone()).await,
        "outside of its own namespace, of kinds that members create",
    );
    allowed(garden.patch(&namespaces, "garden", label(Value::Null)).await);
}

/// A member could run Pods with privileges in a namespace of a project whose restriction is gone.
pub async fn it_loosens_no_restriction_of_pods(garden: &Garden) {
    let namespaces: Api<Namespace> = Api::all(garden.manager.clone());
    let level = |level: Value| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    allowed(
        garden
            .patch(&namespaces, NAMESPACE, level(json!("restricted")))
            .await,
    );
    let version = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce-version": "v1.10"}}});
    for change in [level(Value::Null), level(json!("privileged")), version] {
        refused(
            garden.patch(&namespaces, NAMESPACE, change).await,
            "it only sets enforce to restricted",
        );
    }
}

/// The manager grants rights to InternalSecrets, reads metadata, and deletes the keys of ended preparations.
pub async fn it_writes_no_internal_secrets(garden: &Garden) {
    let chunks: Api<InternalSecret> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let chunk = InternalSecret::new("web.state-1-0", InternalSecretFields::default());
    refused(
        try_create(&chunks, chunk).await,
        "cannot create resource \"internalsecrets\"",
    );
    let all: Api<InternalSecret> = garden.admin(NAMESPACE);
    for name in [
        "gcm-kept.state-1-0",
        "gcm-kept.preparation-1",
        "gcm-kept.preparation-1-2",
    ] {
        let kept = InternalSecret::new(name, InternalSecretFields::default());
        all.create(&PostParams::default(), &kept).await.unwrap();
    }
    for name in ["gcm-kept.state-1-0", "gcm-kept.preparation-1"] {
        refused(
            try_delete(&chunks, name).await,
            "it only deletes <shoot>.preparation-<number>-<number>",
        );
    }
    allowed(try_delete(&chunks, "gcm-kept.preparation-1-2").await);
}

/// The deletion of a further entry would end the backups of a shoot, or the only data of a restore.
pub async fn it_deletes_the_entries_of_preparations_alone(garden: &Garden) {
    let entries: Api<BackupEntry> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let prepared = "prepared-1-2-shoot--dev--gcm--u";
    let others = [
        "shoot--dev--gcm--u",
        "source-shoot--dev--gcm--u",
        "prepared-1-shoot--dev--gcm--u",
        "source-prepared-1-2-shoot--dev--gcm--u",
    ];
    for name in others.into_iter().chain([prepared]) {
        garden.entry(name, "seed-b", "bucket-b").await;
    }
    for name in others {
        refused(
            try_delete(&entries, name).await,
            "it only deletes prepared-<number>-<number>-<entry>",
        );
    }
    allowed(try_delete(&entries, prepared).await);
}

/// A further account with the ClusterRole of garden-controller-manager meets the same policies.
pub async fn it_meets_the_policies_under_a_different_name(garden: &Garden) {
    let (rbac, role) = ("rbac.authorization.k8s.io", "garden-controller-manager");
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "second-manager"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "second-manager"}],
    });
    garden.bring(&binding).await.unwrap();
    let second = garden.client("second-manager", &[]).await;
    let namespaces: Api<Namespace> = Api::all(second.clone());
    let words = "garden-controller-manager may not delete namespace garden:";
    until_refused(words, || try_delete(&namespaces, "garden")).await;
    refused(
        namespaces
            .delete("garden", &DeleteParams::default())
            .await
            .map(drop),
        words,
    );
    let secrets: Api<Secret> = Api::namespaced(second.clone(), NAMESPACE);
    let mut secret = Secret::default();
    secret.metadata.name = Some("token".to_owned());
    refused(
        secrets.create(&PostParams::default(), &secret).await.map(drop),
        "may not create Secret token",
    );
    let roles: Api<ClusterRole> = Api::all(second);
    let mut role = ClusterRole::default();
    role.metadata.name = Some("all-secrets".to_owned());
    refused(
        roles.create(&PostParams::default(), &role).await.map(drop),
        "may not write ClusterRole all-secrets",
    );
    // An administrator has all rights by wildcard, and is no garden-controller-manager.
    let administrators: Api<Secret> = garden.admin(NAMESPACE);
    allowed(try_create(&administrators, secret).await);
    let bound: Api<ClusterRoleBinding> = Api::all(garden.administrator());
    bound
        .delete("second-manager", &DeleteParams::default())
        .await
        .unwrap();
}

/// The garbage collector deletes an object whose owners do not exist. Backups with the credentials of a
/// different seed would end in a foreign bucket.
pub async fn it_changes_no_owners_and_no_credentials(garden: &Garden) {
    garden
        .shoot("owned", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.state("owned").await;
    let reference = |namespace: &str| json!({"kind": "Secret", "namespace": namespace, "name": "backup"});
    let mut bucket = bucket("owned", "seed-a");
    bucket["spec"]["credentialsRef"] = reference("seed-seed-a");
    garden.bring(&bucket).await.unwrap();
    let owner =
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": "x", "uid": "none"});
    let changed = json!({"metadata": {"ownerReferences": [owner]}});
    let words = "may not change owner references of";
    let states: Api<ShootState> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let buckets: Api<BackupBucket> = Api::all(garden.manager.clone());
    let projects: Api<Project> = Api::all(garden.manager.clone());
    refused(try_patch(&states, "owned", &changed).await, words);
    let orphaned = json!({"metadata": {"ownerReferences": null}});
    refused(try_patch(&states, "owned", &orphaned).await, words);
    refused(try_patch(&buckets, "owned", &changed).await, words);
    refused(try_patch(&projects, "dev", &changed).await, words);
    let spec = |spec: serde_json::Value| json!({"spec": spec});
    for change in [
        spec(json!({"credentialsRef": reference("seed-seed-b")})),
        spec(json!({"credentialsRef": reference("garden")})),
        spec(json!({"credentialsRef": null})),
    ] {
        refused(
            try_patch(&buckets, "owned", &change).await,
            "garden-controller-manager may not change BackupBucket owned",
        );
    }
    // A BackupBucket has no owners, and the process removes those of a hostile gardenlet.
    // The owner exists, so that the garbage collector leaves the bucket alone.
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let uid = namespaces.get(NAMESPACE).await.unwrap().uid();
    let existing = json!({"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": uid});
    let planted = json!({"metadata": {"ownerReferences": [existing]}});
    let administrators: Api<BackupBucket> = Api::all(garden.administrator());
    allowed(garden.patch(&administrators, "owned", planted).await);
    allowed(try_patch(&buckets, "owned", &orphaned).await);
    // As after an edit of the Seed.
    let mut renamed = reference("seed-seed-a");
    renamed["name"] = json!("renewed");
    let renamed = spec(json!({"credentialsRef": renamed}));
    allowed(try_patch(&buckets, "owned", &renamed).await);
    // Without a namespace, the reference is to the namespace of the seed.
    let short = json!({"kind": "Secret", "namespace": null, "name": "backup"});
    allowed(try_patch(&buckets, "owned", &spec(json!({"credentialsRef": short}))).await);
    let finalizer = json!({"metadata": {"finalizers": ["gardener"]}});
    allowed(try_patch(&projects, "dev", &finalizer).await);
}

/// The process has the right to patch Seeds, for its finalizer.
pub async fn it_changes_only_its_finalizer_of_a_seed(garden: &Garden) {
    let mut seed = garden::seed("finalized");
    seed["metadata"]["finalizers"] = json!(["gardener"]);
    garden.bring(&seed).await.unwrap();
    let seeds: Api<Seed> = Api::all(garden.manager.clone());
    let metadata = |metadata: serde_json::Value| json!({"metadata": metadata});
    let label = metadata(json!({"labels": {"x": "y"}}));
    let words = "may not write Seed finalized";
    until_refused(words, || try_patch(&seeds, "finalized", &label)).await;
    for change in [
        label.clone(),
        metadata(json!({"annotations": {"x": "y"}})),
        metadata(json!({"finalizers": null})),
        metadata(json!({"finalizers": ["gardener", "x/y"]})),
        json!({"spec": {"taints": [{"key": "x"}]}}),
    ] {
        refused(try_patch(&seeds, "finalized", &change).await, words);
    }
    for finalizers in [json!(["gardener", finalizer::SEED]), json!(["gardener"])] {
        let change = metadata(json!({"finalizers": finalizers}));
        allowed(try_patch(&seeds, "finalized", &change).await);
    }
}

/// A ResourceQuota that is refused stops no project.
pub async fn a_refused_quota_stops_no_project(garden: &Garden) {
    let invalid = "--project-quota=count/ shoots.core.gardener.cloud=1";
    let mut controllers = JoinSet::new();
    controllers.spawn(garden_controller_manager::project::run(
        garden.context(&[invalid]),
    ));
    garden.bring(&project_of("unbounded", None)).await.unwrap();
    let projects: Api<Project> = Api::all(garden.administrator());
    eventually("the project is ready", SOON, || async {
        let project = projects
            .get("unbounded")
            .await
            .map_err(|error| error.to_string())?;
        let phase = project.status.and_then(|status| status.phase);
        (phase == Some(ProjectPhase::Ready))
            .then_some(())
            .ok_or(format!("{phase:?}"))
    })
    .await
    .unwrap();
    // The Event of an object without a namespace is in namespace `default`.
    let events: Api<Event> = garden.admin("default");
    eventually("the refusal is reported", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let is_report = |event: &Event| {
            event.reason.as_deref() == Some("QuotaRefused")
                && event
                    .regarding
                    .as_ref()
                    .is_some_and(|object| object.name.as_deref() == Some("unbounded"))
        };
        all.items
            .iter()
            .any(is_report)
            .then_some(())
            .ok_or_else(|| "no Event QuotaRefused".to_owned())
    })
    .await
    .unwrap();
}

/// The manager completes an open version. The manager must not upgrade a shoot, move a shoot, or confirm a
/// deletion.
pub async fn it_changes_no_specification(garden: &Garden) {
    garden
        .shoot("kept", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let users: Api<Shoot> = garden.admin(NAMESPACE);
    let half = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "half"},
        "spec": {
            "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
            "provider": {"type": "local"}, "kubernetes": {"version": "1.34"},
        },
    });
    allowed(garden.apply(&users, "half", half).await);
    let version = |version: &str| json!({"spec": {"kubernetes": {"version": version}}});
    let shoots: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let word = "it only completes a kubernetes.version that is not in full";
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    for body in [
        version("1.34.5"),
        json!({"spec": {"seedName": "seed-b"}}),
        json!({"spec": {"purpose": "production"}}),
        json!({"spec": {"kubernetes": {"kubeAPIServer": {"eventTTL": "1h"}}}}),
        json!({"metadata": {"finalizers": ["x/y"]}}),
        json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}}),
        json!({"metadata": {"labels": {"x": "unknown"}}}),
        confirmed,
    ] {
        refused(garden.patch(&shoots, "kept", body).await, word);
    }
    let unknown =
        |label: serde_json::Value| json!({"metadata": {"labels": {"shoot.gardener.cloud/status": label}}});
    allowed(garden.patch(&shoots, "kept", unknown(json!("unknown"))).await);
    refused(garden.patch(&shoots, "kept", unknown(json!(null))).await, word);
    let question = |seed: serde_json::Value| json!({"metadata": {"annotations": {"migration.gardener.cloud/dry-run": seed}}});
    // By two policies, in no order.
    refused(
        garden.patch(&shoots, "kept", question(json!("seed-b"))).await,
        "shoots.core.gardener.cloud \"kept\" is forbidden",
    );
    allowed(garden.patch(&users, "kept", question(json!("seed-b"))).await);
    allowed(garden.patch(&shoots, "kept", question(json!(null))).await);
    zones_without_a_time(garden, &users, &shoots, word).await;
    its_schedules(garden, &users, &shoots, word).await;
    for other in ["1.35.0", "1.3.4", "1.340.1", "1.34"] {
        let with_more = json!({"spec": {"kubernetes": {"version": other}, "purpose": "production"}});
        refused(garden.patch(&shoots, "half", with_more).await, word);
    }
    for other in ["1.35.0", "1.3.4", "1.340.1"] {
        refused(garden.patch(&shoots, "half", version(other)).await, word);
    }
    allowed(garden.patch(&shoots, "half", version("1.34.4")).await);
    refused(garden.patch(&shoots, "half", version("1.34.5")).await, word);
}

/// The manager must not end an isolation without a time limit, and must not isolate a zone.
async fn zones_without_a_time(garden: &Garden, users: &Api<Shoot>, shoots: &Api<Shoot>, word: &str) {
    let [zone, expires] =
        ["isolated-zone", "isolated-zone-expires"].map(|key| format!("shoot.gardener.cloud/{key}"));
    let said = |annotations: serde_json::Value| json!({"metadata": {"annotations": annotations}});
    let pools =
        json!([{"name": "a", "machine": {"type": "local"}, "minimum": 1, "maximum": 1, "zones": ["a", "b"]}]);
    allowed(
        garden
            .apply(
                users,
                "sick",
                crate::garden::shoot_with_pools("sick", "local", &pools),
            )
            .await,
    );
    refused(
        garden.patch(shoots, "sick", said(json!({&zone: "z"}))).await,
        word,
    );
    allowed(garden.patch(users, "sick", said(json!({&zone: "z"}))).await);
    refused(
        garden.patch(shoots, "sick", said(json!({&zone: null}))).await,
        word,
    );
    let time = "2999-01-01T00:00:00Z";
    refused(
        garden.patch(shoots, "sick", said(json!({&expires: time}))).await,
        word,
    );
    allowed(garden.patch(users, "sick", said(json!({&expires: time}))).await);
    let later = "2999-01-02T00:00:00Z";
    refused(
        garden.patch(shoots, "sick", said(json!({&expires: later}))).await,
        word,
    );
    allowed(
        garden
            .patch(shoots, "sick", said(json!({&zone: null, &expires: null})))
            .await,
    );
}

/// The manager hibernates only a shoot whose user has set schedules, and only the user may change the
/// schedules.
async fn its_schedules(garden: &Garden, users: &Api<Shoot>, shoots: &Api<Shoot>, word: &str) {
    let hibernation = |hibernation: serde_json::Value| json!({"spec": {"hibernation": hibernation}});
    let asleep = || hibernation(json!({"enabled": true}));
    refused(garden.patch(shoots, "kept", asleep()).await, word);
    let nightly = hibernation(json!({"schedules": [{"start": "0 20 * * *"}]}));
    refused(garden.patch(shoots, "kept", nightly.clone()).await, word);
    allowed(garden.patch(users, "kept", nightly).await);
    for other in [
        json!({"schedules": null}),
        json!({"schedules": [{"start": "0 8 * * *"}]}),
        json!(null),
    ] {
        refused(garden.patch(shoots, "kept", hibernation(other)).await, word);
    }
    let with_more = json!({"spec": {"hibernation": {"enabled": true}, "purpose": "production"}});
    refused(garden.patch(shoots, "kept", with_more).await, word);
    allowed(garden.patch(shoots, "kept", asleep()).await);
}
