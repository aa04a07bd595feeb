//! Instances, and the images of instances.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::{
    Answer, Call, Ec2, Items, Owned,
    disks::{Disk, ImageDisks},
    network::owned,
    tags::{Tag, tagged},
    termination::Termination,
};

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// The id of the instance. EC2 never gives an id twice.
    pub instance_id: String,
    /// The lifecycle state of the instance.
    #[serde(default, rename = "instanceState")]
    pub state: InstanceState,
    /// The reason for the state, where EC2 reports a reason.
    #[serde(default, rename = "stateReason")]
    pub reason: Option<StateReason>,
    /// The zone of the instance.
    #[serde(default)]
    pub placement: Placement,
    /// The VPC of the instance. An instance that is gone has no VPC.
    #[serde(default)]
    pub subnet_id: Option<String>,
    /// The tags of the instance.
    #[serde(default, rename = "tagSet")]
    pub tags: Items<Tag>,
}

/// The lifecycle state of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct InstanceState {
    /// EC2's word.
    pub name: String,
}

/// The reason for the state of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct StateReason {
    /// EC2's word, such as `Client.VolumeLimitExceeded`.
    #[serde(default)]
    pub code: String,
    /// EC2's sentence.
    #[serde(default)]
    pub message: String,
}

/// Where an instance is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The name of the zone in the account.
    #[serde(default)]
    pub availability_zone: String,
}

tagged!(Instance, instance_id);

impl Instance {
    /// Whether the instance is gone. EC2 still lists such an instance for an hour.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.state.name == "terminated"
    }

    /// Whether the instance is gone or about to end.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.is_gone() || self.state.name == "shutting-down"
    }
}

/// The parameters of a new instance.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The image.
    pub image: &'a str,
    /// The size.
    pub type_: &'a str,
    /// The subnet, and by the subnet the zone.
    pub subnet: &'a str,
    /// The security groups that allow traffic to the instance.
    pub groups: &'a [String],
    /// The user data that the instance runs at the first boot.
    pub user_data: &'a str,
    /// The first disk, where the disk differs from the first disk of the image.
    pub disk: Option<Disk<'a>>,
    /// The disks of the image.
    pub image_disks: &'a ImageDisks,
}

impl Run<'_> {
    /// The call. The account may have switched the metadata service off for new instances, and an image may
    /// demand either version of the service, so that the call names all options.
    fn call(&self, token: &str, tags: &[Tag]) -> Call {
        let call = Call::new("RunInstances")
            .with("ImageId", self.image)
            .with("InstanceType", self.type_)
            .with("MinCount", "1")
            .with("MaxCount", "1")
            .with("ClientToken", token)
            .with("SubnetId", self.subnet)
            .with_each("SecurityGroupId", self.groups)
            .with("UserData", STANDARD.encode(self.user_data))
            .with("MetadataOptions.HttpEndpoint", "enabled")
            .with("MetadataOptions.HttpTokens", "required")
            .with("MetadataOptions.HttpPutResponseHopLimit", "1")
            .tagged("instance", tags)
            .tagged("volume", tags);
        self.image_disks.mapped(call, self.disk.as_ref())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reservation {
    #[serde(default)]
    instances_set: Items<Instance>,
}

impl Ec2 {
    /// The instances of a cluster, including gone instances.
    ///
    /// # Errors
    /// See [`crate::Failed`]. Half a list is none.
    pub async fn instances(&self, of: &Owned) -> Answer<Vec<Instance>> {
        self.all(&owned("DescribeInstances", of).paged()).await
    }

    /// The instances of a cluster with this name, including gone instances.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn instances_called(&self, of: &Owned, name: &str) -> Answer<Vec<Instance>> {
        let call = owned("DescribeInstances", of).filtered("tag:Name", name);
        self.all(&call.paged()).await
    }

    /// The instance with this id, of any cluster.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn instance(&self, id: &str) -> Answer<Option<Instance>> {
        let call = Call::new("DescribeInstances").with("InstanceId.1", id);
        match self.all(&call).await {
            Ok(found) => Ok(found.into_iter().find(|instance| instance.instance_id == id)),
            Err(failed) if failed.is_missing() => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    async fn all(&self, call: &Call) -> Answer<Vec<Instance>> {
        let reservations: Vec<Reservation> = self.list(call).await?;
        let instances = reservations
            .into_iter()
            .flat_map(|one| Vec::from(one.instances_set));
        Ok(instances.collect())
    }

    /// Launches an instance. EC2 launches a single instance for a `token`, for any number of calls. The
    /// metadata service of the instance requires a session token (IMDSv2), and does not answer pods: the user
    /// data holds a token of the shoot.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn run_instance(&self, run: &Run<'_>, token: &str, tags: &[Tag]) -> Answer<Option<Instance>> {
        let made: Reservation = self.ask(&run.call(token, tags)).await?;
        Ok(Vec::from(made.instances_set).into_iter().next())
    }

    /// Terminates an instance. EC2 needs about a minute for the end of an instance.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn terminate_instance(&self, id: &str, termination: Termination) -> Answer<()> {
        self.remove(&termination.call(id)).await
    }

    /// The disks of an image. `None`: there is no such image for this account.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn image_disks(&self, image: &str) -> Answer<Option<ImageDisks>> {
        let call = Call::new("DescribeImages").with("ImageId.1", image);
        match self.list(&call).await {
            Ok(mut found) => Ok(found.pop()),
            Err(failed) if failed.is_missing() => Ok(None),
            Err(failed) => Err(failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults of the account and of the image must not decide.
    #[test]
    fn a_launch_names_all_options_of_the_metadata_service() {
        let run = Run {
            image: "ami-1",
            type_: "m5.large",
            subnet: "subnet-1",
            groups: &[],
            user_data: "",
            disk: None,
            image_disks: &ImageDisks::default(),
        };
        let form = run.call("token", &[]).form();
        let options: Vec<_> = form
            .split('&')
            .filter_map(|parameter| parameter.strip_prefix("MetadataOptions."))
            .collect();
        assert_eq!(
            options,
            [
                "HttpEndpoint=enabled",
                "HttpTokens=required",
                "HttpPutResponseHopLimit=1"
            ]
        );
    }
}
