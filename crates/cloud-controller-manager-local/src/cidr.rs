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
        let (address, prefix) = text.split_once('/')?;
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
        Some(Self::around(address.parse().ok()?, prefix))
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

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no IPv4 range such as 100.96.0.0/11");
        let range = Self::of_node(text).ok_or_else(wrong)?;
        if text.starts_with(&format!("{}/", Ipv4Addr::from(range.first))) {
            Ok(range)
        } else {
            Err(format!(
                "{text:?} does not begin at a boundary of its size: write {range}"
            ))
        }
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

    #[rstest]
    #[case("100.96.0.0/11", true)]
    #[case("0.0.0.0/0", true)]
    #[case("10.1.2.3/32", true)]
    #[case("100.97.0.0/11", false)]
    #[case("10.0.0.0", false)]
    #[case("10.0.0.0/33", false)]
    #[case("fd00::/64", false)]
    #[case("", false)]
    fn a_range_is_read_strictly(#[case] text: &str, #[case] good: bool) {
        let read = text.parse::<Cidr>();
        assert_eq!(read.is_ok(), good, "{read:?}");
        if let Ok(range) = read {
            assert_eq!(range.to_string(), text);
        }
    }

    #[test]
    fn a_wrong_boundary_is_told_with_the_right_one() {
        let why = "100.97.0.0/11".parse::<Cidr>().unwrap_err();
        assert!(why.ends_with("write 100.96.0.0/11"), "{why}");
    }

    #[test]
    fn what_a_node_says_is_read_leniently() {
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
