//! The domains of AWS. Each partition of AWS has a separate domain and separate names of regions.

/// The domain of regions that are in no further partition.
const COMMERCIAL: &str = "amazonaws.com";
/// Prefixes of regions and the domain of their partition, from `partitions.json` of AWS's own libraries. The
/// partition `aws-us-gov` has the domain of the partition `aws`.
const DOMAINS: &[(&str, &str)] = &[
    ("cn-", "amazonaws.com.cn"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("eu-isoe-", "cloud.adc-e.uk"),
    ("us-isof-", "csp.hci.ic.gov"),
    ("eusc-", "amazonaws.eu"),
];

/// The domain of the services of AWS in a region. An unknown region is a commercial region.
#[must_use]
pub fn aws_domain(region: &str) -> &'static str {
    let found = DOMAINS.iter().find(|(prefix, _)| region.starts_with(prefix));
    found.map_or(COMMERCIAL, |(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::aws_domain;

    #[test]
    fn each_partition_of_aws_has_its_domain() {
        for (region, domain) in [
            ("eu-west-1", "amazonaws.com"),
            ("us-gov-west-1", "amazonaws.com"),
            ("cn-northwest-1", "amazonaws.com.cn"),
            ("us-iso-east-1", "c2s.ic.gov"),
            ("us-isob-east-1", "sc2s.sgov.gov"),
            ("eu-isoe-west-1", "cloud.adc-e.uk"),
            ("us-isof-south-1", "csp.hci.ic.gov"),
            ("eusc-de-east-1", "amazonaws.eu"),
            ("mars-north-1", "amazonaws.com"),
            ("", "amazonaws.com"),
        ] {
            assert_eq!(aws_domain(region), domain, "{region}");
        }
    }
}
