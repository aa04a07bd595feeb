//! Commands of the documentation are typed as they stand there, in their order: a page that tells something
//! that does not work fails here. The pages begin with the installation, by Helm, on a server without nodes
//! whose pods play their part.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{ControlPlane, PlayedKubelet, eventually};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::documents::{self, Cluster, Documented};
use crate::not_run::NOT_RUN;
use crate::programs::{Desk, ProgramOutput};
use crate::states;

/// What somebody who looks must find in the answer: which seed, what was done last, how far.
const SHOWS: &[(&str, &[&str])] = &[
    (
        "kubectl -n garden-dev get shoot",
        &["demo", "local", "seed-a", "Create", "Succeeded", "100"],
    ),
    (
        "kubectl -n garden-dev describe shoot demo",
        &["ReadyForMigration", "Last Operation"],
    ),
    ("kubectl -n garden-dev get bec", &["source-x", "bucket", "seed-a"]),
    (
        "kubectl -n garden-dev get shoot demo -o jsonpath='{.status.constraints}'",
        &["ReadyForMigration"],
    ),
    (
        "kubectl -n garden-dev get shoot demo -o jsonpath='{.status.migration.progress}'",
        &["seed-a", "Creating ETCD Snapshot"],
    ),
    (
        "kubectl -n shoot--dev--demo get etcd,infra,cp,dns",
        &["etcd-main", "infrastructure.extensions.gardener.cloud/demo"],
    ),
    (
        "kubectl -n kube-system get lease node-ipam-migration -o jsonpath='{.spec.leaseTransitions}'",
        &["3"],
    ),
    (
        r#"kubectl -n garden-dev get shoot demo -o jsonpath-as-json='{.status.constraints[?(@.type=="MigrationDryRun")].message}'"#,
        &["a move\\u001b[2K"],
    ),
    (
        r"kubectl get secretbindings,credentialsbindings -A -o json | jq -r --arg project garden-dev '.items[] | (.secretRef // .credentialsRef) as $secret | select($secret.namespace == $project and .metadata.namespace != $project) | [.kind, .metadata.namespace, .metadata.name, $secret.name, .metadata.creationTimestamp] | @tsv'",
        &[
            "SecretBinding\tgarden-other\tborrowed\tcloud",
            "CredentialsBinding\tgarden-other\tborrowed\tcloud",
        ],
    ),
    (
        r"kubectl get secretbindings,credentialsbindings -A -o json | jq --arg project garden-dev '.items |= map((.secretRef // .credentialsRef) as $secret | select($secret.namespace == $project and .metadata.namespace != $project))' | kubectl delete --wait=false -f -",
        &[
            "secretbinding.core.gardener.cloud \"borrowed\" deleted",
            "credentialsbinding.security.gardener.cloud \"borrowed\" deleted",
        ],
    ),
];

/// Commands whose answer is empty.
const SHOWS_NOTHING: &[&str] = &[
    r#"kubectl get rolebindings -A --field-selector "metadata.name=gardener.cloud:seed:$seed""#,
    // garden-controller-manager writes the quotas, and does not run here.
    "kubectl get resourcequotas -A --field-selector metadata.name=gardener",
    // The namespaces of projects and of control planes here have no labels.
    "kubectl get namespaces -l project.gardener.cloud/name -L pod-security.kubernetes.io/enforce",
    "kubectl get namespaces -l gardener.cloud/role=shoot",
    // Deployments here have no Pods.
    "kubectl -n garden get pods",
    "kubectl -n shoot--dev--demo get pods -o wide",
    // The gardenlet, which does not run here, answers the dry run.
    r#"kubectl -n garden-dev get shoot demo -o jsonpath-as-json='{.status.conditions[?(@.type=="ZoneIsolationDryRun")].message}'"#,
    // The operator names the author. Module `bindings` runs the command with bindings of an author.
    r"kubectl get rolebindings,clusterrolebindings -A -o json | jq -c --arg author AUTHOR '.items[] | select(any(.subjects[]?; .name == $author)) | [.kind, .metadata.namespace, .metadata.name]'",
    // The gardenlet, which does not run here, writes the room of the seed.
    "kubectl get seed seed-b -o jsonpath='{.status.allocatable.shoots}'",
];

/// Commands whose answer must be empty: the steps before have removed each object.
const NOTHING_LEFT: &[&str] =
    &["kubectl -n garden-dev get rolebindings -l 'gardener.cloud/role!=seed-rights'"];

/// The request of a takeover in a single write.
const REQUEST_OF_TAKEOVER: &str = r#"kubectl -n garden-dev patch shoot demo --type merge -p '{"metadata":{"annotations":{"shoot.gardener.cloud/force-restore":"true"}},"spec":{"seedName":"seed-b"}}'"#;

/// The same request with the statement that the old seed is off.
const STATEMENT_OF_TAKEOVER: &str = r#"kubectl -n garden-dev patch shoot demo --type merge -p '{"metadata":{"annotations":{"shoot.gardener.cloud/force-restore":"source-is-off"}},"spec":{"seedName":"seed-b"}}'"#;

/// What a command must leave in the Shoot, and where. The first ones are those of the runbook for a dead
/// seed.
const LEAVES: &[(&str, &str, &str)] = &[
    (
        r#"kubectl -n garden-dev patch shoot demo --type merge -p '{"spec":{"seedName":"seed-b"}}'"#,
        "/spec/seedName",
        "seed-b",
    ),
    (
        REQUEST_OF_TAKEOVER,
        "/metadata/annotations/shoot.gardener.cloud~1force-restore",
        "true",
    ),
    (REQUEST_OF_TAKEOVER, "/spec/seedName", "seed-b"),
    (
        STATEMENT_OF_TAKEOVER,
        "/metadata/annotations/shoot.gardener.cloud~1force-restore",
        "source-is-off",
    ),
    (STATEMENT_OF_TAKEOVER, "/spec/seedName", "seed-b"),
    (
        "kubectl -n garden-dev annotate --overwrite shoot demo shoot.gardener.cloud/force-restore=source-is-off",
        "/metadata/annotations/shoot.gardener.cloud~1force-restore",
        "source-is-off",
    ),
    (
        "kubectl -n garden-dev annotate shoot demo shoot.gardener.cloud/renew-ownership=true",
        "/metadata/annotations/shoot.gardener.cloud~1renew-ownership",
        "true",
    ),
    (
        "kubectl -n garden-dev annotate shoot demo shoot.gardener.cloud/accept-loss=17",
        "/metadata/annotations/shoot.gardener.cloud~1accept-loss",
        "17",
    ),
    (
        "kubectl -n garden-dev annotate shoot demo confirmation.gardener.cloud/force-deletion=true",
        "/metadata/annotations/confirmation.gardener.cloud~1force-deletion",
        "true",
    ),
];

/// The policies are in force, and a watch says something, within this on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

struct Clusters {
    garden: ControlPlane,
    seed: ControlPlane,
    at_garden: Desk,
    at_seed: Desk,
    _pods: [PlayedKubelet; 2],
}

impl Clusters {
    async fn start() -> Result<Self> {
        let [garden, seed] = ControlPlane::start_all(["garden", "seed"]).await?;
        let desks = [&garden, &seed].map(|plane| Desk::at(plane.admin_kubeconfig_file()));
        let [at_garden, at_seed] = desks;
        let clusters = Self {
            _pods: [
                PlayedKubelet::start(&garden.admin()),
                PlayedKubelet::start(&seed.admin()),
            ],
            at_garden: at_garden?,
            at_seed: at_seed?,
            garden,
            seed,
        };
        for desk in [&clusters.at_garden, &clusters.at_seed] {
            for (name, content) in documents::files() {
                desk.write(&name, &content)?;
            }
            for name in ["gardenlet-seed-a.kubeconfig", "guest.kubeconfig"] {
                desk.write(name, "apiVersion: v1\nkind: Config\n")?;
            }
        }
        Ok(clusters)
    }

    fn desk(&self, cluster: Cluster) -> &Desk {
        match cluster {
            Cluster::Garden => &self.at_garden,
            Cluster::Seed => &self.at_seed,
        }
    }
}

/// Brings objects; their status too.
async fn bring(desk: &Desk, objects: &[Value]) -> Result<()> {
    for object in objects {
        desk.write("object.json", &object.to_string())?;
        eventually("the object can be brought", LIMIT, || async {
            desk.run("kubectl", &["apply", "-f", "object.json"])
                .await?
                .or_fail("kubectl apply")
        })
        .await?;
        if object.get("status").is_some() {
            let patch = json!({"status": object["status"]}).to_string();
            let args = [
                "patch",
                "-f",
                "object.json",
                "--subresource=status",
                "--type=merge",
                "-p",
                &patch,
            ];
            // A policy for the status finds the parameter kind separately.
            eventually("the status can be brought", LIMIT, || async {
                desk.run("kubectl", &args).await?.or_fail("status")
            })
            .await?;
        }
    }
    Ok(())
}

/// A shoot that is on seed-a, as its users find it.
async fn a_shoot_of_the_garden(desk: &Desk, provider: &Value) -> Result<()> {
    let core = "core.gardener.cloud/v1beta1";
    let time = "2026-01-01T00:00:00Z";
    let condition = json!({"type": "ReadyForMigration", "status": "True", "reason": "r", "message": "m",
        "lastTransitionTime": time, "lastUpdateTime": time});
    let progress = json!({"seedName": "seed-a", "step": "Creating ETCD Snapshot", "startTime": time});
    let approval = json!({"source": "seed-a", "destination": "seed-b", "generation": 1, "spec": {}, "progress": progress});
    let last = json!({"type": "Create", "state": "Succeeded", "progress": 100, "description": "d", "lastUpdateTime": time});
    let namespace = json!({"name": "garden-dev", "labels": {"project.gardener.cloud/name": "dev"}});
    let seed = |name: &str| {
        json!({"apiVersion": core, "kind": "Seed", "metadata": {"name": name}, "spec": {"dns": {},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}, "provider": {"type": "local", "region": "local"}}})
    };
    bring(desk, &[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace}),
        seed("seed-a"),
        seed("seed-b"),
        json!({"apiVersion": core, "kind": "Shoot",
            "metadata": {"name": "demo", "namespace": "garden-dev", "finalizers": ["gardener"]},
            "spec": {"cloudProfile": {"name": "local"}, "region": "local", "provider": provider, "seedName": "seed-a",
                "credentialsBindingName": "cloud", "networking": {"type": "local"}},
            "status": {"seedName": "seed-a", "constraints": [condition], "lastOperation": last, "migration": approval}}),
        json!({"apiVersion": core, "kind": "ShootState", "metadata": {"name": "demo", "namespace": "garden-dev"}, "spec": {}}),
        json!({"apiVersion": core, "kind": "BackupBucket", "metadata": {"name": "bucket"},
                "spec": {"provider": {"type": "local", "region": "local"}, "seedName": "seed-a"}}),
            json!({"apiVersion": core, "kind": "BackupEntry", "metadata": {"name": "source-x", "namespace": "garden-dev"},
            "spec": {"bucketName": "bucket", "seedName": "seed-a"}}),
    ])
    .await
}

/// Its control plane in a seed, and a lock in a cluster.
async fn a_control_plane_in_the_seed(desk: &Desk) -> Result<()> {
    let name = |name: &str| json!({"name": name, "namespace": "shoot--dev--demo"});
    let extensions = "extensions.gardener.cloud/v1alpha1";
    let secret = json!({"name": "cloud", "namespace": "shoot--dev--demo"});
    let process = |name: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "shoot--dev--demo", "labels": {"role": name}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": name, "image": name}]}}}})
    };
    bring(desk, &[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shoot--dev--demo"}}),
        json!({"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": name("etcd-main"), "spec": {
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "labels": {"a": "b"}, "etcd": {}, "backup": {}}}),
        json!({"apiVersion": extensions, "kind": "Infrastructure", "metadata": name("demo"),
            "spec": {"type": "local", "region": "local", "secretRef": secret}}),
        json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": name("demo-pool-z1-abcde-12345"), "spec": {}}),
        json!({"apiVersion": extensions, "kind": "SubnetIsolation", "metadata": name("demo"),
            "spec": {"type": "local", "region": "local", "secretRef": secret, "isolatedZoneID": "euc1-az1"}}),
        process("kube-apiserver"),
        process("tunnel-server"),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "node-ipam-migration", "namespace": "kube-system"},
            "spec": {"holderIdentity": "a", "leaseTransitions": 3}}),
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "kube-system"},
            "involvedObject": {"kind": "Lease", "name": "node-ipam-migration", "namespace": "kube-system"},
            "reason": "LeaderElection", "message": "m", "type": "Normal"}),
    ])
    .await
}

/// The shoot of the former page, whatever was done to it, is deleted with its confirmation.
const FORMER_SHOOT_GOES: &str = r#"
    cd /; shoot() { kubectl -n garden-dev "$1" shoot demo "${@:2}"; }
    shoot annotate --overwrite confirmation.gardener.cloud/deletion=true
    shoot patch --type=merge -p '{"metadata":{"finalizers":null}}'
    shoot delete --ignore-not-found"#;

async fn former_shoot_goes(desk: &Desk) -> Result<()> {
    let gone = desk.run("bash", &["-c", FORMER_SHOOT_GOES]).await?;
    gone.or_fail("the former shoot goes").map(drop)
}

/// What has to be so before a command makes sense.
async fn prepare(clusters: &Clusters, command: &Documented) -> Result<()> {
    let text = command.text.as_str();
    let garden = &clusters.at_garden;
    let copies = text.contains("accept-loss=");
    let applies = text.contains("--field-manager=seed-name");
    let forces = text.contains("shoot demo shoot.gardener.cloud/force-restore=");
    if text.contains("patch shoot demo") || text.contains("renew-ownership") || copies || applies || forces {
        // The same command stands on several pages; each begins with a shoot that has not moved. Only such a
        // shoot gets a new epoch.
        former_shoot_goes(garden).await?;
        a_shoot_of_the_garden(garden, &json!({"type": "local"})).await?;
    }
    if copies {
        states::a_copy_is_short(garden).await?;
    }
    if text.contains("shoot.gardener.cloud/isolated-zone") {
        // Only a shoot with two zones can do without one, and one that was made without pools gets none.
        let zones = "jsonpath={.spec.provider.workers[*].zones}";
        let args = [
            "-n",
            "garden-dev",
            "get",
            "shoot",
            "demo",
            "--ignore-not-found",
            "-o",
            zones,
        ];
        let zones = garden.run("kubectl", &args).await?.or_fail("its zones")?;
        if zones.trim().is_empty() {
            former_shoot_goes(garden).await?;
            let pool = json!({"name": "a", "machine": {"type": "local"}, "minimum": 1, "maximum": 2, "zones": ["a", "b"]});
            let provider = json!({"type": "local", "workers": [pool]});
            a_shoot_of_the_garden(garden, &provider).await?;
        }
    }
    if text.contains("--wait") {
        // Helm waits for the address of the front as well, which a cloud gives.
        let address = r#"{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}"#;
        let front = ["-n", "garden-exposure", "patch", "service", "ingress"];
        let args = [
            &front[..],
            &["--subresource=status", "--type=merge", "-p", address],
        ]
        .concat();
        clusters
            .at_seed
            .run("kubectl", &args)
            .await?
            .or_fail("address of the front")?;
    }
    if text.contains("shoot--dev--demo get") {
        a_control_plane_in_the_seed(&clusters.at_seed).await?;
    }
    for (asked, desk, object) in states::asked_for() {
        if text.contains(asked) {
            bring(clusters.desk(desk), &[object]).await?;
        }
    }
    if text.contains("apply -f \"$values/") {
        states::an_example_can_be_applied(garden, text).await?;
    }
    prepare_state(garden, text).await
}

/// The same for the Project, and for reports of garden-controller-manager and gardenlets.
async fn prepare_state(garden: &Desk, text: &str) -> Result<()> {
    if text.contains("wait project dev") {
        states::a_project_is_ready(garden).await?;
    }
    if text.contains("shoot demo confirmation.gardener.cloud/force-deletion=true") {
        states::a_deletion_has_failed(garden).await?;
    }
    if text.contains("settledSeedName") {
        states::a_move_ends(garden, text).await?;
    }
    if text.starts_with(states::LISTS_BINDINGS) {
        bring(garden, &states::borrowed_secrets()).await?;
    }
    if text.contains("delete rolebindings") {
        states::no_binding_is_created(garden).await?;
    }
    if text.contains(".status.formerSeeds") {
        states::a_seed_cleans_up(garden).await?;
    }
    if text.contains("MigrationDryRun") {
        states::a_dry_run_is_answered(garden).await?;
    }
    if text.contains("--overwrite shoot demo shoot.gardener.cloud/force-restore=true") {
        states::a_move_is_wanted(garden).await?;
    }
    if text.contains("shoot demo shoot.gardener.cloud/force-restore=source-is-off") {
        states::a_seed_claims_the_shoot(garden).await?;
    }
    if text.contains(r#""phase":"Claiming""#) {
        states::a_claim_is_recorded(garden).await?;
    }
    Ok(())
}

/// Types a command. One that watches is ended after its first line.
async fn type_in(desk: &Desk, text: &str) -> Result<()> {
    if text.split_whitespace().any(|word| word == "-w") {
        let mut child = desk
            .command("bash", &["-c", &format!("exec {text}")])?
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(out).lines();
        let first = testkit::timeout(LIMIT, lines.next_line())
            .await
            .context("nothing is watched")??;
        ensure!(first.is_some(), "it shows nothing");
        child.kill().await?;
        return Ok(());
    }
    let ProgramOutput { success, out, err } = desk.run("bash", &["-c", text]).await?;
    ensure!(success, "{out}{err}");
    if NOTHING_LEFT.contains(&text) {
        ensure!(out.trim().is_empty(), "it shows {out}");
        return Ok(());
    }
    let asks = (text.contains(" get ") || text.contains(" describe ")) && !SHOWS_NOTHING.contains(&text);
    // A server without nodes has none to show.
    ensure!(
        !asks || !out.trim().is_empty() || text.contains("get nodes"),
        "it shows nothing: {err}"
    );
    let shows = SHOWS.iter().filter(|(command, _)| *command == text);
    for word in shows.flat_map(|(_, words)| *words) {
        ensure!(out.contains(word), "it does not show {word:?}: {out}");
    }
    for (_, place, value) in LEAVES.iter().filter(|(command, ..)| *command == text) {
        let args = ["-n", "garden-dev", "get", "shoot", "demo", "-o", "json"];
        let shoot: Value = serde_json::from_str(&desk.run("kubectl", &args).await?.or_fail("the Shoot")?)?;
        let left = shoot.pointer(place);
        ensure!(left == Some(&json!(value)), "it leaves {left:?} at {place}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_command_works() {
    let clusters = Clusters::start().await.unwrap();
    let (uninstalling, commands): (Vec<_>, Vec<_>) = documents::commands()
        .into_iter()
        .partition(|command| command.text.starts_with("helm uninstall"));
    assert!(commands.len() > 15 && uninstalling.len() == 2, "{commands:#?}");
    let mut failed = Vec::new();
    // Uninstalling is written next to installing, and done last.
    for command in commands.iter().chain(&uninstalling) {
        if NOT_RUN.iter().any(|(text, _)| *text == command.text) {
            continue;
        }
        let outcome = match prepare(&clusters, command).await {
            Ok(()) => type_in(clusters.desk(command.cluster), &command.text).await,
            Err(error) => Err(error.context("preparing it")),
        };
        if let Err(error) = outcome {
            failed.push(format!(
                "{}:{}: {}\n    {error:#}",
                command.page, command.line, command.text
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    drop((clusters.garden, clusters.seed));
}

/// A reason is not kept for a command that nobody is told any more.
#[test]
fn what_is_not_run_and_what_is_looked_for_is_still_documented() {
    let commands = documents::commands();
    let looked_for = SHOWS.iter().map(|(text, _)| text);
    let looked_for = looked_for.chain(NOTHING_LEFT);
    for text in looked_for.chain(LEAVES.iter().map(|(text, ..)| text)) {
        assert!(commands.iter().any(|command| command.text == *text), "{text}");
    }
    for (text, reason) in NOT_RUN {
        assert!(
            commands.iter().any(|command| command.text == *text),
            "{text} ({reason})"
        );
    }
}
