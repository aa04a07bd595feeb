//! The copy of backups from the former seed's bucket: an Etcd with a source store, which etcd-druid answers with a Job
//! (R17-24..R17-29). It has the name of etcd-main and is gone before that is deployed.

use kube::ResourceExt;
use runtime::{Result, error::Context, wait};

use crate::{
    Botanist, FIELD_MANAGER,
    etcd::{BACKUP_SECRET, MAIN},
};

/// Credentials of the former seed's bucket, put into the shoot's namespace by the source BackupEntry.
const SOURCE_SECRET: &str = "source-etcd-backup";

impl Botanist {
    /// "Copying etcd backups to new seed's backup bucket". A copy that runs is left alone, also one that waits for a final
    /// snapshot: starting it again would make it wait from the beginning.
    pub async fn deploy_etcd_copy(&self) -> Result<()> {
        let api = self.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        if found.is_some_and(|found| found.spec.backup.source_store.is_none()) {
            // The real one runs already, with the copied backups.
            return Ok(());
        }
        let mut etcd = self.etcd(MAIN, Some(self.store(BACKUP_SECRET).await?));
        etcd.spec.backup.source_store = Some(self.store(SOURCE_SECRET).await?);
        FIELD_MANAGER.apply(&api, &etcd).await.map(|_| ())
    }

    /// "Waiting until etcd backups are copied". What the copying process says went wrong is the step's error.
    pub async fn wait_until_etcd_backups_copied(&self) -> Result<()> {
        self.wait_for_etcd(MAIN, self.settings.timeouts.etcd_copy).await
    }

    /// Deletes the Etcd that copied, and waits until it is gone: its name is needed (R17-29).
    pub async fn destroy_etcd_copy(&self) -> Result<()> {
        let api = self.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        let Some(copy) = found.filter(|found| found.spec.backup.source_store.is_some()) else {
            return Ok(());
        };
        let name = copy.name_any();
        self.destroy_etcd(&name).await?;
        wait::until_gone(&api, &name, self.settings.timeouts.etcd.timeout).await
    }
}
