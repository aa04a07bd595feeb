#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)] // JSON is written where it is used

use serde_json::{Value, json};

use super::*;

fn shoot(spec: Value) -> Shoot {
    Shoot::new("web", serde_json::from_value(spec).unwrap())
}

fn registration(resources: Value) -> Arc<ControllerRegistration> {
    let spec = serde_json::from_value(json!({"resources": resources})).unwrap();
    Arc::new(ControllerRegistration::new("r", spec))
}

fn words(needs: &Needs) -> Vec<String> {
    needs
        .iter()
        .map(|need| format!("{}/{}", need.kind, need.type_))
        .collect()
}

fn base() -> Value {
    json!({"region": "here", "provider": {"type": "metal"}, "kubernetes": {"version": "1.34.4"}})
}

#[test]
fn a_shoot_without_workers_needs_its_provider() {
    assert_eq!(
        words(&of_shoot(&shoot(base()), &[])),
        ["ControlPlane/metal", "Infrastructure/metal"]
    );
}

/// Otherwise a user installs each extension in each seed, by a Shoot that no seed takes.
#[test]
fn a_shoot_that_no_seed_can_take_needs_no_extension() {
    let mut spec = base();
    spec["seedName"] = json!("a");
    let mut new = shoot(spec);
    let set = |shoot: &mut Shoot, status: Value| shoot.status = serde_json::from_value(status).unwrap();
    let a = BTreeSet::from(["a".to_owned()]);
    assert_eq!(seeds_of(&new), a);
    let ignored = json!({"shoot.gardener.cloud/ignore": "true"});
    new.metadata.annotations = serde_json::from_value(ignored).unwrap();
    assert!(seeds_of(&new).is_empty(), "held back");
    set(&mut new, json!({"seedName": "a"}));
    assert_eq!(seeds_of(&new), a, "held back in the seed");
    new.metadata.annotations = None;
    set(&mut new, json!({"lastErrors": [{"description": "no"}]}));
    assert!(seeds_of(&new).is_empty());
    set(
        &mut new,
        json!({"seedName": "a", "lastErrors": [{"description": "no"}]}),
    );
    assert_eq!(seeds_of(&new), a);
    new.spec.dns = serde_json::from_value(json!({"domain": "web.example.com"})).unwrap();
    set(&mut new, Value::Null);
    assert!(seeds_of(&new).is_empty());
    set(&mut new, json!({"reservedDomain": "web.example.com"}));
    assert_eq!(seeds_of(&new), a);
}

/// Otherwise a user keeps an extension in a seed by a finalizer of a deleted Shoot.
#[test]
fn a_released_shoot_needs_extensions_in_former_seeds_alone() {
    let mut spec = base();
    spec["seedName"] = json!("b");
    let mut deleted = shoot(spec);
    let status = json!({"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 1}]});
    deleted.status = serde_json::from_value(status).unwrap();
    deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    deleted.metadata.finalizers = Some(vec!["example.org/own".into(), "gardener".into()]);
    assert_eq!(Vec::from_iter(seeds_of(&deleted)), ["a", "b"]);
    deleted.metadata.finalizers = Some(vec!["example.org/own".into()]);
    assert_eq!(Vec::from_iter(seeds_of(&deleted)), ["a"]);
}

/// A registration that only the isolation of a zone needs is installed for the isolation, and stays until the
/// zone is back.
#[test]
fn a_shoot_needs_a_provider_that_closes_the_zone_that_is_cut_off() {
    let able = [registration(
        json!([{"kind": "SubnetIsolation", "type": "metal"}]),
    )];
    let need = "SubnetIsolation/metal".to_owned();
    let mut cut_off = shoot(base());
    assert!(!words(&of_shoot(&cut_off, &able)).contains(&need));
    cut_off
        .metadata
        .annotations
        .get_or_insert_default()
        .insert("shoot.gardener.cloud/isolated-zone".into(), "z".into());
    assert!(words(&of_shoot(&cut_off, &able)).contains(&need));
    assert!(!words(&of_shoot(&cut_off, &[])).contains(&need));
}

#[test]
fn a_shoot_needs_what_its_pools_network_names_and_extensions_are_of() {
    let mut spec = base();
    let machine = |image: &str| json!({"type": "small", "image": {"name": image, "version": "1"}});
    spec["provider"]["workers"] = json!([
        {"name": "a", "minimum": 1, "maximum": 1, "machine": machine("flat")},
        {"name": "b", "minimum": 1, "maximum": 1, "machine": machine("core"),
         "cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}},
    ]);
    spec["networking"] = json!({"type": "mesh"});
    spec["dns"] = json!({"providers": [{"type": "nowhere"}, {"type": "route", "primary": true}, {}]});
    spec["extensions"] = json!([{"type": "lake"}, {"type": "off", "disabled": true}]);
    assert_eq!(
        words(&of_shoot(&shoot(spec), &[])),
        [
            "ContainerRuntime/gvisor",
            "ControlPlane/metal",
            "DNSRecord/route",
            "Extension/lake",
            "Infrastructure/metal",
            "Network/mesh",
            "OperatingSystemConfig/core",
            "OperatingSystemConfig/flat",
            "Worker/metal",
        ]
    );
}

/// Otherwise a tenant keeps each seed from the shoot by a type that no extension has.
#[test]
fn a_dns_provider_without_records_needs_no_extension() {
    for providers in [
        json!([{"type": "unmanaged"}]),
        json!([{"type": "nowhere"}, {"type": "nowhere2"}]),
    ] {
        let mut spec = base();
        spec["dns"] = json!({"providers": providers});
        let needs = words(&of_shoot(&shoot(spec), &[]));
        assert!(
            needs.iter().all(|need| !need.starts_with("DNSRecord")),
            "{needs:?}"
        );
    }
}

#[test]
fn an_extension_that_is_on_for_all_can_be_switched_off_by_one() {
    let on = [registration(json!([
        {"kind": "Extension", "type": "audit", "autoEnable": ["shoot"], "workerlessSupported": true},
        {"kind": "Extension", "type": "nodes", "globallyEnabled": true},
        {"kind": "Extension", "type": "seeds", "autoEnable": ["seed"]},
        {"kind": "Network", "type": "n", "globallyEnabled": true},
    ]))];
    let extensions = |spec: Value| {
        let mut needs = of_shoot(&shoot(spec), &on);
        needs.retain(|need| need.kind == "Extension");
        words(&needs)
    };
    assert_eq!(
        extensions(base()),
        ["Extension/audit"],
        "one without workers has what works without"
    );
    let mut pools = base();
    pools["provider"]["workers"] =
        json!([{"name": "a", "minimum": 1, "maximum": 1, "machine": {"type": "small"}}]);
    assert_eq!(extensions(pools.clone()), ["Extension/audit", "Extension/nodes"]);
    pools["extensions"] = json!([{"type": "audit", "disabled": true}]);
    assert_eq!(extensions(pools), ["Extension/nodes"]);
    let seed = Seed::new("s", serde_json::from_value(seed_spec()).unwrap());
    assert!(words(&of_seed(&seed, &on)).contains(&"Extension/seeds".to_owned()));
}

fn seed_spec() -> Value {
    let secret = json!({"kind": "Secret", "name": "s", "namespace": "garden"});
    json!({
        "backup": {"provider": "buckets", "credentialsRef": secret},
        "dns": {
            "provider": {"type": "own"},
            "internal": {"type": "inner", "domain": "i", "credentialsRef": secret},
            "defaults": [{"type": "outer", "domain": "o", "credentialsRef": secret}],
        },
        "networks": {"pods": "10.0.0.0/16", "services": "10.1.0.0/16"},
        "provider": {"type": "metal", "region": "here"},
        "extensions": [{"type": "cache"}],
    })
}

#[test]
fn a_seed_needs_names_and_a_place_for_backups_until_it_goes() {
    let mut seed = Seed::new("s", serde_json::from_value(seed_spec()).unwrap());
    assert_eq!(
        words(&of_seed(&seed, &[])),
        [
            "BackupBucket/buckets",
            "BackupEntry/buckets",
            "DNSRecord/inner",
            "DNSRecord/outer",
            "DNSRecord/own",
            "Extension/cache",
        ]
    );
    seed.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert!(of_seed(&seed, &[]).is_empty());
}

#[test]
fn backups_that_are_there_keep_their_provider() {
    let bucket = json!({"provider": {"type": "buckets", "region": "here"}, "seedName": "s"});
    let buckets = [Arc::new(BackupBucket::new(
        "b",
        serde_json::from_value(bucket).unwrap(),
    ))];
    let entry = |meant: &str, has: &str| {
        let spec = json!({"bucketName": "b", "seedName": meant});
        let mut entry = BackupEntry::new("e", serde_json::from_value(spec).unwrap());
        entry.status = serde_json::from_value(json!({"seedName": has})).unwrap();
        [Arc::new(entry)]
    };
    let both = ["BackupBucket/buckets", "BackupEntry/buckets"];
    assert_eq!(words(&of_backups("s", &buckets, &[])), both);
    assert!(of_backups("t", &buckets, &[]).is_empty());
    assert_eq!(
        words(&of_backups("t", &buckets, &entry("t", "s"))),
        both,
        "it is meant for t"
    );
    assert_eq!(
        words(&of_backups("t", &buckets, &entry("s", "t"))),
        both,
        "it is still in t"
    );
}

#[test]
fn a_shoot_concerns_all_seeds_that_have_something_of_it() {
    let mut spec = base();
    spec["seedName"] = json!("c");
    let mut shoot = shoot(spec);
    assert_eq!(Vec::from_iter(seeds_of(&shoot)), ["c"]);
    let status = json!({"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 1}]});
    shoot.status = serde_json::from_value(status).unwrap();
    assert_eq!(Vec::from_iter(seeds_of(&shoot)), ["a", "b", "c"]);
    shoot.status = serde_json::from_value(json!({"seedName": ""})).unwrap();
    assert_eq!(Vec::from_iter(seeds_of(&shoot)), ["c"]);
}
