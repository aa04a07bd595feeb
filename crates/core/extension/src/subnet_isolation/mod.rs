//! SubnetIsolations, for any provider. The provider names the zone and closes and opens the network
//! ([`ZoneNetwork`]). This module waits and keeps the state, for all providers (GEP-21, RZ-30..35).
//!
//! Promises
//! - `reconcile` waits until no machine and no MachineDeployment of the zone is left. The wait ends at the
//!   deadline that the gardenlet has recorded on the object. Without a deadline, the wait ends
//!   [`CLOSE_WITHIN`] after the first reconciliation, in whichever process and seed. Then the network is
//!   closed regardless (RZ-32). `reconcile` succeeds when the network is closed and the zone is empty. The
//!   status names the remaining machines. A machine that stays beyond the limits of a Worker
//!   ([`crate::worker`]) is an error that needs a person. The operation is retried, and succeeds when the
//!   machine is gone.
//! - The former state of the network is in `status.state` before the first change, and
//!   `status.providerStatus` shows the former state (RZ-31, RZ-34). A process that is killed right after a
//!   change loses no state. With a recorded state, no wait happens any more: a foreign change of a closed
//!   network is fixed immediately.
//! - `migrate` changes nothing: the network stays closed, and the state goes to the destination seed.
//!   `restore` reads the state and reconciles, so that the network stays closed throughout.
//! - `delete` opens the network, and removes only the provider's own resources (RZ-33).
//! - `status.providerStatus.networkClosed` is true as soon as the provider confirms the closed network, also
//!   while the operation waits for remaining machines (RZ-34).
//! - A zone ID that now resolves to a different zone is refused: two zones are never closed.
//! - A hibernated shoot has no machines; the zone is closed regardless.

mod machines;
mod network;
mod state;

use api::{
    extensions::{NETWORK_CLOSED, SubnetIsolation},
    meta::ErrorCode,
};
use async_trait::async_trait;
use runtime::{Error, Result, clock};
use serde_json::Value;
use tracing::warn;

pub use crate::worker::close_deadline::CLOSE_WITHIN;
pub use network::ZoneNetwork;

use crate::{Actuator, Context, Outcome, Released, forced, worker::close_deadline::CloseDeadline};
use machines::ZoneMachines;
use state::State;

/// Looks after SubnetIsolations.
pub struct SubnetIsolationActuator<N>(pub N);

#[async_trait]
impl<N: ZoneNetwork> Actuator<SubnetIsolation> for SubnetIsolationActuator<N> {
    const NAME: &'static str = N::NAME;

    async fn reconcile(&self, context: &Context<SubnetIsolation>) -> Result<Outcome> {
        let zone = self.0.zone_code(context).await?;
        let told: Option<State<N::Before>> = context.state()?;
        if told.is_none() {
            is_used(context, &zone)?;
        }
        let mut state = State::for_zone(told, &zone, clock::now_k8s().0)?;
        self.keep(context, &state).await?;
        let machines = ZoneMachines::for_zone(context, &zone)?;
        let deadline = state.deadline(CloseDeadline::read(context.object.as_ref()));
        wait_for(&machines, &state, deadline).await?;

        let before = self
            .0
            .read_former_state(context, &zone, state.before.as_ref())
            .await?;
        state.before = Some(before.clone());
        self.keep(context, &state).await?;
        let before = self.0.prepare(context, &before).await?;
        if state.before.as_ref() != Some(&before) {
            state.before = Some(before.clone());
            self.keep(context, &state).await?;
        }
        let mut told = match self.0.close(context, &zone, &before).await {
            Ok(told) => told,
            Err(error) => {
                self.withdraw_confirmation(context, &state).await?;
                return Err(error);
            }
        };
        told.insert(NETWORK_CLOSED.to_owned(), Value::Bool(true));

        let outcome = state.outcome(N::API_VERSION, told)?;
        let left = machines.remaining().await?;
        if left.is_nothing() {
            return Ok(outcome);
        }
        context.keep(&outcome).await?;
        Err(left.remain(&zone, clock::now()))
    }

    async fn restore(&self, context: &Context<SubnetIsolation>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, _: &Context<SubnetIsolation>) -> Result<Outcome> {
        // All resources are outside, and the state is complete since before the first change (RX-11).
        Ok(Outcome::none())
    }

    async fn delete(&self, context: &Context<SubnetIsolation>) -> Result<()> {
        let state: Option<State<N::Before>> = context.state()?;
        let before = state.and_then(|state| state.before);
        self.0
            .open(context, before.as_ref(), context.is_being_deleted())
            .await
    }

    async fn force_delete(&self, context: &Context<SubnetIsolation>) -> Result<Released> {
        // A state that cannot be read must not block a forced deletion.
        let zone = match context.state::<State<N::Before>>() {
            Ok(Some(state)) => state.zone,
            _ => format!("with ID {}", context.object.spec.isolated_zone_id),
        };
        let what = format!("what closes the network of zone {zone}");
        forced::attempt(&what, || self.delete(context)).await
    }
}

impl<N: ZoneNetwork> SubnetIsolationActuator<N> {
    /// The provider's former report of the closed network stays in the status until the next report.
    async fn keep(&self, context: &Context<SubnetIsolation>, state: &State<N::Before>) -> Result<()> {
        let told = context.object.status.as_ref();
        let told = told.and_then(|status| status.provider_status.as_ref());
        let told = told.and_then(|told| told.0.as_object().cloned());
        context
            .keep(&state.outcome(N::API_VERSION, told.unwrap_or_default())?)
            .await
    }

    /// The provider no longer confirms that the network is closed: a person may have opened a part.
    async fn withdraw_confirmation(
        &self,
        context: &Context<SubnetIsolation>,
        state: &State<N::Before>,
    ) -> Result<()> {
        let status = context.object.status.as_ref();
        let report = status.and_then(|status| status.provider_status.as_ref());
        match state::unconfirmed(report) {
            Some(report) => context.keep(&state.outcome(N::API_VERSION, report)?).await,
            None => Ok(()),
        }
    }
}

/// A zone that the shoot does not use is a mistake of the user. A zone that is already closed is reconciled
/// regardless of the shoot.
fn is_used(context: &Context<SubnetIsolation>, zone: &str) -> Result<()> {
    let Some(cluster) = &context.cluster else {
        return Ok(());
    };
    let used = state::zones_of(&cluster.spec.shoot.0);
    if used.contains(zone) {
        return Ok(());
    }
    let used: Vec<_> = used.into_iter().collect();
    Err(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!(
            "the zone with ID {:?} is {zone}, in which the shoot has no worker pool; its pools have the zones {}. Take the annotation \
             shoot.gardener.cloud/isolated-zone away, or name one of these by its ID",
            context.object.spec.isolated_zone_id,
            used.join(", ")
        ),
    ))
}

/// RZ-32: processes in the zone get time to end, within limits. A return before that time frees the worker of
/// the controller for other shoots.
async fn wait_for<B: serde::Serialize>(
    machines: &ZoneMachines<'_>,
    state: &State<B>,
    deadline: CloseDeadline,
) -> Result<()> {
    let patience = state.patience(deadline, clock::now());
    if patience.is_zero() {
        return Ok(());
    }
    let left = machines.remaining().await?;
    if left.is_nothing() {
        return Ok(());
    }
    if deadline.has_passed(clock::now()) {
        warn!(
            zone = state.zone,
            left = left.causes(),
            "its network is closed although machines are left"
        );
        return Ok(());
    }
    Err(left.waiting(&state.zone, deadline, patience))
}
