//! Creates BackupEntries and BackupBuckets for the seed without pause, and records the wait of each object.

use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use api::{
    gardencore::{BackupBucket, BackupBucketProvider, BackupBucketSpec, BackupEntry, BackupEntrySpec},
    meta::{LastOperation, LastOperationState, ObjectReference},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::wait::conditions,
};
use repot_tests::{lifecycle::PROJECT, watched};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{CONTROL_PLANE, LABEL, SEED, WITHIN};

/// The wait of an object.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// The awaited state: `ready` or `gone`.
    to_be: &'static str,
    from: Instant,
    took: Duration,
}

impl Wait {
    fn since(from: Instant, to_be: &'static str) -> Self {
        let took = from.elapsed();
        Self { to_be, from, took }
    }
}

/// Creates and deletes objects of both kinds, pair by pair, without pause.
pub struct Writer {
    stop: CancellationToken,
    waits: Arc<Mutex<Vec<Wait>>>,
    rounds: watch::Receiver<u64>,
    work: JoinHandle<Result<()>>,
}

impl Writer {
    #[allow(clippy::disallowed_methods)] // a test program, outside of any guard
    pub fn start(garden: Client, bucket: String) -> Self {
        let (stop, waits) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
        let (told, rounds) = watch::channel(0);
        let (stopped, book) = (stop.clone(), Arc::clone(&waits));
        let work = async move {
            for round in 1.. {
                if stopped.is_cancelled() {
                    break;
                }
                let both = tokio::try_join!(entry(&garden, &bucket, round), bucket_of(&garden, round))?;
                book.lock().unwrap().extend([both.0, both.1].concat());
                told.send_replace(round);
            }
            Ok(())
        };
        Self {
            stop,
            waits,
            rounds,
            work: tokio::spawn(work),
        }
    }

    /// Waits until so many pairs were created and deleted that began after now.
    pub async fn rounds(&mut self, count: u64) -> Result<()> {
        let wanted = *self.rounds.borrow() + 1 + count;
        let done = self.rounds.wait_for(|round| *round >= wanted);
        // `stop` reports an early end of the writer.
        done.await.context("the writer has ended")?;
        Ok(())
    }

    /// The waits since `began`, with the longest wait for each state. An earlier wait counts here if the wait
    /// ended only now, because the cause lies in the present step.
    pub fn since(&self, began: Instant) -> String {
        let waits = self.waits.lock().unwrap();
        let told = ["ready", "gone"].map(|to_be| {
            let of_step = waits
                .iter()
                .filter(|wait| wait.to_be == to_be && wait.from + wait.took >= began);
            let took: Vec<Duration> = of_step.map(|wait| wait.took).collect();
            let longest = took.iter().max().copied().unwrap_or_default().as_secs_f64();
            format!("{} objects {to_be} after {longest:.1} s at most", took.len())
        });
        told.join(", ")
    }

    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.work.await?
    }
}

async fn entry(garden: &Client, bucket: &str, round: u64) -> Result<[Wait; 2]> {
    let spec = BackupEntrySpec {
        bucket_name: bucket.to_owned(),
        seed_name: Some(SEED.to_owned()),
        shoot_ref: None,
    };
    let entry = BackupEntry::new(&format!("{CONTROL_PLANE}--{round}"), spec);
    let api = Api::namespaced(garden.clone(), PROJECT);
    made_and_deleted(&api, entry, |entry: &BackupEntry| {
        entry.status.as_ref()?.last_operation.as_ref()
    })
    .await
}

async fn bucket_of(garden: &Client, round: u64) -> Result<[Wait; 2]> {
    let credentials = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        namespace: Some(format!("seed-{SEED}")),
        name: Some("backup".to_owned()),
        ..ObjectReference::default()
    };
    let spec = BackupBucketSpec {
        provider: BackupBucketProvider {
            type_: "local".to_owned(),
            region: "local".to_owned(),
        },
        credentials_ref: Some(credentials),
        seed_name: Some(SEED.to_owned()),
        ..BackupBucketSpec::default()
    };
    let bucket = BackupBucket::new(&format!("guests-{round}"), spec);
    let api = Api::all(garden.clone());
    made_and_deleted(&api, bucket, |bucket: &BackupBucket| {
        bucket.status.as_ref()?.last_operation.as_ref()
    })
    .await
}

/// An object from the creation to the end.
async fn made_and_deleted<K>(
    api: &Api<K>,
    mut object: K,
    operation: impl Fn(&K) -> Option<&LastOperation>,
) -> Result<[Wait; 2]>
where
    K: Resource<DynamicType = ()> + Clone + Debug + serde::Serialize + DeserializeOwned + Send + 'static,
{
    labelled(object.meta_mut());
    let (name, made) = (object.name_any(), Instant::now());
    let object = api.create(&PostParams::default(), &object).await?;
    let is_ready = |found: Option<&K>| {
        let state = found.and_then(&operation).map(|operation| operation.state);
        state == Some(LastOperationState::Succeeded)
    };
    let ready = watched::until(api, &name, WITHIN, is_ready).await;
    let waited = Wait::since(made, "ready");
    if let Err(why) = ready {
        return Err(why.context(format!("is not ready: {:?}", api.get(&name).await?)));
    }
    let deleted = Instant::now();
    gone(api, &object).await?;
    Ok([waited, Wait::since(deleted, "gone")])
}
fn labelled(metadata: &mut ObjectMeta) {
    let label = LABEL
        .split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    metadata.labels = Some(label.into_iter().collect());
}

/// Deletes the selected objects one by one and waits for the end of each.
pub async fn all_gone<K>(api: &Api<K>, selected: &ListParams) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    for object in api.list(selected).await?.items {
        gone(api, &object).await?;
    }
    Ok(())
}

async fn gone<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
    match api.delete(&name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        other => other?,
    };
    watched::until(api, &name, WITHIN, conditions::is_deleted(&uid))
        .await
        .context("is not gone")?;
    Ok(())
}
