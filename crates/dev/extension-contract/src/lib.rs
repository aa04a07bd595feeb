//! The contract test for any actuator, for authors of providers: the test drives the actuator over two seeds,
//! through reconcile → migrate → restore → delete. A provider has this crate as a dev-dependency, and no
//! process contains the crate. docs/understand/adding-an-actuator.md shows a complete test.
//!
//! Each operation is disturbed until the operation succeeds. The test drops the operation at each await in
//! turn, as a killed process would, and lets each request fail in turn. Each attempt uses a new reconciler,
//! as after a restart. Then a lasting reconciler repeats the operation.
//!
//! After every step, the test compares the outside systems with the expected state:
//! - unchanged by a repetition, by `migrate`, and by a deletion after `migrate` (I9).
//! - unchanged by `restore`, because `restore` adopts existing resources (RX-31).
//! - empty again after `delete`; `delete` is called a second time on the same object.
//!
//! Then the object is created again while the shoot is lost at each step in turn (R17-60..62); a loss must
//! end the call. Then the object is deleted by force, finally while all outside systems refuse. After each
//! step, the test checks the protocol of annotations, finalizers and status. The destination gets only the
//! status that `migrate` left (RX-11, RX-33).
//!
//! A provider calls [`Contract::prove`] in an integration test with real components on both sides. A
//! violation is reported as a sentence that begins with the step. Where an actuator needs further processes
//! of a seed, [`machines`] is a fake manager of machines, and [`shoot_objects`] a fake resource-manager.

mod carried;
mod drive;
mod fake_ownership;
mod fault;
mod forced;
mod interrupt;
mod lost;
pub mod machines;
mod protocol;
pub mod shoot_objects;

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
use extension::{Actuator, ExtensionReconciler, kind};
use futures::future::BoxFuture;
use kube::ResourceExt;
use runtime::client::wait;
use serde_json::{Value, json};

use carried::{Carried, resources_of, state_of};
pub use drive::run_until_ready;
use fake_ownership::FakeOwnership;
use protocol::{GARDENLET, annotate, create, ended, last, read};

/// Returns a value for the state of the outside systems. Equal values mean that the same resources exist.
pub type OutsideReader<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<Value, String>> + Send + Sync + 'a>;

/// Makes the outside systems refuse every request of the source from now on.
pub type Refuse<'a> = Box<dyn Fn() -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'a>;

/// Creates a reconciler without memory of an earlier reconciler, as a restart of the process does.
type Make<'a, K, A> = Box<dyn Fn() -> ExtensionReconciler<K, A> + Send + Sync + 'a>;

/// An actuator under test.
pub struct Contract<'a, K, A> {
    /// Creates the reconciler in the source seed.
    source: Make<'a, K, A>,
    /// Creates the reconciler in the destination seed.
    destination: Make<'a, K, A>,
    source_object: K,
    destination_object: K,
    outside: OutsideReader<'a>,
    inside_source: OutsideReader<'a>,
    inside_destination: OutsideReader<'a>,
    refuse: Option<Refuse<'a>>,
    carried: Option<OutsideReader<'a>>,
    dropped: AtomicUsize,
    failed: AtomicUsize,
}

/// The number of disturbances. A proof with few disturbances proves little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// How often work was dropped half way.
    pub dropped: usize,
    /// How many requests failed.
    pub failed: usize,
}

/// Timeout for the end of a deleted object: longer than an API server needs on a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(90);

impl<'a, K, A> Contract<'a, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    /// `source` and `destination` create a reconciler for the respective seed, without memory of an earlier
    /// reconciler. `objects`: as the gardenlets of source and destination write the objects, without
    /// annotations of the protocol.
    #[must_use]
    pub fn new<S, D>(source: S, destination: D, objects: [K; 2]) -> Self
    where
        S: Fn() -> ExtensionReconciler<K, A> + Send + Sync + 'a,
        D: Fn() -> ExtensionReconciler<K, A> + Send + Sync + 'a,
    {
        let [source_object, destination_object] = objects;
        let nothing = || -> OutsideReader<'a> { Box::new(|| Box::pin(std::future::ready(Ok(Value::Null)))) };
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

    /// Observes the resources in the outside systems.
    #[must_use]
    pub fn outside(mut self, outside: OutsideReader<'a>) -> Self {
        self.outside = outside;
        self
    }

    /// Observes the actuator's objects in the source's namespace. `null` or empty after `migrate` (RX-20).
    #[must_use]
    pub fn inside_source(mut self, inside: OutsideReader<'a>) -> Self {
        self.inside_source = inside;
        self
    }

    /// Observes the actuator's objects in the destination's namespace. `null` or empty after `delete`.
    #[must_use]
    pub fn inside_destination(mut self, inside: OutsideReader<'a>) -> Self {
        self.inside_destination = inside;
        self
    }

    /// Makes the cloud refuse, for example by invalid credentials. Without `refuse`, the actuator needs no
    /// outside system.
    #[must_use]
    pub fn refuse(mut self, refuse: Refuse<'a>) -> Self {
        self.refuse = Some(refuse);
        self
    }

    /// The state that the gardenlet collects after `migrate` and writes as `status.state` in the destination:
    /// the state of machines. The state is never absent, not even without machines: a restore without this
    /// state must be refused.
    #[must_use]
    pub fn carried_apart(mut self, carried: OutsideReader<'a>) -> Self {
        self.carried = Some(carried);
        self
    }

    /// Runs all steps, and returns the number of disturbances.
    ///
    /// # Errors
    /// A sentence with the step and the violation.
    pub async fn prove(&self) -> Result<Proof, String> {
        let before = self.read_outside("before the test").await?;
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
        let made = self.read_outside("after reconcile").await?;
        let (state, resources) = (state_of(&object), resources_of(&object));
        for again in ["the second reconcile", "the third reconcile"] {
            annotate(&api, &self.source_object, RECONCILE).await?;
            // Existing resources must also survive a failing attempt.
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

    /// R7-34: the seed is cleaned up, no finalizer is left, no outside resource is touched, and no reconcile
    /// runs afterwards.
    async fn migrate_in_source(&self, made: &Value) -> Result<Carried, String> {
        // Exactly when the shoot is lost, `migrate` must work (RX-42).
        let lost: Make<'_, K, A> = Box::new(|| (self.source)().owned_by(FakeOwnership::lost().checks()));
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
        Carried::from_object(lasting.seed(), &object, apart).await
    }

    /// After `migrate`, a deletion needs no owner check and touches no outside resource.
    async fn delete_in_source(&self, made: &Value) -> Result<(), String> {
        let lasting = (self.source)();
        let api = lasting.api_of(&self.source_object);
        let name = self.source_object.name_any();
        runtime::client::apply::delete(&api, &name)
            .await
            .map_err(|e| e.to_string())?;
        self.once(&lasting, &self.source_object, "delete after migrate")
            .await?;
        wait::until_gone(&api, &name, GONE_WITHIN)
            .await
            .map_err(|e| format!("delete after migrate: {e}"))?;
        self.unchanged(made, "delete after migrate").await
    }

    /// The three steps of a gardenlet: create the object with `wait-for-state`, write the state, request the
    /// restore.
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
        let status = carried.create_objects(lasting.seed(), &object).await?;
        if status != json!({}) {
            GARDENLET
                .merge_status(&api, &object.name_any(), &status)
                .await
                .map_err(|e| e.to_string())?;
        }
        // State that is carried apart is consumed; state from the status must stay complete.
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

    /// Without the state, the actuator would create the existing resources a second time.
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
        runtime::client::apply::delete(&api, &name)
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

    async fn read_outside(&self, step: &str) -> Result<Value, String> {
        (self.outside)()
            .await
            .map_err(|e| format!("{step}: the world outside could not be looked at: {e}"))
    }

    async fn unchanged(&self, expected: &Value, step: &str) -> Result<(), String> {
        same(
            expected,
            &self.read_outside(step).await?,
            step,
            "the world outside",
        )
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
