//! The copy of backups from the former seed's bucket: an Etcd with a source store, which etcd-druid answers with a Job
//! (R17-24..R17-29). It has the name of etcd-main and is gone before that is deployed.

use kube::ResourceExt;
use runtime::{Result, error::Explain, wait};

use crate::{
    Claim, FIELD_MANAGER, Facts, Stay,
    etcd::{BACKUP_SECRET, MAIN},
    verbs::{Deploy, Tasks},
};

/// Credentials of the former seed's bucket, put into the shoot's namespace by the source BackupEntry.
pub(crate) const SOURCE_SECRET: &str = "source-etcd-backup";

/// How long the copy of a source that is fenced waits for its final snapshot. Much shorter than for a source that has promised one: it
/// may be dead, and if not it has had the time of the fence for it. Longer than the copy's pause between two looks.
const WAIT_FOR_THE_FENCED: &str = "10s";

/// The copy.
#[derive(Debug)]
pub struct EtcdCopy;

impl Deploy for EtcdCopy {
    const TASKS: Tasks = [
        "Copying etcd backups to new seed's backup bucket",
        "Waiting until etcd backups are copied",
    ];

    /// A copy that runs is left alone, also one that waits for a final snapshot: starting it again would make it wait from the
    /// beginning.
    async fn deploy(f: &Facts) -> Result<()> {
        let api = f.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        if found.is_some_and(|found| found.spec.backup.source_store.is_none()) {
            // The real one runs already, with the copied backups.
            return Ok(());
        }
        let mut etcd = f.etcd(MAIN, Some(f.store(BACKUP_SECRET).await?));
        etcd.spec.backup.source_store = Some(f.store(SOURCE_SECRET).await?);
        if Claim::fences(f) {
            etcd.spec.backup.etcd_snapshot_timeout = Some(WAIT_FOR_THE_FENCED.to_owned());
        }
        FIELD_MANAGER.apply(&api, &etcd).await.map(|_| ())
    }

    /// What the copying process says went wrong is the step's error.
    async fn ready(f: &Facts) -> Result<()> {
        f.wait_for_etcd(MAIN, f.settings.timeouts.etcd_copy).await
    }
}

impl EtcdCopy {
    /// "Destroying copy of etcd backups": deletes the Etcd that copied, and waits until it is gone, as its name is needed
    /// (R17-29).
    pub async fn destroy(stay: &Stay) -> Result<()> {
        let api = stay.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        let Some(copy) = found.filter(|found| found.spec.backup.source_store.is_some()) else {
            return Ok(());
        };
        let name = copy.name_any();
        stay.destroy_etcd(&name).await?;
        wait::until_gone(&api, &name, stay.settings.timeouts.etcd.timeout).await
    }
}
