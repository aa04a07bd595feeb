//! A full snapshot: from etcd, through the hash check and the packer, into the store, a few MiB at a time.

use crate::compression::Compression;
use crate::error::{Class, Error, Result};
use crate::etcd::Etcd;
use crate::integrity::{Fingerprint, TrailerCheck};
use crate::snapshot_name::{Kind, Snapshot};
use crate::store::{Store, Upload};
use std::time::Duration;

/// Longest silence of etcd in the middle of its stream.
const SILENCE: Duration = Duration::from_secs(60);

/// Takes a full snapshot; returns the snapshot with the hash of the sent object, in hex. The object appears
/// only after etcd's own hash over the whole stream was checked.
///
/// The revision in the name is read before the stream begins, so the content may go slightly beyond that
/// revision. A delta that continues the name then overlaps, and a restore allows the overlap.
pub async fn take(
    etcd: &Etcd,
    store: &Store,
    compression: Compression,
    is_final: bool,
) -> Result<(Snapshot, String)> {
    let revision = etcd.revision().await?;
    let mut snapshot = Snapshot::new(Kind::Full, (0, revision), compression, is_final);
    let mut upload = store.upload(&snapshot)?;
    match stream(etcd, compression, &mut upload).await {
        Ok(sent) => {
            snapshot.size = upload.complete().await?;
            snapshot.epoch = store.epoch();
            Ok((snapshot, sent))
        }
        Err(e) => {
            upload.abort().await;
            Err(e)
        }
    }
}

async fn stream(etcd: &Etcd, compression: Compression, upload: &mut Upload) -> Result<String> {
    let mut pieces = etcd.snapshot().await?;
    let (mut packer, mut check, mut remaining) = (compression.packer()?, TrailerCheck::default(), 0);
    let mut sent = Fingerprint::default();
    let broken = |what: &str| {
        Error::new(
            Class::Etcd,
            format!("etcd's snapshot stream cannot be trusted: {what}"),
        )
    };
    loop {
        let Ok(piece) = tokio::time::timeout(SILENCE, pieces.message()).await else {
            return Err(broken("it fell silent"));
        };
        let Some(piece) = piece.map_err(|status| broken(status.message()))? else {
            break;
        };
        remaining = piece.remaining_bytes;
        check.update(&piece.blob);
        packer.write(&piece.blob)?;
        sent.update(packer.ready());
        upload.write(packer.ready()).await?;
        packer.ready().clear();
    }
    check.finish().map_err(|what| broken(&what))?;
    if remaining != 0 {
        return Err(broken(&format!("it ended {remaining} bytes too early")));
    }
    let end = packer.finish()?;
    sent.update(&end);
    upload.write(&end).await?;
    Ok(sent.hex())
}
