//! Disturbs an operation until the operation succeeds.

use std::{fmt::Debug, sync::atomic::Ordering, time::Duration};

use api::{extensions::ExtensionObject, meta::LastOperationType};
use extension::{Actuator, ExtensionReconciler};
use kube::{Api, ResourceExt};
use runtime::{Error, controller::Next};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{Contract, Make, fault::Fault, interrupt::interrupted, protocol::ended};

/// Upper bound for the awaits of an operation: many more than any real operation has.
const MOST_AWAITS: usize = 4000;
/// Maximum consecutive failures of an operation without a disturbance: a write of the dropped attempt may
/// conflict with the next attempt, once.
const MOST_FAILURES: usize = 5;

/// About as many awaits as a request has at least.
const AWAITS_OF_A_REQUEST: usize = 3;
/// Timeout for an awaited event: further processes cause the event, and may be slow on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(180);
/// Pause between two calls of an operation that waits.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Marker in the name of a step with a forced deletion.
const FORCED: &str = "forced";

/// How an attempt ended.
enum Attempt {
    /// The attempt was dropped, or has to be called again.
    Again,
    /// A request of the attempt failed.
    Failed,
    /// The operation is complete.
    Through,
}

/// Runs an operation like a controller, until no event is awaited: on a slow machine, a single run ends
/// before the event.
///
/// # Errors
/// The error of the last call.
pub async fn run_until_ready<K, A>(by: &ExtensionReconciler<K, A>, object: &K) -> runtime::Result<Next>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    let end = Instant::now() + READY_WITHIN;
    loop {
        // Boxed: the futures of operations are large.
        match Box::pin(by.run(object)).await {
            Err(Error::NotReady { .. }) if Instant::now() < end => sleep(RETRY_PAUSE).await,
            outcome => return outcome,
        }
    }
}

impl<K, A> Contract<'_, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    /// Disturbs an operation until the operation succeeds, then runs the operation once more. The
    /// disturbances alternate between a drop at ever later awaits and a failure of ever later requests, each
    /// with a new reconciler.
    pub(super) async fn drive(&self, make: &Make<'_, K, A>, object: &K, step: &str) -> Result<(), String> {
        self.disturb(make, object, step, None).await?;
        self.once(&make(), object, step).await
    }

    /// Deletes, and deletes again: as if the process had ended each time before the removal of the finalizer.
    /// A resource that is already gone must be success. `before`: the expected state of the outside systems
    /// afterwards, if known. No request of a forced deletion is made to fail, because a forced deletion
    /// retries for longer than a test lasts.
    pub(super) async fn delete_twice(
        &self,
        make: &Make<'_, K, A>,
        object: &K,
        step: &str,
        before: Option<&Value>,
    ) -> Result<(), String> {
        let api = make().api_of(object);
        let path = format!("{}/{}", api.resource_url(), object.name_any());
        self.disturb(make, object, step, Some(path.clone())).await?;
        self.is_deleted(&api, object, step, before).await?;
        let again = format!("the second {step}");
        let fault = Fault::new(0, Some(path));
        let repeated = make().by_way_of(|client| fault.client(client)).run(object).await;
        if !fault.has_held() {
            let why = repeated.err().map(|error| error.to_string());
            return Err(format!(
                "{again}: that all is gone already is no success: {}",
                why.unwrap_or_default()
            ));
        }
        self.is_deleted(&api, object, &again, before).await?;
        self.once(&make(), object, &again).await
    }

    async fn is_deleted(
        &self,
        api: &Api<K>,
        object: &K,
        step: &str,
        before: Option<&Value>,
    ) -> Result<(), String> {
        let object = self.there(api, object, step).await?;
        ended(&object, LastOperationType::Delete, step)?;
        match before {
            Some(before) => self.unchanged(before, step).await,
            None => Ok(()),
        }
    }

    /// `held`: path of an object that may not be changed, except for the status. An attempt to change the
    /// object ends the operation successfully.
    pub(super) async fn disturb(
        &self,
        make: &Make<'_, K, A>,
        object: &K,
        step: &str,
        held: Option<String>,
    ) -> Result<(), String> {
        let (mut awaits, mut request, mut failures) = (1, 1, 0);
        while awaits < MOST_AWAITS {
            // A request happens only after some awaits; a failure before would drop the attempt twice at the
            // same await.
            let fails = !step.contains(FORCED) && awaits >= AWAITS_OF_A_REQUEST * request;
            for nth in [Some(0), fails.then_some(request)].into_iter().flatten() {
                let fault = Fault::new(nth, held.clone());
                let reconciler = make().by_way_of(|client| fault.client(client));
                let ended = interrupted(reconciler.run(object), awaits).await;
                match self.judge(ended, &fault, &mut failures, step)? {
                    Attempt::Through => return Ok(()),
                    Attempt::Failed => request += 1,
                    Attempt::Again => {}
                }
            }
            // First each await in turn, since the protocol's own writes are there, then in growing steps.
            awaits += 1 + awaits / 10;
        }
        Err(format!("{step}: did not get through in {MOST_AWAITS} awaits"))
    }

    fn judge(
        &self,
        ended: Option<runtime::Result<Next>>,
        fault: &Fault,
        failures: &mut usize,
        step: &str,
    ) -> Result<Attempt, String> {
        if fault.has_held() {
            return Ok(Attempt::Through);
        }
        if ended.is_some() && fault.was_met() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            *failures = 0;
            return Ok(Attempt::Failed);
        }
        match ended {
            None => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                *failures = 0;
                Ok(Attempt::Again)
            }
            Some(Ok(Next::Change)) => Ok(Attempt::Through),
            Some(Ok(Next::After(_))) => Ok(Attempt::Again),
            Some(Err(error @ (Error::Transient(_) | Error::NotReady { .. })))
                if *failures < MOST_FAILURES =>
            {
                *failures += 1;
                tracing::debug!(%error, step, "an attempt after a disturbed one failed");
                Ok(Attempt::Again)
            }
            Some(Err(error)) => Err(format!("{step}: {error}")),
        }
    }

    /// Runs an operation without a disturbance.
    pub(super) async fn once(
        &self,
        by: &ExtensionReconciler<K, A>,
        object: &K,
        step: &str,
    ) -> Result<(), String> {
        run_until_ready(by, object)
            .await
            .map(|_| ())
            .map_err(|e| format!("{step}: {e}"))
    }
}
