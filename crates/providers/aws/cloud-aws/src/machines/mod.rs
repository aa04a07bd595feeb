//! The machines of a shoot.
//!
//! An instance has the cluster's tag and the machine's name from the launch call on, and is looked up by tag
//! and name. A machine's name is never reused, so that a client token belongs to a machine for ever. A launch
//! call with a lost answer makes no second instance, also when a different process repeats the call much
//! later. An instance that is about to end counts as gone in a lookup. In a removal the instance counts as
//! present: pods may still be running.

mod power;
mod provider_id;
mod spec;

use std::time::Duration;

use api::meta::ErrorCode;
use runtime::{Error, Result};

pub use power::Ec2Power;
pub use provider_id::ProviderId;
pub use spec::{ProviderSpec, RootVolume};

use crate::{
    Ec2, Owned, Tagged,
    disks::{Disk, ImageDisks},
    identity::HomeAccount,
    instances::{Instance, Run},
    tags::SHOOT_UID,
    termination::Termination,
    token::token_for_ever,
};

/// Requeue delay for an instance that shuts down, and for an instance that EC2 does not list yet.
const INSTANCE_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How long EC2 may not list an instance after the launch. A search without a result in this time does not
/// prove that the instance is gone.
pub const LISTED_WITHIN: Duration = Duration::from_secs(3 * 60);
/// Requeue delay of the next check and the next termination call for an instance with a forced end.
const FORCE_AGAIN: Duration = Duration::from_secs(30);
/// EC2's code for a launch that fails by a disk.
const LAUNCH_ERROR: &str = "Client.InternalError";
/// EC2's code for a token that was used for a different call.
const OTHER_CALL: &str = "IdempotentParameterMismatch";

/// The machines of a cluster.
pub struct Machines {
    ec2: Ec2,
    cluster: String,
    owned: Owned,
    ending_for: Duration,
    home: HomeAccount,
}

impl Machines {
    /// Those of the shoot with this technical id.
    #[must_use]
    pub fn for_cluster(ec2: Ec2, technical_id: &str) -> Self {
        Self {
            ec2,
            cluster: technical_id.to_owned(),
            owned: Owned::by(technical_id),
            ending_for: Duration::ZERO,
            home: HomeAccount::default(),
        }
    }

    /// The same with the account of the instances: with keys of a different account no instance counts as
    /// gone.
    #[must_use]
    pub fn in_account(self, home: HomeAccount) -> Self {
        Self { home, ..self }
    }

    /// The same with the uid of the Shoot. An instance with a different uid belongs to a second garden and is
    /// left alone.
    #[must_use]
    pub fn of_shoot(self, uid: Option<&str>) -> Self {
        let owned = self.owned.of_shoot(uid);
        Self { owned, ..self }
    }

    /// The instances with the name of a machine, without instances of a second garden.
    async fn called(&self, name: &str) -> Result<Vec<Instance>> {
        let mut found = self.ec2.instances_called(&self.owned, name).await?;
        found.retain(|instance| self.owned.foreign_uid(instance).is_none());
        Ok(found)
    }

    async fn confirm_account(&self) -> Result<()> {
        let instances = format!("the network of {}", self.cluster);
        self.home.confirm(&self.ec2, &instances).await
    }

    /// The same, where EC2 has accepted the termination of the machine so long ago that the termination may
    /// hang.
    #[must_use]
    pub fn ending_for(self, ending_for: Duration) -> Self {
        Self { ending_for, ..self }
    }

    /// Launches the instance of a machine without an instance. The caller has just asked [`Machines::find`].
    ///
    /// # Errors
    /// EC2 refuses, does not answer, or has ended the instance at once.
    pub async fn launch(&self, name: &str, spec: &ProviderSpec, user_data: &str) -> Result<Instance> {
        let image_disks = self.image_disks(spec).await?;
        let run = Run {
            image: &spec.ami,
            type_: &spec.machine_type,
            subnet: &spec.subnet_id,
            groups: &spec.security_group_ids,
            user_data,
            disk: spec.root_volume.as_ref().map(|volume| Disk {
                device: &image_disks.root,
                gib: volume.size_gib,
                type_: volume.type_.as_deref(),
                is_encrypted: volume.encrypted,
            }),
            image_disks: &image_disks,
        };
        let token = token_for_ever(&self.cluster, name);
        let made = self.ec2.run_instance(&run, &token, &self.owned.tags(name)).await;
        let made = match made {
            // An earlier attempt ran with different data, and the answer was lost. The instance has the tags,
            // and is found by the tags.
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

    /// The disks of the image of a machine.
    async fn image_disks(&self, spec: &ProviderSpec) -> Result<ImageDisks> {
        let disks = self.ec2.image_disks(&spec.ami).await?;
        disks.filter(|disks| !disks.root.is_empty()).ok_or_else(|| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "the account sees no image {} in {}: correct the CloudProfile, or share the image with the account",
                    spec.ami,
                    self.ec2.region()
                ),
            )
        })
    }

    /// The instance of a machine: the instance with the known id, else the instance with the machine's name.
    /// Of several instances all callers get the instance with the lowest id.
    ///
    /// # Errors
    /// EC2 refuses or does not answer. The caller must not conclude that the instance does not exist.
    pub async fn find(&self, name: &str, known: Option<&ProviderId>) -> Result<Option<Instance>> {
        let found = match known {
            Some(known) => self.find_by_id(known).await?.into_iter().collect(),
            None => self.called(name).await?,
        };
        let there = found.into_iter().filter(|instance| !instance.is_going());
        Ok(there.min_by(|one, other| one.instance_id.cmp(&other.instance_id)))
    }

    /// As [`Machines::find`], for an instance that may just have been launched. `since_launch` is the
    /// shortest time that may have passed since.
    ///
    /// # Errors
    /// As for [`Machines::find`]; EC2 does not list the instance yet that is known: [`Error::NotReady`].
    pub async fn find_launched(
        &self,
        name: &str,
        known: Option<&ProviderId>,
        since_launch: Duration,
    ) -> Result<Option<Instance>> {
        match known {
            Some(known) if since_launch < LISTED_WITHIN => {
                let found = self.find_by_id(known).await?.ok_or_else(|| not_listed(name))?;
                Ok(Some(found).filter(|instance| !instance.is_going()))
            }
            known => self.find(name, known).await,
        }
    }

    /// The error for which EC2 has ended an instance after the launch; `None` while the instance starts or
    /// runs, or is not listed.
    ///
    /// # Errors
    /// EC2 refuses or does not answer.
    pub async fn launch_failure(&self, known: &ProviderId) -> Result<Option<Error>> {
        let found = self.find_by_id(known).await?;
        Ok(found.filter(Instance::is_going).map(|instance| ended(&instance)))
    }

    /// The instance with an id. An instance of a different cluster is not touched. The id comes from an
    /// object that was carried to this seed, and such an object may name a foreign instance.
    async fn find_by_id(&self, known: &ProviderId) -> Result<Option<Instance>> {
        let found = self.ec2.instance(&known.id).await?;
        if found.is_none() {
            self.confirm_account().await?;
        }
        let foreign_uid = found.as_ref().and_then(|found| self.owned.foreign_uid(found));
        if let Some(uid) = foreign_uid {
            return Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "the instance {} belongs to a different Shoot, by the uid {uid} in its tag {SHOOT_UID}, and is left alone: take the id out of \
                     the Machine",
                    known.id
                ),
            ));
        }
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

    /// Terminates the instance of a machine, and all further instances with the machine's name. An instance
    /// that is gone already is success. `since_launch` is the shortest time that may have passed since the
    /// last launch. EC2 lists an ended instance for an hour, so that only an instance that is not listed at
    /// all may be a new instance.
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
        let mut found = self.called(name).await?;
        if let Some(known) = known
            && !found.iter().any(|instance| instance.instance_id == known.id)
        {
            found.extend(self.find_by_id(known).await?);
        }
        let mut waits_for = None;
        for instance in found.iter().filter(|instance| !instance.is_gone()) {
            waits_for = Some(self.end(instance).await?);
        }
        if let Some(awaited) = waits_for {
            return Err(awaited);
        }
        // A second instance of the name does not show that the known instance is gone.
        let is_listed = match known {
            Some(known) => found.iter().any(|instance| instance.instance_id == known.id),
            None => !found.is_empty(),
        };
        if is_listed {
            return Ok(());
        }
        if since_launch >= LISTED_WITHIN {
            return self.confirm_account().await;
        }
        Err(not_listed(name))
    }

    /// Terminates only this instance: instances of different machines may carry the same name, as a user of
    /// the account may change the tag. An instance that is gone already is success.
    ///
    /// # Errors
    /// As for [`Machines::terminate`].
    pub async fn terminate_only(&self, known: &ProviderId) -> Result<()> {
        let found = self.find_by_id(known).await?;
        match found.filter(|instance| !instance.is_gone()) {
            Some(instance) => Err(self.end(&instance).await?),
            None => self.confirm_account().await,
        }
    }

    /// Terminates an existing instance. Returns the awaited state as an error.
    async fn end(&self, instance: &Instance) -> Result<Error> {
        let (id, termination) = (instance.id(), Termination::after(self.ending_for));
        if termination == Termination::Graceful {
            if !instance.is_going() {
                self.ec2.terminate_instance(id, termination).await?;
            }
            return Ok(Error::not_ready(
                INSTANCE_POLL_INTERVAL,
                format!("the instance {id} shuts down"),
            ));
        }
        let forced = self
            .ec2
            .terminate_instance(id, termination)
            .await
            .map_err(Error::from);
        let minutes = self.ending_for.as_secs() / 60;
        let why = match forced {
            Ok(()) => format!(
                "the instance {id} has shut down for {minutes} min, and EC2 is asked to force its end"
            ),
            // The instance may end all the same.
            Err(error) if error.is_failure() => {
                format!(
                    "the instance {id} has shut down for {minutes} min, and its end cannot be forced: {error}"
                )
            }
            Err(error) => return Err(error),
        };
        Ok(Error::not_ready(FORCE_AGAIN, why))
    }

    /// All instances of the cluster that are not about to end.
    ///
    /// # Errors
    /// EC2 refuses or does not answer. Half a list is none.
    pub async fn list(&self) -> Result<Vec<Instance>> {
        self.confirm_account().await?;
        let mut all = self.ec2.instances(&self.owned).await?;
        all.retain(|instance| !instance.is_going() && self.owned.foreign_uid(instance).is_none());
        Ok(all)
    }
}

fn not_listed(name: &str) -> Error {
    Error::not_ready(
        INSTANCE_POLL_INTERVAL,
        format!(
            "EC2 lists no instance of {name}, and may list an instance only {LISTED_WITHIN:?} after its launch"
        ),
    )
}

/// EC2 accepts some launches and ends the instances: the quota does not allow a disk, or the account may not
/// use a key.
fn ended(instance: &Instance) -> Error {
    let reason = instance.reason.clone().unwrap_or_default();
    let code = if reason.code.contains("Limit") {
        ErrorCode::ErrInfraQuotaExceeded
    } else if reason.code.contains("Insufficient") {
        ErrorCode::ErrInfraResourcesDepleted
    } else {
        ErrorCode::ErrInfraDependencies
    };
    let remedy = match reason.code.as_str() {
        // EC2 ends a launch with these codes where the account may not use the key of a disk.
        LAUNCH_ERROR => "check the rights of the account to the KMS key of encrypted disks",
        code if code.contains("KMSKey") => "check state and key policy of the KMS key of encrypted disks",
        _ => "correct the cause",
    };
    Error::config(
        code,
        format!(
            "EC2 has accepted the launch of the instance {} and has ended the instance: {} ({}); {remedy}. A new machine takes \
             the place of this machine after the pool's creation timeout",
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
        for (code, expected, remedy) in [
            (
                "Client.VolumeLimitExceeded",
                ErrorCode::ErrInfraQuotaExceeded,
                "correct the cause",
            ),
            (
                "Server.InsufficientInstanceCapacity",
                ErrorCode::ErrInfraResourcesDepleted,
                "correct the cause",
            ),
            (
                "Client.InternalError",
                ErrorCode::ErrInfraDependencies,
                "rights of the account to the KMS key",
            ),
            (
                "Client.InvalidKMSKey.InvalidState",
                ErrorCode::ErrInfraDependencies,
                "key policy of the KMS key",
            ),
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
            let report = error.to_string();
            assert!(
                report.contains("instance i-1 and has ended the instance") && report.contains(remedy),
                "{report}"
            );
        }
    }
}
