//! BackupEntry: the folder of a shoot's backups in a bucket, and the Secret for the shoot's etcd.
//!
//! Names carry the meaning (R17-22, R17-23). `<technical id>--<uid>` is the shoot's own folder, with the
//! Secret `etcd-backup`. `source-<technical id>--<uid>` is the same folder seen from the destination seed,
//! with the Secret `source-etcd-backup`: the destination copies from this folder. The deletion of such an
//! entry removes objects only if an annotation states that the objects were copied and are in use elsewhere
//! (I9).
//!
//! The shoot's own folder gets an `ownership.json` before the Secret, and no etcd starts without the Secret.
//! The backup process reads the owner of the folder there, and never writes the first `ownership.json`. For a
//! takeover without the source, the folder with the data is claimed before the Secret. The Secret reports the
//! claim by an annotation with the epoch (docs/understand/ownership.md). The folder with the data is the
//! source's, or the seed's own folder if the shoot was there last.
//!
//! The deletion of an entry needs no owner check (docs/understand/decisions/0029), because the folder records
//! the owner. Objects are removed only if `ownership.json` shows no later epoch and no different shoot.

use std::collections::BTreeMap;

use api::{
    constants::{
        BACKUP_ENTRY_BACKUPS_COPIED, BACKUPS_COPIED_BUT_FINAL, CREATED_BY, ETCD_MAIN, OWNERSHIP_EPOCH,
    },
    extensions::BackupEntry,
    meta::ErrorCode,
};
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome, Released, forced};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use runtime::{
    Error, Result,
    client::{Cluster, apply},
};

use crate::{
    MANAGER,
    object_store::{Store, objects},
    ownership::{self, BackupClaim, State},
    takeover,
};

/// Prefix of the name of an entry to copy from.
const SOURCE: &str = "source-";
/// The Secret beside the shoot's etcd.
const SECRET: &str = "etcd-backup";
/// Key with the bucket's name that is added to the credentials.
const BUCKET_NAME: &str = "bucketName";
/// Requeue interval for a missing namespace. The copy of backups waits for the namespace.
const MISSING_NAMESPACE_REQUEUE: std::time::Duration = std::time::Duration::from_secs(2);

/// Reconciles BackupEntries.
pub struct BackupEntryActuator;

#[async_trait]
impl Actuator<BackupEntry> for BackupEntryActuator {
    const NAME: &'static str = "backupentry";

    async fn reconcile(&self, context: &Context<BackupEntry>) -> Result<Outcome> {
        let place = EntryName::parse(&context.name())?;
        if !is_active(context, &place.namespace).await? {
            return Err(Error::not_ready(
                MISSING_NAMESPACE_REQUEUE,
                format!(
                    "namespace {} does not exist yet, so the backup credentials have no place",
                    place.namespace
                ),
            ));
        }
        let credentials = context.credentials().await?;
        let spec = &context.object.spec;
        let epoch = epoch_of(&context.object)?;
        let takeover = takeover::read_takeover(&context.seed, &place.namespace, epoch).await?;
        let has_data = takeover.filter(|takeover| takeover.returns != place.source);
        let claims = has_data.is_some();
        if claims || !place.source {
            let bucket = objects(&credentials, &spec.bucket_name, &spec.region, context.permit())?;
            let claim = BackupClaim {
                origin: has_data.and_then(|takeover| takeover.origin),
                ..place.ownership(context)?
            };
            ownership::claim(&bucket, &claim).await?;
        }
        let mut secret = secret(&place, credentials.data(), &spec.bucket_name);
        if claims {
            let annotations = secret.annotations_mut();
            annotations.insert(OWNERSHIP_EPOCH.into(), epoch.to_string());
        }
        context
            .manager
            .apply_secret(&context.seed.namespaced(&place.namespace), &secret)
            .await?;
        Ok(Outcome::none())
    }

    async fn restore(&self, context: &Context<BackupEntry>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<BackupEntry>) -> Result<Outcome> {
        remove_secret(context, &EntryName::parse(&context.name())?).await?;
        Ok(Outcome::none())
    }

    async fn delete(&self, context: &Context<BackupEntry>) -> Result<()> {
        let place = EntryName::parse(&context.name())?;
        remove_objects(context, &place).await?;
        remove_secret(context, &place).await
    }

    /// The Secret is removed even if the object store refuses. `force_delete` removes only objects that
    /// `delete` would remove (I9).
    async fn force_delete(&self, context: &Context<BackupEntry>) -> Result<Released> {
        let Ok(place) = EntryName::parse(&context.name()) else {
            // The entry never had a folder, so no object has to be removed.
            return Ok(Released::default());
        };
        let bucket = &context.object.spec.bucket_name;
        let objects = format!("backups below {} in bucket {bucket}", place.prefix);
        let objects = forced::attempt(&objects, || remove_objects(context, &place)).await?;
        let secret = format!("Secret {} in namespace {}", place.secret_name(), place.namespace);
        let secret = forced::attempt(&secret, || remove_secret(context, &place)).await?;
        Ok(objects.and(secret))
    }
}

/// Removes the shoot's backups. Backups of a source are removed only after the copy (I9), and backups in a
/// folder of a later epoch are never removed.
async fn remove_objects(context: &Context<BackupEntry>, place: &EntryName) -> Result<()> {
    if place.source && !is_copied(&context.object) {
        return Ok(());
    }
    let spec = &context.object.spec;
    let store = Store::open(
        &context.credentials().await?,
        &spec.bucket_name,
        &spec.region,
        context.permit(),
    )?;
    let claim = place.ownership(context)?;
    let found = store.read(&ownership::path(&claim)).await?;
    ownership::may_be_removed(found.as_deref(), &claim)?;
    let is_final = |key: &str| key.contains(".final");
    match read_copied(&context.object) {
        Some(BACKUPS_COPIED_BUT_FINAL) => store.delete_below_but(&place.prefix, is_final).await,
        _ => store.delete_below(&place.prefix).await,
    }
}

fn is_copied(entry: &BackupEntry) -> bool {
    read_copied(entry).is_some_and(|said| said == "true" || said == BACKUPS_COPIED_BUT_FINAL)
}

fn read_copied(entry: &BackupEntry) -> Option<&str> {
    let said = entry.annotations().get(BACKUP_ENTRY_BACKUPS_COPIED);
    said.map(String::as_str)
}

/// The ownership epoch of an entry; an entry without the annotation belongs to the first epoch.
fn epoch_of(object: &BackupEntry) -> Result<i64> {
    let Some(text) = object.annotations().get(OWNERSHIP_EPOCH) else {
        return Ok(1);
    };
    text.parse().ok().filter(|epoch| *epoch >= 1).ok_or_else(|| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("annotation {OWNERSHIP_EPOCH} is {text:?}: write a whole number from 1 on"),
        )
    })
}

async fn is_active(context: &Context<BackupEntry>, name: &str) -> Result<bool> {
    let namespace = context.seed.cluster_wide::<Namespace>().get_opt(name).await?;
    Ok(namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_none()))
}

async fn remove_secret(context: &Context<BackupEntry>, place: &EntryName) -> Result<()> {
    apply::delete(
        &context.seed.namespaced::<Secret>(&place.namespace),
        &place.secret_name(),
    )
    .await
}

/// The parts of an entry's name.
#[derive(Debug, PartialEq, Eq)]
struct EntryName {
    /// Whether the entry is there to copy from.
    source: bool,
    /// Namespace of the shoot in the seed.
    namespace: String,
    /// Prefix of the names of all objects of the shoot.
    prefix: String,
}

impl EntryName {
    fn parse(name: &str) -> Result<Self> {
        let (source, own) = name.strip_prefix(SOURCE).map_or((false, name), |own| (true, own));
        // A uid holds no two dashes in a row; a technical id does.
        match own.rsplit_once("--") {
            Some((namespace, uid)) if !namespace.is_empty() && !uid.is_empty() => Ok(Self {
                source,
                namespace: namespace.to_owned(),
                prefix: format!("{own}/"),
            }),
            _ => Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "BackupEntry {name} is not named <technical id>--<uid>: delete it and create it with such a name"
                ),
            )),
        }
    }

    /// The wanted `ownership.json` while the entry exists.
    fn ownership(&self, context: &Context<BackupEntry>) -> Result<BackupClaim> {
        let object = &context.object;
        let seed = context
            .cluster
            .as_ref()
            .and_then(|cluster| cluster.spec.seed.as_ref());
        let seed = seed.and_then(|seed| seed.0.pointer("/metadata/name")?.as_str());
        let (_, uid) = self
            .prefix
            .trim_end_matches('/')
            .rsplit_once("--")
            .unwrap_or_default();
        Ok(BackupClaim {
            bucket: object.spec.bucket_name.clone(),
            folder: format!("{}{ETCD_MAIN}", self.prefix),
            uid: uid.to_owned(),
            epoch: epoch_of(object)?,
            seed: seed.unwrap_or_default().to_owned(),
            state: if self.source { State::Claimed } else { State::Owned },
            origin: None,
        })
    }

    fn secret_name(&self) -> String {
        if self.source {
            format!("{SOURCE}{SECRET}")
        } else {
            SECRET.to_owned()
        }
    }
}

fn secret(place: &EntryName, credentials: &BTreeMap<String, Vec<u8>>, bucket: &str) -> Secret {
    let mut data: BTreeMap<_, _> = credentials
        .iter()
        .map(|(key, value)| (key.clone(), ByteString(value.clone())))
        .collect();
    data.insert(BUCKET_NAME.into(), ByteString(bucket.as_bytes().to_vec()));
    Secret {
        metadata: ObjectMeta {
            name: Some(place.secret_name()),
            annotations: Some(BTreeMap::from([(CREATED_BY.into(), MANAGER.0.into())])),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".into()),
        data: Some(data),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_says_namespace_place_and_secret() {
        let own = EntryName::parse("shoot--dev--one--0841c87f-8db9-4d04-a603-35570da6341f").unwrap();
        assert_eq!(own.namespace, "shoot--dev--one");
        assert_eq!(
            own.prefix,
            "shoot--dev--one--0841c87f-8db9-4d04-a603-35570da6341f/"
        );
        assert_eq!(own.secret_name(), "etcd-backup");
        let source =
            EntryName::parse("source-shoot--dev--one--0841c87f-8db9-4d04-a603-35570da6341f").unwrap();
        assert!(source.source);
        assert_eq!((&source.namespace, &source.prefix), (&own.namespace, &own.prefix));
        assert_eq!(source.secret_name(), "source-etcd-backup");
        assert_eq!(
            EntryName::parse("nonsense").unwrap_err().codes(),
            [ErrorCode::ErrConfigurationProblem]
        );
    }

    #[test]
    fn the_secret_is_the_credentials_and_the_bucket() {
        let place = EntryName::parse("shoot--dev--one--uid").unwrap();
        let secret = secret(
            &place,
            &BTreeMap::from([("accessKeyID".into(), b"k".to_vec())]),
            "b",
        );
        let data = secret.data.unwrap();
        assert_eq!(data["accessKeyID"].0, b"k");
        assert_eq!(data["bucketName"].0, b"b");
    }
}
