//! Zones of a region. Their names differ from account to account, their ids do not.

use serde::{Deserialize, Serialize};

use crate::{Answer, Call, Ec2};

/// Label of Nodes with the ID of their zone, as Kubernetes' cloud-controller-manager for AWS writes the
/// label.
pub const ID_LABEL: &str = "topology.k8s.aws/zone-id";

/// One zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// What this account calls it.
    #[serde(rename(deserialize = "zoneName", serialize = "name"), alias = "name")]
    pub name: String,
    /// What every account calls it.
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
