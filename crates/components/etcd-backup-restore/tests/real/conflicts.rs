//! A store that answers 409 to a conditional write has written nothing, and the process does not conclude
//! that the object exists.

use crate::lab::{Lab, RefusingS3};
use axum::http::{Method, StatusCode};
use etcd_backup_restore::chain;
use etcd_backup_restore::error::Class;
use etcd_backup_restore::seal_note::SealNote;
use etcd_backup_restore::snapshot_name::Snapshot;
use etcd_backup_restore::store::Recorded;

const CONFLICT: (StatusCode, &str) = (StatusCode::CONFLICT, "ConditionalRequestConflict");

fn recorded(revision: i64) -> Recorded {
    let full = Snapshot::parse(&format!("Full-00000000-{revision:08}-1700000000")).unwrap();
    Recorded::from_chain(&chain::newest(&[full]).unwrap().unwrap(), 2, 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_while_the_object_is_absent_is_repeated() {
    let lab = Lab::new();
    let s3 = RefusingS3::start(&lab).await;
    let store = lab.store("p").of_epoch(2);
    s3.refuse(Method::PUT, "/chains/2.json", CONFLICT, 2);
    assert_eq!(store.record(recorded(7)).await.unwrap(), recorded(7));
    assert_eq!(store.recorded(2).await.unwrap(), Some(recorded(7)));
    assert_eq!(s3.refused(), 2);
    // The chain that a different process recorded counts, for any answer of the store.
    s3.refuse(Method::PUT, "/chains/2.json", CONFLICT, 1);
    assert_eq!(store.record(recorded(9)).await.unwrap(), recorded(7));
    assert_eq!(s3.refused(), 3);

    let note = SealNote {
        epoch: 2,
        revision: 7,
        beat: 0,
    };
    s3.refuse(Method::PUT, "/sealed.json", CONFLICT, 4);
    note.write(&store).await.unwrap();
    assert_eq!(SealNote::read(&store).await.unwrap(), Some(note));
    assert_eq!(s3.refused(), 7);
}

/// Without a record two processes of the epoch could begin with different chains.
#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_that_does_not_end_records_nothing_and_is_an_error() {
    let lab = Lab::new();
    let s3 = RefusingS3::start(&lab).await;
    let store = lab.store("p").of_epoch(2);
    s3.refuse(Method::PUT, "/chains/2.json", CONFLICT, usize::MAX);
    let error = store.record(recorded(7)).await.unwrap_err();
    assert_eq!(error.class, Class::Store, "{error}");
    assert!(error.message.contains("no object was written"), "{error}");
    assert_eq!(store.recorded(2).await.unwrap(), None);
}
