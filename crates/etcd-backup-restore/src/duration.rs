//! Durations as the flags of this kind of process are written: `5m`, `1h30m`, `8m0s`, `0`, `300ms`.

use std::time::Duration;

/// Reads a duration; the error is the sentence that the command line prints.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, 0.0_f64);
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => {
                return Err(format!(
                    "{text:?} is not a duration; write it like 5m, 30s or 1h30m"
                ));
            }
        };
        let number: f64 = number
            .parse()
            .map_err(|_| format!("{text:?} is not a duration; write it like 5m"))?;
        total += number * seconds;
        rest = tail;
    }
    if text.is_empty() {
        return Err("a duration is missing; write it like 5m".to_owned());
    }
    Duration::try_from_secs_f64(total).map_err(|e| format!("{text:?}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_flags() {
        for (text, seconds) in [
            ("5m", 300.0),
            ("1h30m", 5400.0),
            ("8m0s", 480.0),
            ("0", 0.0),
            ("0s", 0.0),
            ("1.5h", 5400.0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(parse("300ms"), Ok(Duration::from_millis(300)));
        for text in ["", "5", "m", "5 m", "-5m", "5x", "1.2.3s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
