//! All `CustomResourceDefinition`s, in a fixed order, with the cluster that serves each of them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{descriptions, druid, extensions, gardencore, limits, machine, resources, security};

/// The cluster that serves a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The garden cluster.
    Garden,
    /// Every seed cluster.
    Seed,
}

impl Target {
    /// The folder below `crds/`.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Garden => "garden",
            Self::Seed => "seed",
        }
    }
}

/// The definition of a kind.
#[derive(Clone, Debug)]
pub struct Crd {
    /// The cluster that serves the kind.
    pub target: Target,
    /// The definition.
    pub definition: CustomResourceDefinition,
}

impl Crd {
    fn garden<K: CustomResourceExt>() -> Self {
        Self::from_kind::<K>(Target::Garden)
    }

    fn seed<K: CustomResourceExt>() -> Self {
        Self::from_kind::<K>(Target::Seed)
    }

    /// The deletion of a definition deletes all objects of the kind: every shoot of a garden, every etcd of a
    /// seed. So Helm keeps definitions when a chart is uninstalled, or when a later chart no longer has the
    /// definition.
    fn from_kind<K: CustomResourceExt>(target: Target) -> Self {
        let mut definition = K::crd();
        definition
            .metadata
            .annotations
            .get_or_insert_default()
            .insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
        limits::apply(&mut definition);
        descriptions::complete(&mut definition);
        Self { target, definition }
    }

    /// The file name: `<group>_<plural>.yaml`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!(
            "{}_{}.yaml",
            self.definition.spec.group, self.definition.spec.names.plural
        )
    }
}

/// Every kind of the suite, by cluster and then in the order of this list.
#[must_use]
pub fn all_crds() -> Vec<Crd> {
    vec![
        Crd::garden::<gardencore::BackupBucket>(),
        Crd::garden::<gardencore::BackupEntry>(),
        Crd::garden::<gardencore::CloudProfile>(),
        Crd::garden::<gardencore::ControllerDeployment>(),
        Crd::garden::<gardencore::ControllerInstallation>(),
        Crd::garden::<gardencore::ControllerRegistration>(),
        Crd::garden::<gardencore::InternalSecret>(),
        Crd::garden::<gardencore::Project>(),
        Crd::garden::<gardencore::SecretBinding>(),
        Crd::garden::<gardencore::Seed>(),
        Crd::garden::<gardencore::Shoot>(),
        Crd::garden::<gardencore::ShootState>(),
        Crd::garden::<security::CredentialsBinding>(),
        Crd::seed::<druid::Etcd>(),
        Crd::seed::<druid::EtcdCopyBackupsTask>(),
        Crd::seed::<extensions::BackupBucket>(),
        Crd::seed::<extensions::BackupEntry>(),
        Crd::seed::<extensions::Bastion>(),
        Crd::seed::<extensions::Cluster>(),
        Crd::seed::<extensions::ContainerRuntime>(),
        Crd::seed::<extensions::ControlPlane>(),
        Crd::seed::<extensions::DNSRecord>(),
        Crd::seed::<extensions::Extension>(),
        Crd::seed::<extensions::Infrastructure>(),
        Crd::seed::<extensions::Network>(),
        Crd::seed::<extensions::OperatingSystemConfig>(),
        Crd::seed::<extensions::SelfHostedShootExposure>(),
        Crd::seed::<extensions::SubnetIsolation>(),
        Crd::seed::<extensions::Worker>(),
        Crd::seed::<machine::Machine>(),
        Crd::seed::<machine::MachineClass>(),
        Crd::seed::<machine::MachineDeployment>(),
        Crd::seed::<machine::MachineSet>(),
        Crd::seed::<resources::ManagedResource>(),
    ]
}

/// The definitions that a cluster serves.
#[must_use]
pub fn crds_of(target: Target) -> Vec<CustomResourceDefinition> {
    all_crds()
        .into_iter()
        .filter(|crd| crd.target == target)
        .map(|crd| crd.definition)
        .collect()
}
