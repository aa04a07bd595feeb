#![allow(clippy::unwrap_used)]

use http::HeaderValue;

use super::*;

const ARN: &str = "arn:aws:iam::123456789012:role/backups";

fn answer(session_token: &str, expiration: &str) -> String {
    format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult>\
         <SubjectFromWebIdentityToken>s</SubjectFromWebIdentityToken><Credentials><SessionToken>{session_token}</SessionToken>\
         <SecretAccessKey>a/b+c</SecretAccessKey><Expiration>{expiration}</Expiration><AccessKeyId>ASIA</AccessKeyId></Credentials>\
         <AssumedRoleUser><Arn>a</Arn></AssumedRoleUser></AssumeRoleWithWebIdentityResult><ResponseMetadata/>\
         </AssumeRoleWithWebIdentityResponse>"
    )
}

fn dated(date: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(DATE, HeaderValue::from_static(date))])
}

#[test]
fn keys_live_by_the_clock_of_the_service() {
    let headers = dated("Fri, 27 Nov 2026 10:00:00 GMT");
    let text = answer("t&amp;=", "2026-11-27T11:00:00.500Z");
    let (keys, lifetime) = read_keys(&headers, text.as_bytes()).unwrap();
    assert_eq!(
        (
            keys.key_id.as_str(),
            keys.secret_key.as_str(),
            keys.token.as_deref()
        ),
        ("ASIA", "a/b+c", Some("t&="))
    );
    assert_eq!(lifetime, Duration::from_millis(3_600_500));
    for (headers, expiration, minutes) in [
        (HeaderMap::new(), "2026-11-27T11:00:00Z", Some(15)),
        (dated("yesterday"), "2026-11-27T11:00:00Z", Some(15)),
        (headers.clone(), "2026-11-29T10:00:00Z", Some(12 * 60)),
        (headers.clone(), "2026-11-27T10:00:00Z", None),
        (headers.clone(), "2026-11-27T09:00:00Z", None),
        (headers, "soon", None),
    ] {
        let text = answer("t", expiration);
        let lifetime = read_keys(&headers, text.as_bytes()).map(|(_, lifetime)| lifetime.as_secs() / 60);
        assert_eq!(lifetime, minutes, "{expiration}");
    }
}

#[test]
fn an_answer_without_valid_keys_gives_no_keys() {
    let headers = dated("Fri, 27 Nov 2026 10:00:00 GMT");
    let end = "2026-11-27T11:00:00Z";
    for text in [
        answer("", end),
        // The library panics on a token that is not a header.
        answer("a\u{e9}\nb", end),
        answer("a b", end),
        "<html/>".to_owned(),
        String::new(),
    ] {
        assert!(read_keys(&headers, text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn each_refusal_names_the_party_that_has_to_act() {
    for (status, code, cause, remedy) in [
        (
            400,
            "ExpiredTokenException",
            WebIdentityCause::Token,
            "renew the key token",
        ),
        (
            400,
            "ExpiredToken",
            WebIdentityCause::Token,
            "renew the key token",
        ),
        (
            400,
            "InvalidIdentityToken",
            WebIdentityCause::Token,
            "identity provider in IAM",
        ),
        (
            403,
            "IDPRejectedClaim",
            WebIdentityCause::Token,
            "identity provider in IAM",
        ),
        (403, "AccessDenied", WebIdentityCause::Denied, "trust policy"),
        (
            400,
            "IDPCommunicationError",
            WebIdentityCause::Unavailable,
            "discovery document",
        ),
        (400, "ThrottlingException", WebIdentityCause::Unavailable, "later"),
        (429, "", WebIdentityCause::Unavailable, "later"),
        (503, "", WebIdentityCause::Unavailable, "later"),
        (403, "RegionDisabledException", WebIdentityCause::Secret, "region"),
        (404, "", WebIdentityCause::Secret, "stsEndpoint"),
    ] {
        let body = format!(
            "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>{code}</Code>\
             <Message>no</Message></Error><RequestId>1</RequestId></ErrorResponse>"
        );
        let status = StatusCode::from_u16(status).unwrap();
        let error = read_refusal(ARN, "a.b.c", status, body.as_bytes());
        let text = error.to_string();
        assert_eq!(error.cause(), cause, "{text}");
        assert!(
            text.contains(ARN) && text.contains(remedy) && text.contains(code),
            "{text}"
        );
    }
}

#[test]
fn an_answer_that_is_not_of_the_token_service_is_not_quoted() {
    let body = b"<html>a.b.c</html>";
    let error = read_refusal(ARN, "a.b.c", StatusCode::BAD_GATEWAY, body);
    assert_eq!(error.cause(), WebIdentityCause::Unavailable);
    assert!(!error.to_string().contains("a.b.c"), "{error}");
}
