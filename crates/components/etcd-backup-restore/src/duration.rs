//! Durations as the flags of this kind of process are written: `5m`, `1h30m`, `8m0s`, `0`, `300ms`.

use jiff::SignedDuration;
use std::time::Duration;

/// Reads a duration; the error is the sentence that the command line prints.
pub fn parse(text: &str) -> Result<Duration, String> {
    // A zero without a unit is unambiguous, and other programs of this kind accept it too.
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let duration = text
        .parse::<SignedDuration>()
        .map_err(|_| format!("{text:?} is not a duration; write it like 5m, 30s or 1h30m"))?;
    Duration::try_from(duration).map_err(|_| format!("{text:?} is negative; write it like 5m, 30s or 1h30m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_flags_mean_what_they_meant() {
        for (text, seconds) in [
            ("5m", 300.0),
            ("24h", 86_400.0),
            ("1h30m", 5400.0),
            ("1h30m10s", 5410.0),
            ("8m0s", 480.0),
            ("0", 0.0),
            ("0s", 0.0),
            ("1.5h", 5400.0),
            ("300ms", 0.3),
            ("1500ms", 1.5),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in [
            "",
            "5",
            "m",
            "-5m",
            "5m ago",
            "5x",
            "1.2.3s",
            "1mo",
            "99999999999999999999h",
        ] {
            let refused = parse(text).expect_err(text);
            assert!(refused.contains("write it like 5m"), "{refused}");
        }
    }
}
