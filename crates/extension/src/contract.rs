//! ONE test of the contract for any actuator: it is driven through reconcile → migrate → restore → delete over two seeds,
//! each operation dropped at one await after the other until it gets through, and each repeated afterwards.
//!
//! After every step the world outside of the seeds is compared with what it must be: unchanged by a repetition, by
//! `migrate`, by a deletion after it (I9) and by `restore` (which takes over what exists, RX-31), and empty again after
//! `delete`. Then the object is made again and deleted by force, at last while everything outside refuses. The protocol of
//! annotations, finalizers and status is checked on the object after each step.
//!
//! A provider calls [`Contract::prove`] in an integration test with real parts on both sides.

mod forced;

use std::{
    fmt::Debug,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use api::{
    constants::{
        OPERATION, TIMESTAMP,
        operation::{MIGRATE, RECONCILE, RESTORE, WAIT_FOR_STATE},
    },
    extensions::ExtensionObject,
    meta::{LastOperationState, LastOperationType},
};
use futures::future::BoxFuture;
use kube::{Api, ResourceExt, api::PostParams};
use runtime::{Error, apply::FieldManager, clock, finalizer, wait};
use serde_json::{Value, json};

use crate::{Actuator, ExtensionReconciler, interrupt::interrupted, kind, operation::requested};

/// Looks at the world outside of the seeds, and gives a value that is the same while the same things exist there.
pub type Look<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<Value, String>> + Send + Sync + 'a>;

/// Makes the world outside refuse whatever the source asks of it, from now on.
pub type Refuse<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'a>;

/// An actuator under test.
pub struct Contract<'a, K, A> {
    /// Works in the seed from which the shoot moves.
    pub source: &'a ExtensionReconciler<K, A>,
    /// Works in the seed to which it moves.
    pub destination: &'a ExtensionReconciler<K, A>,
    /// The object as the source's gardenlet writes it, without annotations of the protocol.
    pub source_object: K,
    /// The object as the destination's gardenlet writes it.
    pub destination_object: K,
    /// What exists outside of the seeds.
    pub outside: Look<'a>,
    /// What the actuator has put into the source's namespace. `null` or empty after `migrate` (RX-20).
    pub inside_source: Look<'a>,
    /// How the cloud refuses, for example by credentials that are none. `None`: the actuator needs nothing outside.
    pub refuse: Option<Refuse<'a>>,
    /// Counts; begins at zero.
    pub dropped: AtomicUsize,
}

/// Upper bound of awaits of one operation: many more than any real one has.
const MOST_AWAITS: usize = 4000;
/// How often in a row an operation may fail by itself: a write that was under way when it was dropped may collide with the
/// next attempt, once.
const MOST_FAILURES: usize = 5;
/// How long a deleted object may take to be gone: longer than an API server needs, short for a test.
const GONE_WITHIN: Duration = Duration::from_secs(10);

impl<K, A> Contract<'_, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    /// Runs everything, and tells how often work was dropped half way. The error is a sentence that names the step and what
    /// was violated.
    pub async fn prove(&self) -> Result<usize, String> {
        let before = self.look("before the test").await?;
        let made = self.reconcile_in_source().await?;
        let inside = (self.inside_source)().await?;
        if made == before && is_empty(&inside) {
            return Err(
                "reconcile: neither `outside` nor `inside_source` sees what it made; nothing would be proven"
                    .into(),
            );
        }
        let carried = self.migrate_in_source(&made).await?;
        self.delete_in_source(&made).await?;
        self.restore_in_destination(&made, &carried).await?;
        self.delete_in_destination(&before).await?;
        self.delete_by_force(&before).await?;
        Ok(self.dropped.load(Ordering::Relaxed))
    }

    async fn reconcile_in_source(&self) -> Result<Value, String> {
        let api = self.source.api_of(&self.source_object);
        create(&api, &self.source_object, RECONCILE).await?;
        self.drive(self.source, &self.source_object, "reconcile").await?;
        let object = self
            .settled(&api, &self.source_object, LastOperationType::Create, "reconcile")
            .await?;
        let made = self.look("after reconcile").await?;
        let state = state_of(&object);
        for again in ["the second reconcile", "the third reconcile"] {
            annotate(&api, &self.source_object, RECONCILE).await?;
            self.once(self.source, &self.source_object, again).await?;
            let object = self
                .settled(&api, &self.source_object, LastOperationType::Reconcile, again)
                .await?;
            self.unchanged(&made, again).await?;
            same(&state, &state_of(&object), again, "status.state")?;
        }
        Ok(made)
    }

    async fn migrate_in_source(&self, made: &Value) -> Result<Value, String> {
        let api = self.source.api_of(&self.source_object);
        let mut state = Value::Null;
        for step in ["migrate", "the second migrate"] {
            annotate(&api, &self.source_object, MIGRATE).await?;
            self.drive(self.source, &self.source_object, step).await?;
            let object = read(&api, &self.source_object, step).await?;
            ended(&object, LastOperationType::Migrate, step)?;
            if !object.finalizers().is_empty() {
                return Err(format!("{step}: finalizers were left: {:?}", object.finalizers()));
            }
            self.unchanged(made, step).await?;
            let left = (self.inside_source)().await?;
            if !is_empty(&left) {
                return Err(format!(
                    "{step}: the namespace in the source still holds {left} (RX-20)"
                ));
            }
            state = state_of(&object);
        }
        annotate(&api, &self.source_object, RECONCILE).await?;
        self.once(self.source, &self.source_object, "reconcile after migrate")
            .await?;
        let object = read(&api, &self.source_object, "reconcile after migrate").await?;
        if last(&object) != Some((LastOperationType::Migrate, LastOperationState::Succeeded)) {
            return Err("reconcile after migrate: the object was acted on, but another seed owns it".into());
        }
        Ok(state)
    }

    /// After `migrate` a deletion asks nobody and touches nothing outside.
    async fn delete_in_source(&self, made: &Value) -> Result<(), String> {
        let api = self.source.api_of(&self.source_object);
        let name = self.source_object.name_any();
        runtime::apply::delete(&api, &name)
            .await
            .map_err(|e| e.to_string())?;
        self.once(self.source, &self.source_object, "delete after migrate")
            .await?;
        wait::until_gone(&api, &name, GONE_WITHIN)
            .await
            .map_err(|e| format!("delete after migrate: {e}"))?;
        self.unchanged(made, "delete after migrate").await
    }

    /// The three steps of a gardenlet: object that nobody touches, state, request.
    async fn restore_in_destination(&self, made: &Value, carried: &Value) -> Result<(), String> {
        let api = self.destination.api_of(&self.destination_object);
        create(&api, &self.destination_object, WAIT_FOR_STATE).await?;
        self.once(self.destination, &self.destination_object, "wait-for-state")
            .await?;
        let object = read(&api, &self.destination_object, "wait-for-state").await?;
        if !object.finalizers().is_empty()
            || object
                .default_status()
                .is_some_and(|s| s.last_operation.is_some())
        {
            return Err("wait-for-state: the object was touched".into());
        }
        if !carried.is_null() {
            let patch = json!({"state": carried});
            GARDENLET
                .merge_status(&api, &object.name_any(), &patch)
                .await
                .map_err(|e| e.to_string())?;
        }
        for step in ["restore", "the second restore"] {
            annotate(&api, &self.destination_object, RESTORE).await?;
            self.drive(self.destination, &self.destination_object, step)
                .await?;
            let object = self
                .settled(&api, &self.destination_object, LastOperationType::Restore, step)
                .await?;
            self.unchanged(made, step).await?;
            same(carried, &state_of(&object), step, "status.state")?;
        }
        annotate(&api, &self.destination_object, RECONCILE).await?;
        self.once(
            self.destination,
            &self.destination_object,
            "reconcile after restore",
        )
        .await?;
        self.settled(
            &api,
            &self.destination_object,
            LastOperationType::Reconcile,
            "reconcile after restore",
        )
        .await?;
        self.unchanged(made, "reconcile after restore").await
    }

    async fn delete_in_destination(&self, before: &Value) -> Result<(), String> {
        let api = self.destination.api_of(&self.destination_object);
        let name = self.destination_object.name_any();
        // A finalizer of the test keeps the object, so that `delete` can be repeated after it succeeded.
        let object = read(&api, &self.destination_object, "delete").await?;
        finalizer::ensure(&api, &object, KEEP)
            .await
            .map_err(|e| e.to_string())?;
        runtime::apply::delete(&api, &name)
            .await
            .map_err(|e| e.to_string())?;
        self.drive(self.destination, &self.destination_object, "delete")
            .await?;
        let object = read(&api, &self.destination_object, "delete").await?;
        ended(&object, LastOperationType::Delete, "delete")?;
        if object.finalizers() != [KEEP] {
            return Err(format!("delete: finalizers are {:?}", object.finalizers()));
        }
        self.unchanged(before, "delete").await?;
        // As if the process had ended before it could take its finalizer away.
        let both = json!({"metadata": {"finalizers": [KEEP, kind::finalizer::<K>()]}});
        // A finalizer cannot be added to an object that is being deleted; an API server that allows it lets us repeat.
        if GARDENLET.merge(&api, &name, &both).await.is_ok() {
            self.once(self.destination, &self.destination_object, "the second delete")
                .await?;
        }
        let object = read(&api, &self.destination_object, "the second delete").await?;
        finalizer::remove(&api, &object, KEEP)
            .await
            .map_err(|e| e.to_string())?;
        wait::until_gone(&api, &name, GONE_WITHIN)
            .await
            .map_err(|e| format!("delete: {e}"))?;
        self.unchanged(before, "the second delete").await
    }

    /// Runs one operation, dropped at ever later awaits, until it gets through.
    async fn drive(&self, side: &ExtensionReconciler<K, A>, object: &K, step: &str) -> Result<(), String> {
        let mut awaits = 1;
        let mut failures = 0;
        while awaits < MOST_AWAITS {
            match interrupted(side.run(object), awaits).await {
                None => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                    failures = 0;
                }
                Some(Ok(runtime::Next::Change)) => return self.once(side, object, step).await,
                Some(Ok(runtime::Next::After(_))) => {}
                Some(Err(error @ (Error::Transient(_) | Error::NotReady { .. })))
                    if failures < MOST_FAILURES =>
                {
                    failures += 1;
                    tracing::debug!(%error, step, "an attempt after an interrupted one failed");
                }
                Some(Err(error)) => return Err(format!("{step}: {error}")),
            }
            // One by one at first, where the protocol's own writes are, then in growing steps.
            awaits += 1 + awaits / 10;
        }
        Err(format!("{step}: did not get through in {MOST_AWAITS} awaits"))
    }

    async fn once(&self, side: &ExtensionReconciler<K, A>, object: &K, step: &str) -> Result<(), String> {
        side.run(object)
            .await
            .map(|_| ())
            .map_err(|e| format!("{step}: {e}"))
    }

    async fn settled(
        &self,
        api: &Api<K>,
        object: &K,
        type_: LastOperationType,
        step: &str,
    ) -> Result<K, String> {
        let object = read(api, object, step).await?;
        ended(&object, type_, step)?;
        if object.finalizers() != [kind::finalizer::<K>()] {
            return Err(format!("{step}: finalizers are {:?}", object.finalizers()));
        }
        Ok(object)
    }

    async fn look(&self, step: &str) -> Result<Value, String> {
        (self.outside)()
            .await
            .map_err(|e| format!("{step}: the world outside could not be looked at: {e}"))
    }

    async fn unchanged(&self, expected: &Value, step: &str) -> Result<(), String> {
        same(expected, &self.look(step).await?, step, "the world outside")
    }
}

/// The test plays a gardenlet.
const GARDENLET: FieldManager = FieldManager("gardenlet");

/// A finalizer of the test itself.
const KEEP: &str = "test.extensions.gardener.cloud/keep";

/// The operation has ended well and says so in the way a gardenlet checks.
fn ended<K: ExtensionObject>(object: &K, type_: LastOperationType, step: &str) -> Result<(), String> {
    if last(object) != Some((type_, LastOperationState::Succeeded)) {
        return Err(format!(
            "{step}: lastOperation is {:?}, not {type_:?} Succeeded",
            last(object)
        ));
    }
    let Some(status) = object.default_status() else {
        return Err(format!("{step}: no status"));
    };
    if status.last_error.is_some() {
        return Err(format!("{step}: lastError was left: {:?}", status.last_error));
    }
    if status.observed_generation != object.meta().generation {
        return Err(format!(
            "{step}: observedGeneration is {:?}",
            status.observed_generation
        ));
    }
    if let Some(request) = requested(object) {
        return Err(format!(
            "{step}: the annotation {OPERATION}={request} was left (RX-13)"
        ));
    }
    let asked = object
        .annotations()
        .get(TIMESTAMP)
        .and_then(|t| t.parse::<jiff::Timestamp>().ok());
    let answered = status
        .last_operation
        .as_ref()
        .map(|operation| operation.last_update_time.0);
    if asked > answered {
        return Err(format!(
            "{step}: lastUpdateTime {answered:?} is before the request of {asked:?}"
        ));
    }
    Ok(())
}

fn last<K: ExtensionObject>(object: &K) -> Option<(LastOperationType, LastOperationState)> {
    object
        .default_status()?
        .last_operation
        .as_ref()
        .map(|last| (last.type_, last.state))
}

fn state_of<K: ExtensionObject>(object: &K) -> Value {
    object
        .default_status()
        .and_then(|status| status.state.clone())
        .map_or(Value::Null, |state| state.0)
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || *value == json!([]) || *value == json!({})
}

fn same(expected: &Value, actual: &Value, step: &str, what: &str) -> Result<(), String> {
    if expected == actual {
        Ok(())
    } else {
        Err(format!("{step}: {what} was {expected} and is {actual}"))
    }
}

async fn create<K: ExtensionObject>(api: &Api<K>, object: &K, operation: &str) -> Result<(), String> {
    let mut object = object.clone();
    object
        .annotations_mut()
        .insert(OPERATION.into(), operation.into());
    object
        .annotations_mut()
        .insert(TIMESTAMP.into(), clock::now_rfc3339_nano());
    api.create(&PostParams::default(), &object)
        .await
        .map(|_| ())
        .map_err(|e| format!("could not be created: {e}"))
}

async fn annotate<K: ExtensionObject>(api: &Api<K>, object: &K, operation: &str) -> Result<(), String> {
    let body =
        json!({"metadata": {"annotations": {OPERATION: operation, TIMESTAMP: clock::now_rfc3339_nano()}}});
    GARDENLET
        .merge(api, &object.name_any(), &body)
        .await
        .map(|_| ())
        .map_err(|e| e.to_string())
}

async fn read<K: ExtensionObject>(api: &Api<K>, object: &K, step: &str) -> Result<K, String> {
    api.get(&object.name_any())
        .await
        .map_err(|e| format!("{step}: the object could not be read: {e}"))
}
