#![allow(clippy::unwrap_used)]

mod gates;
mod orders;
mod owner;
mod systems;
mod zones;

use std::collections::BTreeMap;

use kube::Config;
use parts::Facts;
use runtime::client::{Connection, Permit};

use super::{
    FlowKind, TaskOrder, breaches,
    samples::{self, ASLEEP, DELETION, DESTINATION, FORCED, LEFT, RECONCILIATION, SOURCE},
};
use crate::zone_isolation::Zones;

/// No zone is closed or opened.
const NO_ZONES: Zones = Zones {
    closes: false,
    opens: false,
};

/// The result of a test: a sentence that names the flow and the tasks.
type Checked = Result<(), String>;

/// The facts of the samples, with a cluster that does not exist. No client opens a connection.
fn sample_facts() -> Facts {
    let nowhere = Config::new("http://localhost:1".parse().unwrap());
    let nowhere = Connection::new(nowhere).unwrap();
    samples::facts(nowhere, &Permit::sole("a test, which sends nothing")).unwrap()
}

/// The order of each drawn flow, by title.
fn orders_of_drawn_flows(f: &Facts) -> BTreeMap<&'static str, TaskOrder> {
    let drawn = samples::drawn(f).into_iter();
    drawn
        .map(|sample| (sample.title, TaskOrder::read(sample.flow.flow())))
        .collect()
}
