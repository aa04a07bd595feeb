//! The way to EC2 with the account of an object.

use api::extensions::ExtensionObject;
use cloud_aws::{Ec2, Ec2Access};
use extension::Context;
use runtime::Result;

/// Access to EC2 with the account of an object.
#[derive(Clone, Debug, Default)]
pub struct AccountAccess {
    /// Access to EC2, shared by all actuators of the process.
    pub access: Ec2Access,
}

impl AccountAccess {
    /// `endpoint` replaces the address of each region, for tests.
    #[must_use]
    pub fn new(endpoint: Option<String>) -> Self {
        Self {
            access: Ec2Access::new(endpoint),
        }
    }

    /// EC2 in a region, with the account of the object's Secret and under the right to act on the object.
    ///
    /// # Errors
    /// The Secret is missing or lacks a key, or the region is none.
    pub async fn open<K: ExtensionObject>(&self, context: &Context<K>, region: &str) -> Result<Ec2> {
        let credentials = context.credentials().await?;
        self.access.open(&credentials, region, context.permit())
    }
}
