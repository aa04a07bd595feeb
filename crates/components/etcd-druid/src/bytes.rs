//! Kubernetes quantities as bytes, for flags that want a plain number.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The quantity in bytes; `None` if the quantity is not a whole number of bytes, or does not fit.
#[must_use]
pub fn parse(quantity: &Quantity) -> Option<u64> {
    let text = quantity.0.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor: u64 = match suffix {
        "" => 1,
        "k" => 1000,
        "M" => 1000_u64.pow(2),
        "G" => 1000_u64.pow(3),
        "T" => 1000_u64.pow(4),
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() && !fraction.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut bytes = whole.checked_mul(factor)?;
    if !fraction.is_empty() {
        let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part = fraction.parse::<u64>().ok()?.checked_mul(factor)?;
        if part % scale != 0 {
            return None;
        }
        bytes = bytes.checked_add(part / scale)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_become_bytes() {
        for (text, bytes) in [
            ("8Gi", Some(8 << 30)),
            ("1.5Gi", Some(1_610_612_736)),
            ("100Mi", Some(104_857_600)),
            ("2G", Some(2_000_000_000)),
            ("42", Some(42)),
            (".5Ki", Some(512)),
            ("0.3", None),
            ("", None),
            ("8Gib", None),
            ("-1Gi", None),
            ("99999999Ti", None),
        ] {
            assert_eq!(parse(&Quantity(text.to_owned())), bytes, "{text:?}");
        }
    }
}
