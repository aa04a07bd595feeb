//! The account in the cloud, from files that may change while the process runs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ::api::meta::ErrorCode;
use runtime::{
    Error, Result,
    client::{Credentials, apply::FieldManager},
};
use tokio::sync::Mutex;

use crate::cloud::{Cloud, Wrap};

/// Keys of the `cloudprovider` Secret; also the names of the mounted files.
const KUBECONFIG: &str = "kubeconfig";
const NAMESPACE: &str = "namespace";

/// The source of the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder with the files `kubeconfig` and `namespace`: the mounted `cloudprovider` Secret.
    Folder(PathBuf),
    /// A kubeconfig and the namespace that is the account.
    Kubeconfig {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// Name of the namespace.
        namespace: String,
    },
}

/// The account. The files are read at each use. A change of the files opens a new connection, so that renewed
/// credentials need no restart.
pub struct Account {
    source: Source,
    writer: FieldManager,
    wrap: Wrap,
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    files: BTreeMap<String, Vec<u8>>,
    cloud: Cloud,
}

impl Account {
    /// Reads nothing yet: a cloud that is away must not prevent the start of the process.
    #[must_use]
    pub fn new(source: Source, writer: FieldManager, wrap: Wrap) -> Self {
        Self {
            source,
            writer,
            wrap,
            opened: Mutex::new(None),
        }
    }

    /// The account, connected with the present credentials.
    pub async fn open(&self) -> Result<Cloud> {
        let (origin, files) = self.source.read().await?;
        let mut opened = self.opened.lock().await;
        if let Some(opened) = opened.as_ref().filter(|opened| opened.files == files) {
            return Ok(opened.cloud.clone());
        }
        let credentials = Credentials::new(origin, files.clone());
        let cloud = Cloud::open(&credentials, self.writer, &self.wrap).await?;
        *opened = Some(Opened {
            files,
            cloud: cloud.clone(),
        });
        Ok(cloud)
    }
}

impl Source {
    /// The name of the credentials for messages, and the content.
    async fn read(&self) -> Result<(String, BTreeMap<String, Vec<u8>>)> {
        match self {
            Self::Folder(folder) => {
                let mut files = BTreeMap::new();
                for key in [KUBECONFIG, NAMESPACE] {
                    files.insert(key.to_owned(), read(&folder.join(key)).await?);
                }
                Ok((format!("in {}", folder.display()), files))
            }
            Self::Kubeconfig { path, namespace } => {
                let files = BTreeMap::from([
                    (KUBECONFIG.to_owned(), read(path).await?),
                    (NAMESPACE.to_owned(), namespace.clone().into_bytes()),
                ]);
                Ok((format!("in {}", path.display()), files))
            }
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>> {
    tokio::fs::read(path).await.map_err(|why| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "{}: the credentials of the cloud cannot be read: {why}",
                path.display()
            ),
        )
    })
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
