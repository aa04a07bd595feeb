//! The phases of a Machine.

use api::machine::Machine;

/// The phase of a Machine, as in `status.currentStatus.phase`. In the order in which surplus Machines are
/// deleted: the least useful first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The Machine is being deleted.
    Terminating,
    /// The machine never joined, or was unhealthy for too long: the set replaces the Machine.
    Failed,
    /// The cloud refuses to create the instance; the creation is retried.
    CrashLoopBackOff,
    /// The Node is unhealthy.
    Unknown,
    /// The machine is to join: no instance exists, or only the instance.
    Pending,
    /// The Node is ready.
    Running,
}

impl Phase {
    const ALL: [Self; 6] = [
        Self::Terminating,
        Self::Failed,
        Self::CrashLoopBackOff,
        Self::Unknown,
        Self::Pending,
        Self::Running,
    ];

    /// The phase as written in the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminating => "Terminating",
            Self::Failed => "Failed",
            Self::CrashLoopBackOff => "CrashLoopBackOff",
            Self::Unknown => "Unknown",
            Self::Pending => "Pending",
            Self::Running => "Running",
        }
    }

    /// The phase in the status of a Machine; `None` without a known phase, as after a restore.
    pub fn from_status(machine: &Machine) -> Option<Self> {
        let told = machine
            .status
            .as_ref()?
            .current_status
            .as_ref()?
            .phase
            .as_deref()?;
        let phase = Self::ALL.into_iter().find(|phase| phase.as_str() == told);
        match phase {
            // The Machine was moved here from a seed on which the Machine was in deletion.
            Some(Self::Terminating) if machine.metadata.deletion_timestamp.is_none() => None,
            // Upstream's phase of an instance that exists and has not joined.
            None if told == "Available" => Some(Self::Pending),
            other => other,
        }
    }

    /// How a Machine counts.
    pub fn from_machine(machine: &Machine) -> Self {
        if machine.metadata.deletion_timestamp.is_some() {
            return Self::Terminating;
        }
        Self::from_status(machine).unwrap_or(Self::Pending)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::new("", false, None, Phase::Pending)]
    #[case::well("Running", false, Some(Phase::Running), Phase::Running)]
    #[case::upstream("Available", false, Some(Phase::Pending), Phase::Pending)]
    #[case::of_another_manager("InPlaceUpdating", false, None, Phase::Pending)]
    #[case::going("Running", true, Some(Phase::Running), Phase::Terminating)]
    #[case::was_going_elsewhere("Terminating", false, None, Phase::Pending)]
    #[case::goes("Terminating", true, Some(Phase::Terminating), Phase::Terminating)]
    fn a_phase_is_told_and_counts(
        #[case] written: &str,
        #[case] deleted: bool,
        #[case] told: Option<Phase>,
        #[case] counts: Phase,
    ) {
        let time = deleted.then_some("2026-01-01T00:00:00Z");
        let machine: Machine = serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "spec": {},
            "metadata": {"name": "m", "deletionTimestamp": time},
            "status": {"currentStatus": {"phase": written}},
        }))
        .unwrap();
        assert_eq!(
            (Phase::from_status(&machine), Phase::from_machine(&machine)),
            (told, counts)
        );
    }
}
