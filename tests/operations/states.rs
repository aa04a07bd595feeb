//! Objects, and states of the documented shoot, that single commands of the documentation need.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::eventually;

use crate::documents::Cluster;
use crate::programs::Desk;

/// A policy with a parameter kind refuses all requests until the API server has found the kind, every half
/// minute.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(90);

/// A request of `openssl req` for the client certificate of the gardenlet of seed-a, in base64.
const CERTIFICATE_REQUEST: &str = concat!(
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQkRUQ0J0QUlCQURCU01TUXdJZ1lEVlFRS0RCdG5ZWEpr",
    "Wlc1bGNpNWpiRzkxWkRwemVYTjBaVzA2YzJWbApaSE14S2pBb0JnTlZCQU1NSVdkaGNtUmxibVZ5TG1Oc2IzVmtPbk41YzNS",
    "bGJUcHpaV1ZrT25ObFpXUXRZVEJaCk1CTUdCeXFHU000OUFnRUdDQ3FHU000OUF3RUhBMElBQkFOclJib2c3bUhTUnVCTFlz",
    "djRGY0dBS2tGMmxkRTYKREZBeGd4YWhZMmlBZ0Rya1FrVk1RWm9ESnhtSnpDMlg1cTZRTU96c3hGemdpQUxDRy80WHh6aWdB",
    "REFLQmdncQpoa2pPUFFRREFnTklBREJGQWlFQTlCaXNBOG04NjB0dFUxMkVyT3NVK0I0ZDFQNFBGYktHQlA0SjZZSUl1cHdD",
    "CklHKzBhZkxWK1A5ZFBweUdLdVhlN0wwbDk1OCtOY1RwYjFTNUh1azVPYi9qCi0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVF",
    "U1QtLS0tLQo=",
);

/// Begin of the commands about bindings to a Secret of the documented project.
pub const LISTS_BINDINGS: &str = "kubectl get secretbindings,credentialsbindings -A -o json";

/// A warning about the Shoot.
fn event(name: &str, reporter: &str, reason: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "garden-dev"},
        "involvedObject": {"kind": "Shoot", "name": "demo", "namespace": "garden-dev"},
        "reportingComponent": reporter, "reportingInstance": reporter,
        "reason": reason, "message": "m", "type": "Warning"})
}

/// A right of a member of the project, with a finalizer of the member.
fn binding_of_member() -> Value {
    let group = "rbac.authorization.k8s.io";
    json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "of-member", "namespace": "garden-dev", "finalizers": ["example.org/kept"]},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "member"}]})
}

/// Bindings of a second project to a Secret of the documented project, and the namespace of these bindings.
pub fn borrowed_secrets() -> [Value; 3] {
    let metadata = json!({"name": "borrowed", "namespace": "garden-other"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "name": "cloud", "namespace": "garden-dev"});
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-other"}}),
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding", "metadata": metadata,
            "provider": {"type": "local"}, "secretRef": {"name": "cloud", "namespace": "garden-dev"}}),
        json!({"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding",
            "metadata": metadata, "provider": {"type": "local"}, "credentialsRef": secret}),
    ]
}

/// Objects that a few commands ask for.
pub fn asked_for() -> Vec<(&'static str, Cluster, Value)> {
    let entry = |name: &str| {
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
            "metadata": {"name": name, "namespace": "garden-dev"}, "spec": {"bucketName": "bucket", "seedName": "seed-b"}})
    };
    vec![
        (
            "certificate approve \"gardenlet-",
            Cluster::Garden,
            certificate_request("gardenlet-seed-a"),
        ),
        (
            "certificate approve probe",
            Cluster::Garden,
            certificate_request("probe"),
        ),
        ("wait \"seed/", Cluster::Garden, ready_seed()),
        ("get lease seed-a", Cluster::Garden, lease_of_seed()),
        (
            "patch seed seed-a --subresource=status",
            Cluster::Garden,
            ready_seed(),
        ),
        (
            "bec source-shoot--dev--demo",
            Cluster::Garden,
            entry("source-shoot--dev--demo--0841c87f"),
        ),
        (
            "bec shoot--dev--demo",
            Cluster::Garden,
            entry("shoot--dev--demo--0841c87f"),
        ),
        (
            "backupentries.extensions.gardener.cloud source-",
            Cluster::Seed,
            json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "BackupEntry",
                "metadata": {"name": "source-shoot--dev--demo--0841c87f"},
                "spec": {"type": "local", "region": "local", "bucketName": "bucket",
                    "secretRef": {"name": "cloud", "namespace": "garden"}}}),
        ),
        (
            "reason=ReconcileError",
            Cluster::Garden,
            event("error", "gardenlet", "ReconcileError"),
        ),
        (
            "get namespace shoot--dev--demo",
            Cluster::Seed,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shoot--dev--demo"},
                "status": {"conditions": [{"type": "NamespaceFinalizersRemaining", "status": "True",
                    "reason": "SomeFinalizersRemain", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
        ),
        ("dns demo-owner", Cluster::Seed, owner_record()),
        (
            "-n garden-dev get events",
            Cluster::Garden,
            event("e", "garden-controller-manager", "HibernationScheduleInvalid"),
        ),
        (
            "involvedObject.name=demo,reportingComponent=gardenlet",
            Cluster::Garden,
            event("lost", "gardenlet", "DataLost"),
        ),
        (
            "-n garden-dev get rolebindings -o wide",
            Cluster::Garden,
            binding_of_member(),
        ),
        (
            "reason=LeftBehind",
            Cluster::Garden,
            event("left", "gardenlet", "LeftBehind"),
        ),
        ("controllerinstallations", Cluster::Garden, installation()),
        ("-n garden-exposure get services", Cluster::Seed, tunnel_service()),
    ]
}

fn owner_record() -> Value {
    json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "DNSRecord",
        "metadata": {"name": "demo-owner", "namespace": "shoot--dev--demo"},
        "spec": {"type": "local", "secretRef": {"name": "dns", "namespace": "shoot--dev--demo"},
            "name": "owner.api.demo.example.org", "recordType": "TXT", "values": ["identity"]}})
}

fn installation() -> Value {
    json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerInstallation", "metadata": {"name": "mesh"},
        "spec": {"registrationRef": {"name": "mesh"}, "seedRef": {"name": "seed-a"}}})
}

fn tunnel_service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "tunnel-x", "namespace": "garden-exposure",
        "labels": {"gardener.cloud/technical-id": "shoot--dev--demo"}},
        "spec": {"type": "ExternalName", "externalName": "tunnel.shoot--dev--demo.svc.cluster.local"}})
}

/// A documented request for a client certificate.
fn certificate_request(name: &str) -> Value {
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": CERTIFICATE_REQUEST, "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"]}})
}

/// The Lease that the gardenlet of seed-a, which does not run here, renews.
fn lease_of_seed() -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "seed-a", "namespace": "gardener-system-seed-lease"},
        "spec": {"holderIdentity": "seed-a", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

/// The Seed `seed-a` as its gardenlet, which does not run here, registers the Seed and reports on the seed.
fn ready_seed() -> Value {
    let time = "2026-01-01T00:00:00Z";
    let types = [
        "GardenletReady",
        "SeedSystemComponentsHealthy",
        "EdgeAddressReady",
        "BackupBucketsReady",
    ];
    let conditions = types.map(|kind| {
        json!({"type": kind, "status": "True", "reason": "r", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time})
    });
    json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "seed-a"},
        "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"}},
        "status": {"conditions": conditions}})
}

/// A seed reports a phase that the seed does not show.
pub async fn a_claim_is_recorded(garden: &Desk) -> Result<()> {
    let source = json!({"name": "seed-b", "epoch": 1});
    let ownership = json!({"epoch": 2, "phase": "Held", "chain": "Last", "source": source});
    let status = json!({"status": {"ownership": ownership}});
    patch_status(garden, "merge", &status, "a claim").await
}

/// A seed waits for the fence of the former seed.
pub async fn a_seed_claims_the_shoot(garden: &Desk) -> Result<()> {
    a_claim_is_recorded(garden).await?;
    let ownership = json!({"phase": "Claiming", "chain": null, "drained": null});
    let status = json!({"status": {"ownership": ownership}});
    patch_status(garden, "merge", &status, "a claim of a seed").await
}

/// The user wants a move, and an operator forces the move.
pub async fn a_move_is_wanted(garden: &Desk) -> Result<()> {
    let wanted = r#"{"spec":{"seedName":"seed-b"}}"#;
    let args = [
        "-n",
        "garden-dev",
        "patch",
        "shoot",
        "demo",
        "--type=merge",
        "-p",
        wanted,
    ];
    garden.run("kubectl", &args).await?.or_fail("a wanted move")?;
    Ok(())
}

/// Consent to a loss is taken while the destination cannot reach the end that the source has recorded.
pub async fn a_copy_is_short(garden: &Desk) -> Result<()> {
    let sealed = json!({"epoch": 1, "revision": 54, "snapshot": "s.final", "sha256": "0".repeat(64)});
    let last = json!({"type": "Restore", "state": "Error", "progress": 20, "description": "d",
        "lastUpdateTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"ownership": {"epoch": 2, "sealed": sealed}, "lastOperation": last}});
    patch_status(garden, "merge", &status, "a copy that is short").await
}

/// A seed that the shoot has left has not cleaned up yet.
pub async fn a_seed_cleans_up(garden: &Desk) -> Result<()> {
    let status = json!({"status": {"formerSeeds": [{"name": "seed-c", "epoch": 1}]}});
    patch_status(garden, "merge", &status, "a seed that cleans up").await
}

/// A documented wait for the end of a move, as kubectl sees the fields of a move. The wait ends at the end of
/// the move, not before.
pub async fn a_move_ends(garden: &Desk, wait: &str) -> Result<()> {
    ensure!(wait.contains("--timeout=30m"), "the wait names its limit");
    let (from, to) = if wait.contains("=seed-a ") {
        ("seed-b", "seed-a")
    } else {
        ("seed-a", "seed-b")
    };
    for (settled, is_over) in [(json!(from), false), (Value::Null, false), (json!(to), true)] {
        let patch = json!({"status": {"settledSeedName": settled}});
        patch_status(garden, "merge", &patch, "a move").await?;
        // A busy server may take long for the answer that ends the wait.
        let limit = if is_over { "--timeout=60s" } else { "--timeout=2s" };
        let short = wait.replace("--timeout=30m", limit);
        let said = garden.run("bash", &["-c", &short]).await?;
        ensure!(said.success == is_over, "{settled}: {}{}", said.out, said.err);
    }
    Ok(())
}

/// Admission takes a forced deletion only after a deletion has failed.
pub async fn a_deletion_has_failed(garden: &Desk) -> Result<()> {
    let error = r#"{"status":{"lastErrors":[{"description":"d","codes":["ERR_INFRA_UNAUTHENTICATED"]}]}}"#;
    let shoot = ["-n", "garden-dev"];
    let confirm = [
        "annotate",
        "--overwrite",
        "shoot",
        "demo",
        "confirmation.gardener.cloud/deletion=true",
    ];
    let delete = ["delete", "shoot", "demo", "--wait=false"];
    let status = [
        "patch",
        "shoot",
        "demo",
        "--subresource=status",
        "--type=merge",
        "-p",
        error,
    ];
    for args in [&confirm[..], &delete[..], &status[..]] {
        garden
            .run("kubectl", &[&shoot, args].concat())
            .await?
            .or_fail("failed deletion")?;
    }
    Ok(())
}

/// An answer to the dry run of a move, with a control character that a hostile process could write.
pub async fn a_dry_run_is_answered(garden: &Desk) -> Result<()> {
    let time = "2026-01-01T00:00:00Z";
    let answer = json!({"type": "MigrationDryRun", "status": "True", "reason": "MigrationPossible", "message": "a move\u{1b}[2K",
        "lastTransitionTime": time, "lastUpdateTime": time});
    // The Shoot keeps the remaining constraints.
    let patch = json!([{"op": "add", "path": "/status/constraints/-", "value": answer}]);
    patch_status(garden, "json", &patch, "an answer").await
}

/// The garden accepts an example file: the namespace of the project is there, and the policies are in force.
/// `apply`: the documented command.
pub async fn an_example_can_be_applied(garden: &Desk, apply: &str) -> Result<()> {
    // A dry run creates no namespace for the later objects of a file.
    for namespace in ["garden-dev", "seed-seed-a", "seed-seed-b"] {
        let create =
            format!("kubectl create namespace {namespace} --dry-run=client -o yaml | kubectl apply -f -");
        garden.run("bash", &["-c", &create]).await?.or_fail("namespace")?;
    }
    let dry_run = format!("{apply} --dry-run=server");
    eventually("the example is accepted", IN_FORCE_WITHIN, || async {
        let said = garden.run("bash", &["-c", &dry_run]).await?;
        said.or_fail(apply).map(drop)
    })
    .await
}

/// A member creates RoleBindings while an operator deletes RoleBindings.
pub async fn no_binding_is_created(garden: &Desk) -> Result<()> {
    let args = [
        "-n",
        "garden-dev",
        "create",
        "rolebinding",
        "late",
        "--clusterrole=view",
        "--user=member",
        "--dry-run=server",
    ];
    eventually("the quota refuses a RoleBinding", IN_FORCE_WITHIN, || async {
        let said = garden.run("kubectl", &args).await?;
        ensure!(said.err.contains("quota: stop"), "{}{}", said.out, said.err);
        anyhow::Ok(())
    })
    .await
}

/// garden-controller-manager, which does not run here, reports that the documented project is ready.
pub async fn a_project_is_ready(garden: &Desk) -> Result<()> {
    let ready = r#"{"status":{"phase":"Ready"}}"#;
    let patch = [
        "patch",
        "project",
        "dev",
        "--subresource=status",
        "--type=merge",
        "-p",
        ready,
    ];
    garden
        .run("kubectl", &patch)
        .await?
        .or_fail("a ready project")
        .map(drop)
}

/// Patches the status of the documented shoot. `kind`: the type of the patch, as kubectl names the type.
async fn patch_status(garden: &Desk, kind: &str, patch: &Value, state: &str) -> Result<()> {
    let (kind, patch) = (format!("--type={kind}"), patch.to_string());
    let shoot = ["-n", "garden-dev", "patch", "shoot", "demo"];
    let args = [&shoot[..], &["--subresource=status", &kind, "-p", &patch]].concat();
    garden.run("kubectl", &args).await?.or_fail(state).map(drop)
}
