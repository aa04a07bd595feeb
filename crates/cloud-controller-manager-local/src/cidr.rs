//! IPv4 ranges as node IPAM and the load balancers count them. Pure.

use std::{fmt, net::Ipv4Addr, str::FromStr};

/// A range of addresses such as `100.96.0.0/11`. Its first address is at a boundary of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    first: u32,
    prefix: u8,
}

impl Cidr {
    /// The range of this size that holds the address. A size above 32 counts as 32.
    #[must_use]
    pub fn around(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.min(32);
        Self {
            first: u32::from(address) & mask(prefix),
            prefix,
        }
    }

    /// The range that a Node says it has. `None`: it is no IPv4 range, so it has no address in common with any.
    #[must_use]
    pub fn of_node(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// The first address, as a number.
    #[must_use]
    pub fn first(self) -> u32 {
        self.first
    }

    /// The last address, as a number.
    #[must_use]
    pub fn last(self) -> u32 {
        self.first | !mask(self.prefix)
    }

    /// Bits that are the same in all its addresses.
    #[must_use]
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether the address is in it.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (self.first..=self.last()).contains(&u32::from(address))
    }
}

impl FromStr for Cidr {
    type Err = String;

    /// The range that holds the address, whichever of its addresses that is: so kube-controller-manager takes the same flags,
    /// and a range that it divides must not stop the process to which node IPAM is handed over.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no IPv4 range such as 100.96.0.0/11");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address = address.parse().map_err(|_| wrong())?;
        let is_number = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix
            .parse()
            .ok()
            .filter(|prefix| is_number && *prefix <= 32)
            .ok_or_else(wrong)?;
        Ok(Self::around(address, prefix))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.prefix)
    }
}

fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::Cidr;

    /// The right column is what Go's `net.ParseCIDR` makes of the left one.
    #[rstest]
    #[case("100.96.0.0/11", "100.96.0.0/11")]
    #[case("0.0.0.0/0", "0.0.0.0/0")]
    #[case("10.1.2.3/32", "10.1.2.3/32")]
    #[case::second_address("100.96.0.1/11", "100.96.0.0/11")]
    #[case::not_at_the_boundary("100.97.0.0/11", "100.96.0.0/11")]
    #[case::last_address("100.127.255.255/11", "100.96.0.0/11")]
    #[case::anywhere("10.1.2.3/0", "0.0.0.0/0")]
    fn a_range_begins_at_its_boundary_whatever_was_written(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(text.parse::<Cidr>().unwrap().to_string(), expected);
    }

    #[rstest]
    #[case("10.0.0.0")]
    #[case("10.0.0.0/")]
    #[case("10.0.0.0/33")]
    #[case("10.0.0.0/+8")]
    #[case("10.0.0.0/8/8")]
    #[case("10.0.0/8")]
    #[case("fd00::/64")]
    #[case("")]
    fn what_is_no_range_is_refused(#[case] text: &str) {
        let why = text.parse::<Cidr>().unwrap_err();
        assert!(why.contains("100.96.0.0/11"), "{why}");
    }

    #[test]
    fn what_a_node_says_may_be_anything() {
        assert_eq!(Cidr::of_node("10.0.0.7/24").unwrap().to_string(), "10.0.0.0/24");
        assert_eq!(Cidr::of_node("fd00::/64"), None);
        assert_eq!(Cidr::of_node("rubbish"), None);
    }

    #[test]
    fn the_ends_belong_to_it() {
        let range: Cidr = "10.0.0.0/24".parse().unwrap();
        for (address, inside) in [
            ("10.0.0.0", true),
            ("10.0.0.255", true),
            ("10.0.1.0", false),
            ("9.255.255.255", false),
        ] {
            assert_eq!(range.contains(address.parse().unwrap()), inside, "{address}");
        }
    }
}
