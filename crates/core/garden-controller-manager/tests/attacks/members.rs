//! No user can read the keys of a shoot: neither in their storage for the next seed, nor in another project.
//! An operator grants the rights of a project member; the widest usual grant is Kubernetes' own role `admin`
//! in the project's namespace.

use api::gardencore::{InternalSecret, InternalSecretFields, Seed, ShootState, ShootStateSpec};
use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Event, ObjectReference, Pod, Secret, ServiceAccount},
        events::v1::Event as NewEvent,
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, Object, allowed, refused};

/// A namespace of another project.
const OTHERS: &str = "garden-others";

pub async fn a_member_of_a_project_gets_at_no_key(garden: &Garden) {
    let member = garden.member(NAMESPACE).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}});
    garden.bring(&namespace).await.unwrap();
    garden.state("kept").await;

    let mut key = Secret::default();
    key.metadata.name = Some("key".into());
    let own: Api<Secret> = Api::namespaced(member.clone(), NAMESPACE);
    // The member has a role at all.
    garden::until_allowed(|| garden::try_create(&own, key.clone())).await;
    allowed(own.create(&PostParams::default(), &key).await.map(drop));
    let theirs: Api<Secret> = garden.admin(OTHERS);
    theirs.create(&PostParams::default(), &key).await.unwrap();

    is_kept_out(garden, &member, OTHERS, key).await;
    is_kept_out(
        garden,
        &member,
        "garden",
        named::<Secret>("key", Secret::default()),
    )
    .await;
    for namespace in [NAMESPACE, OTHERS] {
        let state = ShootState::new("kept", ShootStateSpec::default());
        is_kept_out(garden, &member, namespace, state).await;
        let chunk = InternalSecret::new("kept", InternalSecretFields::default());
        is_kept_out(garden, &member, namespace, chunk).await;
    }
}

/// A full etcd of the garden refuses the Leases of all seeds. The quota bounds only the number of objects.
pub async fn a_member_stores_no_large_object(garden: &Garden) {
    let member = garden.member(NAMESPACE).await.unwrap();
    let configs: Api<ConfigMap> = Api::namespaced(member.clone(), NAMESPACE);
    garden::until_allowed(|| garden::try_create(&configs, garden::config_map("small", 1))).await;
    let params = PostParams::default();
    let create = async |length: usize| {
        let config = garden::config_map("stored", length);
        configs.create(&params, &config).await.map(drop)
    };
    let words = "bytes, and an object of this kind in a project may have 65536";
    refused(create(66_000).await, words);
    refused(create(1_000_000).await, words);
    allowed(create(64_000).await);
    let grown = json!({"data": {"z": "y".repeat(5000)}});
    refused(garden.patch(&configs, "stored", grown).await, words);
    // Protobuf has four bytes for a sign of four bytes, and no escape sequences.
    let with_signs = |sign: &str, length: usize| json!({"data": {"x": sign.repeat(length)}});
    let signs = with_signs("\u{1f980}", 17_000);
    refused(garden.patch(&configs, "stored", signs).await, words);
    for fits in [with_signs("\u{1f980}", 15_000), with_signs("<", 60_000)] {
        allowed(garden.patch(&configs, "stored", fits).await);
    }

    // Kubernetes reports all finalizers of a namespace in deletion in a single condition.
    let finalizers = |count: usize| -> Value {
        let names: Vec<String> = (0..count).map(|number| format!("example.org/{number}")).collect();
        json!({"metadata": {"finalizers": names}})
    };
    let many = "has 17 finalizers, and an object in a project may have 16";
    refused(garden.patch(&configs, "stored", finalizers(17)).await, many);
    for fits in [finalizers(16), finalizers(0)] {
        allowed(garden.patch(&configs, "stored", fits).await);
    }

    let secrets: Api<Secret> = Api::namespaced(member.clone(), NAMESPACE);
    let mut secret = named("stored", Secret::default());
    // Stored without base64.
    secret.data = Some([("x".to_owned(), ByteString(vec![0; 66_000]))].into());
    let created = secrets.create(&params, &secret).await;
    refused(created.map(drop), words);
    secret.data = Some([("x".to_owned(), ByteString(vec![0; 60_000]))].into());
    let created = secrets.create(&params, &secret).await;
    allowed(created.map(drop));
    // An empty reference has 16 bytes in etcd, and 4 in the text that the policy reads.
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
    let mut account = named("stored", ServiceAccount::default());
    account.secrets = Some(vec![ObjectReference::default(); 5000]);
    let created = accounts.create(&params, &account).await;
    refused(created.map(drop), words);
    account.secrets = Some(vec![ObjectReference::default(); 100]);
    let created = accounts.create(&params, &account).await;
    allowed(created.map(drop));
    // No quota counts Events.
    let events: Api<Event> = Api::namespaced(member, NAMESPACE);
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "stored", "namespace": NAMESPACE, "annotations": {"x": "y".repeat(17_000)}},
        "involvedObject": {"kind": "ConfigMap", "name": "stored", "namespace": NAMESPACE},
    }))
    .unwrap();
    let words = "bytes, and an object of this kind in a project may have 16384";
    refused(events.create(&params, &event).await.map(drop), words);
    a_large_object_from_before_the_bound_shrinks(garden, &configs).await;
}

/// A deletion of a Seed in the foreground would wait for an object of the member.
pub async fn a_member_names_no_owner_of_the_garden(garden: &Garden) {
    let member = garden.member(NAMESPACE).await.unwrap();
    let configs: Api<ConfigMap> = Api::namespaced(member, NAMESPACE);
    let core = "core.gardener.cloud/v1beta1";
    let config_with = |kind: &str| config_of(&[owner(core, kind, "u", false)]);
    garden::until_allowed(|| garden::try_create(&configs, config_with("Shoot"))).await;
    let words = "as an owner of ConfigMap";
    garden::until_refused(words, || garden::try_create(&configs, config_with("Seed"))).await;
    for kind in ["Seed", "Project", "CloudProfile", "BackupBucket"] {
        refused(garden::try_create(&configs, config_with(kind)).await, words);
    }
    let params = PostParams::default();
    let created = configs.create(&params, &garden::config_map("unowned", 1)).await;
    allowed(created.map(drop));
    let added = json!({"metadata": {"ownerReferences": [owner(core, "Seed", "u", true)]}});
    refused(garden.patch(&configs, "unowned", added).await, words);
    a_member_blocks_no_deletion_of_an_owner(garden, &configs).await;
    // An owner from before the policy.
    let administrators: Api<ConfigMap> = garden.admin(NAMESPACE);
    let mut early = config_of(&[owner(core, "Seed", "u", true)]);
    early.metadata.name = Some("owned-early".to_owned());
    allowed(administrators.create(&params, &early).await.map(drop));
    let released = json!({"metadata": {"finalizers": null, "labels": {"x": "y"}}});
    allowed(garden.patch(&configs, "owned-early", released).await);
    let deleted = administrators.delete("unowned", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
}

/// The garbage collector compares uids, so an owner of a different kind would keep the Seed, too.
async fn a_member_blocks_no_deletion_of_an_owner(garden: &Garden, configs: &Api<ConfigMap>) {
    let words = "may not set blockOwnerDeletion for an owner of ConfigMap";
    let core = "core.gardener.cloud/v1beta1";
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let uid = seeds.get("seed-a").await.unwrap().metadata.uid.unwrap();
    for (version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Endpoints"),
        ("apps/v1", "Deployment"),
        (core, "Shoot"),
        ("example.org/v1", "Seed"),
    ] {
        let blocking = config_of(&[owner(version, kind, &uid, true)]);
        refused(garden::try_create(configs, blocking).await, words);
        let added = json!({"metadata": {"ownerReferences": [owner(version, kind, &uid, true)]}});
        refused(garden.patch(configs, "unowned", added).await, words);
    }
    // The second owner counts, too.
    // The garbage collector deletes an object whose only owner is missing.
    let present = configs
        .create(&PostParams::default(), &garden::config_map("x", 1))
        .await;
    let present = present.unwrap().metadata.uid.unwrap();
    let own = owner("v1", "ConfigMap", &present, false);
    let second = owner("v1", "ConfigMap", &uid, true);
    let both = config_of(&[own.clone(), second]);
    refused(garden::try_create(configs, both).await, words);
    // An owner without the flag may become blocking for no member.
    let named = json!({"metadata": {"ownerReferences": [own]}});
    allowed(garden.patch(configs, "unowned", named).await);
    let blocking = json!({"metadata": {"ownerReferences": [owner("v1", "ConfigMap", &present, true)]}});
    refused(garden.patch(configs, "unowned", blocking).await, words);
    let removed = json!({"metadata": {"ownerReferences": null}});
    allowed(garden.patch(configs, "unowned", removed).await);
    allowed(configs.delete("x", &DeleteParams::default()).await.map(drop));
    a_controller_of_kubernetes_blocks_the_deletion_of_its_owners(garden, words).await;
}

/// Each controller of Kubernetes may update the finalizers of the owners that the controller names.
async fn a_controller_of_kubernetes_blocks_the_deletion_of_its_owners(garden: &Garden, words: &str) {
    let (rbac, name) = ("rbac.authorization.k8s.io", "controller-of-kubernetes");
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let may = |group: &str, resource: &str, verb: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
    let rules = json!([
        may("", "configmaps", "create"),
        may("", "endpoints/finalizers", "update"),
        may("apps", "deployments/finalizers", "update"),
        may("networking.k8s.io", "ingresses/finalizers", "update"),
        may("networking.k8s.io", "networkpolicies/finalizers", "update"),
        may("example.org", "prometheuses/finalizers", "update"),
        may("example.org", "boxes/finalizers", "update"),
    ]);
    let version = format!("{rbac}/v1");
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": name}]});
    garden.bring(&role).await.unwrap();
    garden.bring(&binding).await.unwrap();
    let configs: Api<ConfigMap> = Api::namespaced(garden.client(name, &[]).await, NAMESPACE);
    let deployment = owner("apps/v1", "Deployment", "u", true);
    garden::until_allowed(|| garden::try_create(&configs, config_of(std::slice::from_ref(&deployment))))
        .await;
    for (version, kind) in [
        ("v1", "Endpoints"),
        ("apps/v1", "Deployment"),
        ("networking.k8s.io/v1", "Ingress"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("example.org/v1", "Prometheus"),
        ("example.org/v1", "Box"),
    ] {
        let controlled = config_of(&[owner(version, kind, "u", true)]);
        allowed(garden::try_create(&configs, controlled).await);
    }
    for (version, kind) in [
        ("apps/v1", "ReplicaSet"),
        ("v1", "Deployment"),
        ("v1", "ConfigMap"),
        ("v1", "Prometheus"),
        ("example.org/v1", "Elasticsearch"),
    ] {
        let foreign = config_of(&[owner(version, kind, "u", true)]);
        refused(garden::try_create(&configs, foreign).await, words);
    }
    let second = owner("apps/v1", "ReplicaSet", "v", true);
    refused(
        garden::try_create(&configs, config_of(&[deployment, second])).await,
        words,
    );
}

fn owner(version: &str, kind: &str, uid: &str, blocks: bool) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": "x", "uid": uid, "blockOwnerDeletion": blocks})
}

/// A ConfigMap with a finalizer and these owners.
fn config_of(owners: &[Value]) -> ConfigMap {
    let metadata = json!({"name": "owned", "finalizers": ["example.org/kept"], "ownerReferences": owners});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

/// An operator decides about a takeover by Events of garden-controller-manager.
pub async fn a_member_reports_in_no_name_of_the_garden(garden: &Garden) {
    let core: Api<Event> = Api::namespaced(garden.member(NAMESPACE).await.unwrap(), NAMESPACE);
    // Role `admin` has no right to Events of the new group.
    let writer = garden.writer_of_events(NAMESPACE).await.unwrap();
    let new: Api<NewEvent> = Api::namespaced(writer, NAMESPACE);
    let event = |name: &str, more: Value| -> Event {
        let mut body = json!({
            "metadata": {"name": name, "namespace": NAMESPACE}, "reason": "ForceRestoreRefused", "message": "m",
            "involvedObject": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "x",
                "namespace": NAMESPACE},
        });
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        serde_json::from_value(body).unwrap()
    };
    let own = event("own", json!({"source": {"component": "operator-of-member"}}));
    garden::until_allowed(|| garden::try_create(&core, own.clone())).await;
    let mut own_of_new = garden::event_in(NAMESPACE, "seed-a");
    own_of_new.metadata.name = Some("of-member".to_owned());
    own_of_new.reporting_controller = Some("operator-of-member".to_owned());
    garden::until_allowed(|| garden::try_create(&new, own_of_new.clone())).await;
    let params = PostParams::default();
    allowed(core.create(&params, &own).await.map(drop));
    allowed(garden.patch(&core, "own", json!({"message": "another"})).await);
    let words = "is the reporter of the Event";
    for process in ["garden-controller-manager", "gardenlet", "provider-local"] {
        for named in [
            json!({"reportingComponent": process, "reportingInstance": "x"}),
            json!({"source": {"component": process}}),
        ] {
            let forged = core.create(&params, &event("forged", named)).await;
            refused(forged.map(drop), words);
        }
        let mut forged = garden::event_in(NAMESPACE, "seed-a");
        forged.reporting_controller = Some(process.to_owned());
        refused(new.create(&params, &forged).await.map(drop), words);
        let renamed = json!({"source": {"component": process}});
        refused(garden.patch(&core, "own", renamed).await, words);
    }
    a_similar_name_is_refused(garden, &core, &new, &event).await;
    a_second_line_is_refused(garden, &core, &new, &event).await;
    the_suite_reports_in_a_project(garden, &core, &new).await;
}

/// `kubectl describe` prints these names, and no reader sees the difference.
async fn a_similar_name_is_refused(
    garden: &Garden,
    core: &Api<Event>,
    new: &Api<NewEvent>,
    event: &impl Fn(&str, Value) -> Event,
) {
    let (params, words) = (PostParams::default(), "is the reporter of the Event");
    for similar in [
        "garden\u{2011}controller\u{2011}manager",
        "Garden-Controller-Manager",
        "garden-controller-manager ",
        " gardenlet",
        "gard\u{435}nlet",
        "my-gardenlet",
        "garden-controller",
        "garden-controller-manager\n",
        "garden-controller-manager,",
        "garden1et",
        "g4rd3n-c0ntr011er-manager",
        "gardener-controller-manager",
        "provider.local",
    ] {
        for named in [
            json!({"source": {"component": similar}}),
            json!({"reportingComponent": similar, "reportingInstance": "x"}),
        ] {
            let forged = core.create(&params, &event("similar", named)).await;
            refused(forged.map(drop), words);
        }
        let renamed = json!({"source": {"component": similar}});
        refused(garden.patch(core, "own", renamed).await, words);
    }
    // The new group takes qualified names alone.
    for similar in ["Gardenlet", "x/gardenlet", "garden_controller_manager"] {
        let mut forged = garden::event_in(NAMESPACE, "seed-a");
        forged.metadata.name = Some("similar".to_owned());
        forged.reporting_controller = Some(similar.to_owned());
        refused(new.create(&params, &forged).await.map(drop), words);
    }
    let honest = ["kustomize-controller", "managed/x.example.org", "kubelet"];
    for (number, name) in honest.into_iter().enumerate() {
        let body = event(
            &format!("honest-{number}"),
            json!({"source": {"component": name}}),
        );
        allowed(core.create(&params, &body).await.map(drop));
    }
}

/// `kubectl describe` prints a second line as a further Event.
async fn a_second_line_is_refused(
    garden: &Garden,
    core: &Api<Event>,
    new: &Api<NewEvent>,
    event: &impl Fn(&str, Value) -> Event,
) {
    let (params, words) = (PostParams::default(), "with a control character in message");
    let forged = "ok\n  Warning\tForceRestoreRefused\t12s\tgarden-controller-manager\tseed-a still answers";
    let source = json!({"component": "operator-of-member"});
    for field in ["message", "reason", "type"] {
        for text in [forged, "ok\u{2028}", "ok\r"] {
            let mut body = event("forged", json!({"source": source}));
            let text = text.to_owned();
            match field {
                "message" => body.message = Some(text),
                "reason" => body.reason = Some(text),
                _ => body.type_ = Some(text),
            }
            refused(core.create(&params, &body).await.map(drop), words);
        }
    }
    refused(garden.patch(core, "own", json!({"message": forged})).await, words);
    let mut body = garden::event_in(NAMESPACE, "seed-a");
    body.metadata.name = Some("forged".to_owned());
    body.reporting_controller = Some("operator-of-member".to_owned());
    body.reporting_instance = Some("host-of-member".to_owned());
    body.note = Some(forged.to_owned());
    if let Some(regarding) = &mut body.regarding {
        regarding.kind = Some("Shoot".to_owned());
    }
    refused(new.create(&params, &body).await.map(drop), words);
    // Operators read no decision in Events about objects of other kinds.
    if let Some(regarding) = &mut body.regarding {
        regarding.kind = Some("ConfigMap".to_owned());
    }
    allowed(new.create(&params, &body).await.map(drop));
    // Tables show the host and the instance beside the reporter, or in its place.
    for named in [
        json!({"source": {"component": "x", "host": "garden-controller-manager"}}),
        json!({"source": source, "reportingComponent": "x", "reportingInstance": "Gardenlet"}),
        json!({"source": {"component": "x", "host": "gard\u{435}nlet"}}),
        json!({"source": {"component": "x", "host": "garden.contro11er-manager"}}),
    ] {
        let forged = core.create(&params, &event("forged", named)).await;
        refused(forged.map(drop), "is the reporter of the Event");
    }
    let honest = json!({"source": {"component": "x", "host": "ip-10-0-0-1.ec2.internal"}});
    allowed(core.create(&params, &event("hosted", honest)).await.map(drop));
}

/// No member changes the Events of the suite.
async fn the_suite_reports_in_a_project(garden: &Garden, core: &Api<Event>, new: &Api<NewEvent>) {
    let reporter: Api<NewEvent> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let mut event = garden::event_in(NAMESPACE, "seed-a");
    event.metadata.name = Some("of-garden".to_owned());
    event.reporting_controller = Some("garden-controller-manager".to_owned());
    event.reporting_instance = Some("garden-controller-manager".to_owned());
    let created = reporter.create(&PostParams::default(), &event).await;
    allowed(created.map(drop));
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    allowed(garden.patch(&reporter, "of-garden", series).await);
    let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
    let words = "is the reporter of the Event";
    refused(garden.patch(core, "of-garden", annotated.clone()).await, words);
    refused(garden.patch(new, "of-garden", annotated).await, words);
    refused(
        garden
            .patch(core, "of-garden", json!({"message": "forged"}))
            .await,
        words,
    );
}

async fn a_large_object_from_before_the_bound_shrinks(garden: &Garden, configs: &Api<ConfigMap>) {
    let administrators: Api<ConfigMap> = garden.admin(NAMESPACE);
    let large = garden::config_map("early", 900_000);
    let created = administrators.create(&PostParams::default(), &large).await;
    allowed(created.map(drop));
    let shorter = json!({"data": {"x": "y".repeat(800_000)}});
    allowed(garden.patch(configs, "early", shorter).await);
    let grown = json!({"data": {"z": "y".repeat(1000)}});
    refused(garden.patch(configs, "early", grown).await, "may have 65536");
    let deleted = configs.delete("early", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
}

fn named<K: Resource>(name: &str, mut object: K) -> K {
    object.meta_mut().name = Some(name.to_owned());
    object
}

/// From reading and from writing.
async fn is_kept_out<K>(garden: &Garden, member: &Client, namespace: &str, object: K)
where
    K: Object + serde::Serialize + Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let (api, name): (Api<K>, _) = (Api::namespaced(member.clone(), namespace), object.name_any());
    refused(api.get(&name).await.map(drop), "cannot get resource");
    refused(
        api.list(&ListParams::default()).await.map(drop),
        "cannot list resource",
    );
    let created = api.create(&PostParams::default(), &object).await;
    refused(created.map(drop), "cannot create resource");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    refused(garden.patch(&api, &name, label).await, "cannot patch resource");
    let deleted = api.delete(&name, &DeleteParams::default()).await;
    refused(deleted.map(drop), "cannot delete resource");
}

/// The example for operators is the narrow choice beside Kubernetes' own role `admin`.
pub async fn the_role_for_members_runs_no_workload(garden: &Garden) {
    let example = include_str!("../../../../../docs/operate/examples/project-admin-role.yaml");
    for document in garden::documents_in(example) {
        garden.bring(&document).await.unwrap();
    }
    let member = garden.client("owner", &["dev-admins"]).await;
    let secrets: Api<Secret> = Api::namespaced(member.clone(), NAMESPACE);
    let secret = named("of-owner", Secret::default());
    garden::until_allowed(|| garden::try_create(&secrets, secret.clone())).await;
    allowed(garden::try_create(&secrets, secret).await);
    let pods: Api<Pod> = Api::namespaced(member.clone(), NAMESPACE);
    let pod = named("x", Pod::default());
    let created = pods.create(&PostParams::default(), &pod).await;
    refused(created.map(drop), "cannot create resource \"pods\"");
    let deployments: Api<Deployment> = Api::namespaced(member.clone(), NAMESPACE);
    let deployment = named("x", Deployment::default());
    let created = deployments.create(&PostParams::default(), &deployment).await;
    refused(created.map(drop), "cannot create resource \"deployments\"");
    let states: Api<ShootState> = Api::namespaced(member, NAMESPACE);
    refused(states.get("kept").await.map(drop), "cannot get resource");
}

/// No chart grants such a right: the charts bind roles to processes only.
#[test]
fn the_charts_give_users_no_rights() {
    for (file, document) in garden::rights_of_charts() {
        let labels = &document["metadata"]["labels"];
        let widens = labels
            .as_object()
            .is_some_and(|labels| labels.keys().any(|label| label.contains("aggregate-to-")));
        assert!(
            !widens && document["aggregationRule"].is_null(),
            "{file}: a role of every member would become wider"
        );
        for subject in document["subjects"].as_array().into_iter().flatten() {
            let is_a_process =
                subject["kind"] == "ServiceAccount" || subject["name"] == "gardener.cloud:system:seeds";
            assert!(is_a_process, "{file}: {subject} is given rights");
        }
    }
}
