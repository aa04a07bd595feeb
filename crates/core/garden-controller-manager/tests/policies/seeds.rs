//! Fields of a Seed on which shoots depend, and the seeds and domains that a shoot may name.

use api::gardencore::{Project, Seed, Shoot, seed::ShootNetworks};
use kube::Api;
use placement::seed_choice;
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused};

fn domain(domain: &str) -> Value {
    json!({"type": "local", "domain": domain, "credentialsRef": {"kind": "Secret", "name": "dns"}})
}

fn in_zone(mut domain: Value, zone: &str) -> Value {
    domain["zone"] = json!(zone);
    domain
}

/// A Seed with names and networks of shoots.
async fn bring_hosting_seed(garden: &Garden) {
    let mut seed = garden::seed("hosting");
    seed["spec"]["dns"] = json!({"internal": domain("internal.hosting.test"),
        "defaults": [domain("a.hosting.test"), in_zone(domain("b.hosting.test"), "hosting.test")]});
    garden.bring(&seed).await.unwrap();
    let mut nested = garden::seed("nested");
    // The last two begin with `<shoot>.<project>` of Shoots `taken` and `above`.
    nested["spec"]["dns"] = json!({"defaults": [domain("dev.b.hosting.test"), domain("taken.dev.hosting.test"),
        domain("eu.above.dev.hosting.test")]});
    garden.bring(&nested).await.unwrap();
}

/// Their issuer, certificates, kubeconfigs and addresses of Services would change.
pub async fn names_and_networks_of_shoots_stay_while_shoots_are_on_the_seed(garden: &Garden) {
    bring_hosting_seed(garden).await;
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let networks = |networks: Value| json!({"spec": {"networks": {"shootDefaults": networks}}});
    let defaults = |defaults: Value| json!({"spec": {"dns": {"defaults": defaults}}});
    let other_type = json!({"spec": {"dns": {"internal": {"type": "aws-route53"}}}});
    let (one, two) = (
        domain("a.hosting.test"),
        in_zone(domain("b.hosting.test"), "hosting.test"),
    );
    let mut other_provider = one.clone();
    other_provider["type"] = json!("aws-route53");
    let edit = |body: Value| garden.patch(&seeds, "hosting", body);
    let edits = [
        (other_type, "nor get another type"),
        (defaults(json!([two, one])), "can only grow at the end"),
        (defaults(json!([one])), "can only grow at the end"),
        (defaults(json!([other_provider, two])), "can only grow at the end"),
        (
            defaults(json!([one, in_zone(domain("b.hosting.test"), "test")])),
            "can only grow at the end",
        ),
        (
            networks(json!({"services": "10.9.0.0/16"})),
            "cannot change from pods 100.96.0.0/11, services 100.64.0.0/13",
        ),
        (networks(json!({"pods": "10.8.0.0/16"})), "to pods 10.8.0.0/16"),
    ];
    let constraint = |status: &str| {
        let time = "2026-01-01T00:00:00Z";
        json!({"constraints": [{"type": "WithoutShoots", "status": status, "reason": "R", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time}]})
    };
    // A gardenlet that does not report the constraint may have shoots.
    for status in [constraint("False"), json!({"constraints": []})] {
        garden.status(&seeds, "hosting", status).await;
        garden::until_refused(edits[5].1, || garden::try_patch(&seeds, "hosting", &edits[5].0)).await;
        for (body, words) in &edits {
            refused(edit(body.clone()).await, words);
        }
    }
    let built_in = json!({"pods": ShootNetworks::PODS, "services": ShootNetworks::SERVICES});
    allowed(edit(networks(built_in)).await);
    allowed(edit(networks(Value::Null)).await);
    let mut rotated = one.clone();
    rotated["credentialsRef"]["name"] = json!("rotated");
    allowed(
        edit(defaults(json!([
            in_zone(rotated, "hosting.test"),
            two,
            domain("c.hosting.test")
        ])))
        .await,
    );
    allowed(edit(json!({"metadata": {"labels": {"kind": "edge"}}})).await);
    // No shoot depends on the fields of a seed without shoots.
    garden.status(&seeds, "hosting", constraint("True")).await;
    for (body, _) in edits {
        allowed(edit(body).await);
    }
    bring_hosting_seed(garden).await;
}

/// Clients of the shoot with the name, and the credentials of the clients, would reach the wrong shoot.
pub async fn a_shoot_gets_no_name_of_another_shoot(garden: &Garden) {
    bring_hosting_seed(garden).await;
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let make = |name: &'static str, domain: &str| {
        let mut body = garden::shoot_with_pools(name, "local", &json!([]));
        body["spec"]["dns"] = json!({"domain": domain});
        body
    };
    garden::until_refused("can only have web.dev.a.hosting.test", || {
        garden::try_apply(&shoots, "web", make("web", "web.prod.a.hosting.test"))
    })
    .await;
    for (domain, words) in [
        ("web.prod.a.hosting.test", "can only have web.dev.a.hosting.test"),
        ("other.dev.a.hosting.test", "can only have web.dev.a.hosting.test"),
        ("x.web.dev.a.hosting.test", "can only have web.dev.a.hosting.test"),
        (
            "web.dev.prod.a.hosting.test",
            "can only have web.dev.a.hosting.test",
        ),
        ("a.hosting.test", "can only have web.dev.a.hosting.test"),
        ("web.prod.b.hosting.test", "can only have web.dev.b.hosting.test"),
        (
            "web.prod.internal.hosting.test",
            "is below the internal domain internal.hosting.test",
        ),
        (
            "internal.hosting.test",
            "is below the internal domain internal.hosting.test",
        ),
        ("hosting.test", "whose names belong to other shoots"),
        ("test", "whose names belong to other shoots"),
    ] {
        refused(garden.apply(&shoots, "web", make("web", domain)).await, words);
    }
    for (name, domain, words) in [
        (
            "taken",
            "taken.dev.hosting.test",
            "is below the default domain taken.dev.hosting.test",
        ),
        (
            "above",
            "above.dev.hosting.test",
            "whose names belong to other shoots",
        ),
    ] {
        garden::until_refused(words, || garden::try_apply(&shoots, name, make(name, domain))).await;
        refused(garden.apply(&shoots, name, make(name, domain)).await, words);
    }
    // A shoot that was created without a domain.
    let plain = garden::shoot_with_pools("plain", "local", &json!([]));
    allowed(garden.apply(&shoots, "plain", plain).await);
    let name = |domain: &str| garden.patch(&shoots, "plain", json!({"spec": {"dns": {"domain": domain}}}));
    refused(
        name("web.prod.a.hosting.test").await,
        "can only have plain.dev.a.hosting.test",
    );
    allowed(name("plain.dev.a.hosting.test").await);
    allowed(
        garden
            .apply(&shoots, "own", make("own", "own.customer.test"))
            .await,
    );
    // A default domain of Seed nested lies below a default domain of Seed hosting.
    allowed(
        garden
            .apply(&shoots, "deep", make("deep", "deep.dev.b.hosting.test"))
            .await,
    );
}

/// Names of shoots of all seeds depend on these domains: the owner of a stolen certificate would take the
/// domain of a customer.
pub async fn a_gardenlet_takes_no_domain(garden: &Garden) {
    let mut edge = garden::seed("edge");
    edge["spec"]["dns"] = json!({"defaults": [domain("edge.test")]});
    garden.bring(&edge).await.unwrap();
    let user = "gardener.cloud:system:seed:edge";
    let gardenlet = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let (gardenlet, seeds): (Api<Seed>, Api<Seed>) = (Api::all(gardenlet), Api::all(garden.administrator()));
    let defaults = |defaults: Value| json!({"spec": {"dns": {"defaults": defaults}}});
    let mut rotated = domain("edge.test");
    rotated["credentialsRef"]["name"] = json!("rotated");
    allowed(garden.patch(&gardenlet, "edge", defaults(json!([rotated]))).await);
    let words = "may not change the domains in spec.dns of Seed edge";
    let taken = defaults(json!([rotated, domain("customer.test")]));
    let mut of_other_type = rotated.clone();
    of_other_type["type"] = json!("route");
    for change in [
        taken.clone(),
        defaults(json!([in_zone(rotated.clone(), "test")])),
        defaults(json!([of_other_type])),
    ] {
        refused(garden.patch(&gardenlet, "edge", change).await, words);
    }
    // After the administrator, the gardenlet registers the same domains.
    allowed(garden.patch(&seeds, "edge", taken.clone()).await);
    allowed(garden.patch(&gardenlet, "edge", taken).await);
    allowed(
        garden
            .patch_status(&gardenlet, "edge", json!({"kubernetesVersion": "v9"}))
            .await,
    );
}

/// Otherwise the seed would refuse each move and takeover from itself, or take new shoots that an operator
/// keeps away.
pub async fn a_gardenlet_prevents_no_takeover_from_its_seed(garden: &Garden) {
    garden.bring(&garden::seed("compared")).await.unwrap();
    let user = "gardener.cloud:system:seed:compared";
    let gardenlet = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let (gardenlet, seeds): (Api<Seed>, Api<Seed>) = (Api::all(gardenlet), Api::all(garden.administrator()));
    let spec = |spec: Value| json!({"spec": spec});
    let words = "may not change spec.provider and spec.networks.shootDefaults of Seed compared";
    for change in [
        json!({"provider": {"type": "x"}}),
        json!({"provider": {"region": "x"}}),
        json!({"networks": {"shootDefaults": {"pods": "10.0.0.0/8"}}}),
        json!({"networks": {"shootDefaults": {"services": "10.0.0.0/8"}}}),
    ] {
        refused(
            garden.patch(&gardenlet, "compared", spec(change.clone())).await,
            words,
        );
    }
    // Absent and null are the defaults.
    let same = spec(json!({"networks": {"shootDefaults": null}}));
    allowed(garden.patch(&gardenlet, "compared", same).await);
    let taints = |taints: Value| spec(json!({"taints": taints}));
    let cordoned = json!({"key": "migration.gardener.cloud/cordoned"});
    allowed(garden.patch(&seeds, "compared", taints(json!([cordoned]))).await);
    for change in [Value::Null, json!([]), json!([{"key": "x"}])] {
        refused(
            garden.patch(&gardenlet, "compared", taints(change)).await,
            "may not remove taint migration.gardener.cloud/cordoned of Seed compared",
        );
    }
    let more = taints(json!([{"key": "x"}, cordoned]));
    allowed(garden.patch(&gardenlet, "compared", more).await);
}

/// The gardenlet would lose its Seed and register a new Seed of the same name with any domain.
pub async fn a_gardenlet_does_not_delete_its_seed(garden: &Garden) {
    garden.bring(&garden::seed("lasting")).await.unwrap();
    let user = "gardener.cloud:system:seed:lasting";
    let gardenlet = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let (gardenlet, seeds): (Api<Seed>, Api<Seed>) = (Api::all(gardenlet), Api::all(garden.administrator()));
    let metadata = |metadata: Value| json!({"metadata": metadata});
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "u"});
    let words = "may not change the lifetime of Seed lasting";
    let added = metadata(json!({"finalizers": ["gardener"]}));
    allowed(garden.patch(&gardenlet, "lasting", added.clone()).await);
    garden::until_refused(words, || {
        garden::try_patch(&gardenlet, "lasting", &metadata(json!({"finalizers": null})))
    })
    .await;
    for change in [
        json!({"ownerReferences": [owner]}),
        json!({"finalizers": null}),
        json!({"finalizers": []}),
        json!({"finalizers": ["gardener", "x/y"]}),
    ] {
        refused(garden.patch(&gardenlet, "lasting", metadata(change)).await, words);
    }
    let mut registered = garden::seed("unborn");
    registered["metadata"]["ownerReferences"] = json!([owner]);
    let user = "gardener.cloud:system:seed:unborn";
    let unborn: Api<Seed> = Api::all(garden.client(user, &["gardener.cloud:system:seeds"]).await);
    refused(
        garden.apply(&unborn, "unborn", registered).await,
        "may not change the lifetime of Seed unborn",
    );
    // After the deletion by an administrator, the gardenlet releases the Seed.
    seeds
        .delete("lasting", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    allowed(
        garden
            .patch(&gardenlet, "lasting", metadata(json!({"finalizers": null})))
            .await,
    );
}

/// A takeover asks the DNS servers of the former owner, and needs owner checks in both Seeds.
pub async fn a_gardenlet_changes_no_owner_checks(garden: &Garden) {
    garden.bring(&garden::seed("fenced")).await.unwrap();
    let user = "gardener.cloud:system:seed:fenced";
    let gardenlet = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let (gardenlet, seeds): (Api<Seed>, Api<Seed>) = (Api::all(gardenlet), Api::all(garden.administrator()));
    let settings = |checks: Value| json!({"spec": {"settings": {"ownerChecks": checks}}});
    let checks = json!({"enabled": true, "authorities": ["192.0.2.1:53"]});
    let words = "may not change spec.settings.ownerChecks of Seed fenced";
    // The fence of each later host asks the servers of a former seed, also where its owner checks are off.
    let servers = json!({"enabled": false, "authorities": ["192.0.2.1:53"]});
    for off in [Value::Null, json!({"enabled": false})] {
        allowed(garden.patch(&seeds, "fenced", settings(Value::Null)).await);
        allowed(garden.patch(&seeds, "fenced", settings(off)).await);
        for change in [
            checks.clone(),
            servers.clone(),
            json!({"enabled": false, "fence": "1h"}),
        ] {
            refused(garden.patch(&gardenlet, "fenced", settings(change)).await, words);
        }
        allowed(
            garden
                .patch(&gardenlet, "fenced", settings(json!({"enabled": false})))
                .await,
        );
    }
    allowed(garden.patch(&seeds, "fenced", settings(checks.clone())).await);
    allowed(garden.patch(&gardenlet, "fenced", settings(checks)).await);
    for change in [
        json!({"authorities": ["192.0.2.9:53"]}),
        json!({"authorities": null}),
        json!({"enabled": false}),
        json!({"fence": "1h"}),
        Value::Null,
    ] {
        refused(garden.patch(&gardenlet, "fenced", settings(change)).await, words);
    }
    refused(
        garden
            .patch(&gardenlet, "fenced", json!({"spec": {"settings": null}}))
            .await,
        words,
    );
    // After the administrator, the gardenlet registers the same settings.
    let changed = settings(json!({"authorities": ["192.0.2.2:53"]}));
    allowed(garden.patch(&seeds, "fenced", changed.clone()).await);
    allowed(garden.patch(&gardenlet, "fenced", changed).await);
    let note = json!({"metadata": {"annotations": {"migration.gardener.cloud/leftover-namespaces": "x"}}});
    allowed(garden.patch(&gardenlet, "fenced", note).await);
}

/// A taint keeps new shoots away; shoots that are on the seed stay. `seed_choice::obstacle` agrees with the
/// policy in each case.
pub async fn a_shoot_is_created_on_a_tolerated_and_selected_seed(garden: &Garden) {
    bring_hosting_seed(garden).await;
    let (seeds, shoots): (Api<Seed>, Api<Shoot>) =
        (Api::all(garden.administrator()), garden.admin(NAMESPACE));
    let taints = json!([{"key": "protected"}, {"key": "tier", "value": "gold"}]);
    let marks = json!({"metadata": {"labels": {"kind": "edge"}}, "spec": {"taints": taints}});
    let make = |name: &str, spec: &Value| {
        let mut body = garden::shoot_with_pools(name, "local", &json!([]));
        body["spec"]["seedName"] = json!("hosting");
        for (field, value) in spec.as_object().unwrap() {
            body["spec"][field] = value.clone();
        }
        body
    };
    allowed(garden.apply(&shoots, "early", make("early", &json!({}))).await);
    allowed(garden.patch(&seeds, "hosting", marks).await);
    let tainted = "has the taint protected, which the shoot does not tolerate";
    garden::until_refused(tainted, || {
        garden::try_apply(&shoots, "guest", make("guest", &json!({})))
    })
    .await;
    let create = |spec: Value| garden.apply(&shoots, "guest", make("guest", &spec));
    let tolerations =
        |value: &str| json!([{"key": "protected", "value": "any"}, {"key": "tier", "value": value}]);
    let select = |selector: Value| json!({"tolerations": tolerations("gold"), "seedSelector": selector});
    let selectors = [
        json!({"matchLabels": {"kind": "core"}}),
        json!({"matchExpressions": [{"key": "kind", "operator": "In", "values": ["core"]}]}),
        json!({"matchExpressions": [{"key": "kind", "operator": "NotIn", "values": ["edge"]}]}),
        json!({"matchExpressions": [{"key": "kind", "operator": "DoesNotExist"}]}),
        json!({"matchExpressions": [{"key": "other", "operator": "Exists"}]}),
        json!({"providerTypes": ["aws"]}),
    ];
    let mut refusals = vec![
        (json!({}), tainted),
        (
            json!({"tolerations": tolerations("iron")}),
            "has the taint tier=gold",
        ),
    ];
    refusals.extend(selectors.map(|selector| (select(selector), "does not match spec.seedSelector")));
    let hosting = seeds.get("hosting").await.unwrap();
    let obstacle = |spec: &Value| {
        let shoot: Shoot = serde_json::from_value(make("guest", spec)).unwrap();
        seed_choice::obstacle(&shoot, &hosting, None)
    };
    for (spec, words) in refusals {
        let (_, sentence) = obstacle(&spec).unwrap();
        assert!(sentence.contains(words), "{sentence}");
        refused(create(spec).await, words);
    }
    let fitting = select(json!({"matchLabels": {"kind": "edge"}, "providerTypes": ["*"],
        "matchExpressions": [{"key": "kind", "operator": "In", "values": ["edge"]}, {"key": "other", "operator": "NotIn", "values": ["x"]}]}));
    assert_eq!(obstacle(&fitting), None);
    allowed(create(fitting).await);
    let edited = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"purpose": "testing"}});
    allowed(garden.patch(&shoots, "early", edited).await);
}

/// Otherwise a user keeps a Seed in deletion for ever, by one new Shoot after another.
pub async fn a_seed_in_deletion_takes_no_new_shoot(garden: &Garden) {
    let (seeds, shoots): (Api<Seed>, Api<Shoot>) =
        (Api::all(garden.administrator()), garden.admin(NAMESPACE));
    let mut seed = garden::seed("ending");
    seed["metadata"]["finalizers"] = json!(["gardener"]);
    garden.bring(&seed).await.unwrap();
    let make = |name: &str| {
        let mut body = garden::shoot_with_pools(name, "local", &json!([]));
        body["spec"]["seedName"] = json!("ending");
        body
    };
    allowed(
        garden
            .apply(&shoots, "before-the-end", make("before-the-end"))
            .await,
    );
    seeds
        .delete("ending", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    let words = "Seed ending is being deleted and takes no new shoots";
    garden::until_refused(words, || {
        garden::try_apply(&shoots, "at-the-end", make("at-the-end"))
    })
    .await;
    refused(
        garden.apply(&shoots, "at-the-end", make("at-the-end")).await,
        words,
    );
    let edited = json!({"metadata": {"labels": {"a": "b"}}});
    allowed(garden.patch(&shoots, "before-the-end", edited).await);
    allowed(
        garden
            .patch(&seeds, "ending", json!({"metadata": {"finalizers": null}}))
            .await,
    );
}

/// Otherwise a tenant could use the seeds that the operator protects with a taint.
pub async fn a_project_bounds_the_taints_that_its_shoots_tolerate(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("tolerant", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let tolerate = |tolerations: Value| json!({"spec": {"tolerations": tolerations}});
    let secret = tolerate(json!([{"key": "secret"}]));
    let words = "spec.tolerations.whitelist of Project dev does not have the toleration";
    garden::until_refused(words, || garden::try_patch(&shoots, "tolerant", &secret)).await;
    let patch = |tolerations: Value| garden.patch(&shoots, "tolerant", tolerate(tolerations));
    for (toleration, taint) in [
        (json!({"key": "secret"}), "secret"),
        (json!({"key": "tier", "value": "silver"}), "tier=silver"),
        (json!({"key": "tier"}), "tier"),
    ] {
        let outcome = patch(json!([{"key": "protected"}, toleration])).await;
        refused(outcome, &format!("may not tolerate the taint {taint}: {words}"));
    }
    let mut body = garden::shoot_with_pools("secretive", "local", &json!([]));
    body["spec"]["tolerations"] = json!([{"key": "secret"}]);
    refused(garden.apply(&shoots, "secretive", body).await, words);
    let tier = json!({"key": "tier", "value": "gold"});
    allowed(patch(json!([{"key": "protected", "value": "any"}, tier])).await);

    let projects: Api<Project> = editor_of_projects(garden).await;
    let whitelist = |list: Value| json!({"spec": {"tolerations": {"whitelist": list}}});
    let description = json!({"spec": {"description": "trials"}});
    garden::until_allowed(|| garden::try_patch(&projects, "dev", &description)).await;
    let wider = whitelist(json!([{"key": "secret"}]));
    refused(
        garden.patch(&projects, "dev", wider).await,
        "takes the verb modify-spec-tolerations-whitelist on projects",
    );
    // A toleration that the Shoot has stays when the whitelist shrinks.
    let all: Api<Project> = Api::all(garden.administrator());
    allowed(
        garden
            .patch(&all, "dev", whitelist(json!([{"key": "other"}])))
            .await,
    );
    let kept = tolerate(json!([tier, {"key": "other"}]));
    garden::until_allowed(|| garden::try_patch(&shoots, "tolerant", &kept)).await;
    refused(patch(json!([tier, {"key": "other"}, {"key": "x"}])).await, words);
    allowed(patch(json!([tier])).await);
}

/// A client of a user who may read and write Shoots and Projects, and has no other right.
async fn editor_of_projects(garden: &Garden) -> Api<Project> {
    let rbac = "rbac.authorization.k8s.io";
    let (version, metadata) = (format!("{rbac}/v1"), json!({"name": "editor-of-projects"}));
    let verbs = ["get", "list", "watch", "create", "update", "patch"];
    let rules = json!([{"apiGroups": ["core.gardener.cloud"], "resources": ["projects"], "verbs": verbs}]);
    let binding = json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "editor-of-projects"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": "editor-of-shoots"}]});
    let role = json!({"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules});
    garden.bring(&role).await.unwrap();
    garden.bring(&binding).await.unwrap();
    Api::all(garden.editor_of_shoots(NAMESPACE).await.unwrap())
}
