//! The name of the zone with an ID in the account. The infrastructure's status has the name, so that no call
//! is needed.

use api::meta::RawExtension;
use cloud_aws::{infrastructure::InfrastructureStatus, zones::Zone};
use runtime::Result;

use crate::problem::problem;

/// The reported status of an Infrastructure.
///
/// # Errors
/// The status is missing or invalid.
pub fn infrastructure(told: Option<&RawExtension>) -> Result<InfrastructureStatus> {
    let status = told.map(RawExtension::decode::<InfrastructureStatus>).transpose();
    match status {
        Ok(Some(status)) if !status.vpc.id.is_empty() => Ok(status),
        Ok(_) => Err(problem(
            "spec.infrastructureProviderStatus names no VPC: the object is wanted before its infrastructure",
        )),
        Err(error) => Err(problem(format!(
            "spec.infrastructureProviderStatus cannot be understood: {error}"
        ))),
    }
}

/// The name of the zone with this ID, among those that the shoot uses.
///
/// # Errors
/// No zone has the ID, or several names have the ID.
pub fn named<'z>(zones: &'z [Zone], id: &str) -> Result<&'z str> {
    let mut names = zones
        .iter()
        .filter(|zone| zone.id == id)
        .map(|zone| zone.name.as_str());
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name),
        (Some(one), Some(other)) => Err(problem(format!(
            "{one} and {other} both have the zone ID {id:?}: reconcile the shoot, so that its zones are looked up again"
        ))),
        (None, _) => {
            let known: Vec<String> = zones
                .iter()
                .map(|zone| format!("{} ({})", zone.id, zone.name))
                .collect();
            Err(problem(format!(
                "no zone of the shoot has the ID {id:?}: take one of {}",
                known.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::meta::ErrorCode;
    use serde_json::json;

    use super::*;

    fn zones(pairs: &[(&str, &str)]) -> Vec<Zone> {
        let zone = |(name, id): &(&str, &str)| Zone {
            name: (*name).into(),
            id: (*id).into(),
        };
        pairs.iter().map(zone).collect()
    }

    #[test]
    fn an_id_is_one_name() {
        let two = zones(&[("eu-west-1a", "euw1-az3"), ("eu-west-1b", "euw1-az1")]);
        assert_eq!(named(&two, "euw1-az1").unwrap(), "eu-west-1b");
        let unknown = named(&two, "eu-west-1b").unwrap_err().to_string();
        assert!(
            unknown.contains("euw1-az3 (eu-west-1a), euw1-az1 (eu-west-1b)"),
            "{unknown}"
        );
        let twice = zones(&[("eu-west-1a", "euw1-az1"), ("eu-west-1b", "euw1-az1")]);
        assert_eq!(
            named(&twice, "euw1-az1").unwrap_err().codes(),
            [ErrorCode::ErrConfigurationProblem]
        );
    }

    #[test]
    fn an_infrastructure_that_is_not_there_is_told() {
        for told in [
            None,
            Some(json!({})),
            Some(json!({"vpc": "x"})),
            Some(json!(null)),
        ] {
            let error = infrastructure(told.clone().map(RawExtension).as_ref());
            assert_eq!(
                error.unwrap_err().codes(),
                [ErrorCode::ErrConfigurationProblem],
                "{told:?}"
            );
        }
    }
}
