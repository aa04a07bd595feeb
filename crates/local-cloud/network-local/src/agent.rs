//! Sets up the machine's network from the known machines.

use std::{path::PathBuf, time::Duration};

use ipnet::Ipv4Net;
use prometheus_client::metrics::gauge::Gauge;
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
    conflist,
    fleet::{Machine, Machines},
    kernel::Kernel,
    plan::{Plan, plan},
};

/// Interval in which the kernel is checked without a change of a Node: a foreign program may have changed the
/// kernel's tables.
const RESYNC_PERIOD: Duration = Duration::from_secs(60);
/// Pause before a retry after a failure, or while an event is awaited. Short enough not to delay a new
/// machine visibly.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// Time without success after which `/healthz` fails and the agent is restarted. Longer than a list of many
/// refused entries takes.
const ILL_AFTER: Duration = Duration::from_secs(300);
/// The name of the work in metrics.
const NAME: &str = "network";

/// Sets up the network of a machine.
pub struct Agent {
    /// The machine's kernel.
    pub kernel: Kernel,
    /// Name of the machine's Node.
    pub node: String,
    /// Addresses of all pods of the shoot.
    pub pods: Ipv4Net,
    /// The folder in which containerd looks for the CNI configuration.
    pub folder: PathBuf,
}

impl Agent {
    /// Sets up the network from the known machines, again and again, until the watch of Nodes ends.
    pub async fn run(mut self, mut known: watch::Receiver<Known<Machine>>, metrics: Metrics, health: Health) {
        let machines = Gauge::<i64>::default();
        metrics.register(|registry| {
            let help = "Other machines to whose pods there is a way";
            registry.register("network_machines", help, machines.clone());
        });
        let failing = Failing::watched(&health, ILL_AFTER, "the network could not be made");
        let mut told = None;
        loop {
            let now = known.borrow_and_update().clone();
            let begun = Instant::now();
            let done = match &now {
                Some(machines) => self.make(machines).await,
                None => Err(Error::not_ready(TRY_AGAIN, "the Nodes have not been read yet")),
            };
            failing.note(begun, &done);
            let result = done.as_ref().map_or_else(Error::class, |_| "success");
            metrics.reconciled(NAME, result, begun.elapsed());
            if let Ok(plan) = &done {
                machines.set(i64::try_from(plan.tables.routes.len()).unwrap_or(i64::MAX));
            }
            let pause = if done.is_ok() { RESYNC_PERIOD } else { TRY_AGAIN };
            tell(&mut told, done);
            tokio::select! {
                changed = known.changed() => if changed.is_err() { return },
                () = sleep(pause) => {}
            }
        }
    }

    /// Sets up the network for these machines; the last step is the CNI file, which makes the Node ready.
    ///
    /// # Errors
    /// The awaited event; a refusal of the kernel or the folder.
    pub async fn make(&mut self, machines: &Machines) -> Result<Plan> {
        let plan = plan(machines, &self.node, self.pods).map_err(|why| Error::not_ready(TRY_AGAIN, why))?;
        let made = self.kernel.make(&plan).await;
        // The pods of this machine reach the outside even if the routes to further machines fail.
        self.kernel.masquerade(self.pods).await?;
        let made = made?;
        let content = conflist::content(plan.range, made.mtu);
        let written = conflist::write(&self.folder, &content).map_err(|error| {
            let folder = self.folder.display();
            Error::transient(format!("{} cannot be written in {folder}", conflist::FILE)).caused_by(error)
        })?;
        if written || made.changes > 0 {
            info!(
                changes = made.changes,
                written,
                machines = machines.len(),
                "the network is as planned"
            );
        }
        Ok(plan)
    }
}

/// Logs a new result, once.
fn tell(told: &mut Option<Result<Vec<String>>>, done: Result<Plan>) {
    let now = Some(done.map(|plan| plan.passed_over));
    if *told == now {
        return;
    }
    match &now {
        Some(Ok(passed_over)) => passed_over.iter().for_each(|why| warn!(why, "passed over")),
        Some(Err(error)) if error.is_failure() => {
            warn!(error = format_args!("{error:#}"), "the network is not as planned");
        }
        Some(Err(error)) => info!(error = format_args!("{error:#}"), "waiting"),
        None => {}
    }
    *told = now;
}
