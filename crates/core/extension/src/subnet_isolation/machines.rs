//! The machines of a zone that is about to be closed. The actuator waits for the end of the machines, because
//! their pods would run on unobserved.

use std::time::Duration;

use api::{
    extensions::SubnetIsolation,
    machine::{Machine, MachineDeployment, labels},
    meta::ErrorCode,
};
use jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Error, Result,
    client::{Cluster as _, apply::Object},
    error::Explain as _,
};

use crate::{
    Context,
    worker::{close_deadline::CloseDeadline, isolation},
};

/// Requeue interval while machines are awaited. An operation that waited would occupy a worker of the
/// controller, and a sick zone has many shoots.
const AWAITED_MACHINES_REQUEUE: Duration = Duration::from_secs(5);
/// Maximum names in a sentence: the sentence ends in `lastErrors`.
const NAMED: usize = 5;

/// The machines and MachineDeployments of a zone.
pub struct ZoneMachines<'a> {
    zone: &'a str,
    deployments: Api<MachineDeployment>,
    machines: Api<Machine>,
}

impl<'a> ZoneMachines<'a> {
    /// For the shoot of this object.
    pub fn for_zone(context: &Context<SubnetIsolation>, zone: &'a str) -> Result<Self> {
        let namespace = context.namespace()?;
        Ok(Self {
            zone,
            deployments: context.seed.namespaced(&namespace),
            machines: context.seed.namespaced(&namespace),
        })
    }

    /// The remaining machines and MachineDeployments.
    ///
    /// # Errors
    /// The seed does not answer.
    pub async fn remaining(&self) -> Result<Left> {
        Ok(Left {
            makers: in_zone(&self.deployments, self.zone).await?,
            machines: in_zone(&self.machines, self.zone).await?,
        })
    }
}

/// The remaining objects in a zone.
#[derive(Debug, Default)]
pub struct Left {
    makers: Vec<MachineDeployment>,
    machines: Vec<Machine>,
}

impl Left {
    /// Whether the zone is empty.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.makers.is_empty() && self.machines.is_empty()
    }

    /// Names and causes, for a sentence: each machine with the report of the machine controllers, or, without
    /// machines, the deployments with their finalizers.
    #[must_use]
    pub fn causes(&self) -> String {
        if self.machines.is_empty() {
            return named(self.makers.iter().map(cause_of_deployment));
        }
        named(self.machines.iter().map(cause_of_machine))
    }

    /// The report while the machines are awaited for `patience` at most, with the network open.
    #[must_use]
    pub fn waiting(&self, zone: &str, deadline: CloseDeadline, patience: Duration) -> Error {
        Error::not_ready(
            patience.min(AWAITED_MACHINES_REQUEUE),
            format!(
                "the network of zone {zone} is closed when the machines have gone, and at {} at the latest; still there: {}",
                deadline.time(),
                self.causes()
            ),
        )
    }

    /// The report on remaining machines when the network is closed. A machine beyond the time limit needs a
    /// person.
    #[must_use]
    pub fn remain(&self, zone: &str, now: Timestamp) -> Error {
        let closed = format!("the network of zone {zone} is closed");
        let overdue = self
            .machines
            .iter()
            .filter(|machine| isolation::is_overdue(machine, now));
        let overdue: Vec<_> = overdue.map(cause_of_machine).collect();
        if overdue.is_empty() {
            let why = format!("{closed}, and the zone is not empty: {}", self.causes());
            return Error::not_ready(AWAITED_MACHINES_REQUEUE, why);
        }
        Error::config(
            ErrorCode::ErrRetryableInfraDependencies,
            format!(
                "{closed}, but machines of it have not gone in the time they had: {}. Look in the cloud why these instances do not \
                 terminate, and end them there",
                named(overdue)
            ),
        )
    }
}

/// The machine, its instance, and the report of the machine controllers on the last operation.
fn cause_of_machine(machine: &Machine) -> String {
    let id = machine.spec.provider_id.as_deref().filter(|id| !id.is_empty());
    let title = format!(
        "machine {} ({})",
        machine.name_any(),
        id.unwrap_or("no instance is known")
    );
    let last = machine
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let report = last.and_then(|last| {
        let text = last.description.as_deref().filter(|text| !text.is_empty())?;
        let state = last.state.as_deref().unwrap_or("Processing");
        Some(format!(
            "{} {state}, {text}",
            last.type_.as_deref().unwrap_or("operation")
        ))
    });
    match (report, machine.metadata.deletion_timestamp.is_some()) {
        (Some(report), _) => format!("{title}: {report}"),
        (None, true) => format!("{title}: is being deleted"),
        (None, false) => format!("{title}: is not being deleted yet"),
    }
}

fn cause_of_deployment(deployment: &MachineDeployment) -> String {
    let name = deployment.name_any();
    match (&deployment.metadata.deletion_timestamp, deployment.finalizers()) {
        (None, _) => format!("MachineDeployment {name}: is not being deleted yet"),
        (Some(_), []) => format!("MachineDeployment {name}: is being deleted"),
        (Some(_), finalizers) => {
            format!(
                "MachineDeployment {name}: terminates and has the finalizers {}",
                finalizers.join(", ")
            )
        }
    }
}

fn named(names: impl IntoIterator<Item = String>) -> String {
    let all: Vec<_> = names.into_iter().collect();
    let mut said = all.iter().take(NAMED).cloned().collect::<Vec<_>>();
    if all.len() > NAMED {
        said.push(format!("{} more", all.len() - NAMED));
    }
    said.join("; ")
}

async fn in_zone<K: Object>(api: &Api<K>, zone: &str) -> Result<Vec<K>> {
    let of_zone = ListParams::default().labels(&format!("{}={zone}", labels::ZONE));
    let found = api.list(&of_zone).await;
    Ok(found
        .context(format_args!("could not list objects of kind {}", K::kind(&())))?
        .items)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn machine(name: &str, deleted: Option<i64>) -> Machine {
        let time = deleted.map(|second| at(second).to_string());
        let spec = json!({"providerID": format!("local:///r/{name}")});
        serde_json::from_value(json!({"metadata": {"name": name, "deletionTimestamp": time}, "spec": spec}))
            .unwrap()
    }

    fn deployment(deleted: Option<i64>) -> MachineDeployment {
        let time = deleted.map(|second| at(second).to_string());
        let metadata = json!({"name": "d", "finalizers": ["f"], "deletionTimestamp": time});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"template": {}}})).unwrap()
    }

    #[test]
    fn those_that_are_left_are_named_and_not_all_of_very_many() {
        assert!(Left::default().is_nothing());
        let left = Left {
            makers: vec![deployment(None)],
            machines: (0..9)
                .map(|number| machine(&format!("m{number}"), None))
                .collect(),
        };
        let causes = left.causes();
        assert!(
            causes.starts_with("machine m0 (local:///r/m0): is not being deleted yet; machine m1"),
            "{causes}"
        );
        assert!(causes.ends_with("; 4 more"), "{causes}");
        let rest = Duration::from_secs(2);
        let error = left.waiting("z", CloseDeadline::of_begin(at(0)), rest);
        let said = error.to_string();
        assert!(said.contains("at 1970-01-01T00:15:00Z at the latest"), "{said}");
        // The network is closed at the deadline, and not a requeue interval later.
        assert!(matches!(error, Error::NotReady { after, .. } if after == rest));
    }

    #[test]
    fn the_cause_of_what_hangs_is_named() {
        let mut hangs = machine("m", Some(0));
        let last =
            json!({"type": "Delete", "state": "Processing", "description": "instance i-1 is shutting-down"});
        hangs.status = serde_json::from_value(json!({"lastOperation": last})).unwrap();
        for (left, expected) in [
            (
                Left {
                    makers: vec![deployment(Some(0))],
                    machines: vec![hangs],
                },
                "machine m (local:///r/m): Delete Processing, instance i-1 is shutting-down",
            ),
            (
                Left {
                    makers: vec![deployment(Some(0))],
                    machines: Vec::new(),
                },
                "MachineDeployment d: terminates and has the finalizers f",
            ),
        ] {
            assert_eq!(left.causes(), expected);
            let said = left.remain("z", at(10)).to_string();
            assert!(said.contains(expected) && said.contains("is closed"), "{said}");
        }
    }

    #[test]
    fn a_machine_that_has_had_its_time_needs_somebody() {
        for (deleted, now, needs) in [(None, 9000, false), (Some(0), 899, false), (Some(0), 900, true)] {
            let left = Left {
                makers: Vec::new(),
                machines: vec![machine("m", deleted), machine("n", None)],
            };
            let error = left.remain("z", at(now));
            assert_eq!(
                matches!(error, Error::Config { .. }),
                needs,
                "{deleted:?} {now}: {error}"
            );
            let said = error.to_string();
            assert!(said.starts_with("the network of zone z is closed"), "{said}");
            assert_eq!(
                said.contains("m (local:///r/m)") && !said.contains("n ("),
                needs,
                "{said}"
            );
        }
    }
}
