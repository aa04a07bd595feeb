//! The resources of API servers by the names of the Rust types.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::sources::files_below;

/// A resource, as RBAC names resources.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub group: String,
    pub plural: String,
}

/// Kinds of Kubernetes that the suite uses: API group (`core`: without a name), type, resource.
const NATIVE: &str = "
core ConfigMap configmaps
core Endpoints endpoints
core Namespace namespaces
core Node nodes
core PersistentVolume persistentvolumes
core PersistentVolumeClaim persistentvolumeclaims
core Pod pods
core ResourceQuota resourcequotas
core Secret secrets
core Service services
core ServiceAccount serviceaccounts
apiregistration.k8s.io APIService apiservices
apps ControllerRevision controllerrevisions
apps DaemonSet daemonsets
apps Deployment deployments
apps ReplicaSet replicasets
apps StatefulSet statefulsets
autoscaling HorizontalPodAutoscaler horizontalpodautoscalers
authorization.k8s.io SelfSubjectAccessReview selfsubjectaccessreviews
batch Job jobs
coordination.k8s.io Lease leases
discovery.k8s.io EndpointSlice endpointslices
events.k8s.io Event events
apiextensions.k8s.io CustomResourceDefinition customresourcedefinitions
admissionregistration.k8s.io MutatingWebhookConfiguration mutatingwebhookconfigurations
admissionregistration.k8s.io ValidatingAdmissionPolicy validatingadmissionpolicies
admissionregistration.k8s.io ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings
admissionregistration.k8s.io ValidatingWebhookConfiguration validatingwebhookconfigurations
networking.k8s.io NetworkPolicy networkpolicies
policy PodDisruptionBudget poddisruptionbudgets
rbac.authorization.k8s.io ClusterRole clusterroles
rbac.authorization.k8s.io ClusterRoleBinding clusterrolebindings
rbac.authorization.k8s.io Role roles
rbac.authorization.k8s.io RoleBinding rolebindings
storage.k8s.io VolumeAttachment volumeattachments
";

/// The modules of crate `api` with names that are not the first label of the API group.
const MODULES: &[(&str, &str)] = &[("gardencore", "core.gardener.cloud")];

/// All known kinds.
#[derive(Default)]
pub struct Kinds(BTreeMap<String, Vec<Kind>>);

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    names: Names,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
    plural: String,
}

impl Kinds {
    /// The kinds of Kubernetes, and of the definitions below `crds/`.
    pub fn read(root: &Path) -> Result<Self> {
        let mut kinds = Self::native();
        for file in files_below(vec![root.join("crds")], "yaml")? {
            let text = fs::read_to_string(&file)?;
            let read: Definition =
                serde_yaml_ng::from_str(&text).with_context(|| file.display().to_string())?;
            let (kind, plural) = (read.spec.names.kind, read.spec.names.plural);
            kinds.add(&kind, &read.spec.group, &plural);
        }
        Ok(kinds)
    }

    pub fn native() -> Self {
        let mut kinds = Self::default();
        for line in NATIVE.lines() {
            if let [group, name, plural] = line.split(' ').collect::<Vec<_>>()[..] {
                kinds.add(name, if group == "core" { "" } else { group }, plural);
            }
        }
        kinds
    }

    pub fn add(&mut self, name: &str, group: &str, plural: &str) {
        let (group, plural) = (group.to_owned(), plural.to_owned());
        let of_name = self.0.entry(name.to_owned()).or_default();
        of_name.push(Kind { group, plural });
    }

    /// The resource of a type with this path. `None`: not a kind, or a name of several kinds.
    pub fn find(&self, path: &[String]) -> Option<&Kind> {
        let candidates = self.0.get(path.last()?)?;
        let is_named = |kind: &&Kind| {
            path.iter().any(|module| {
                MODULES.contains(&(module.as_str(), kind.group.as_str()))
                    || kind.group.split('.').next() == Some(module.as_str())
            })
        };
        match candidates.as_slice() {
            [only] => Some(only),
            several => several.iter().find(is_named),
        }
    }
}
