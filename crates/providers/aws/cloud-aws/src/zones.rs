//! Zones of a region. The names of zones differ from account to account, the ids do not.

use serde::{Deserialize, Serialize};

use crate::{Answer, Call, Ec2};

/// Label of Nodes with the ID of the zone, as Kubernetes' cloud-controller-manager for AWS writes the label.
pub const ID_LABEL: &str = "topology.k8s.aws/zone-id";

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// The name of the zone in this account.
    #[serde(rename(deserialize = "zoneName", serialize = "name"), alias = "name")]
    pub name: String,
    /// The id of the zone, the same in all accounts.
    #[serde(rename(deserialize = "zoneId", serialize = "id"), alias = "id")]
    pub id: String,
}

impl Ec2 {
    /// All zones of the region that the account can use, by name.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn zones(&self) -> Answer<Vec<Zone>> {
        let call = Call::new("DescribeAvailabilityZones").filtered("zone-type", "availability-zone");
        let mut zones: Vec<Zone> = self.list(&call).await?;
        zones.sort();
        Ok(zones)
    }
}
