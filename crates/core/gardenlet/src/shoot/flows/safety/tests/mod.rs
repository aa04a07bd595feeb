#![allow(clippy::unwrap_used)]

mod gates;
mod orders;
mod owner;
mod systems;
mod zones;

use std::collections::BTreeMap;

use kube::Config;
use runtime::client::{Connection, Permit};

use super::{
    FlowKind, TaskOrder, breaches,
    samples::{self, ASLEEP, DELETION, DESTINATION, FORCED, LEFT, RECONCILIATION, SOURCE, SampleInputs},
};
use crate::zone_isolation::Zones;

/// No zone is closed or opened.
const NO_ZONES: Zones = Zones {
    closes: false,
    opens: false,
};

/// The result of a test: a sentence that names the flow and the tasks.
type Checked = Result<(), String>;

/// The inputs of the samples, with a cluster that does not exist. No client opens a connection.
fn sample_inputs() -> SampleInputs {
    let nowhere = Config::new("http://localhost:1".parse().unwrap());
    let nowhere = Connection::new(nowhere).unwrap();
    samples::inputs(nowhere, &Permit::sole("a test, which sends nothing")).unwrap()
}

/// The order of each drawn flow, by title.
fn orders_of_drawn_flows(inputs: &SampleInputs) -> BTreeMap<&'static str, TaskOrder> {
    let drawn = samples::drawn(inputs).into_iter();
    drawn
        .map(|sample| (sample.title, TaskOrder::read(sample.flow.flow())))
        .collect()
}
