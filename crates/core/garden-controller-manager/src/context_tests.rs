//! The context of tests of reconcilers.

#![allow(clippy::unwrap_used)]

use clap::Parser as _;
use runtime::client::Permit;

use super::*;

impl Context {
    /// The context of a reconciler with a simulated garden, and the flags of a garden with a quota.
    pub(crate) fn of_simulated_garden(client: &kube::Client) -> Self {
        let garden = Garden::new(client.clone(), &Permit::sole("a test"));
        let flags = ["garden-controller-manager", "--project-quota=pods=0"];
        Self {
            shoots: crate::shoots::watch(&garden),
            backup_entries: crate::backup_entries::watch(&garden),
            config: Arc::new(Config::try_parse_from(flags).unwrap()),
            events: Events::new(client.clone(), MANAGER.0),
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
            garden,
        }
    }
}
