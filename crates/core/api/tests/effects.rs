//! Each field of a Shoot, a Seed, a Project and a CloudProfile has an effect, or a line in the table of
//! fields without effect. A new field is in neither list, and fails this test until an author decides.

#![allow(missing_docs, clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::Path};

use api::gardencore::shoot::effects;
use serde_json::{Value, json};

/// A field with an effect, including all fields below: the path, the file that acts on the field, and a word
/// of that file as proof.
type ActedOn = (&'static str, &'static str, &'static str);

/// Kinds with their fields with and without effect.
const KINDS: [(&str, &[ActedOn], &[effects::Field]); 4] = [
    ("Shoot", SHOOT, effects::SHOOT),
    ("Seed", SEED, effects::SEED),
    ("Project", PROJECT, effects::PROJECT),
    ("CloudProfile", CLOUD_PROFILE, effects::CLOUD_PROFILE),
];

#[rustfmt::skip]
const SHOOT: &[ActedOn] = &[
    ("spec.cloudProfile", "core/parts/src/facts.rs", "profile.kind"),
    ("spec.cloudProfileName", "core/parts/src/facts.rs", "cloud_profile_name()"),
    ("spec.credentialsBindingName", "core/garden-controller-manager/src/shoot_state/named_secrets.rs", "credentials_binding_name"),
    ("spec.dns.domain", "core/placement/src/names.rs", "dns.domain"),
    ("spec.dns.providers[].credentialsRef", "core/parts/src/extensions/dns_records.rs", "provider.credentials_ref"),
    ("spec.dns.providers[].primary", "core/placement/src/credentials.rs", "provider.primary"),
    ("spec.dns.providers[].secretName", "core/parts/src/extensions/dns_records.rs", "provider.secret_name"),
    ("spec.dns.providers[].type", "core/parts/src/extensions/dns_records.rs", "provider.type_"),
    ("spec.extensions[].disabled", "core/placement/src/extensions.rs", "extension.disabled"),
    ("spec.extensions[].providerConfig", "core/placement/src/extensions.rs", "extension.provider_config"),
    ("spec.extensions[].type", "core/placement/src/extensions.rs", "extension.type_"),
    ("spec.hibernation.enabled", "core/parts/src/facts.rs", "hibernation"),
    ("spec.hibernation.schedules[].end", "core/garden-controller-manager/src/shoot_hibernation/schedule.rs", "from.end"),
    ("spec.hibernation.schedules[].location", "core/garden-controller-manager/src/shoot_hibernation/schedule.rs", "from.location"),
    ("spec.hibernation.schedules[].start", "core/garden-controller-manager/src/shoot_hibernation/schedule.rs", "from.start"),
    ("spec.kubernetes.controllerLeaders", "core/parts/src/extensions/control_plane.rs", "kubernetes.controller_leaders"),
    ("spec.kubernetes.kubeProxy.enabled", "core/parts/src/system_components/kube_proxy.rs", "config.enabled"),
    ("spec.kubernetes.kubeProxy.featureGates", "core/parts/src/system_components/kube_proxy.rs", "config.feature_gates"),
    ("spec.kubernetes.kubeProxy.mode", "core/parts/src/system_components/kube_proxy.rs", "config.mode"),
    ("spec.kubernetes.kubelet", "core/parts/src/nodes/operating_system_config.rs", "kubernetes.kubelet"),
    ("spec.kubernetes.version", "core/parts/src/facts.rs", "kubernetes_version(&shoot"),
    ("spec.networking.nodes", "local-cloud/provider-local/src/infrastructure/mod.rs", "/spec/networking/nodes"),
    ("spec.networking.pods", "core/placement/src/names.rs", "pods: networking"),
    ("spec.networking.providerConfig", "local-cloud/provider-local/src/network/mod.rs", "spec.networking.providerConfig"),
    ("spec.networking.services", "core/placement/src/names.rs", "spec.networking.services"),
    ("spec.networking.type", "core/parts/src/nodes/network.rs", "networking.type_"),
    ("spec.provider.controlPlaneConfig", "core/parts/src/extensions/control_plane.rs", "provider.control_plane_config"),
    ("spec.provider.infrastructureConfig", "core/parts/src/extensions/infrastructure.rs", "provider.infrastructure_config"),
    ("spec.provider.type", "core/parts/src/extensions/infrastructure.rs", "shoot.spec.provider.type_"),
    ("spec.provider.workers[].annotations", "components/machine-controllers/src/machine/node_template.rs", "meta.annotations"),
    ("spec.provider.workers[].cri.containerRuntimes[].providerConfig", "core/parts/src/nodes/container_runtimes.rs", "runtime.provider_config"),
    ("spec.provider.workers[].cri.containerRuntimes[].type", "core/parts/src/nodes/container_runtimes.rs", "runtime.type_"),
    ("spec.provider.workers[].cri.name", "core/api/src/gardencore/shoot/workers.rs", "self.name == 'containerd'"),
    ("spec.provider.workers[].dataVolumes[].encrypted", "local-cloud/provider-local/src/worker.rs", "volume.encrypted"),
    ("spec.provider.workers[].dataVolumes[].name", "core/extension/src/worker/wanted.rs", "pool.data_volumes"),
    ("spec.provider.workers[].dataVolumes[].size", "core/extension/src/worker/wanted.rs", "pool.data_volumes"),
    ("spec.provider.workers[].dataVolumes[].type", "core/extension/src/worker/wanted.rs", "pool.data_volumes"),
    ("spec.provider.workers[].kubernetes.kubelet", "core/parts/src/nodes/kubelet.rs", "kubernetes.kubelet"),
    ("spec.provider.workers[].labels", "components/machine-controllers/src/machine/node_template.rs", "meta.labels"),
    ("spec.provider.workers[].machine.architecture", "core/extension/src/worker/wanted.rs", "pool.architecture"),
    ("spec.provider.workers[].machine.image.name", "core/parts/src/nodes/machine_image.rs", "image.name"),
    ("spec.provider.workers[].machine.image.providerConfig", "local-cloud/provider-local/src/operating_system_config/mod.rs", "machine.image.providerConfig"),
    ("spec.provider.workers[].machine.image.version", "core/parts/src/nodes/machine_image.rs", "image.version"),
    ("spec.provider.workers[].machine.type", "local-cloud/provider-local/src/worker.rs", "pool.machine_type"),
    ("spec.provider.workers[].machineControllerManager.disableHealthTimeout", "components/machine-controllers/src/machine/configuration.rs", "spec.disable_health_timeout"),
    ("spec.provider.workers[].machineControllerManager.machineCreationTimeout", "components/machine-controllers/src/machine/configuration.rs", "spec.creation_timeout"),
    ("spec.provider.workers[].machineControllerManager.machineDrainTimeout", "components/machine-controllers/src/machine/configuration.rs", "spec.drain_timeout"),
    ("spec.provider.workers[].machineControllerManager.machineHealthTimeout", "components/machine-controllers/src/machine/configuration.rs", "spec.health_timeout"),
    ("spec.provider.workers[].machineControllerManager.nodeConditions", "components/machine-controllers/src/machine/configuration.rs", "spec.node_conditions"),
    ("spec.provider.workers[].maxSurge", "core/parts/src/nodes/pools.rs", "worker.max_surge"),
    ("spec.provider.workers[].maxUnavailable", "core/parts/src/nodes/pools.rs", "worker.max_unavailable"),
    ("spec.provider.workers[].maximum", "core/extension/src/worker/wanted.rs", "pool.maximum"),
    ("spec.provider.workers[].minimum", "core/extension/src/worker/wanted.rs", "pool.minimum"),
    ("spec.provider.workers[].name", "core/extension/src/worker/wanted.rs", "pool.name"),
    ("spec.provider.workers[].providerConfig", "local-cloud/provider-local/src/worker.rs", "pool.provider_config"),
    ("spec.provider.workers[].systemComponents.allow", "core/parts/src/nodes/pools.rs", "components.allow"),
    ("spec.provider.workers[].taints", "components/machine-controllers/src/machine/node_template.rs", "spec.taints"),
    ("spec.provider.workers[].updateStrategy", "core/extension/src/worker/wanted.rs", "pool.update_strategy"),
    ("spec.provider.workers[].volume.encrypted", "local-cloud/provider-local/src/worker.rs", "volume.encrypted"),
    ("spec.provider.workers[].volume.name", "core/extension/src/worker/wanted.rs", "pool.volume"),
    ("spec.provider.workers[].volume.size", "core/extension/src/worker/wanted.rs", "pool.volume"),
    ("spec.provider.workers[].volume.type", "core/extension/src/worker/wanted.rs", "pool.volume"),
    ("spec.provider.workers[].zones", "core/extension/src/worker/wanted.rs", "pool.zones"),
    ("spec.purpose", "cli/kubectl-repot/src/takeover/order.rs", "spec.purpose"),
    ("spec.region", "core/parts/src/extensions/infrastructure.rs", "spec.region"),
    ("spec.secretBindingName", "core/garden-controller-manager/src/shoot_state/named_secrets.rs", "secret_binding_name"),
    ("spec.seedName", "core/placement/src/lib.rs", "shoot.spec.seed_name"),
    ("spec.seedSelector", "core/placement/src/seed_choice.rs", "shoot.spec.seed_selector"),
    ("spec.tolerations", "core/placement/src/seed_choice.rs", "shoot.spec.tolerations"),
];

/// Charts of extensions get the whole specification of the Seed, so such a use alone is no effect. The
/// networks of the Seed itself are the exception: Gardener requires these fields.
#[rustfmt::skip]
const SEED: &[ActedOn] = &[
    ("spec.backup", "core/garden-controller-manager/src/backup_entry_placement/bucket.rs", "seed.spec.backup"),
    ("spec.dns.defaults", "core/parts/src/extensions/dns_records.rs", "spec.dns.defaults"),
    ("spec.dns.internal", "core/parts/src/extensions/dns_records.rs", "spec.dns.internal"),
    ("spec.networks.nodes", "core/gardenlet/src/controller_installation/values.rs", "spec.networks"),
    ("spec.networks.pods", "core/gardenlet/src/controller_installation/values.rs", "spec.networks"),
    ("spec.networks.services", "core/gardenlet/src/controller_installation/values.rs", "spec.networks"),
    ("spec.networks.shootDefaults", "core/placement/src/names.rs", "networks.shoot_defaults"),
    ("spec.provider.region", "core/garden-controller-manager/src/backup_entry_placement/bucket.rs", "spec.provider.region"),
    ("spec.provider.type", "core/placement/src/seed_choice.rs", "provider.type_"),
    ("spec.settings.ownerChecks", "core/parts/src/etcd/owner.rs", "spec.owner_checks()"),
    ("spec.taints", "core/placement/src/seed_choice.rs", "spec.taints"),
];

/// Some fields are for people alone, and `kubectl` shows some of these fields.
#[rustfmt::skip]
const PROJECT: &[ActedOn] = &[
    ("spec.createdBy", "core/api/src/gardencore/project.rs", ".spec.createdBy.name"),
    ("spec.description", "core/api/src/gardencore/project.rs", "for people"),
    ("spec.namespace", "core/garden-controller-manager/src/project/controller.rs", "spec.namespace"),
    ("spec.owner", "core/api/src/gardencore/project.rs", ".spec.owner.name"),
    ("spec.purpose", "core/api/src/gardencore/project.rs", "for people"),
    ("spec.tolerations.whitelist", "../charts/garden/files/policies/shoot-tolerations.yaml", "tolerations.?whitelist"),
];

#[rustfmt::skip]
const CLOUD_PROFILE: &[ActedOn] = &[
    ("spec.kubernetes.versions[].classification", "core/garden-controller-manager/src/shoot_version/choice.rs", "version.classification"),
    ("spec.kubernetes.versions[].expirationDate", "core/garden-controller-manager/src/shoot_version/choice.rs", "expiration_date"),
    ("spec.kubernetes.versions[].version", "core/garden-controller-manager/src/shoot_version/choice.rs", "kubernetes.versions"),
    ("spec.limits.maxNodesTotal", "../charts/garden/files/policies/shoot-nodes.yaml", "limits.maxNodesTotal"),
    ("spec.machineImages[].name", "core/parts/src/nodes/machine_image.rs", "image.name"),
    ("spec.machineImages[].versions[].version", "core/parts/src/nodes/machine_image.rs", "v.version.version"),
    ("spec.machineTypes[].cpu", "core/parts/src/nodes/pools.rs", "known.cpu"),
    ("spec.machineTypes[].gpu", "core/parts/src/nodes/pools.rs", "known.gpu"),
    ("spec.machineTypes[].memory", "core/parts/src/nodes/pools.rs", "known.memory"),
    ("spec.machineTypes[].name", "core/parts/src/nodes/pools.rs", "known.name"),
    ("spec.providerConfig", "core/extension/src/worker/machines.rs", "/spec/providerConfig"),
    ("spec.seedSelector", "core/placement/src/seed_choice.rs", "profile.spec.seed_selector"),
];

/// Annotations of Shoots and Seeds that Gardener defines and that have an effect here: the file that acts on
/// each, and the word of that file. From `pkg/apis/core/v1beta1/constants` and the pages on shoot operations
/// of Gardener.
#[rustfmt::skip]
const ACTED_ON_ANNOTATIONS: &[(&str, &str, &str)] = &[
    ("confirmation.gardener.cloud/deletion", "core/placement/src/operation.rs", "CONFIRMATION_DELETION"),
    ("confirmation.gardener.cloud/force-deletion", "core/placement/src/operation.rs", "CONFIRMATION_FORCE_DELETION"),
    ("shoot.gardener.cloud/ignore", "core/placement/src/pause.rs", "SHOOT_IGNORE"),
    ("shoot.gardener.cloud/skip-cleanup", "core/parts/src/shoot_cleanup.rs", "shoot.gardener.cloud/skip-cleanup"),
    ("shoot.gardener.cloud/emergency-stop-reconciliations", "core/placement/src/pause.rs", "EMERGENCY_STOP"),
];

/// Annotations that Gardener writes on Shoots, and that a user may carry over from Gardener.
const WRITTEN_BY_GARDENER: &[&str] = &[
    "gardener.cloud/created-by",
    "deletion.gardener.cloud/confirmed-by",
];

#[test]
fn each_annotation_of_gardener_has_its_effect_or_a_warning() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (key, file, word) in ACTED_ON_ANNOTATIONS {
        let text = fs::read_to_string(crates.join(file)).unwrap_or_default();
        assert!(text.contains(word), "{file} has no {word:?}, by which {key} acts");
    }
    let all = effects::SHOOT_ANNOTATIONS.iter().chain(effects::SEED_ANNOTATIONS);
    for idle in all {
        let acts = ACTED_ON_ANNOTATIONS.iter().any(|(key, ..)| *key == idle.key);
        // An annotation with an effect is reported only where the value cannot be parsed.
        assert_eq!(acts, idle.when.is_some(), "{}", idle.key);
        assert!(!WRITTEN_BY_GARDENER.contains(&idle.key), "{}", idle.key);
    }
}

#[test]
fn each_field_has_its_effect_or_a_warning() {
    for (kind, acted_on, idle) in KINDS {
        let leaves = leaves_of(&schema(kind));
        assert!(leaves.len() > 20, "{kind}: {leaves:?}");
        assert_eq!(
            undecided(&leaves, acted_on, idle),
            [""; 0],
            "{kind}: neither acted on nor listed as without effect"
        );
        let both: Vec<_> = leaves
            .iter()
            .filter(|leaf| is_acted_on(leaf, acted_on) && is_idle(leaf, idle))
            .collect();
        assert!(
            both.is_empty(),
            "{kind}: acted on, and listed as without effect: {both:?}"
        );
        for (path, ..) in acted_on {
            let is_there = leaves.iter().any(|leaf| is_below(leaf, path));
            assert!(is_there, "{kind} has no field {path}");
        }
    }
}

#[test]
fn a_field_that_is_new_is_noticed() {
    let mut schema = schema("Shoot");
    let pool = "/properties/spec/properties/provider/properties/workers/items/properties";
    schema.pointer_mut(pool).unwrap()["novel"] = json!({"properties": {"of": {"type": "string"}}});
    let found = leaves_of(&schema);
    assert_eq!(
        undecided(&found, SHOOT, effects::SHOOT),
        ["spec.provider.workers[].novel.of"]
    );
}

#[test]
fn who_acts_on_a_field_names_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (kind, acted_on, _) in KINDS {
        for (field, file, word) in acted_on {
            let text = fs::read_to_string(crates.join(file)).unwrap_or_default();
            assert!(
                text.contains(word),
                "{file} has no {word:?}, by which it acts on {field} of a {kind}"
            );
        }
    }
}

fn undecided<'a>(
    leaves: &'a BTreeSet<String>,
    acted_on: &[ActedOn],
    idle: &[effects::Field],
) -> Vec<&'a str> {
    let open = leaves
        .iter()
        .filter(|leaf| !is_acted_on(leaf, acted_on) && !is_idle(leaf, idle));
    open.map(String::as_str).collect()
}

fn is_acted_on(leaf: &str, acted_on: &[ActedOn]) -> bool {
    acted_on.iter().any(|(path, ..)| is_below(leaf, path))
}

/// Without effect for every value. A field with some values without effect has an effect for the rest.
fn is_idle(leaf: &str, idle: &[effects::Field]) -> bool {
    let mut always_idle = idle.iter().filter(|field| field.when.is_none());
    always_idle.any(|field| is_below(leaf, field.path))
}

fn is_below(leaf: &str, path: &str) -> bool {
    let rest = leaf.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with("[]."))
}

fn schema(kind: &str) -> Value {
    let all = api::all_crds();
    let crd = all
        .iter()
        .find(|crd| crd.definition.spec.names.kind == kind)
        .unwrap();
    json!(
        crd.definition.spec.versions[0]
            .schema
            .as_ref()
            .unwrap()
            .open_api_v3_schema
    )
}

fn leaves_of(schema: &Value) -> BTreeSet<String> {
    let mut leaves = BTreeSet::new();
    walk(&schema["properties"]["spec"], "spec", &mut leaves);
    leaves
}

/// A leaf has no fields below: a value, a list of values, or a map with a user's keys.
fn walk(schema: &Value, path: &str, leaves: &mut BTreeSet<String>) {
    let items = &schema["items"];
    if let Some(fields) = schema["properties"].as_object() {
        for (name, field) in fields {
            walk(field, &format!("{path}.{name}"), leaves);
        }
    } else if items["properties"].is_object() {
        walk(items, &format!("{path}[]"), leaves);
    } else {
        leaves.insert(path.to_owned());
    }
}
