//! The controllers by name, and how a set of them runs.

use std::{collections::BTreeSet, fmt, sync::Arc};

use futures::future::{BoxFuture, FutureExt, join_all};
use kube::Client;
use lease::{Held, migration::Manager};
use runtime::{Cluster, Events, Shoot, metrics::Metrics, runner::Settings};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    MANAGER,
    cloud::{Account, Instances, LoadBalancers, Source, Wrap},
    cloud_node::CloudNode,
    cloud_node_lifecycle::CloudNodeLifecycle,
    flags::Options,
    node_ipam::NodeIpam,
    service::ServiceLoadBalancers,
};

/// This process as a configuration of leader migration sees it. It is called as the cloud controller manager of any cloud is, so
/// that one file serves every manager of a shoot, whatever its cloud is. Its main lock has its own name.
pub const AS_MANAGER: Manager = Manager {
    component: "cloud-controller-manager",
    controllers: &[
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "service-lb-controller",
    ],
    guests: &["node-ipam-controller"],
};

/// A controller of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Describes new Nodes.
    CloudNode,
    /// Removes and marks Nodes.
    CloudNodeLifecycle,
    /// Load balancers of Services.
    Service,
    /// Ranges of pod addresses.
    NodeIpam,
}

impl Name {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::CloudNode,
        Self::CloudNodeLifecycle,
        Self::Service,
        Self::NodeIpam,
    ];

    /// The name that Kubernetes gives it since 1.28.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node-controller",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle-controller",
            Self::Service => "service-lb-controller",
            Self::NodeIpam => "node-ipam-controller",
        }
    }

    /// The controller of a present or former name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = lease::migration::canonical(name);
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads `--controllers`: `*` is all, `name` is one, `-name` is one that must not run. As in Kubernetes the first entry that
/// names a controller counts, and `*` only for those that none names.
pub fn select(list: &[String]) -> Result<BTreeSet<Name>, String> {
    let mut rest = false;
    let (mut chosen, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for entry in list.iter().map(|entry| entry.trim()) {
        if entry == "*" {
            rest = true;
            continue;
        }
        let text = entry.strip_prefix('-');
        let name = Name::parse(text.unwrap_or(entry)).ok_or_else(|| {
            let known = Name::ALL.map(Name::as_str).join(", ");
            format!("--controllers: there is no controller {entry:?}; known: {known}")
        })?;
        if text.is_some() && !chosen.contains(&name) {
            refused.insert(name);
        } else if text.is_none() && !refused.contains(&name) {
            chosen.insert(name);
        }
    }
    let others = Name::ALL
        .into_iter()
        .filter(|name| rest && !refused.contains(name));
    Ok(chosen.iter().copied().chain(others).collect())
}

/// What controllers are made of.
#[derive(Clone)]
pub struct Context {
    /// A client of the shoot.
    pub shoot: Client,
    /// The account in the cloud.
    pub cloud: Source,
    /// What the flags say.
    pub options: Arc<Options>,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Ends the controllers.
    pub shutdown: CancellationToken,
}

/// Runs these controllers until shutdown. Dropping the future stops all of them. With `held`, their requests (to the shoot and
/// to the cloud) leave only while the lock is held.
pub async fn run(names: BTreeSet<Name>, context: Context, held: Option<Held>) -> Result<(), String> {
    let wrap: Wrap = Arc::new(move |client| match &held {
        Some(held) => held.fence(&client),
        None => client,
    });
    let shoot = Shoot::new(wrap(context.shoot.clone()));
    let account = Arc::new(Account::new(context.cloud.clone(), wrap));
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
        // A lock may be held for others' sake: its work is to last as long as that of the other lock.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::all("*", "cloud-node,cloud-node-lifecycle,service,nodeipam")]
    #[case::one("service", "service")]
    #[case::by_present_names("service-lb-controller,node-ipam-controller", "service,nodeipam")]
    #[case::all_but_one("*,-nodeipam", "cloud-node,cloud-node-lifecycle,service")]
    #[case::in_any_order("-node-ipam-controller,*", "cloud-node,cloud-node-lifecycle,service")]
    #[case::only_one_away("-service", "")]
    #[case::the_first_counts("service,-service,-nodeipam,nodeipam", "service")]
    fn controllers_are_chosen_as_in_kubernetes(#[case] list: &str, #[case] expected: &str) {
        let list: Vec<_> = list.split(',').map(ToOwned::to_owned).collect();
        let expected = expected.split(',').filter_map(Name::parse).collect();
        assert_eq!(select(&list).unwrap(), expected);
    }

    /// A name without a controller would be a controller that nobody runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        assert!(AS_MANAGER.all().eq(Name::ALL.map(Name::as_str)));
    }

    #[test]
    fn a_name_that_is_not_known_is_told() {
        let why = select(&["*".into(), "-route".into()]).unwrap_err();
        assert!(
            why.contains("\"-route\"") && why.contains("service-lb-controller"),
            "{why}"
        );
    }
}
