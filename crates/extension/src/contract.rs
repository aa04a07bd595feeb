//! ONE test of the contract for any actuator: it is driven through reconcile → migrate → restore → delete
//! over two seeds.
//!
//! Each operation is disturbed until it gets through: dropped at one await after the other, as a process that
//! is killed leaves it, and with one request after the other failing; each attempt is by a new reconciler, as
//! after a restart. Then it is repeated, by one that lives on. After every step the world outside of the
//! seeds is compared with what it must be: unchanged by a repetition, by `migrate`, by a deletion after it
//! (I9) and by `restore` (which takes over what exists, RX-31), and empty again after `delete`, which is
//! called again on the same object. Then the object is made again, while the shoot is lost at one step after
//! the other (R17-60..62), which must end the call; and deleted by force, at last while everything outside
//! refuses. The protocol of annotations, finalizers and status is checked on the object after each step, and
//! what `migrate` leaves in the status is all that the destination gets (RX-11, RX-33).
//!
//! A provider calls [`Contract::prove`] in an integration test with real parts on both sides. What is
//! violated is said in a sentence that begins with the step.

mod carried;
mod drive;
mod fault;
mod forced;
mod lost;
mod played;
mod protocol;

use std::{
    fmt::Debug,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use api::{
    constants::operation::{MIGRATE, RECONCILE, RESTORE, WAIT_FOR_STATE},
    extensions::ExtensionObject,
    meta::{LastOperationState, LastOperationType},
};
use futures::future::BoxFuture;
use kube::ResourceExt;
use runtime::wait;
use serde_json::{Value, json};

use crate::{Actuator, ExtensionReconciler, kind};

use carried::{Carried, resources_of, state_of};
pub use drive::run_until_ready;
use played::Played;
use protocol::{GARDENLET, annotate, create, ended, last, read};

/// Looks at the world outside of the seeds, and gives a value that is the same while the same things exist
/// there.
pub type Look<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<Value, String>> + Send + Sync + 'a>;

/// Makes the world outside refuse whatever the source asks of it, from now on.
pub type Refuse<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'a>;

/// Makes a reconciler that has no memory of an earlier one, as a process that is started again does.
type Make<'a, K, A> = Box<dyn Fn() -> ExtensionReconciler<K, A> + Send + Sync + 'a>;

/// An actuator under test.
pub struct Contract<'a, K, A> {
    /// Works in the seed from which the shoot moves.
    source: Make<'a, K, A>,
    /// Works in the seed to which it moves.
    destination: Make<'a, K, A>,
    source_object: K,
    destination_object: K,
    outside: Look<'a>,
    inside_source: Look<'a>,
    inside_destination: Look<'a>,
    refuse: Option<Refuse<'a>>,
    carried: Option<Look<'a>>,
    dropped: AtomicUsize,
    failed: AtomicUsize,
}

/// How much was disturbed. A proof in which little was is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How often work was dropped half way.
    pub dropped: usize,
    /// How many requests failed.
    pub failed: usize,
}

/// How long a deleted object may take to be gone: longer than an API server needs where nobody gets a turn
/// for a while.
const GONE_WITHIN: Duration = Duration::from_secs(90);

impl<'a, K, A> Contract<'a, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    /// `source` and `destination` make a reconciler for either seed, with nothing in it that an earlier one
    /// remembers. `objects`: as the gardenlets of source and destination write them, without annotations of
    /// the protocol.
    #[must_use]
    pub fn new<S, D>(source: S, destination: D, objects: [K; 2]) -> Self
    where
        S: Fn() -> ExtensionReconciler<K, A> + Send + Sync + 'a,
        D: Fn() -> ExtensionReconciler<K, A> + Send + Sync + 'a,
    {
        let [source_object, destination_object] = objects;
        let nothing = || -> Look<'a> { Box::new(|| Box::pin(std::future::ready(Ok(Value::Null)))) };
        Self {
            source: Box::new(source),
            destination: Box::new(destination),
            source_object,
            destination_object,
            outside: nothing(),
            inside_source: nothing(),
            inside_destination: nothing(),
            refuse: None,
            carried: None,
            dropped: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
        }
    }

    /// What exists outside of the seeds.
    #[must_use]
    pub fn outside(mut self, outside: Look<'a>) -> Self {
        self.outside = outside;
        self
    }

    /// What the actuator has put into the source's namespace. `null` or empty after `migrate` (RX-20).
    #[must_use]
    pub fn inside_source(mut self, inside: Look<'a>) -> Self {
        self.inside_source = inside;
        self
    }

    /// The same in the destination. `null` or empty after `delete`.
    #[must_use]
    pub fn inside_destination(mut self, inside: Look<'a>) -> Self {
        self.inside_destination = inside;
        self
    }

    /// How the cloud refuses, for example by credentials that are none. Without: the actuator needs nothing
    /// outside.
    #[must_use]
    pub fn refuse(mut self, refuse: Refuse<'a>) -> Self {
        self.refuse = Some(refuse);
        self
    }

    /// What the gardenlet collects itself after `migrate`, and gives the destination as `status.state`: the
    /// state of machines. It always says something, also that there are none: a restore without it must be
    /// refused.
    #[must_use]
    pub fn carried_apart(mut self, carried: Look<'a>) -> Self {
        self.carried = Some(carried);
        self
    }

    /// Runs everything, and tells how much was disturbed.
    ///
    /// # Errors
    /// A sentence that names the step and what was violated.
    pub async fn prove(&self) -> Result<Proof, String> {
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
        Ok(Proof {
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        })
    }

    async fn reconcile_in_source(&self) -> Result<Value, String> {
        let lasting = (self.source)();
        let api = lasting.api_of(&self.source_object);
        create(&api, &self.source_object, RECONCILE).await?;
        self.drive(&self.source, &self.source_object, "reconcile").await?;
        let object = self
            .settled(&api, &self.source_object, LastOperationType::Create, "reconcile")
            .await?;
        let made = self.look("after reconcile").await?;
        let (state, resources) = (state_of(&object), resources_of(&object));
        for again in ["the second reconcile", "the third reconcile"] {
            annotate(&api, &self.source_object, RECONCILE).await?;
            // What exists must also survive an attempt that fails.
            if again == "the second reconcile" {
                self.drive(&self.source, &self.source_object, again).await?;
            } else {
                self.once(&lasting, &self.source_object, again).await?;
            }
            let object = self
                .settled(&api, &self.source_object, LastOperationType::Reconcile, again)
                .await?;
            self.unchanged(&made, again).await?;
            same(&state, &state_of(&object), again, "status.state")?;
            same(
                &json!(resources),
                &json!(resources_of(&object)),
                again,
                "status.resources",
            )?;
        }
        Ok(made)
    }

    /// R7-34: the seed is cleaned up, no finalizer is left, nothing outside is touched, and nothing is
    /// reconciled afterwards.
    async fn migrate_in_source(&self, made: &Value) -> Result<Carried, String> {
        // Exactly when the shoot is lost this must go on (RX-42).
        let lost: Make<'_, K, A> = Box::new(|| (self.source)().owned_by(Played::lost().checks()));
        let lasting = lost();
        let api = lasting.api_of(&self.source_object);
        let before = state_of(&self.there(&api, &self.source_object, "migrate").await?);
        let mut state: Option<Value> = None;
        for step in ["migrate", "the second migrate"] {
            annotate(&api, &self.source_object, MIGRATE).await?;
            self.drive(&lost, &self.source_object, step).await?;
            let object = read(&api, &self.source_object, step).await?.ok_or_else(|| {
                format!("{step}: the object is gone, and with it the last state (RX-11): an actuator must not delete it")
            })?;
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
            if let Some(state) = &state {
                same(state, &state_of(&object), step, "status.state (RX-11)")?;
            }
            if state_of(&object).is_null() && !before.is_null() {
                return Err(format!(
                    "{step}: status.state was {before} and is gone: nothing can be restored from it (RX-11)"
                ));
            }
            state = Some(state_of(&object));
        }
        annotate(&api, &self.source_object, RECONCILE).await?;
        self.once(&lasting, &self.source_object, "reconcile after migrate")
            .await?;
        let object = self
            .there(&api, &self.source_object, "reconcile after migrate")
            .await?;
        if last(&object) != Some((LastOperationType::Migrate, LastOperationState::Succeeded)) {
            return Err("reconcile after migrate: the object was acted on, but another seed owns it".into());
        }
        let apart = match &self.carried {
            Some(collect) => {
                let collected = collect().await;
                Some(
                    collected
                        .map_err(|e| format!("migrate: what is carried apart could not be collected: {e}"))?,
                )
            }
            None => None,
        };
        Carried::of(lasting.seed(), &object, apart).await
    }

    /// After `migrate` a deletion asks nobody and touches nothing outside.
    async fn delete_in_source(&self, made: &Value) -> Result<(), String> {
        let lasting = (self.source)();
        let api = lasting.api_of(&self.source_object);
        let name = self.source_object.name_any();
        runtime::apply::delete(&api, &name)
            .await
            .map_err(|e| e.to_string())?;
        self.once(&lasting, &self.source_object, "delete after migrate")
            .await?;
        wait::until_gone(&api, &name, GONE_WITHIN)
            .await
            .map_err(|e| format!("delete after migrate: {e}"))?;
        self.unchanged(made, "delete after migrate").await
    }

    /// The three steps of a gardenlet: object that nobody touches, state, request.
    async fn restore_in_destination(&self, made: &Value, carried: &Carried) -> Result<(), String> {
        let lasting = (self.destination)();
        let api = lasting.api_of(&self.destination_object);
        create(&api, &self.destination_object, WAIT_FOR_STATE).await?;
        let step = "wait-for-state";
        self.once(&lasting, &self.destination_object, step).await?;
        let object = self.there(&api, &self.destination_object, step).await?;
        if !object.finalizers().is_empty()
            || object
                .default_status()
                .is_some_and(|s| s.last_operation.is_some())
        {
            return Err("wait-for-state: the object was touched".into());
        }
        if self.carried.is_some() {
            self.refuses_to_begin_empty(&lasting, &object, made).await?;
        }
        let status = carried.put(lasting.seed(), &object).await?;
        if status != json!({}) {
            GARDENLET
                .merge_status(&api, &object.name_any(), &status)
                .await
                .map_err(|e| e.to_string())?;
        }
        // What is carried apart is used up; of what stood in the status nothing may be lost.
        let expected = if self.carried.is_some() {
            &Value::Null
        } else {
            &carried.state
        };
        for step in ["restore", "the second restore"] {
            annotate(&api, &self.destination_object, RESTORE).await?;
            self.drive(&self.destination, &self.destination_object, step)
                .await?;
            let object = self
                .settled(&api, &self.destination_object, LastOperationType::Restore, step)
                .await?;
            self.unchanged(made, step).await?;
            same(expected, &state_of(&object), step, "status.state")?;
        }
        let step = "reconcile after restore";
        annotate(&api, &self.destination_object, RECONCILE).await?;
        self.once(&lasting, &self.destination_object, step).await?;
        self.settled(&api, &self.destination_object, LastOperationType::Reconcile, step)
            .await?;
        self.unchanged(made, step).await
    }

    /// What a state stands for would be made a second time without it.
    async fn refuses_to_begin_empty(
        &self,
        by: &ExtensionReconciler<K, A>,
        object: &K,
        made: &Value,
    ) -> Result<(), String> {
        let (step, api) = ("restore without its state", by.api_of(object));
        annotate(&api, object, RESTORE).await?;
        match by.run(object).await {
            Err(error) if error.class() == "Config" => {}
            Err(error) => return Err(format!("{step}: who has to act is not told: {error}")),
            Ok(_) => {
                return Err(format!(
                    "{step}: it went on, as if there had been nothing (RX-31)"
                ));
            }
        }
        self.unchanged(made, step).await
    }

    async fn delete_in_destination(&self, before: &Value) -> Result<(), String> {
        let api = (self.destination)().api_of(&self.destination_object);
        let name = self.destination_object.name_any();
        runtime::apply::delete(&api, &name)
            .await
            .map_err(|e| e.to_string())?;
        self.delete_twice(
            &self.destination,
            &self.destination_object,
            "delete",
            Some(before),
        )
        .await?;
        wait::until_gone(&api, &name, GONE_WITHIN)
            .await
            .map_err(|e| format!("delete: {e}"))?;
        let inside = (self.inside_destination)().await?;
        if !is_empty(&inside) {
            return Err(format!("delete: the namespace still holds {inside}"));
        }
        Ok(())
    }

    async fn settled(
        &self,
        api: &kube::Api<K>,
        object: &K,
        type_: LastOperationType,
        step: &str,
    ) -> Result<K, String> {
        let object = self.there(api, object, step).await?;
        ended(&object, type_, step)?;
        if object.finalizers() != [kind::finalizer_of(&object)] {
            return Err(format!("{step}: finalizers are {:?}", object.finalizers()));
        }
        Ok(object)
    }

    async fn there(&self, api: &kube::Api<K>, object: &K, step: &str) -> Result<K, String> {
        read(api, object, step)
            .await?
            .ok_or_else(|| format!("{step}: the object is gone"))
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
