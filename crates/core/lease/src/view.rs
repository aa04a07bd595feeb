//! The last Lease read, with the observation of the record.

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use crate::decision::{Decision, decide};
use crate::observation::{LeaseState, Observation};
use crate::{ElectionRecord, Timing};

/// The last Lease read, for the next write, and the observation of its record, for the next decision.
#[derive(Debug, Default)]
pub(crate) struct View {
    lease: Option<Lease>,
    observation: Option<Observation>,
}

impl View {
    /// Records a read. `now` is after the answer arrived: a later start of the wait is safe.
    pub(crate) fn see(&mut self, lease: Option<Lease>, now: Instant) {
        let seen = match &lease {
            Some(lease) => LeaseState::Present(ElectionRecord::read(lease.spec.as_ref())),
            None => LeaseState::Absent,
        };
        match &mut self.observation {
            Some(observation) => observation.update(seen, now.into_std()),
            None => self.observation = Some(Observation::first(seen, now.into_std())),
        }
        self.lease = lease;
    }

    /// The next step; `None` before the first read.
    pub(crate) fn decide(&self, me: &str, timing: &Timing) -> Option<Decision> {
        let observation = self.observation.as_ref()?;
        Some(decide(observation, me, timing, Instant::now().into_std()))
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    pub(crate) fn record(&self) -> ElectionRecord {
        ElectionRecord::read(self.lease.as_ref().and_then(|lease| lease.spec.as_ref()))
    }

    pub(crate) fn version(&self) -> Option<String> {
        self.lease
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone())
    }

    pub(crate) fn holder(&self) -> Option<&str> {
        self.observation.as_ref().and_then(Observation::holder)
    }

    /// The start of the time without a holder, if there was a holder before.
    pub(crate) fn free_since(&self, timing: &Timing) -> Option<Instant> {
        let now = Instant::now().into_std();
        let observation = self.observation.as_ref()?;
        observation
            .free_since(timing.lease_duration, now)
            .map(Instant::from_std)
    }
}
