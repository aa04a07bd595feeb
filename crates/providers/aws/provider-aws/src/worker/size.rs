//! Sizes of disks.

/// The most that EC2 makes.
const MOST_GIB: u32 = 16384;

/// A Kubernetes quantity in whole GiB, rounded up as in Gardener for decimal quantities. `None`: the quantity
/// is not a valid size of a disk.
pub(super) fn gib(quantity: &str) -> Option<u32> {
    let unit = quantity.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = quantity.strip_suffix(unit)?.parse().ok()?;
    let bytes_per_unit: u64 = match unit {
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => return None,
    };
    let whole = number.checked_mul(bytes_per_unit)?.div_ceil(1 << 30);
    let whole = u32::try_from(whole).ok()?;
    (1..=MOST_GIB).contains(&whole).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::gib;

    #[test]
    fn a_size_is_whole_gibibytes() {
        for (quantity, expected) in [
            ("50Gi", Some(50)),
            ("50G", Some(47)),
            ("1Ti", Some(1024)),
            ("1Mi", Some(1)),
            ("16384Gi", Some(16384)),
            ("16385Gi", None),
            ("0Gi", None),
            ("", None),
            ("Gi", None),
            ("50", None),
            ("-1Gi", None),
            ("1.5Gi", None),
            ("99999999999999999999Gi", None),
            ("9223372036854775807Ti", None),
        ] {
            assert_eq!(gib(quantity), expected, "{quantity}");
        }
    }
}
