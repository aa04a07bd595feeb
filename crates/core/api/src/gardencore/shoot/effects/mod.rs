//! Fields and annotations that are accepted, because manifests of Gardener's users have them, but have no
//! effect yet.
//!
//! Promise: such a field or annotation is never ignored silently. A page in `docs/` and the admission
//! policies that answer a manifest with a warning are generated from this table. A CloudProfile gets no
//! warning: each CloudProfile of Gardener's users has several of these fields. When a field gets an effect,
//! the line of the field is removed here.

mod annotations;

pub use annotations::{Annotation, SEED_ANNOTATIONS, SHOOT_ANNOTATIONS};

use std::fmt::Write as _;

use serde_json::{Value, json};

use annotations::{ALL, idle_annotations};

/// A field without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Path of the field, e.g. `spec.addons`, or `spec.provider.workers[].caBundle` in any item of a list.
    /// All fields below the path are included.
    pub path: &'static str,
    /// The effect that a user would expect.
    pub meaning: &'static str,
    /// For a field with effect for some values: the values without effect, as CEL over the `object` and the
    /// `item` with the field. `None`: every value is without effect.
    pub when: Option<&'static str>,
}

const fn field(path: &'static str, meaning: &'static str) -> Field {
    Field {
        path,
        meaning,
        when: None,
    }
}

const fn field_when(path: &'static str, when: &'static str, meaning: &'static str) -> Field {
    Field {
        path,
        meaning,
        when: Some(when),
    }
}

/// Fields of a Shoot without effect.
pub const SHOOT: &[Field] = &[
    field(
        "spec.accessRestrictions",
        "keeps the shoot to seeds and regions that honour the restriction",
    ),
    field("spec.addons", "installs the dashboard or an ingress in the shoot"),
    field(
        "spec.controlPlane",
        "spreads the control plane over nodes or zones",
    ),
    field(
        "spec.dns.providers[].domains",
        "bounds the names that the provider keeps; the primary provider keeps the names of the API",
    ),
    field_when(
        "spec.dns.providers[].type",
        "size(object.spec.dns.providers) > 1 && item.?primary != optional.of(true)",
        "adds a provider of DNS; only the primary provider is used",
    ),
    field(
        "spec.dns.providers[].zones",
        "chooses the zones of the provider; the provider finds the zone of a name",
    ),
    field("spec.exposureClassName", "exposes the API in a way of its own"),
    field(
        "spec.kubernetes.clusterAutoscaler",
        "configures scaling of worker pools",
    ),
    field("spec.kubernetes.etcd", "configures scaling of etcd"),
    field("spec.kubernetes.kubeAPIServer", "configures the API server"),
    field(
        "spec.kubernetes.kubeControllerManager",
        "configures the controller manager",
    ),
    field("spec.kubernetes.kubeScheduler", "configures the scheduler"),
    field("spec.kubernetes.verticalPodAutoscaler", "scales pods vertically"),
    field("spec.maintenance", "keeps updates to a time of day"),
    field("spec.monitoring", "tells people when the shoot is unwell"),
    field("spec.networking.ipFamilies", "chooses versions of IP"),
    field(
        "spec.provider.workers[].caBundle",
        "lets nodes trust further authorities",
    ),
    field(
        "spec.provider.workers[].clusterAutoscaler",
        "says how the pool is scaled; it has as many machines as `minimum` says",
    ),
    field(
        "spec.provider.workers[].controlPlane",
        "makes machines that run the control plane",
    ),
    field_when(
        "spec.provider.workers[].dataVolumes",
        "object.spec.provider.type == 'local' && item.?dataVolumes.hasValue()",
        "gives machines further disks; those of the local cloud have none",
    ),
    field(
        "spec.provider.workers[].kubeletDataVolumeName",
        "names the disk on which the kubelet keeps its state; it is the root disk",
    ),
    field(
        "spec.provider.workers[].kubernetes.version",
        "chooses the kubelet's version, which is that of the machine image; another minor version replaces the machines",
    ),
    field(
        "spec.provider.workers[].machineControllerManager.autoPreserveFailedMachineMax",
        "keeps failed machines",
    ),
    field(
        "spec.provider.workers[].machineControllerManager.inPlaceUpdateTimeout",
        "bounds an update in place; machines are replaced",
    ),
    field(
        "spec.provider.workers[].machineControllerManager.machinePreserveTimeout",
        "bounds for how long failed machines are kept",
    ),
    field(
        "spec.provider.workers[].machineControllerManager.maxEvictRetries",
        "bounds how often pods are asked to leave; `machineDrainTimeout` does",
    ),
    field_when(
        "spec.provider.workers[].machine.architecture",
        "object.spec.provider.type == 'local' && item.machine.?architecture.hasValue()",
        "chooses processors; machines of the local cloud have those of their host",
    ),
    field_when(
        "spec.provider.workers[].maximum",
        "item.maximum > item.minimum",
        "lets the pool grow; it has as many machines as `minimum` says",
    ),
    field(
        "spec.provider.workers[].priority",
        "says which pool is scaled first",
    ),
    field(
        "spec.provider.workers[].sysctls",
        "sets kernel parameters on nodes",
    ),
    field_when(
        "spec.provider.workers[].systemComponents.allow",
        "!item.?systemComponents.?allow.orValue(true)",
        "keeps the shoot's own components off the pool's nodes",
    ),
    field_when(
        "spec.provider.workers[].volume",
        "object.spec.provider.type == 'local' && item.?volume.hasValue()",
        "sizes the root disk; machines of the local cloud have that of their host",
    ),
    field("spec.provider.workersSettings", "configures nodes"),
    field(
        "spec.resources",
        "gives extensions access to objects beside the Shoot",
    ),
    field("spec.schedulerName", "chooses who chooses the seed"),
    field("spec.systemComponents", "configures the shoot's DNS"),
];

/// Fields of a Seed without effect.
pub const SEED: &[Field] = &[
    field("spec.accessRestrictions", "honours restrictions of shoots"),
    field("spec.dns.provider", "keeps the name of the seed's ingress"),
    field("spec.extensions", "adds extensions to the seed itself"),
    field("spec.ingress", "serves parts of control planes under a domain"),
    field(
        "spec.networks.blockCIDRs",
        "keeps control planes away from networks",
    ),
    field("spec.networks.ipFamilies", "chooses versions of IP"),
    field(
        "spec.provider.providerConfig",
        "configures the provider in the seed",
    ),
    field("spec.provider.zones", "spreads control planes over zones"),
    field(
        "spec.resources",
        "gives extensions access to objects in the garden",
    ),
    field("spec.settings.dependencyWatchdog", "restarts what waits in vain"),
    field(
        "spec.settings.excessCapacityReservation",
        "keeps room free for control planes",
    ),
    field("spec.settings.loadBalancerServices", "configures load balancers"),
    field(
        "spec.settings.persistentVolumeClaimAutoscaler",
        "lets volumes grow",
    ),
    field("spec.settings.scheduling", "keeps new shoots away"),
    field("spec.settings.topologyAwareRouting", "keeps traffic in a zone"),
    field(
        "spec.settings.verticalPodAutoscaler",
        "scales control planes vertically",
    ),
    field("spec.settings.zoneSelection", "chooses zones of control planes"),
    field("spec.volume", "sets the smallest size of volumes"),
];

/// Fields of a Project without effect.
pub const PROJECT: &[Field] = &[
    field(
        "spec.dualApprovalForDeletion",
        "keeps objects until a second person agrees to their deletion",
    ),
    field(
        "spec.members",
        "gives members their rights; a RoleBinding in the namespace of the project does",
    ),
    field(
        "spec.tolerations.defaults",
        "gives tolerations to each new Shoot; a toleration of the Shoot does",
    ),
];

/// Fields of a CloudProfile without effect. Each provider gets the whole CloudProfile, but no program of this
/// suite reads these fields.
pub const CLOUD_PROFILE: &[Field] = &[
    field("spec.bastion", "chooses machines for log-in to nodes"),
    field("spec.caBundle", "lets machines trust further authorities"),
    field(
        "spec.controlPlane",
        "runs control planes on machines of the provider",
    ),
    field(
        "spec.kubernetes.versions[].lifecycle",
        "ends the offer of a version in stages; `classification` and `expirationDate` end the offer",
    ),
    field(
        "spec.machineCapabilities",
        "tells machine types and images apart by capabilities",
    ),
    field(
        "spec.machineImages[].updateStrategy",
        "bounds automatic updates of images; there are no automatic updates",
    ),
    field(
        "spec.machineImages[].versions[].architectures",
        "bounds the processors on which the image runs",
    ),
    field(
        "spec.machineImages[].versions[].capabilityFlavors",
        "chooses the build of the image by capabilities",
    ),
    field(
        "spec.machineImages[].versions[].classification",
        "ends the offer of the version",
    ),
    field(
        "spec.machineImages[].versions[].cri",
        "bounds the container runtimes of pools",
    ),
    field(
        "spec.machineImages[].versions[].expirationDate",
        "ends the offer of the version",
    ),
    field(
        "spec.machineImages[].versions[].inPlaceUpdates",
        "updates machines in place; machines are replaced",
    ),
    field(
        "spec.machineImages[].versions[].kubeletVersionConstraint",
        "bounds the versions of kubelets on the image",
    ),
    field(
        "spec.machineImages[].versions[].lifecycle",
        "ends the offer of the version in stages",
    ),
    field(
        "spec.machineTypes[].architecture",
        "gives pools their processors; `machine.architecture` of the pool does",
    ),
    field(
        "spec.machineTypes[].capabilities",
        "chooses the build of the image by capabilities",
    ),
    field(
        "spec.machineTypes[].storage",
        "sizes the root disk of machines; `volume` of the pool does",
    ),
    field(
        "spec.machineTypes[].usable",
        "withdraws a machine type; the removal from the list does",
    ),
    field("spec.regions", "bounds the regions and zones of Shoots"),
    field("spec.type", "bounds `spec.provider.type` of Shoots"),
    field("spec.volumeTypes", "bounds the types of disks of pools"),
];

/// No annotation of the kind is judged.
const NO_ANNOTATIONS: &[Annotation] = &[];

/// The page with these fields and annotations.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Fields without effect\n\n\
         These fields and annotations are part of Gardener's API and are stored as given, so that manifests apply\n\
         unchanged. Nothing acts on them yet. A write of such a field or annotation is answered with a warning that\n\
         `kubectl` prints. The warnings come from the policies `fields-without-effect-*` and\n\
         `annotations-without-effect-*` in the garden's chart, which are generated from the same table as this page\n\
         (`crates/core/api/src/gardencore/shoot/effects/mod.rs`). Annotations that Gardener does not define, such as those of\n\
         providers, are not judged.\n\n\
         A write of a CloudProfile is answered without a warning: each CloudProfile of Gardener's users has several of\n\
         these fields. `kubectl explain` states `Has no effect` for these fields, and for fields of further kinds.\n",
    );
    for (kind, fields, annotations) in [
        ("Shoot", SHOOT, SHOOT_ANNOTATIONS),
        ("Seed", SEED, SEED_ANNOTATIONS),
        ("Project", PROJECT, NO_ANNOTATIONS),
        ("CloudProfile", CLOUD_PROFILE, NO_ANNOTATIONS),
    ] {
        // Writing to a String cannot fail.
        let _ = write!(
            page,
            "\n## {kind}\n\n| field | what it does not do yet |\n|---|---|\n"
        );
        for field in fields {
            let when = field
                .when
                .map_or(String::new(), |when| format!(" where `{when}`"));
            let _ = writeln!(page, "| `{}`{when} | {} |", field.path, field.meaning);
        }
        if annotations.is_empty() {
            continue;
        }
        let _ = write!(
            page,
            "\n| annotation of a {kind} | what it does not do yet |\n|---|---|\n"
        );
        for annotation in annotations {
            let any = if annotation.key.ends_with('/') { "…" } else { "" };
            let when = annotation
                .when
                .map_or("", |_| " with a value that is not a truth value");
            let _ = writeln!(
                page,
                "| `{}{any}`{when} | {} |",
                annotation.key, annotation.meaning
            );
        }
    }
    page
}

/// The admission policies with warnings about these fields and annotations, each with a binding.
#[must_use]
pub fn policies() -> Vec<Value> {
    let kinds = [
        ("shoots", SHOOT, SHOOT_ANNOTATIONS),
        ("seeds", SEED, SEED_ANNOTATIONS),
        ("projects", PROJECT, NO_ANNOTATIONS),
    ];
    kinds
        .into_iter()
        .flat_map(|(plural, fields, annotations)| {
            let of_fields = policy(
                plural,
                "fields",
                "object.spec != oldObject.spec",
                &idle_fields(fields),
            );
            let written = format!("object.{ALL} != oldObject.{ALL}");
            let of_annotations = (!annotations.is_empty())
                .then(|| policy(plural, "annotations", &written, &idle_annotations(annotations)));
            of_fields.into_iter().chain(of_annotations.into_iter().flatten())
        })
        .collect()
}

/// A list of the paths of fields that the object has without effect.
fn idle_fields(fields: &[Field]) -> String {
    let present: Vec<String> = fields
        .iter()
        .map(|field| format!("({} ? ['{}'] : [])", is_idle(field), field.path))
        .collect();
    present.join(" + ")
}

/// `written` is true for an update that changes the input of `ignored`.
fn policy(plural: &str, what: &str, written: &str, ignored: &str) -> [Value; 2] {
    let name = format!("{what}-without-effect-{plural}");
    let condition = if what == "fields" { "spec" } else { what };
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            // A failing warning must not refuse a write.
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["core.gardener.cloud"],
                "apiVersions": ["v1beta1"],
                "resources": [plural],
                "operations": ["CREATE", "UPDATE"],
            }]},
            "matchConditions": [{
                "name": format!("{condition}-is-written"),
                "expression": format!("oldObject == null || {written}"),
            }],
            "variables": [{"name": "ignored", "expression": ignored}],
            "validations": [{
                "expression": "variables.ignored.size() == 0",
                "messageExpression":
                    "'accepted, but without effect yet (see docs/look-up/fields-without-effect.md): ' + variables.ignored.join(', ')",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Warn"]},
    });
    [policy, binding]
}

/// An expression that is true if the object has the field with a value without effect. `spec.a.b`: if the
/// field exists; `spec.a[].b`: if any item of the list has the field, or satisfies [`Field::when`].
fn is_idle(field: &Field) -> String {
    let optional = |path: &str| path.replace('.', ".?");
    match field.path.split_once("[].") {
        None => format!("object.?{}.hasValue()", optional(field.path)),
        Some((list, below)) => {
            let has_it = || format!("item.?{}.hasValue()", optional(below));
            format!(
                "object.?{}.orValue([]).exists(item, {})",
                optional(list),
                field.when.map_or_else(has_it, str::to_owned)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_looks_at_every_step() {
        let of = |path| is_idle(&field(path, ""));
        assert_eq!(of("spec.dns.provider"), "object.?spec.?dns.?provider.hasValue()");
        assert_eq!(
            of("spec.provider.workers[].cri.containerRuntimes"),
            "object.?spec.?provider.?workers.orValue([]).exists(item, item.?cri.?containerRuntimes.hasValue())"
        );
        assert_eq!(
            is_idle(&field_when("spec.workers[].most", "item.most > item.least", "")),
            "object.?spec.?workers.orValue([]).exists(item, item.most > item.least)"
        );
    }

    #[test]
    fn a_kind_without_idle_annotations_has_no_policy_about_annotations() {
        let all = policies();
        let found = all
            .iter()
            .filter(|object| object["kind"] == "ValidatingAdmissionPolicy");
        let names: Vec<_> = found.map(|policy| &policy["metadata"]["name"]).collect();
        let expected = [
            "fields-without-effect-shoots",
            "annotations-without-effect-shoots",
            "fields-without-effect-seeds",
            "annotations-without-effect-seeds",
            "fields-without-effect-projects",
        ];
        assert!(names.iter().eq(expected.iter()), "{names:?}");
    }

    #[test]
    fn only_items_of_lists_have_conditions() {
        for field in SHOOT.iter().chain(SEED).chain(PROJECT) {
            assert!(
                field.when.is_none() || field.path.contains("[]."),
                "{}",
                field.path
            );
        }
    }
}
