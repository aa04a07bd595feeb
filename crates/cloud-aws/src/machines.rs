//! The machines of one shoot.
//!
//! An instance carries the cluster's tag and the machine's name from the call on that makes it, and is looked for by them. A machine's name
//! is never given twice, so that one client token is its for ever: a call whose answer was lost makes no second instance, however late it
//! is repeated, whoever repeats it. What is on its way out counts as gone for who looks for a machine, and as there for who takes it away:
//! its pods may still be running.

mod provider_id;
mod spec;

use std::time::Duration;

use api::meta::ErrorCode;
use runtime::{Error, Result};

pub use provider_id::ProviderId;
pub use spec::{ProviderSpec, RootVolume};

use crate::{
    Ec2, Owned, Tagged,
    instances::{Disk, Instance, Run},
    token::token_for_ever,
};

/// How soon to look again for an instance that shuts down.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long EC2 may not list an instance after the launch. A search that finds nothing before says nothing
/// about the instance.
pub const LISTED_WITHIN: Duration = Duration::from_secs(3 * 60);
/// EC2's word for a token that was used for another call.
const OTHER_CALL: &str = "IdempotentParameterMismatch";

/// The machines of one cluster.
pub struct Machines {
    ec2: Ec2,
    cluster: String,
    owned: Owned,
}

impl Machines {
    /// Those of the shoot with this technical id.
    #[must_use]
    pub fn of(ec2: Ec2, technical_id: &str) -> Self {
        Self {
            ec2,
            cluster: technical_id.to_owned(),
            owned: Owned::by(technical_id),
        }
    }

    /// Makes the instance of a machine of which [`Machines::find`] has just said that there is none.
    ///
    /// # Errors
    /// EC2 refuses, does not answer, or has ended the instance at once.
    pub async fn launch(&self, name: &str, spec: &ProviderSpec, user_data: &str) -> Result<Instance> {
        let device = self.device(spec).await?;
        let disk = spec.root_volume.as_ref().zip(device.as_deref());
        let run = Run {
            image: &spec.ami,
            type_: &spec.machine_type,
            subnet: &spec.subnet_id,
            groups: &spec.security_group_ids,
            user_data,
            disk: disk.map(|(volume, device)| Disk {
                device,
                gib: volume.size_gib,
                type_: volume.type_.as_deref(),
                is_encrypted: volume.encrypted,
            }),
        };
        let token = token_for_ever(&self.cluster, name);
        let made = self.ec2.run_instance(&run, &token, &self.owned.tags(name)).await;
        let made = match made {
            // An earlier attempt ran with other data, and its answer was lost. It has the tags, and is found by them.
            Err(failed) if failed.code() == OTHER_CALL => {
                return Err(Error::transient(format!(
                    "an earlier attempt has made the instance of {name}, which EC2 does not list yet: it is looked for again"
                )));
            }
            made => made?,
        };
        let instance = made.ok_or_else(|| {
            Error::transient(format!(
                "EC2 has made no instance of {name} and says nothing of it"
            ))
        })?;
        if instance.is_going() {
            return Err(ended(&instance));
        }
        Ok(instance)
    }

    /// How the image calls its disk, where another one is wanted.
    async fn device(&self, spec: &ProviderSpec) -> Result<Option<String>> {
        if spec.root_volume.is_none() {
            return Ok(None);
        }
        let device = self.ec2.root_device(&spec.ami).await?;
        let device = device.filter(|device| !device.is_empty()).ok_or_else(|| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "the account sees no image {} in {}: correct the CloudProfile, or share the image with the account",
                    spec.ami,
                    self.ec2.region()
                ),
            )
        })?;
        Ok(Some(device))
    }

    /// The instance of a machine: the one with the id that it is known by, else the one that carries its name; of several the one with
    /// the lowest id, for everybody the same.
    ///
    /// # Errors
    /// EC2 refuses or does not answer. It is not concluded that there is none.
    pub async fn find(&self, name: &str, known: Option<&ProviderId>) -> Result<Option<Instance>> {
        let found = match known {
            Some(known) => self.known(known).await?.into_iter().collect(),
            None => self.ec2.instances_called(&self.owned, name).await?,
        };
        let there = found.into_iter().filter(|instance| !instance.is_going());
        Ok(there.min_by(|one, other| one.instance_id.cmp(&other.instance_id)))
    }

    /// The instance with an id. What is not this cluster's is not touched, whoever says that it is: an id comes from an object that was
    /// carried here.
    async fn known(&self, known: &ProviderId) -> Result<Option<Instance>> {
        let found = self.ec2.instance(&known.id).await?;
        match found {
            Some(stranger) if !self.owned.is(&stranger) && !stranger.is_gone() => Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "the instance {} has not the tag {} of this cluster and is left alone: put the tag back if it is the cluster's, or take the \
                     id out of the Machine",
                    known.id,
                    self.owned.key()
                ),
            )),
            found => Ok(found),
        }
    }

    /// Takes away the instance of a machine, and what else carries its name. What is gone already is success.
    /// `since_launch` is the shortest time that may have passed since the last launch. EC2 lists an ended
    /// instance for an hour, so that only an instance that is not listed at all may be a new instance.
    ///
    /// # Errors
    /// EC2 refuses or does not answer; an instance still shuts down, or EC2 lists none within
    /// [`LISTED_WITHIN`] after the launch: [`Error::NotReady`].
    pub async fn terminate(
        &self,
        name: &str,
        known: Option<&ProviderId>,
        since_launch: Duration,
    ) -> Result<()> {
        let mut found = self.ec2.instances_called(&self.owned, name).await?;
        if let Some(known) = known
            && !found.iter().any(|instance| instance.instance_id == known.id)
        {
            found.extend(self.known(known).await?);
        }
        if found.is_empty() && since_launch < LISTED_WITHIN {
            return Err(Error::NotReady {
                after: LOOK_AGAIN,
                why: format!(
                    "EC2 lists no instance of {name}, and may list an instance only {LISTED_WITHIN:?} after its launch"
                ),
            });
        }
        let mut waits_for = None;
        for instance in found.iter().filter(|instance| !instance.is_gone()) {
            if !instance.is_going() {
                self.ec2.terminate_instance(&instance.instance_id).await?;
            }
            waits_for = Some(instance.id());
        }
        waits_for.map_or(Ok(()), |id| {
            Err(Error::NotReady {
                after: LOOK_AGAIN,
                why: format!("the instance {id} shuts down"),
            })
        })
    }

    /// All instances of the cluster that are not on their way out.
    ///
    /// # Errors
    /// EC2 refuses or does not answer. Half a list is none.
    pub async fn list(&self) -> Result<Vec<Instance>> {
        let mut all = self.ec2.instances(&self.owned).await?;
        all.retain(|instance| !instance.is_going());
        Ok(all)
    }
}

/// EC2 takes some launches and ends them: a disk that the quota does not allow, a key that the account may not use.
fn ended(instance: &Instance) -> Error {
    let reason = instance.reason.clone().unwrap_or_default();
    let code = if reason.code.contains("Limit") {
        ErrorCode::ErrInfraQuotaExceeded
    } else if reason.code.contains("Insufficient") {
        ErrorCode::ErrInfraResourcesDepleted
    } else {
        ErrorCode::ErrInfraDependencies
    };
    Error::config(
        code,
        format!(
            "EC2 has ended the instance {} at once: {} ({}); another machine takes its place when the pool's creation timeout is over",
            instance.instance_id, reason.code, reason.message
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::StateReason;

    #[test]
    fn who_has_to_act_for_a_launch_that_was_ended() {
        for (code, expected) in [
            ("Client.VolumeLimitExceeded", ErrorCode::ErrInfraQuotaExceeded),
            (
                "Server.InsufficientInstanceCapacity",
                ErrorCode::ErrInfraResourcesDepleted,
            ),
            ("Client.InternalError", ErrorCode::ErrInfraDependencies),
        ] {
            let reason = Some(StateReason {
                code: code.into(),
                message: "No".into(),
            });
            let error = ended(&Instance {
                instance_id: "i-1".into(),
                reason,
                ..Instance::default()
            });
            assert_eq!(error.codes(), [expected]);
            assert!(error.to_string().contains("i-1 at once"), "{error}");
        }
    }
}
