//! The flags of the stores of snapshots.

use crate::error::Result;
use crate::store::{Provider, Store, StoreConfig};
use clap::Args;
use permit::Permit;
use std::path::PathBuf;

/// The location of the snapshots.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Protocol of the store.
    #[arg(long, value_enum, default_value = "S3")]
    pub storage_provider: Provider,
    /// Bucket; the Secret's bucketName where empty. A folder for the provider Local.
    #[arg(long, default_value = "", env = "STORAGE_CONTAINER")]
    pub store_container: String,
    /// Prefix of the objects; the objects are below <prefix>/v2/.
    #[arg(long, default_value = "")]
    pub store_prefix: String,
    /// Folder of the mounted Secret: accessKeyID and secretAccessKey, or roleARN and token. Where needed,
    /// sessionToken, stsEndpoint, region, endpoint, ca.crt, bucketName.
    #[arg(long)]
    pub store_credentials_dir: Option<PathBuf>,
    /// URL of the store, instead of the Secret's endpoint.
    #[arg(long)]
    pub store_endpoint_override: Option<String>,
}

impl StoreArgs {
    /// The store.
    pub fn open(&self, permit: &Permit) -> Result<Store> {
        Store::new(StoreConfig {
            provider: self.storage_provider,
            container: self.store_container.clone(),
            prefix: self.store_prefix.clone(),
            credentials_dir: self.store_credentials_dir.clone(),
            endpoint: self.store_endpoint_override.clone(),
            permit: permit.clone(),
        })
    }
}

/// Where snapshots are copied from.
#[derive(Debug, Args)]
pub struct SourceStoreArgs {
    /// Protocol of the source.
    #[arg(long, value_enum, default_value = "S3")]
    pub source_storage_provider: Provider,
    /// Bucket of the source; its Secret's bucketName where empty.
    #[arg(long, default_value = "", env = "SOURCE_STORAGE_CONTAINER")]
    pub source_store_container: String,
    /// Prefix of the source's objects; the objects are below <prefix>/v2/.
    #[arg(long, default_value = "")]
    pub source_store_prefix: String,
    /// Folder of the source's mounted Secret.
    #[arg(long)]
    pub source_store_credentials_dir: Option<PathBuf>,
    /// URL of the source, instead of its Secret's endpoint.
    #[arg(long)]
    pub source_store_endpoint_override: Option<String>,
}

impl SourceStoreArgs {
    /// The store.
    pub fn open(&self, permit: &Permit) -> Result<Store> {
        Store::new(StoreConfig {
            provider: self.source_storage_provider,
            container: self.source_store_container.clone(),
            prefix: self.source_store_prefix.clone(),
            credentials_dir: self.source_store_credentials_dir.clone(),
            endpoint: self.source_store_endpoint_override.clone(),
            permit: permit.clone(),
        })
    }
}
