//! Runs a set of the controllers.

use std::{collections::BTreeSet, sync::Arc};

use cloud_local::{Account, Instances, LoadBalancers, Source, Wrap};
use futures::future::{BoxFuture, FutureExt, join_all};
use runtime::{
    client::{Cluster, Connection, Permit, Shoot},
    controller::{Events, runner::Settings},
    process::metrics::Metrics,
};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    MANAGER, cloud_node::CloudNode, cloud_node_lifecycle::CloudNodeLifecycle, flags::Options, names::Name,
    node_ipam::NodeIpam, service::ServiceLoadBalancers,
};

/// The inputs of the controllers.
#[derive(Clone)]
pub struct Context {
    /// The connection to the shoot.
    pub shoot: Connection,
    /// The right to act in the shoot and in the cloud.
    pub permit: Permit,
    /// The account in the cloud.
    pub cloud: Source,
    /// The parsed flags.
    pub options: Arc<Options>,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Ends the controllers.
    pub shutdown: CancellationToken,
}

/// Runs these controllers until shutdown. Dropping the future stops all of them. Requests to the shoot and to
/// the cloud leave only while the permit is valid.
pub async fn run(names: BTreeSet<Name>, context: Context) -> Result<(), String> {
    let permit = context.permit.clone();
    let wrap: Wrap = Arc::new(move |cloud: Connection| cloud.client(&permit));
    let shoot = Shoot::new(context.shoot.clone(), &context.permit);
    let account = Arc::new(Account::new(context.cloud.clone(), MANAGER, wrap));
    let instances = Arc::new(Instances::new(Arc::clone(&account), &context.options.cluster));
    let shutdown = context.shutdown.clone();
    let parts = Parts {
        events: Events::new(shoot.client().clone(), MANAGER.0),
        shoot,
        account,
        instances,
        context,
    };
    let running: Vec<_> = names
        .iter()
        .map(|name| parts.start(*name))
        .collect::<Result<_, _>>()?;
    let list: Vec<_> = names.iter().map(|name| name.as_str()).collect();
    info!(controllers = list.join(","), "running");
    if running.is_empty() {
        // A lock without controllers is held as long as the second lock of the process.
        shutdown.cancelled().await;
    }
    join_all(running).await;
    Ok(())
}

struct Parts {
    shoot: Shoot,
    account: Arc<Account>,
    instances: Arc<Instances>,
    events: Events,
    context: Context,
}

impl Parts {
    fn start(&self, name: Name) -> Result<BoxFuture<'static, ()>, String> {
        let options = &self.context.options;
        let settings = Settings {
            concurrency: options.concurrency,
            shutdown: self.context.shutdown.clone(),
            permit: self.context.permit.clone(),
            metrics: self.context.metrics.clone(),
            events: self.events.clone(),
        };
        let (shoot, instances, events) = (
            self.shoot.clone(),
            Arc::clone(&self.instances),
            self.events.clone(),
        );
        Ok(match name {
            Name::CloudNode => CloudNode::new(shoot, instances, events, options.refresh_every)
                .run(settings)
                .boxed(),
            Name::CloudNodeLifecycle => CloudNodeLifecycle::new(shoot, instances, events, options.look_every)
                .run(settings)
                .boxed(),
            Name::Service => {
                let account = Arc::clone(&self.account);
                let balancers = LoadBalancers::new(account, &options.cluster, options.load_balancer_range);
                ServiceLoadBalancers::new(shoot, balancers, events)
                    .run(settings)
                    .boxed()
            }
            Name::NodeIpam => {
                let book = options
                    .book()?
                    .ok_or("node-ipam-controller needs --allocate-node-cidrs")?;
                NodeIpam::new(shoot, book, events).run(settings).boxed()
            }
        })
    }
}
