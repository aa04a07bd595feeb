//! Makes the kernel shut what one account wants closed, and says so.

use std::{collections::BTreeMap, time::Duration};

use cloud_local::{
    Host,
    isolation::{Machine, Order},
};
use runtime::{Error, Result, failing::Failing, follow::Known, metrics::Metrics, process::Health};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tracing::{info, warn};

use crate::{
    kernel::Kernel,
    plan::{Plan, plan},
};

/// How often the kernel is told although nothing changed: somebody else may have changed it.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// When it is tried again after a failure. Shorter than what delays a closing visibly.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// After so long without success the agent is to be started anew. Longer than an API server's absence that
/// one notices.
const ILL_AFTER: Duration = Duration::from_secs(300);
/// How its work is called in metrics.
const NAME: &str = "isolation";

/// What is wanted, by the names of the objects; the reason where one cannot be understood.
pub type Orders = BTreeMap<String, Result<Order, String>>;
/// The machines of this host, by the names of their pods.
pub type Machines = BTreeMap<String, Machine>;

/// What closes zones of one account on one host.
pub struct Agent {
    /// The host's kernel.
    pub kernel: Kernel,
    /// The host, as the account knows it.
    pub host: Host,
    /// Its name.
    pub name: String,
}

impl Agent {
    /// Does what is wanted, again and again, until nobody follows the account any more.
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
            let pause = if done.is_ok() { LOOK_AGAIN } else { TRY_AGAIN };
            tell(&mut told, done);
            tokio::select! {
                changed = orders.changed() => if changed.is_err() { return },
                changed = machines.changed() => if changed.is_err() { return },
                () = sleep(pause) => {}
            }
        }
    }

    /// Does what is wanted for these machines, and confirms what the kernel has then. Gives what was shut.
    ///
    /// # Errors
    /// The account cannot be written; an object cannot be understood, or the kernel refuses: then the kernel
    /// is as before, and what it has not is not confirmed any more. A machine that cannot be shut off keeps
    /// only its own cluster from being confirmed.
    pub async fn make(&mut self, orders: &Orders, machines: &Machines) -> Result<Plan> {
        // Before anything is confirmed. From now on no zone is closed without this host.
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

/// One that cannot be understood may be that which keeps a zone closed: nothing is changed then (I4).
/// Starting the agent anew would not mend it.
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

/// Says what is new, once.
fn tell(told: &mut Option<Result<Plan>>, done: Result<Plan>) {
    let now = Some(done);
    if *told == now {
        return;
    }
    match &now {
        Some(Ok(plan)) => info!(links = plan.shut.len(), "what is wanted closed is closed"),
        Some(Err(error)) if error.is_failure() => warn!(%error, "not everything is as wanted"),
        Some(Err(error)) => info!(%error, "waiting"),
        None => {}
    }
    *told = now;
}
