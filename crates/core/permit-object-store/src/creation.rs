//! Creation of an object that must not exist yet.

use std::time::Duration;

use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use tokio::time::sleep;

/// Repeats after a conflict while the object is absent. With the pauses, more than 6 s: longer than a store
/// needs to settle two requests for the same key.
const REPEATS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Writes an object only if the key has none (`If-None-Match: *`). `AlreadyExists` means that the object
/// exists.
///
/// S3 answers 409 if another request for the key is under way, and then has written nothing. The library
/// reports this answer as `AlreadyExists` too. The object is therefore read before anything is concluded, and
/// the request is repeated while the object is absent.
///
/// # Errors
/// The errors of the store, and a conflict that does not end.
pub async fn create_object(store: &dyn ObjectStore, path: &Path, content: PutPayload) -> Result<PutResult> {
    for repeat in 0..=REPEATS {
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let conflict = match store.put_opts(path, content.clone(), options).await {
            Err(conflict @ Error::AlreadyExists { .. }) => conflict,
            done => return done,
        };
        match store.head(path).await {
            Ok(_) => return Err(conflict),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        if repeat < REPEATS {
            tracing::debug!(%path, repeat, "the store reports a conflict and the object is absent");
            sleep(FIRST_PAUSE * 2_u32.pow(repeat)).await;
        }
    }
    Err(Error::Generic {
        store: "S3",
        source: format!(
            "the store reports a conflict for {path} again and again, and the object is absent; no object was written"
        )
        .into(),
    })
}
