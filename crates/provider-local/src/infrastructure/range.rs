//! IPv4 ranges, and which one is free. Pure.

use std::{fmt, net::Ipv4Addr, str::FromStr};

use api::meta::ErrorCode;
use runtime::{Error, Result};

/// Size of a network that is given out: 254 machines.
pub const GIVEN_OUT: u8 = 24;

/// A range of addresses such as `10.180.3.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: u32,
    prefix: u8,
}

impl Range {
    /// The last address.
    fn last(self) -> u32 {
        self.first | !mask(self.prefix)
    }

    /// Whether the ranges share an address.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }
}

/// The first range of a pool that is not taken. `None`: all are, or the pool is smaller than one.
#[must_use]
pub fn free(pool: Range, taken: &[Range]) -> Option<Range> {
    if pool.prefix > GIVEN_OUT {
        return None;
    }
    (0..1_u32 << (GIVEN_OUT - pool.prefix))
        .map(|index| Range {
            first: pool.first + (index << (32 - GIVEN_OUT)),
            prefix: GIVEN_OUT,
        })
        .find(|candidate| !taken.iter().any(|other| candidate.overlaps(*other)))
}

/// Reads a range that a user wrote in `field`.
pub fn parse(text: &str, field: &str) -> Result<Range> {
    text.parse()
        .map_err(|why: String| Error::config(ErrorCode::ErrConfigurationProblem, format!("{field}: {why}")))
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no IPv4 range such as 10.180.0.0/14");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let prefix: u8 = prefix
            .parse()
            .ok()
            .filter(|prefix| *prefix <= 32)
            .ok_or_else(wrong)?;
        let range = Self {
            first: u32::from(address) & mask(prefix),
            prefix,
        };
        if range.first != u32::from(address) {
            return Err(format!(
                "{text:?} does not begin at a boundary of its size: write {range}"
            ));
        }
        Ok(range)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.prefix)
    }
}

fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Range, free};

    fn range(text: &str) -> Range {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_free_range_of_the_pool_is_given_out() {
        let pool = range("10.180.0.0/22");
        for (taken, expected) in [
            (vec![], Some("10.180.0.0/24")),
            (vec!["10.180.0.0/24"], Some("10.180.1.0/24")),
            (vec!["10.180.1.0/24"], Some("10.180.0.0/24")),
            // Others may be larger, smaller or elsewhere.
            (vec!["10.180.0.0/23", "10.180.2.128/25"], Some("10.180.3.0/24")),
            (vec!["192.168.0.0/16"], Some("10.180.0.0/24")),
            (vec!["10.0.0.0/8"], None),
        ] {
            let taken: Vec<_> = taken.into_iter().map(range).collect();
            assert_eq!(
                free(pool, &taken).map(|r| r.to_string()).as_deref(),
                expected,
                "{taken:?}"
            );
        }
        assert_eq!(free(range("10.180.0.0/25"), &[]), None, "the pool is too small");
        assert_eq!(free(range("0.0.0.0/0"), &[]), Some(range("0.0.0.0/24")));
    }

    #[test]
    fn every_range_of_a_pool_is_given_out_once() {
        let pool = range("10.180.0.0/16");
        let mut taken = Vec::new();
        while let Some(next) = free(pool, &taken) {
            assert!(taken.iter().all(|other| !next.overlaps(*other)));
            taken.push(next);
        }
        assert_eq!(taken.len(), 256);
    }

    #[test]
    fn a_wrong_range_is_refused_with_what_to_write() {
        assert_eq!(
            "10.180.1.0/14".parse::<Range>().unwrap_err(),
            "\"10.180.1.0/14\" does not begin at a boundary of its size: write 10.180.0.0/14"
        );
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "fd00::/8", "a/8"] {
            assert!(
                wrong.parse::<Range>().unwrap_err().contains("no IPv4 range"),
                "{wrong}"
            );
        }
    }
}
