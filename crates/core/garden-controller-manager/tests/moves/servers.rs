//! A takeover needs seeds with the same DNS servers, and owner checks in all processes of the shoot.

use api::{
    constants::condition::{OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED},
    gardencore::{Seed, Shoot},
};
use kube::Api;
use serde_json::{Value, json};

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, refused},
    renewal::until_event,
    takeover::{ask, unasked},
};

/// The conditions that the gardenlet of a seed reports after a flow has ended with the present owner terms.
pub async fn all_processes_ask(garden: &Garden, name: &str, seed: &str) {
    let told = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastUpdateTime": "2026-01-01T00:00:00Z"})
    };
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let terms = placement::owner_terms::hash(&seeds.get(seed).await.unwrap(), 1);
    let entry = json!({"seedName": seed, "epoch": 1, "servers": ["192.0.2.1:53"], "serversNamed": false, "terms": terms});
    let status = json!({"conditions": [told(OWNERSHIP_VERIFIED), told(OWNER_CHECKS_COMPLETE)], "ownerChecks": [entry]});
    garden
        .status::<Shoot>(&garden.admin(NAMESPACE), name, status)
        .await;
}

/// The seed of the shoot is silent, and an authorized operator requests a takeover.
pub async fn the_shoot_stays_where_a_server_list_is_not_shared(garden: &Garden, name: &str) {
    ask(garden, name).await;
    let shoot = unasked(garden, name).await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    let missing = "never reported that all processes of the shoot check the owner";
    until_event(garden, "ForceRestoreRefused", missing).await;
    all_processes_ask(garden, name, "seed-a").await;
    name_servers(garden, json!(["192.0.2.1:53"])).await;
    ask(garden, name).await;
    let shoot = unasked(garden, name).await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    let lists = "seed seed-a asks 192.0.2.1:53 (spec.settings.ownerChecks.authorities), and seed seed-b finds servers by the NS records";
    until_event(garden, "ForceRestoreRefused", lists).await;
    name_servers(garden, Value::Null).await;
}

async fn name_servers(garden: &Garden, servers: Value) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let settings = json!({"spec": {"settings": {"ownerChecks": {"authorities": servers}}}});
    allowed(garden.patch(&seeds, "seed-a", settings).await);
}

/// Processes of shoots query owner records in this domain, also where no gardenlet can give the processes new
/// settings.
pub async fn the_internal_domain_of_a_seed_does_not_change_once_set(garden: &Garden) {
    garden.bring(&garden::seed("seed-i")).await.unwrap();
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let internal = |change: Value| {
        let mut internal = json!({"type": "local", "domain": "internal.example.test",
            "credentialsRef": {"kind": "Secret", "name": "dns", "namespace": "seed-seed-i"}});
        json_patch::merge(&mut internal, &change);
        garden.patch(&seeds, "seed-i", json!({"spec": {"dns": {"internal": internal}}}))
    };
    allowed(internal(json!({})).await);
    allowed(internal(json!({"zone": "example.test"})).await);
    let word = "domain and zone of dns.internal are immutable";
    for change in [
        json!({"domain": "other.example.test", "zone": "example.test"}),
        json!({"zone": "internal.example.test"}),
    ] {
        refused(internal(change).await, word);
    }
    for removed in [json!(null), json!({"zone": null})] {
        let change = json!({"spec": {"dns": {"internal": removed}}});
        refused(garden.patch(&seeds, "seed-i", change).await, word);
    }
    allowed(internal(json!({"zone": "example.test", "credentialsRef": {"name": "new"}})).await);
}
