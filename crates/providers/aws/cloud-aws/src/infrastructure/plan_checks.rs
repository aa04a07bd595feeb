//! Checks of a plan against the account, before the first change.

use runtime::Result;

use super::{
    config::{Plan, problem},
    found::NetworkParts,
};
use crate::{Ec2, zones::Zone};

/// The zones of the plan with the zone IDs.
///
/// # Errors
/// The account has no zone of a planned name: [`runtime::Error::Config`]; EC2 refuses or does not answer.
pub(super) async fn zones(ec2: &Ec2, plan: &Plan) -> Result<Vec<Zone>> {
    let all = ec2.zones().await?;
    let used: Vec<Zone> = all
        .iter()
        .filter(|zone| plan.zones.contains_key(&zone.name))
        .cloned()
        .collect();
    if let Some(unknown) = plan
        .zones
        .keys()
        .find(|name| !all.iter().any(|zone| zone.name == **name))
    {
        let known: Vec<&str> = all.iter().map(|zone| zone.name.as_str()).collect();
        return Err(problem(format!(
            "networks.zones names {unknown:?}, which this account does not have in {}: take some of {}",
            ec2.region(),
            known.join(", ")
        )));
    }
    Ok(used)
}

/// Refuses a change of existing subnets, because machines use the subnets.
///
/// # Errors
/// A zone or a range has changed: [`runtime::Error::Config`].
pub(super) fn refuse_changes(plan: &Plan, found: &NetworkParts) -> Result<()> {
    for subnet in &found.subnets {
        let (zone, range) = (&subnet.availability_zone, &subnet.cidr_block);
        match plan.zones.get(zone) {
            None => {
                return Err(problem(format!(
                    "zone {zone} has subnet {} of this shoot and is not named any more: put it back. Taking a zone out is not \
                     supported yet",
                    subnet.subnet_id
                )));
            }
            Some(ranges) if !ranges.iter().any(|planned| planned.to_string() == *range) => {
                return Err(problem(format!(
                    "subnet {} of zone {zone} is {range}, and ranges of subnets cannot change: put it back",
                    subnet.subnet_id
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
