//! The account of the keys.
//!
//! Keys of a different account show no object of the shoot. Such keys must not make an object count as gone:
//! the account in which the objects were made is recorded, and compared first.

use api::meta::ErrorCode;
use http::Uri;
use runtime::{Error, Result};
use serde::Deserialize;

use crate::{Answer, Call, Ec2, call::Service, client};

/// Annotation of the Shoot: the id of the account with the objects of the Shoot, where no id was recorded. By
/// the annotation the user confirms that objects which keys of this account do not show are gone.
pub const CONFIRMED_ACCOUNT: &str = "aws.provider.extensions.gardener.cloud/account-id";

/// An AWS account with the objects of a shoot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeAccount {
    id: Option<String>,
    subnet: Option<String>,
}

impl HomeAccount {
    /// The account with this id. `None`: the objects were made before the id was recorded.
    #[must_use]
    pub fn new(id: Option<&str>) -> Self {
        Self {
            id: id.map(str::to_owned),
            subnet: None,
        }
    }

    /// The same with a subnet of the shoot. Where no id is recorded, keys that show the subnet belong to the
    /// account.
    #[must_use]
    pub fn with_subnet(self, subnet: &str) -> Self {
        Self {
            subnet: Some(subnet.to_owned()).filter(|id| !id.is_empty()),
            ..self
        }
    }

    /// Confirms that the keys belong to the account. Without a recorded id and a subnet the call compares no
    /// account.
    ///
    /// # Errors
    /// The keys belong to a different account, or do not prove the account: [`Error::Config`]; EC2 or STS
    /// refuses or does not answer.
    pub async fn confirm(&self, ec2: &Ec2, objects: &str) -> Result<()> {
        match (&self.id, &self.subnet) {
            (Some(recorded), _) => compare(ec2, recorded, objects).await,
            (None, Some(subnet)) => confirm_by_subnet(ec2, subnet, objects).await,
            (None, None) => Ok(()),
        }
    }
}

async fn compare(ec2: &Ec2, recorded: &str, objects: &str) -> Result<()> {
    let present = ec2.account_id().await?;
    if present == recorded {
        return Ok(());
    }
    let origin = ec2.account.origin();
    Err(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!(
            "the keys of the Secret {origin} belong to account {present}, and {objects} was made in account {recorded}. No object \
             counts as gone: put keys of account {recorded} into the Secret"
        ),
    ))
}

async fn confirm_by_subnet(ec2: &Ec2, subnet: &str, objects: &str) -> Result<()> {
    if ec2.subnet(subnet).await?.is_some() {
        return Ok(());
    }
    let (origin, present) = (ec2.account.origin(), ec2.account_id().await?);
    Err(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!(
            "no account is recorded for {objects}, and the keys of the Secret {origin} (account {present}) do not show {subnet}. No object \
             counts as gone: put keys of the account with {subnet} into the Secret, and reconcile the Shoot, which records the account. If \
             account {present} is the account of the Shoot and {subnet} is gone, annotate the Shoot with {CONFIRMED_ACCOUNT}={present} first"
        ),
    ))
}

impl Ec2 {
    /// The id of the account of the keys. The call needs no right.
    ///
    /// # Errors
    /// See [`crate::Failed`].
    pub async fn account_id(&self) -> Answer<String> {
        #[derive(Deserialize)]
        struct Identified {
            #[serde(rename = "GetCallerIdentityResult")]
            caller: Caller,
        }
        #[derive(Deserialize)]
        struct Caller {
            #[serde(rename = "Account")]
            account: String,
        }
        let call = Call::to(Service::Sts, "GetCallerIdentity");
        Ok(self.ask::<Identified>(&call).await?.caller.account)
    }

    /// The address of a service in the region. An endpoint that replaces EC2 also serves STS.
    pub(crate) fn address(&self, service: Service) -> Uri {
        let is_regional =
            || client::endpoint(&self.region, None).is_ok_and(|regional| regional == self.endpoint);
        let sts = || {
            let domain = self.endpoint.host()?.strip_prefix("ec2.")?;
            format!("https://sts.{domain}").parse().ok()
        };
        match service {
            Service::Sts if is_regional() => sts().unwrap_or_else(|| self.endpoint.clone()),
            Service::Sts | Service::Ec2 => self.endpoint.clone(),
        }
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
