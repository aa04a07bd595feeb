//! The machines of a zone that is to be closed: they are waited for, since what runs on them would go on without anybody seeing it.

use std::time::Duration;

use api::{
    extensions::SubnetIsolation,
    machine::{Machine, MachineDeployment, labels},
    meta::ErrorCode,
};
use jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{Cluster as _, Error, Result, apply::Object, error::Explain as _, wait};
use tokio::time::Instant;

use crate::{Context, worker::isolation};

/// How long one operation waits. Whoever waits keeps others from working, and the object says meanwhile what is awaited.
const ONE_LOOK: Duration = Duration::from_secs(20);
/// When the next operation begins to wait.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Names that a sentence has at most: it ends in `lastErrors`.
const NAMED: usize = 5;

/// Machines of one zone, and what makes them.
pub struct ZoneMachines<'a> {
    zone: &'a str,
    deployments: Api<MachineDeployment>,
    machines: Api<Machine>,
}

impl<'a> ZoneMachines<'a> {
    /// Of this shoot.
    pub fn of(context: &Context<SubnetIsolation>, zone: &'a str) -> Result<Self> {
        let namespace = context.namespace()?;
        Ok(Self {
            zone,
            deployments: context.seed.namespaced(&namespace),
            machines: context.seed.namespaced(&namespace),
        })
    }

    /// Waits until none is left, for one look at most, and no longer than `patience`. Returns those that are left.
    ///
    /// # Errors
    /// The seed does not say which there are.
    pub async fn left_after(&self, patience: Duration) -> Result<Left> {
        let end = Instant::now() + patience.min(ONE_LOOK);
        if !patience.is_zero() {
            match self.until_gone(end).await {
                Ok(()) | Err(Error::NotReady { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Left {
            makers: names(&in_zone(&self.deployments, self.zone).await?),
            machines: in_zone(&self.machines, self.zone).await?,
        })
    }

    async fn until_gone(&self, end: Instant) -> Result<()> {
        for deployment in in_zone(&self.deployments, self.zone).await? {
            wait::until_gone(&self.deployments, &deployment.name_any(), left(end)).await?;
        }
        for machine in in_zone(&self.machines, self.zone).await? {
            wait::until_gone(&self.machines, &machine.name_any(), left(end)).await?;
        }
        Ok(())
    }
}

/// What is left in a zone.
#[derive(Debug, Default)]
pub struct Left {
    /// Names of deployments.
    makers: Vec<String>,
    machines: Vec<Machine>,
}

impl Left {
    /// Whether nothing is left.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.makers.is_empty() && self.machines.is_empty()
    }

    /// Names, for a sentence.
    #[must_use]
    pub fn named(&self) -> String {
        named(self.makers.iter().cloned().chain(names(&self.machines)))
    }

    /// What is told while they are waited for, with the network open.
    #[must_use]
    pub fn awaited(&self, zone: &str, closes_at: Timestamp) -> Error {
        let until = clock_time(closes_at);
        Error::not_ready(
            LOOK_AGAIN,
            format!(
                "machines of zone {zone} are still there ({}); its network is closed when they are gone, and at {until} all the same",
                self.named()
            ),
        )
    }

    /// What is told of them when the network is closed. A machine that has had its time needs somebody.
    #[must_use]
    pub fn remain(&self, zone: &str, now: Timestamp) -> Error {
        let closed = format!("the network of zone {zone} is closed");
        let overdue = self
            .machines
            .iter()
            .filter(|machine| isolation::is_overdue(machine, now));
        let overdue: Vec<_> = overdue.map(with_id).collect();
        if overdue.is_empty() {
            let why = format!("{closed}, and machines of it are still there ({})", self.named());
            return Error::not_ready(LOOK_AGAIN, why);
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

fn clock_time(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn with_id(machine: &Machine) -> String {
    let id = machine.spec.provider_id.as_deref().unwrap_or("no id is known");
    format!("{} ({id})", machine.name_any())
}

fn names<K: ResourceExt>(objects: &[K]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

fn named(names: impl IntoIterator<Item = String>) -> String {
    let all: Vec<_> = names.into_iter().collect();
    let mut said = all.iter().take(NAMED).cloned().collect::<Vec<_>>();
    if all.len() > NAMED {
        said.push(format!("{} more", all.len() - NAMED));
    }
    said.join(", ")
}

async fn in_zone<K: Object>(api: &Api<K>, zone: &str) -> Result<Vec<K>> {
    let of_zone = ListParams::default().labels(&format!("{}={zone}", labels::ZONE));
    let found = api.list(&of_zone).await;
    Ok(found
        .context(format_args!("could not list objects of kind {}", K::kind(&())))?
        .items)
}

fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
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

    #[test]
    fn those_that_are_left_are_named_and_not_all_of_very_many() {
        assert!(Left::default().is_nothing());
        let left = Left {
            makers: vec!["d".into()],
            machines: (0..9)
                .map(|number| machine(&format!("m{number}"), None))
                .collect(),
        };
        assert_eq!(left.named(), "d, m0, m1, m2, m3, 5 more");
        let said = left.awaited("z", at(600)).to_string();
        assert!(said.contains("1970-01-01T00:10:00Z all the same"), "{said}");
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
