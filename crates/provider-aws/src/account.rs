//! The way to EC2 with the account of an object.

use api::extensions::ExtensionObject;
use cloud_aws::Ec2;
use extension::Context;
use runtime::Result;

/// Where EC2 is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Another place than that of the region, for tests.
    pub endpoint: Option<String>,
}

impl Place {
    /// EC2 in a region, with the account of the object's Secret and under the right to act on the object.
    ///
    /// # Errors
    /// The Secret is missing or lacks a key, or the region is none.
    pub async fn open<K: ExtensionObject>(&self, context: &Context<K>, region: &str) -> Result<Ec2> {
        let credentials = context.credentials().await?;
        Ec2::open(&credentials, region, self.endpoint.as_deref(), context.permit())
    }
}
