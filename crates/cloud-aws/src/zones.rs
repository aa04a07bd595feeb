//! Zones of a region. Their names differ from account to account, their ids do not.

use serde::{Deserialize, Serialize};

use crate::{Answer, Call, Ec2, Items};

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
        #[derive(Deserialize)]
        struct Found {
            #[serde(rename = "availabilityZoneInfo", default)]
            zones: Items<Zone>,
        }
        let call = Call::new("DescribeAvailabilityZones").filtered("zone-type", "availability-zone");
        let mut zones: Vec<Zone> = self.ask::<Found>(&call).await?.zones.into();
        zones.sort();
        Ok(zones)
    }
}
