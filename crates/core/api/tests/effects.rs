//! Each field of a Shoot about pools, network, hibernation and maintenance has an effect, or a warning for
//! the user. A new field is in neither list, and fails this test until an author decides.

#![allow(missing_docs, clippy::unwrap_used)]

use std::{collections::BTreeSet, fs, path::Path};

use api::gardencore::shoot::effects;
use serde_json::{Value, json};

/// Paths of the checked fields.
const BELOW: [&str; 4] = [
    "spec.hibernation",
    "spec.maintenance",
    "spec.networking",
    "spec.provider.workers",
];

/// Fields with an effect, including all fields below: the file that acts on each field, and a word of that
/// file as proof.
#[rustfmt::skip]
const ACTED_ON: &[(&str, &str, &str)] = &[
    ("spec.hibernation.enabled", "core/parts/src/facts.rs", "hibernation"),
    ("spec.hibernation.schedules[].end", "core/garden-controller-manager/src/shoot_hibernation/schedule.rs", "from.end"),
    ("spec.hibernation.schedules[].location", "core/garden-controller-manager/src/shoot_hibernation/schedule.rs", "from.location"),
    ("spec.hibernation.schedules[].start", "core/garden-controller-manager/src/shoot_hibernation/schedule.rs", "from.start"),
    ("spec.networking.nodes", "local-cloud/provider-local/src/infrastructure/mod.rs", "/spec/networking/nodes"),
    ("spec.networking.pods", "core/placement/src/names.rs", "pods: networking"),
    ("spec.networking.providerConfig", "local-cloud/provider-local/src/network/mod.rs", "spec.networking.providerConfig"),
    ("spec.networking.services", "core/placement/src/names.rs", "spec.networking.services"),
    ("spec.networking.type", "core/parts/src/nodes/network.rs", "networking.type_"),
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
    let leaves = leaves_of(&schema());
    assert!(leaves.len() > 60, "{leaves:?}");
    assert_eq!(
        undecided(&leaves),
        [""; 0],
        "neither acted on nor told to be without effect"
    );
    let both: Vec<_> = leaves
        .iter()
        .filter(|leaf| is_acted_on(leaf) && is_idle(leaf))
        .collect();
    assert!(
        both.is_empty(),
        "acted on, and told to be without effect: {both:?}"
    );
    for (path, ..) in ACTED_ON {
        let is_there = leaves.iter().any(|leaf| is_below(leaf, path));
        assert!(is_there, "there is no field {path}");
    }
}

#[test]
fn a_field_that_is_new_is_noticed() {
    let mut schema = schema();
    let pool = "/properties/spec/properties/provider/properties/workers/items/properties";
    schema.pointer_mut(pool).unwrap()["novel"] = json!({"properties": {"of": {"type": "string"}}});
    let found = leaves_of(&schema);
    assert_eq!(undecided(&found), ["spec.provider.workers[].novel.of"]);
}

#[test]
fn who_acts_on_a_field_names_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (field, file, word) in ACTED_ON {
        let text = fs::read_to_string(crates.join(file)).unwrap_or_default();
        assert!(
            text.contains(word),
            "{file} has no {word:?}, by which it acts on {field}"
        );
    }
}

fn undecided(leaves: &BTreeSet<String>) -> Vec<&str> {
    let open = leaves.iter().filter(|leaf| !is_acted_on(leaf) && !is_idle(leaf));
    open.map(String::as_str).collect()
}

fn is_acted_on(leaf: &str) -> bool {
    ACTED_ON.iter().any(|(path, ..)| is_below(leaf, path))
}

/// Without effect for every value. A field with some values without effect has an effect for the rest.
fn is_idle(leaf: &str) -> bool {
    let idle = effects::SHOOT.iter().filter(|field| field.when.is_none());
    idle.into_iter().any(|field| is_below(leaf, field.path))
}

fn is_below(leaf: &str, path: &str) -> bool {
    let rest = leaf.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with("[]."))
}

fn schema() -> Value {
    let all = api::all_crds();
    let shoot = all
        .iter()
        .find(|crd| crd.definition.spec.names.kind == "Shoot")
        .unwrap();
    json!(
        shoot.definition.spec.versions[0]
            .schema
            .as_ref()
            .unwrap()
            .open_api_v3_schema
    )
}

fn leaves_of(schema: &Value) -> BTreeSet<String> {
    let mut leaves = BTreeSet::new();
    walk(&schema["properties"]["spec"], "spec", &mut leaves);
    leaves.retain(|leaf| BELOW.iter().any(|path| is_below(leaf, path)));
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
