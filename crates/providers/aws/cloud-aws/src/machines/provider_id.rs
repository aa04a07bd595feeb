//! `spec.providerID` of a Node: `aws:///<zone>/<id>`, as the cloud-controller-manager of AWS writes the
//! field.

use std::{fmt, str::FromStr};

use crate::instances::Instance;

const SCHEME: &str = "aws:///";

/// The instance of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderId {
    /// The name of the instance's zone in the account.
    pub zone: String,
    /// EC2's id of the instance.
    pub id: String,
}

impl From<&Instance> for ProviderId {
    fn from(instance: &Instance) -> Self {
        Self {
            zone: instance.placement.availability_zone.clone(),
            id: instance.instance_id.clone(),
        }
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.zone, self.id)
    }
}

impl FromStr for ProviderId {
    type Err = String;

    /// Fails for the ids of different clouds: this provider does not know instances of such clouds.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
        match parts {
            Some((zone, id)) if id.starts_with("i-") && !id.contains('/') => Ok(Self {
                zone: zone.to_owned(),
                id: id.to_owned(),
            }),
            _ => Err(format!(
                "{text:?} is no id of an instance such as {SCHEME}eu-west-1a/i-0123"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let text = "aws:///eu-west-1a/i-0123";
        assert_eq!(text.parse::<ProviderId>().unwrap().to_string(), text);
        for other in [
            "local:///a/i-1",
            "aws:///eu-west-1a/",
            "aws:///i-1",
            "aws:///a/i-1/b",
            "aws:///a/x",
            "",
        ] {
            assert!(other.parse::<ProviderId>().is_err(), "{other}");
        }
    }
}
