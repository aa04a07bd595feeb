//! The way to EC2 with the account of an object.

use api::extensions::ExtensionObject;
use cloud_aws::Ec2;
use extension::Context;
use runtime::{Result, clock};
use sha2::{Digest, Sha256};

/// For how long a call that is repeated is known as the same one. Longer than a process needs to come back after a crash, short
/// enough that what somebody has removed by hand can be made anew soon.
const SAME_CALL_FOR: i64 = 600;

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

/// A client token: EC2 makes a thing once, however often it is asked by the same token. It is the same for some minutes
/// ([`SAME_CALL_FOR`]), so that an answer that was lost makes no second one; what is made anew later is another one.
#[must_use]
pub fn token(parent: &str, name: &str) -> String {
    let time = clock::now().as_second() / SAME_CALL_FOR;
    let digest = Sha256::digest(format!("{parent}/{name}/{time}"));
    // EC2 takes 64 characters.
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn a_token_is_of_one_thing() {
        let one = token("vpc-1", "acl");
        assert!(one.len() == 32 && one.is_ascii(), "{one}");
        assert_ne!(one, token("vpc-2", "acl"));
        assert_ne!(one, token("vpc-1", "nat"));
    }
}
