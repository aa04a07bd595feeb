//! Makes the kernel close the zones of an account, and confirms the state of the kernel.

use std::{collections::BTreeMap, time::Duration};

use cloud_local::{
    Host,
    isolation::{Machine, Order},
};
use runtime::{
    Error, Result,
    client::informer::Known,
    process::{Health, liveness::Failing, metrics::Metrics},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::{info, warn};

use crate::{
    kernel::Kernel,
    plan::{Plan, plan},
};

/// Interval in which the kernel's rules are rewritten without a change: a foreign program may have changed
/// the rules.
const RESYNC_PERIOD: Duration = Duration::from_secs(60);
/// Pause before a retry. Short enough not to delay a closing visibly.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// Time without success after which `/healthz` fails and the agent is restarted. Longer than a noticeable
/// absence of an API server.
const ILL_AFTER: Duration = Duration::from_secs(300);
/// The name of the work in metrics.
const NAME: &str = "isolation";

/// The orders by object name; the reason for an invalid object.
pub type Orders = BTreeMap<String, Result<Order, String>>;
/// The machines of this host, by pod name.
pub type Machines = BTreeMap<String, Machine>;

/// Closes zones of an account on a host.
pub struct Agent {
    /// The host's kernel.
    pub kernel: Kernel,
    /// The host in the account.
    pub host: Host,
    /// The name of the host.
    pub name: String,
}

impl Agent {
    /// Applies the orders, again and again, until the watches end.
    pub async fn run(
        mut self,
        mut orders: watch::Receiver<Known<Result<Order, String>>>,
        mut machines: watch::Receiver<Known<Machine>>,
        metrics: Metrics,
        health: Health,
    ) {
        let failing = Failing::watched(&health, ILL_AFTER, "closed zones could not be made so");
        let mut told = None;
        loop {
            let begun = Instant::now();
            let wanted = orders.borrow_and_update().clone();
            let there = machines.borrow_and_update().clone();
            let done = match (&wanted, &there) {
                (Some(wanted), Some(there)) => self.make(wanted, there).await,
                _ => Err(Error::not_ready(TRY_AGAIN, "the account has not been read yet")),
            };
            failing.note(begun, &done);
            let result = done.as_ref().map_or_else(Error::class, |_| "success");
            metrics.reconciled(NAME, result, begun.elapsed());
            let pause = if done.is_ok() { RESYNC_PERIOD } else { TRY_AGAIN };
            tell(&mut told, done);
            tokio::select! {
                changed = orders.changed() => if changed.is_err() { return },
                changed = machines.changed() => if changed.is_err() { return },
                () = sleep(pause) => {}
            }
        }
    }

    /// Applies the orders to these machines, and confirms the state of the kernel. Returns the applied plan.
    ///
    /// # Errors
    /// The account cannot be written, an object is invalid, or the kernel refuses. Then the kernel stays
    /// unchanged, and confirmations of missing rules are withdrawn. A machine that cannot be shut off only
    /// prevents the confirmation for that machine's cluster.
    pub async fn make(&mut self, orders: &Orders, machines: &Machines) -> Result<Plan> {
        // Registered before any confirmation. From now on, a closing needs this host's confirmation.
        self.host.register().await?;
        let orders = readable(orders)?;
        let made = self.shut(&orders, machines).await;
        let mut refused = None;
        for order in orders {
            let has = made
                .as_ref()
                .is_ok_and(|plan| !plan.unknown.contains_key(&order.cluster));
            let said = match (has, order.is_done_by(&self.name)) {
                (true, false) => self.host.confirm(order).await,
                (false, true) => self.host.withdraw(order).await,
                (true, true) | (false, false) => Ok(()),
            };
            if let Err(error) = said {
                refused.get_or_insert(error);
            }
        }
        let plan = made?;
        if let Some(why) = plan.unknown.values().next() {
            refused.get_or_insert(Error::not_ready(TRY_AGAIN, why));
        }
        refused.map_or(Ok(plan), Err)
    }

    async fn shut(&mut self, orders: &[&Order], machines: &Machines) -> Result<Plan> {
        let ways = self.kernel.ways().await?;
        let plan = plan(orders.iter().copied(), machines, &ways);
        self.kernel.shut(&plan.shut).await?;
        Ok(plan)
    }
}

/// An invalid object may be the object that keeps a zone closed: the kernel stays unchanged then (I4). The
/// error is not a failure, because a restart of the agent would not fix the object.
fn readable(orders: &Orders) -> Result<Vec<&Order>> {
    let all = orders.iter().map(|(name, order)| {
        order.as_ref().map_err(|why| {
            let what = "does not say which zone is closed";
            let until = "nothing is changed until it does";
            Error::not_ready(TRY_AGAIN, format!("ConfigMap {name} {what}: {why}; {until}"))
        })
    });
    all.collect()
}

/// Logs a new result, once.
fn tell(told: &mut Option<Result<Plan>>, done: Result<Plan>) {
    let now = Some(done);
    if *told == now {
        return;
    }
    match &now {
        Some(Ok(plan)) => info!(links = plan.shut.len(), "what is wanted closed is closed"),
        Some(Err(error)) if error.is_failure() => {
            warn!(error = format_args!("{error:#}"), "not everything is as wanted");
        }
        Some(Err(error)) => info!(error = format_args!("{error:#}"), "waiting"),
        None => {}
    }
    *told = now;
}
