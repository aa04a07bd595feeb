//! One object of each kind of the garden, with the optional fields that policies read.

use serde_json::{Value, json};

const TIME: &str = "2026-01-01T00:00:00Z";

/// An object of the garden without a name.
pub struct Sample {
    pub plural: &'static str,
    pub object: Value,
    pub is_namespaced: bool,
}

/// In the order of creation: policies about later kinds have earlier kinds as parameters.
pub fn samples() -> Vec<Sample> {
    let cluster = |plural, object| Sample {
        plural,
        object,
        is_namespaced: false,
    };
    let namespaced = |plural, object| Sample {
        plural,
        object,
        is_namespaced: true,
    };
    vec![
        cluster("cloudprofiles", cloud_profile()),
        cluster("projects", project()),
        cluster("seeds", seed()),
        cluster("backupbuckets", backup_bucket()),
        cluster("controllerregistrations", registration()),
        cluster("controllerinstallations", installation()),
        namespaced("secretbindings", secret_binding()),
        namespaced("credentialsbindings", credentials_binding()),
        namespaced("backupentries", backup_entry()),
        namespaced("shoots", shoot()),
        namespaced("shootstates", shoot_state()),
        namespaced("internalsecrets", internal_secret()),
    ]
}

fn object(kind: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "metadata": {}});
    for (name, value) in rest.as_object().cloned().unwrap_or_default() {
        object[name.as_str()] = value;
    }
    object
}

fn condition(type_: &str) -> Value {
    json!({"type": type_, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": TIME,
        "lastUpdateTime": TIME})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "name": name, "namespace": "seed-full"})
}

fn cloud_profile() -> Value {
    let versions = json!([{"version": "1.34.4", "classification": "supported", "expirationDate": TIME}]);
    let spec = json!({
        "type": "local", "regions": [{"name": "local"}], "kubernetes": {"versions": versions},
        "machineImages": [], "machineTypes": [], "limits": {"maxNodesTotal": 50},
    });
    object("CloudProfile", &json!({"spec": spec}))
}

fn project() -> Value {
    let tolerations =
        json!({"defaults": [{"key": "x", "value": "y"}], "whitelist": [{"key": "x", "value": "y"}]});
    let owner = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "x"});
    let spec = json!({"description": "d", "owner": owner, "tolerations": tolerations});
    object("Project", &json!({"spec": spec}))
}

fn seed() -> Value {
    let domain = |domain: &str| json!({"type": "local", "domain": domain, "zone": "z", "credentialsRef": secret("dns")});
    let networks = json!({
        "pods": "10.1.0.0/16", "services": "10.2.0.0/16",
        "shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
    });
    let spec = json!({
        "backup": {"provider": "local", "region": "local", "credentialsRef": secret("backup")},
        "dns": {"internal": domain("internal.optional.test"), "defaults": [domain("default.optional.test")]},
        "networks": networks, "provider": {"type": "local", "region": "local"},
        "taints": [{"key": "x", "value": "y"}],
    });
    let status =
        json!({"conditions": [condition("GardenletReady")], "constraints": [condition("WithoutShoots")]});
    object("Seed", &json!({"spec": spec, "status": status}))
}

fn backup_bucket() -> Value {
    let spec = json!({"provider": {"type": "local", "region": "local"}, "seedName": "seed-a", "credentialsRef": secret("backup")});
    let status =
        json!({"generatedSecretRef": {"name": "x", "namespace": "y"}, "lastError": {"description": "d"}});
    object("BackupBucket", &json!({"spec": spec, "status": status}))
}

fn backup_entry() -> Value {
    let status = json!({"seedName": "seed-a", "lastError": {"description": "d"}});
    object(
        "BackupEntry",
        &json!({"spec": {"bucketName": "b", "seedName": "seed-a"}, "status": status}),
    )
}

fn registration() -> Value {
    let resource = json!({"kind": "Worker", "type": "optional", "primary": true});
    object(
        "ControllerRegistration",
        &json!({"spec": {"resources": [resource]}}),
    )
}

fn installation() -> Value {
    let spec = json!({"seedRef": {"name": "seed-a"}, "registrationRef": {"name": "full"}, "deploymentRef": {"name": "d"}});
    object(
        "ControllerInstallation",
        &json!({"spec": spec, "status": {"conditions": [condition("Installed")]}}),
    )
}

fn secret_binding() -> Value {
    let reference = json!({"name": "cloud", "namespace": "garden-dev"});
    object(
        "SecretBinding",
        &json!({"provider": {"type": "local"}, "secretRef": reference, "quotas": [{"name": "q"}]}),
    )
}

fn credentials_binding() -> Value {
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": "cloud", "namespace": "garden-dev"});
    json!({
        "apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding", "metadata": {},
        "provider": {"type": "local"}, "credentialsRef": reference, "quotas": [{"name": "q"}],
    })
}

fn shoot_state() -> Value {
    object(
        "ShootState",
        &json!({"spec": {"epoch": 1, "chunkAttempt": {"number": 1}, "gardener": [{"name": "ca", "type": "secret", "data": {"data": {}}}]}}),
    )
}

fn internal_secret() -> Value {
    object(
        "InternalSecret",
        &json!({"type": "gardener.cloud/shoot-state", "immutable": true, "data": {"chunk": "QUFB"}}),
    )
}

fn shoot() -> Value {
    let worker = json!({
        "name": "a", "machine": {"type": "x", "architecture": "amd64"}, "minimum": 1, "maximum": 2,
        "zones": ["a", "b"], "systemComponents": {"allow": true},
    });
    let provider = json!({"type": "local", "primary": true, "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "dns"}});
    let selector = json!({
        "matchLabels": {"x": "y"}, "matchExpressions": [{"key": "x", "operator": "In", "values": ["y"]}],
        "providerTypes": ["local"],
    });
    let spec = json!({
        "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local", "seedName": "seed-a",
        "credentialsBindingName": "cloud", "dns": {"domain": "optional.example.test", "providers": [provider]},
        "hibernation": {"enabled": false, "schedules": [{"start": "0 20 * * *", "end": "0 8 * * *"}]},
        "kubernetes": {"version": "1.34.4"}, "networking": {"type": "local"}, "purpose": "production",
        "provider": {"type": "local", "workers": [worker]}, "seedSelector": selector,
        "tolerations": [{"key": "x", "value": "y"}],
    });
    let annotations = json!({
        "confirmation.gardener.cloud/deletion": "true", "gardener.cloud/operation": "reconcile",
        "shoot.gardener.cloud/isolated-zone": "z1", "shoot.gardener.cloud/force-restore": "true",
        "shoot.gardener.cloud/renew-ownership": "true", "shoot.gardener.cloud/accept-loss": "5",
        "migration.gardener.cloud/prepare": "seed-b",
    });
    object(
        "Shoot",
        &json!({"metadata": {"annotations": annotations}, "spec": spec, "status": shoot_status()}),
    )
}

fn shoot_status() -> Value {
    let source = json!({"name": "seed-b", "epoch": 1});
    let restored =
        json!({"epoch": 2, "fenced": TIME, "lastRevision": 9, "lostRevisions": 1, "source": source});
    let ownership = json!({
        "epoch": 2, "phase": "Held", "chain": "Final", "source": source,
        "sealed": {"epoch": 1, "revision": 9, "sha256": "0".repeat(64), "snapshot": "s"},
        "sourceBucket": {"epoch": 2, "name": "b"}, "restored": restored,
    });
    let zone = json!({
        "phase": "Failover", "status": "Done", "isolatedZoneID": "z1", "isolatedZoneCode": "a", "lastUpdateTime": TIME,
    });
    let preparation =
        json!({"uid": "u", "source": "seed-a", "destination": "seed-b", "epoch": 2, "expiry": TIME});
    let progress = json!({"seedName": "seed-a", "startTime": TIME, "step": "s", "awaited": "w"});
    json!({
        "seedName": "seed-a", "technicalID": "shoot--dev--full", "uid": "u",
        "formerSeeds": [source], "settledSeedName": "seed-a",
        "constraints": [condition("ReadyForMigration"), condition("ShootStateUpToDate")],
        "lastOperation": crate::garden::operation("Reconcile", "Succeeded"),
        "lastErrors": [{"description": "d", "codes": ["ERR_CONFIGURATION_PROBLEM"]}], "lastHibernationTriggerTime": TIME,
        "migration": {"source": "seed-a", "destination": "seed-b", "generation": 1, "spec": {}, "progress": progress},
        "ownerChecks": [{"seedName": "seed-a", "epoch": 2, "fenceSeconds": 30}],
        "liveMigration": {"preparation": preparation, "conditions": [condition("Prepared")]},
        "ownership": ownership, "reservedDomain": "optional.example.test", "zoneIsolation": zone,
    })
}
