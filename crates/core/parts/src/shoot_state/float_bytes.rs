//! The bytes that policy `gardenlet-shootstate` counts for floats. The policy reads a text in which each
//! float has six decimal places, and etcd stores up to 17 significant digits.

/// Bytes that a float has in etcd at most, beside the bytes in the text of the policy.
const MORE_IN_ETCD: usize = 16;

/// The bytes that the policy counts for the floats in a line of JSON, beside the bytes of the line.
pub(super) fn float_bytes(line: &[u8]) -> usize {
    let mut in_string = false;
    let parts = line.split(|sign| *sign == b'"').map(|part| {
        let counted = if in_string {
            bytes_in_string(part)
        } else {
            bytes_of_numbers(part)
        };
        // A quotation mark after an odd number of backslashes belongs to the string.
        let backslashes = part.iter().rev().take_while(|sign| **sign == b'\\').count();
        in_string = !in_string || backslashes % 2 == 1;
        counted
    });
    parts.sum()
}

/// The policy also counts parts of strings in the form of a float, such as `.123456,`.
fn bytes_in_string(text: &[u8]) -> usize {
    MORE_IN_ETCD * text.windows(8).filter(|signs| is_end_of_float(signs)).count()
}

fn is_end_of_float(signs: &[u8]) -> bool {
    match signs {
        [b'.', digits @ .., b',' | b']' | b'}'] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn bytes_of_numbers(text: &[u8]) -> usize {
    let is_separator = |sign: &u8| matches!(*sign, b',' | b':' | b'[' | b']' | b'{' | b'}');
    let numbers = text
        .split(is_separator)
        .filter_map(|number| std::str::from_utf8(number).ok());
    numbers.map(bytes_of_number).sum()
}

/// The API server reads each number that is not a whole number of 64 bits as a float.
fn bytes_of_number(number: &str) -> usize {
    match (number.parse::<i64>(), number.parse::<f64>()) {
        (Err(_), Ok(float)) => {
            let in_policy = format!("{float:.6}").len();
            MORE_IN_ETCD + in_policy.saturating_sub(number.len())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_float_counts_with_the_digits_of_etcd() {
        let policy =
            include_str!("../../../../../charts/garden/files/policies/gardenlet-project-namespace.yaml");
        for text in ["text", "oldText"] {
            let counted = format!(r"{MORE_IN_ETCD} * variables.{text}.findAll(r'\.\d{{6}}[],}}]').size()");
            assert!(policy.contains(&counted), "{counted}");
        }
        for (line, bytes) in [
            (r#"{"a":[1,-20,true,null],"b":"1.5"}"#, 0),
            // The policy reads 0.000000 and 1.500000.
            (r#"{"a":1e-7}"#, 16 + 4),
            (r#"[1.5,{"a":1.5}]"#, 2 * (16 + 5)),
            (r#"{"a":18446744073709551615}"#, 16 + 7),
            ("1e+20", 16 + 28 - 5),
            // More places than the policy reads.
            ("0.0000012345678901234567", 16),
        ] {
            assert_eq!(float_bytes(line.as_bytes()), bytes, "{line}");
        }
    }

    #[test]
    fn a_string_counts_in_the_form_of_a_float_alone() {
        for (line, bytes) in [
            (r#"{"a":"1.123456,1.123456]1.123456}"}"#, 3 * 16),
            (r#"{"a":"1.123456","b":"1.12345,","c":"1.1234567,"}"#, 0),
            // Escaped quotation marks end no string.
            (r#"{"a":"\"1.5\\\"","b\\":1}"#, 0),
            (r#"{"a\\":1.5}"#, 16 + 5),
        ] {
            assert_eq!(float_bytes(line.as_bytes()), bytes, "{line}");
        }
    }

    /// The longest floats that Go writes, without an exponent and with an exponent.
    #[test]
    fn no_float_is_longer_in_etcd_than_counted() {
        for in_etcd in [
            "-0.0000012345678901234567",
            "-2.2250738585072014e-308",
            "0.012345678901234567",
            "100000000000000000000",
        ] {
            let float: f64 = in_etcd.parse().unwrap();
            let in_policy = format!("{float:.6}").len();
            assert!(in_etcd.len() <= in_policy + MORE_IN_ETCD, "{in_etcd}");
        }
    }
}
