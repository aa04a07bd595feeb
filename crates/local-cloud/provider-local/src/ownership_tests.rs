#![allow(clippy::unwrap_used)]
use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions,
    memory::InMemory,
};

use super::*;

fn claim_of(epoch: i64, seed: &str) -> BackupClaim {
    BackupClaim {
        bucket: "b".to_owned(),
        folder: "shoot--dev--one--uid/etcd-main".to_owned(),
        uid: "uid".to_owned(),
        epoch,
        seed: seed.to_owned(),
        state: State::Owned,
        origin: None,
    }
}

/// As [`claim_of`], announced in the folder of the present owner.
fn announced(epoch: i64, seed: &str) -> BackupClaim {
    BackupClaim {
        state: State::Claimed,
        ..claim_of(epoch, seed)
    }
}

async fn content(store: &dyn ObjectStore) -> serde_json::Value {
    let path = Path::from("shoot--dev--one--uid/etcd-main/ownership.json");
    let found = store.get(&path).await.unwrap().bytes().await.unwrap();
    serde_json::from_slice(&found).unwrap()
}

#[tokio::test]
async fn a_place_goes_to_later_epochs_only_and_its_content_never_repeats() {
    let store = InMemory::new();
    claim(&store, &claim_of(1, "a")).await.unwrap();
    let first = content(&store).await;
    assert_eq!(
        (&first["uid"], &first["epoch"], &first["seed"], &first["state"]),
        (&"uid".into(), &1.into(), &"a".into(), &"Owned".into())
    );
    // A repetition, even by a seed without a known name, writes nothing.
    claim(&store, &claim_of(1, "")).await.unwrap();
    assert_eq!(content(&store).await, first);
    claim(&store, &claim_of(3, "a")).await.unwrap();
    let third = content(&store).await;
    assert_eq!(third["epoch"], 3);
    assert_ne!(third["written"], first["written"]);
    let late = claim(&store, &claim_of(2, "b")).await.unwrap_err();
    assert!(
        late.to_string()
            .contains("is of ownership epoch 3, and this BackupEntry of 2"),
        "{late}"
    );
    assert_eq!(content(&store).await, third);
    let other = BackupClaim {
        uid: "another".to_owned(),
        ..claim_of(4, "a")
    };
    assert!(claim(&store, &other).await.is_err());
    // No probe object is left.
    let left = store
        .list_with_delimiter(Some(&Path::from(claim_of(1, "").folder)))
        .await
        .unwrap();
    assert_eq!(left.objects.len(), 1);
}

/// The etcd may continue with the data here only if the claim says so. A folder that was left, and is used
/// again, has old data.
#[tokio::test]
async fn a_place_goes_on_with_its_own_data_only_where_that_is_said() {
    let store = InMemory::new();
    claim(&store, &claim_of(1, "a")).await.unwrap();
    claim(&store, &claim_of(3, "a")).await.unwrap();
    assert_eq!(content(&store).await["origin"], serde_json::Value::Null);
    let returns = BackupClaim {
        origin: Some(3),
        ..claim_of(4, "a")
    };
    claim(&store, &returns).await.unwrap();
    let found = content(&store).await;
    assert_eq!(
        (&found["epoch"], &found["state"], &found["origin"]),
        (&4.into(), &"Owned".into(), &3.into())
    );
    // The etcd did not start in epoch 4, so the data still belong to epoch 3 for the next owner.
    let next = BackupClaim {
        origin: Some(3),
        ..announced(5, "b")
    };
    claim(&store, &next).await.unwrap();
    let found = content(&store).await;
    assert_eq!(
        (&found["state"], &found["origin"]),
        (&"Claimed".into(), &3.into())
    );
}

/// An epoch may end before the etcd has started: the next seed finds the data in the epoch before.
#[tokio::test]
async fn a_claimed_place_names_the_epochs_with_which_its_origin_goes_on() {
    let store = InMemory::new();
    claim(&store, &claim_of(1, "a")).await.unwrap();
    for (epoch, origin) in [(2, 1), (3, 2)] {
        let returns = BackupClaim {
            origin: Some(origin),
            ..claim_of(epoch, "a")
        };
        claim(&store, &returns).await.unwrap();
    }
    for (epoch, origin) in [(4, Some(3)), (5, None)] {
        let next = BackupClaim {
            origin,
            ..announced(epoch, "b")
        };
        claim(&store, &next).await.unwrap();
        let found = content(&store).await;
        assert_eq!(
            (&found["origin"], &found["formerOrigins"]),
            (&3.into(), &serde_json::json!([2, 1]))
        );
    }
    // The shoot came back from elsewhere: the older data here are leftovers.
    claim(&store, &claim_of(6, "a")).await.unwrap();
    claim(&store, &announced(7, "b")).await.unwrap();
    let found = content(&store).await;
    assert_eq!((&found["origin"], found.get("formerOrigins")), (&6.into(), None));
}

#[derive(Debug)]
enum Fault {
    /// The store takes every write.
    ConditionsIgnored,
    /// A rival seed takes the folder after this seed has read the content. The flag records whether that has
    /// happened.
    Rival(AtomicBool),
}

#[derive(Debug)]
struct FaultyStore(InMemory, Fault);

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        path: &Path,
        content: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let options = match self.1 {
            Fault::ConditionsIgnored => PutOptions {
                mode: PutMode::Overwrite,
                ..options
            },
            Fault::Rival(_) => options,
        };
        self.0.put_opts(path, content, options).await
    }
    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(path, options).await
    }
    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let found = self.0.get_opts(path, options).await;
        if let Fault::Rival(has_come) = &self.1
            && !has_come.swap(true, Ordering::SeqCst)
        {
            let content = serde_json::json!({"uid": "uid", "epoch": 3, "seed": "b", "state": "Claimed", "written": "now"});
            self.0.put(path, content.to_string().into()).await?;
        }
        found
    }
    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.0.delete_stream(paths)
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.0.list(prefix)
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn a_store_that_ignores_conditions_is_refused_and_nothing_is_left_in_it() {
    let store = FaultyStore(InMemory::new(), Fault::ConditionsIgnored);
    let refused = claim(&store, &claim_of(1, "a")).await.unwrap_err();
    assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem]);
    assert!(
        refused
            .to_string()
            .contains("use a store, or a release of it, with conditional writes"),
        "{refused}"
    );
    let left = store
        .list_with_delimiter(Some(&Path::from(claim_of(1, "").folder)))
        .await
        .unwrap();
    assert!(left.objects.is_empty(), "{left:?}");
}

/// Each write requires the content that was read before.
#[tokio::test]
async fn a_place_that_another_seed_takes_in_between_is_left_to_that_seed() {
    for former in [None, Some(claim_of(1, "a"))] {
        let memory = InMemory::new();
        if let Some(former) = &former {
            claim(&memory, former).await.unwrap();
        }
        let store = FaultyStore(memory, Fault::Rival(AtomicBool::new(false)));
        let late = claim(&store, &announced(2, "c")).await.unwrap_err();
        assert!(late.to_string().contains("at the same moment"), "{late}");
        assert_eq!(content(&store).await["seed"], "b");
    }
}

#[test]
fn a_place_that_is_taken_from_anybody_is_noticed() {
    for (mutation, test) in [
        (
            Mutation::PlaceOfLaterEpochTaken,
            a_place_goes_to_later_epochs_only_and_its_content_never_repeats as fn(),
        ),
        (
            Mutation::PlaceOfLaterEpochTaken,
            backups_of_a_later_epoch_or_of_another_shoot_are_not_removed,
        ),
        (
            Mutation::PlaceTakenWithoutCondition,
            a_place_that_another_seed_takes_in_between_is_left_to_that_seed,
        ),
    ] {
        mutation.assert_killed_by(test, "unwrap_err");
    }
}

/// R7-60: from now on, no process of the former owner reads here that the process owns the shoot.
#[tokio::test]
async fn a_claim_ends_the_former_owner_and_says_whose_snapshots_are_there() {
    let store = InMemory::new();
    claim(&store, &claim_of(1, "a")).await.unwrap();
    claim(&store, &announced(2, "b")).await.unwrap();
    let claimed = content(&store).await;
    assert_eq!(
        (&claimed["state"], &claimed["epoch"], &claimed["origin"]),
        (&"Claimed".into(), &2.into(), &1.into())
    );
    // A repeated step writes nothing, and neither does a late earlier step.
    claim(&store, &announced(2, "b")).await.unwrap();
    claim(&store, &announced(1, "a")).await.unwrap_err();
    claim(&store, &claim_of(1, "a")).await.unwrap_err();
    assert_eq!(content(&store).await, claimed);
    // A third seed: the etcd of the second seed never started, so the snapshots still belong to the first
    // epoch. The second seed is refused.
    claim(&store, &announced(3, "c")).await.unwrap();
    let third = content(&store).await;
    assert_eq!((&third["epoch"], &third["origin"]), (&3.into(), &1.into()));
    claim(&store, &announced(2, "b")).await.unwrap_err();
    assert_eq!(content(&store).await, third);
    // The first seed takes its folder again.
    claim(&store, &claim_of(4, "a")).await.unwrap();
    let owned = content(&store).await;
    assert_eq!((&owned["state"], owned.get("origin")), (&"Owned".into(), None));
    // Announcement and takeover are two steps of the same epoch.
    claim(&store, &announced(5, "a")).await.unwrap();
    claim(&store, &claim_of(5, "a")).await.unwrap();
    assert_eq!(content(&store).await["state"], "Owned");
}

/// The former owner may have died before the first write.
#[tokio::test]
async fn a_place_that_says_nothing_is_claimed_too() {
    let store = InMemory::new();
    claim(&store, &announced(2, "b")).await.unwrap();
    let claimed = content(&store).await;
    assert_eq!(
        (&claimed["state"], claimed.get("origin")),
        (&"Claimed".into(), None)
    );
}

/// The claim is of epoch 2.
#[test]
fn backups_of_a_later_epoch_or_of_another_shoot_are_not_removed() {
    let of = |uid: &str, epoch: i64, state: &str| {
        let content =
            serde_json::json!({"uid": uid, "epoch": epoch, "seed": "b", "state": state, "written": ""});
        content.to_string().into_bytes()
    };
    for (content, kept) in [
        (None, None),
        (Some(of("uid", 1, "Owned")), None),
        (Some(of("uid", 2, "Sealed")), None),
        (Some(of("uid", 2, "Claimed")), None),
        (Some(of("uid", 3, "Claimed")), Some("is of ownership epoch 3")),
        (Some(of("uid", 3, "Owned")), Some("is of ownership epoch 3")),
        (
            Some(of("another", 1, "Owned")),
            Some("belongs to the shoot another"),
        ),
        (Some(b"{".to_vec()), Some("cannot be understood")),
    ] {
        let found = may_be_removed(content.as_deref(), &claim_of(2, "a"));
        let Some(part) = kept else {
            assert!(found.is_ok(), "{content:?}: {found:?}");
            continue;
        };
        let why = found.unwrap_err();
        assert_eq!(why.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(why.to_string().contains(part), "{why}");
        assert!(
            why.to_string().contains("force-deletion=true"),
            "{why}: what to do?"
        );
    }
}
