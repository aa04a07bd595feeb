//! A wrong clock: EC2 refuses a signature with a time that differs by more than five minutes from EC2's own
//! clock. The refusal mostly has the codes for wrong keys.

use http::{HeaderMap, header::DATE};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};

/// The refusals that a wrong clock causes. AWS's own libraries have this list.
const CODES: &[&str] = &[
    "AuthFailure",
    "InvalidSignatureException",
    "RequestExpired",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
];
/// The codes of refusals for a wrong time alone.
const OF_TIME: &[&str] = &["RequestInTheFuture", "RequestTimeTooSkewed"];
/// A smaller difference between the clocks causes no refusal.
const TOLERATED: SignedDuration = SignedDuration::from_mins(4);

/// How far the clock of this process is ahead of the clock of an answer.
pub fn ahead(headers: &HeaderMap, now: Timestamp) -> Option<SignedDuration> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = rfc2822::parse(date).ok()?.timestamp();
    Some(now.duration_since(date))
}

/// Whether a wrong clock is the cause of a refusal.
pub fn is_cause(code: &str, message: &str, ahead: Option<SignedDuration>) -> bool {
    if !CODES.contains(&code) {
        return false;
    }
    // EC2's sentence for the time within a wrong signature.
    let names_time = message.contains("Signature expired") || message.contains("Signature not yet current");
    OF_TIME.contains(&code) || names_time || ahead.is_some_and(|ahead| ahead.abs() > TOLERATED)
}

/// The difference as a clause of a sentence. `service`: the service with the different clock.
pub fn describe(ahead: Option<SignedDuration>, service: &str) -> String {
    match ahead {
        Some(ahead) if ahead.abs() > TOLERATED => {
            let direction = if ahead.is_negative() { "behind" } else { "ahead of" };
            format!(
                "is {} s {direction} the clock of {service}",
                ahead.abs().as_secs()
            )
        }
        _ => format!("differs from the clock of {service}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_difference_is_measured_by_the_date_of_the_answer() {
        let mut headers = HeaderMap::new();
        let now: Timestamp = "2026-11-27T10:20:00Z".parse().unwrap();
        assert_eq!(ahead(&headers, now), None);
        for (date, seconds) in [
            ("Fri, 27 Nov 2026 10:10:00 GMT", Some(600)),
            ("Fri, 27 Nov 2026 10:30:00 GMT", Some(-600)),
            ("yesterday", None),
        ] {
            headers.insert(DATE, HeaderValue::from_static(date));
            assert_eq!(
                ahead(&headers, now).map(|ahead| ahead.as_secs()),
                seconds,
                "{date}"
            );
        }
        assert_eq!(
            describe(Some(SignedDuration::from_secs(600)), "EC2"),
            "is 600 s ahead of the clock of EC2"
        );
        assert_eq!(
            describe(Some(SignedDuration::from_secs(-600)), "STS"),
            "is 600 s behind the clock of STS"
        );
    }

    #[test]
    fn wrong_keys_are_no_wrong_clock() {
        let by = SignedDuration::from_secs;
        for (code, message, ahead, expected) in [
            ("AuthFailure", "", Some(by(600)), true),
            ("AuthFailure", "", Some(by(-600)), true),
            ("AuthFailure", "", Some(by(100)), false),
            ("AuthFailure", "", None, false),
            ("RequestExpired", "Request has expired.", Some(by(-301)), true),
            ("RequestExpired", "Request has expired.", Some(by(1)), false),
            (
                "SignatureDoesNotMatch",
                "Signature expired: 20261127T1 is now earlier than …",
                None,
                true,
            ),
            (
                "SignatureDoesNotMatch",
                "The signature we calculated does not match",
                Some(by(2)),
                false,
            ),
            ("UnauthorizedOperation", "", Some(by(600)), false),
        ] {
            assert_eq!(
                is_cause(code, message, ahead),
                expected,
                "{code} {message} {ahead:?}"
            );
        }
    }
}
