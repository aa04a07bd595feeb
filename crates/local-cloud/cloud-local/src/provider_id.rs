//! `spec.providerID` of a Node: `local:///<zone>/<id>`.

use std::{fmt, str::FromStr};

const SCHEME: &str = "local:///";

/// The instance of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderId {
    /// Zone of the instance.
    pub zone: String,
    /// Id of the instance; distinguishes the instance from an earlier instance of the same name.
    pub id: String,
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.zone, self.id)
    }
}

impl FromStr for ProviderId {
    type Err = String;

    /// Fails for the ids of foreign clouds, because the instances of foreign clouds are unknown here.
    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_prefix(SCHEME)
            .and_then(|rest| rest.split_once('/'))
            .filter(|(zone, id)| !zone.is_empty() && !id.is_empty() && !id.contains('/'))
            .map(|(zone, id)| Self {
                zone: zone.to_owned(),
                id: id.to_owned(),
            })
            .ok_or_else(|| format!("{text:?} is no provider id such as {SCHEME}zone/id"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::ProviderId;

    #[test]
    fn it_is_read_as_it_was_written() {
        let id = ProviderId {
            zone: "zone-a".into(),
            id: "i-1".into(),
        };
        assert_eq!(id.to_string(), "local:///zone-a/i-1");
        assert_eq!(id.to_string().parse::<ProviderId>().unwrap(), id);
    }

    #[rstest]
    fn others_are_not_ours(
        #[values(
            "kind://docker/a/b",
            "local://a/i-1",
            "local:////i-1",
            "local:///a/",
            "local:///a/b/c",
            ""
        )]
        text: &str,
    ) {
        assert!(text.parse::<ProviderId>().is_err());
    }
}
