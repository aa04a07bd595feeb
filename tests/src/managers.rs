//! The settings of node IPAM in a shoot's two controller managers, read from the Deployments during changes.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{sync::watch, task::JoinSet};

/// Name of the Deployment of Kubernetes' own manager.
pub const KUBERNETES: &str = "kube-controller-manager";
/// Name of the Deployment of the cloud's manager.
pub const CLOUD: &str = "cloud-controller-manager";
/// The entry of `--controllers` by which the kube-controller-manager does not run node IPAM.
pub const WITHOUT_NODE_IPAM: &str = "-node-ipam-controller";
/// Longer than a change takes to arrive by a watch, including a restarted watch.
const SEEN_WITHIN: Duration = Duration::from_secs(120);

/// The setting of node IPAM in a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeIpamMode {
    /// The manager runs node IPAM under the main lock; no flag of leader migration.
    Main,
    /// The manager runs node IPAM while the manager holds the migration lock.
    Shared,
    /// The manager does not run node IPAM; no flag of leader migration.
    Nothing,
}

/// The steps from the kube-controller-manager to the cloud-controller-manager: the settings of both managers,
/// in this order.
pub const TO_CLOUD: [(NodeIpamMode, NodeIpamMode); 5] = [
    (NodeIpamMode::Main, NodeIpamMode::Nothing),
    (NodeIpamMode::Shared, NodeIpamMode::Nothing),
    (NodeIpamMode::Shared, NodeIpamMode::Shared),
    (NodeIpamMode::Nothing, NodeIpamMode::Shared),
    (NodeIpamMode::Nothing, NodeIpamMode::Main),
];

/// The flags of a manager's container.
#[must_use]
pub fn flags(deployment: &Deployment) -> Vec<String> {
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    pod.and_then(|pod| pod.containers.first()?.args.clone())
        .unwrap_or_default()
}

/// Parses the setting from a manager's flags. The two flags of leader migration need each other.
fn parse_mode(flags: &[String]) -> Result<NodeIpamMode> {
    let has = |flag: &str| flags.iter().any(|given| given.starts_with(flag));
    let left = flags.iter().any(|flag| {
        let chosen = flag.strip_prefix("--controllers=").unwrap_or_default();
        chosen.split(',').any(|name| name == WITHOUT_NODE_IPAM)
    });
    match (
        has("--enable-leader-migration"),
        has("--leader-migration-config="),
        has("--allocate-node-cidrs"),
        left,
    ) {
        (true, true, true, false) => Ok(NodeIpamMode::Shared),
        (false, false, true, false) => Ok(NodeIpamMode::Main),
        (false, false, _, true) | (false, false, false, false) => Ok(NodeIpamMode::Nothing),
        _ => bail!("flags that do not go together: {flags:?}"),
    }
}

/// Follows the two Deployments of a control plane.
pub struct Walk {
    steps: Arc<watch::Sender<Vec<(NodeIpamMode, NodeIpamMode)>>>,
    _watching: JoinSet<()>,
}

impl Walk {
    /// Starts; `namespace` is the control plane's in the seed. Returns when both Deployments have been seen.
    pub async fn start(seed: &Client, namespace: &str) -> Result<Self> {
        let steps = Arc::new(watch::Sender::new(Vec::new()));
        let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
        let mut watching = JoinSet::new();
        watching.spawn(follow(deployments, Arc::clone(&steps)));
        let mut followed = steps.subscribe();
        let first = testkit::timeout(SEEN_WITHIN, followed.wait_for(|steps| !steps.is_empty()));
        first
            .await
            .with_context(|| format!("there are no Deployments {KUBERNETES} and {CLOUD} in {namespace}"))??;
        Ok(Self {
            steps,
            _watching: watching,
        })
    }

    /// The steps until `last`; `last` must come soon. The last step is also the first step of the next walk.
    pub async fn until(
        &self,
        last: (NodeIpamMode, NodeIpamMode),
    ) -> Result<Vec<(NodeIpamMode, NodeIpamMode)>> {
        let mut seen = self.steps.subscribe();
        let came = seen.wait_for(|steps| steps.last() == Some(&last));
        if testkit::timeout(SEEN_WITHIN, came).await.is_err() {
            bail!(
                "the managers are not told {last:?} but {:?}",
                self.steps.borrow().last()
            );
        }
        Ok(self.steps.send_replace(vec![last]))
    }
}

async fn follow(deployments: Api<Deployment>, steps: Arc<watch::Sender<Vec<(NodeIpamMode, NodeIpamMode)>>>) {
    let events = watcher(deployments, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    let (mut kubernetes, mut cloud) = (None, None);
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(deployment) | Event::InitApply(deployment)) = event else {
            continue;
        };
        let of = match deployment.name_any().as_str() {
            KUBERNETES => &mut kubernetes,
            CLOUD => &mut cloud,
            _ => continue,
        };
        match parse_mode(&flags(&deployment)) {
            Ok(told) => *of = Some(told),
            // Not counted as a step: the walk that misses a step fails and prints the steps.
            Err(error) => eprintln!("{}: {error}", deployment.name_any()),
        }
        if let (Some(kubernetes), Some(cloud)) = (kubernetes, cloud) {
            steps.send_if_modified(|steps| {
                let new = steps.last() != Some(&(kubernetes, cloud));
                if new {
                    steps.push((kubernetes, cloud));
                }
                new
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn flags_tell_what_a_manager_does() {
        let parse = |flags: &[&str]| parse_mode(&flags.iter().map(ToString::to_string).collect::<Vec<_>>());
        let ranges = "--allocate-node-cidrs=true";
        let migrates = [
            "--enable-leader-migration=true",
            "--leader-migration-config=f",
            ranges,
        ];
        assert_eq!(parse(&[ranges]).unwrap(), NodeIpamMode::Main);
        assert_eq!(parse(&migrates).unwrap(), NodeIpamMode::Shared);
        assert_eq!(parse(&[]).unwrap(), NodeIpamMode::Nothing);
        assert_eq!(
            parse(&[ranges, "--controllers=*,-node-ipam-controller"]).unwrap(),
            NodeIpamMode::Nothing
        );
        assert!(parse(&migrates[..1]).is_err());
        assert!(parse(&[&migrates[..], &["--controllers=*,-node-ipam-controller"]].concat()).is_err());
    }
}
