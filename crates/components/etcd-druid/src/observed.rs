//! Reads the existing objects of an Etcd.

use api::druid::{CopyProgress, Etcd};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Result,
    client::{Cluster, Seed, apply::Object},
    error::Explain,
};
use sidecar_protocol::{SidecarHealth, SidecarOwnership};

use crate::{
    names::{
        COMPONENT_LABEL, COPY_COMPONENT, COPY_JOB, DRUID, MANAGED_BY_LABEL, MEMBER_COMPONENT,
        OWNERSHIP_EPOCH, PART_OF_LABEL,
    },
    rollout,
};

/// The existing objects of an Etcd, with the answers of its processes.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The StatefulSet.
    pub stateful_set: Option<StatefulSet>,
    /// The Job that copies backups.
    pub job: Option<Job>,
    /// Pods that run etcd.
    pub members: Vec<Pod>,
    /// Pods that copy backups.
    pub copies: Vec<Pod>,
    /// Claims of volumes with data.
    pub claims: Vec<PersistentVolumeClaim>,
    /// Pods of an older template that have to be replaced; `None` before that is known.
    pub outdated: Option<Vec<String>>,
    /// The last answer of the member's etcd-backup-restore.
    pub sidecar: Option<SidecarHealth>,
    /// The ownership that the process reports, if the process has an owner check.
    pub ownership: Option<SidecarOwnership>,
    /// Whether etcd refuses writes, because alarm NOSPACE is raised.
    pub no_space: bool,
    /// The progress that the copying process reported when etcd-druid asked for it.
    pub copying: Option<CopyProgress>,
}

impl Observed {
    /// Reads all objects.
    pub async fn read(seed: &Seed, etcd: &Etcd) -> Result<Self> {
        let (name, namespace) = (etcd.name_any(), etcd.namespace().unwrap_or_default());
        let stateful_sets: Api<StatefulSet> = seed.namespaced(&namespace);
        let jobs: Api<Job> = seed.namespaced(&namespace);
        let ours =
            ListParams::default().labels(&format!("{MANAGED_BY_LABEL}={DRUID},{PART_OF_LABEL}={name}"));
        let pods: Vec<Pod> = list(&seed.namespaced(&namespace), &ours).await?;
        let of = |component: &str| {
            pods.iter()
                .filter(|p| p.labels().get(COMPONENT_LABEL).is_some_and(|c| c == component))
                .cloned()
                .collect()
        };
        let members: Vec<Pod> = of(MEMBER_COMPONENT);
        let stateful_set = stateful_sets
            .get_opt(&name)
            .await
            .context("could not read the StatefulSet")?
            .filter(|s| belongs(s, etcd));
        let outdated = match &stateful_set {
            Some(set) => rollout::outdated(seed, set, &members).await?,
            None => None,
        };
        Ok(Self {
            stateful_set,
            outdated,
            job: jobs
                .get_opt(COPY_JOB)
                .await
                .context("could not read the Job etcd-copy")?
                .filter(|j| belongs(j, etcd)),
            members,
            copies: of(COPY_COMPONENT),
            claims: list(&seed.namespaced(&namespace), &ours).await?,
            sidecar: None,
            ownership: None,
            no_space: false,
            copying: None,
        })
    }

    /// Describes the remaining objects of an Etcd that is being deleted; `None` when no object remains.
    #[must_use]
    pub fn remains(&self) -> Option<String> {
        let mut left = Vec::new();
        left.extend(
            self.stateful_set
                .iter()
                .map(|s| format!("StatefulSet {}", s.name_any())),
        );
        left.extend(self.job.iter().map(|j| format!("Job {}", j.name_any())));
        left.extend(
            self.members
                .iter()
                .chain(&self.copies)
                .map(|p| format!("Pod {}", p.name_any())),
        );
        left.extend(
            self.claims
                .iter()
                .filter(|c| !is_retained(c))
                .map(|c| format!("PersistentVolumeClaim {}", c.name_any())),
        );
        (!left.is_empty()).then(|| left.join(", "))
    }
}

/// Whether the object was made for this Etcd, not for an earlier Etcd of the same name.
pub fn belongs<K: Object>(object: &K, etcd: &Etcd) -> bool {
    let uid = etcd.uid().unwrap_or_default();
    object.owner_references().iter().any(|owner| owner.uid == uid)
}

/// Whether a claim was kept when its Etcd was deleted: such a claim belongs to no Etcd.
#[must_use]
pub fn is_retained(claim: &PersistentVolumeClaim) -> bool {
    claim.labels().contains_key(OWNERSHIP_EPOCH)
}

async fn list<K: Object>(api: &Api<K>, params: &ListParams) -> Result<Vec<K>> {
    let list = api
        .list(params)
        .await
        .context(format_args!("could not list objects of kind {}", K::kind(&())))?;
    Ok(list.items)
}
