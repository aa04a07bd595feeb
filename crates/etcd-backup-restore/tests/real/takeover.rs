//! A takeover calls a chain complete only where the source has recorded the end of its epoch.

use crate::lab::Lab;
use etcd_backup_restore::seal_note::SealNote;
use std::fs;

/// A process of an epoch that is over still beats.
#[tokio::test(flavor = "multi_thread")]
async fn the_note_of_a_later_epoch_is_never_replaced() {
    let lab = Lab::new();
    let store = lab.store("a");
    let note = |epoch| SealNote {
        epoch,
        revision: 10 * epoch,
        beat: 0,
    };
    note(3).write(&store).await.unwrap();
    note(2).write(&store).await.unwrap();
    assert_eq!(SealNote::read(&store).await.unwrap(), Some(note(3)));
    // Also not by a process that has read an older note a moment before.
    store.delete_note("sealed.json").await.unwrap();
    note(1).write(&store).await.unwrap();
    let path = lab.object("a", "").join("../sealed.json");
    let content = |epoch| serde_json::to_vec(&note(epoch)).unwrap();
    let is_later = |found: &[u8]| {
        let found: SealNote = serde_json::from_slice(found).unwrap();
        if found.epoch == 1 {
            fs::write(&path, content(3)).unwrap();
        }
        found.epoch > 2
    };
    let written = store.replace_note("sealed.json", content(2), is_later).await;
    assert!(!written.unwrap(), "the note of epoch 3 was written in between");
    assert_eq!(SealNote::read(&store).await.unwrap(), Some(note(3)));
}
