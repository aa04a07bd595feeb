//! Whether a machine's instance may still write to volumes.

use runtime::Result;

use super::{Machines, ProviderId};
use crate::instances::Instance;

/// Whether an instance may still write to volumes, as EC2 reports the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ec2Power {
    /// EC2 reports `pending` or `running`.
    Running,
    /// EC2 reports `stopped` or `terminated`.
    Off,
    /// EC2 reports `stopping` or `shutting-down`, or lists no instance. EC2 lists an instance late after the
    /// launch, and for an hour after the end.
    Unclear,
}

impl Ec2Power {
    /// The power state of a machine's instances. A single running instance counts as `Running`.
    fn from_instances(instances: &[Instance]) -> Self {
        let states = || instances.iter().map(|instance| instance.state.name.as_str());
        let count = |words: &[&str]| states().filter(|state| words.contains(state)).count();
        if count(&["pending", "running"]) > 0 {
            Self::Running
        } else if !instances.is_empty() && count(&["stopped", "terminated"]) == instances.len() {
            Self::Off
        } else {
            Self::Unclear
        }
    }
}

impl Machines {
    /// Whether the instance of a machine runs: the instance with the ID, and all instances with the machine's
    /// name.
    ///
    /// # Errors
    /// EC2 refuses or does not answer.
    pub async fn power(&self, name: &str, known: Option<&ProviderId>) -> Result<Ec2Power> {
        let mut found = self.called(name).await?;
        if let Some(known) = known
            && !found.iter().any(|instance| instance.instance_id == known.id)
        {
            match self.find_by_id(known).await? {
                Some(instance) => found.push(instance),
                // The machine's own instance is not listed, so that different instances with the name do not
                // prove the end.
                None => return Ok(Ec2Power::Unclear),
            }
        }
        Ok(Ec2Power::from_instances(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::InstanceState;

    fn instances(states: &[&str]) -> Vec<Instance> {
        let instance = |state: &&str| Instance {
            state: InstanceState {
                name: (*state).to_owned(),
            },
            ..Instance::default()
        };
        states.iter().map(instance).collect()
    }

    #[test]
    fn only_an_instance_that_is_reported_as_ended_is_off() {
        for (states, expected) in [
            (&["running"][..], Ec2Power::Running),
            (&["pending"], Ec2Power::Running),
            (&["terminated", "running"], Ec2Power::Running),
            (&["stopped"], Ec2Power::Off),
            (&["terminated", "terminated"], Ec2Power::Off),
            (&["shutting-down"], Ec2Power::Unclear),
            (&["stopping"], Ec2Power::Unclear),
            (&["terminated", "shutting-down"], Ec2Power::Unclear),
            (&["a state of the future"], Ec2Power::Unclear),
            (&[], Ec2Power::Unclear),
        ] {
            assert_eq!(
                Ec2Power::from_instances(&instances(states)),
                expected,
                "{states:?}"
            );
        }
    }
}
