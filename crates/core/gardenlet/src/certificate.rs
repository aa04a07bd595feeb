//! The validity of the client certificate for the garden, as metrics, and the end for the status of the Seed.
//! The process reads the kubeconfig once, so the values stay until a restart uses a renewed certificate.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use kube::config::Kubeconfig;
use runtime::process::metrics::{Metrics, ScrapedSeries};
use x509_parser::pem::parse_x509_pem;

/// The last second before the year 9000, as Unix time. The schema of a Seed refuses later times, and a
/// certificate without an intended end is valid until the end of the year 9999 (RFC 5280).
const LAST_REPORTED: i64 = 221_845_391_999;

/// Registers the metrics, and returns the end of the validity. A kubeconfig without a client certificate, for
/// example with a token, has no series and no end.
#[must_use]
pub fn register_validity(metrics: &Metrics, kubeconfig: &Path) -> Option<Timestamp> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).ok()?;
    let validity = read_validity(&kubeconfig)?;
    for (name, help, time) in [
        (
            "client_certificate_expiration_timestamp_seconds",
            "Unix time at which the client certificate of this process expires",
            validity.end,
        ),
        (
            "client_certificate_start_timestamp_seconds",
            "Unix time from which the client certificate of this process is valid",
            validity.start,
        ),
    ] {
        #[allow(clippy::cast_precision_loss)] // exact for some million years
        let series = ScrapedSeries::new([("name", "garden")], time as f64);
        metrics.register_scraped(name, help, move || vec![series.clone()]);
    }
    validity.reported_end()
}

/// The validity of a certificate, as Unix times in seconds.
#[derive(Debug, PartialEq, Eq)]
struct Validity {
    start: i64,
    end: i64,
}

impl Validity {
    /// The end as the status of a Seed can have the time.
    fn reported_end(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.end.clamp(0, LAST_REPORTED)).ok()
    }
}

/// The validity of the client certificate of the present context.
fn read_validity(kubeconfig: &Kubeconfig) -> Option<Validity> {
    let present = kubeconfig.current_context.as_deref()?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|named| named.name == present)?.context.as_ref()?;
    let user = context.user.as_deref()?;
    let mut users = kubeconfig.auth_infos.iter();
    let user = users.find(|named| named.name == user)?.auth_info.as_ref()?;
    let text = match (&user.client_certificate_data, &user.client_certificate) {
        (Some(data), _) => STANDARD.decode(data).ok()?,
        (None, Some(path)) => fs::read(path).ok()?,
        (None, None) => return None,
    };
    let (_, pem) = parse_x509_pem(&text).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let validity = certificate.validity();
    Some(Validity {
        start: validity.not_before.timestamp(),
        end: validity.not_after.timestamp(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Valid from 2026-11-29 to 2036-11-26, each at 07:03:10 UTC.
    const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIURXB70POBUL7PN54iZj2jNVWEGXwwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGc2VlZC1hMB4XDTI2MTEyOTA3MDMxMFoXDTM2MTEyNjA3MDMx
MFowETEPMA0GA1UEAwwGc2VlZC1hMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
nLmMscnDUklJOQEkltEReUNKVfEppkv8z162Va4NW+Mcw7ZZqKHuA8uF6acIzrIM
z8V5GKeDjYT6XVGDOKeN1KNTMFEwHQYDVR0OBBYEFJMYfulqMQ+GBVwXKEY8SfPn
XR+/MB8GA1UdIwQYMBaAFJMYfulqMQ+GBVwXKEY8SfPnXR+/MA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhALYkUpbcpsJrmP2sfj/osVqSvWD+s7ob
FIsUEB8QjdZOAiAqboDYe/CXCah22IK1Zv9gwtnQ/2GeefBQcFogTdQdqQ==
-----END CERTIFICATE-----
";

    fn validity(user: &str) -> Option<Validity> {
        let text = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
             users: [{{name: v, user: {{token: t}}}}, {{name: u, user: {user}}}]\n"
        );
        read_validity(&Kubeconfig::from_yaml(&text).unwrap())
    }

    #[test]
    fn the_certificate_of_the_present_context_counts() {
        let data = STANDARD.encode(CERTIFICATE);
        let user = format!("{{client-certificate-data: {data}}}");
        let expected = Validity {
            start: 1_795_935_790,
            end: 2_111_295_790,
        };
        assert_eq!(validity(&user), Some(expected));
    }

    #[test]
    fn a_kubeconfig_without_a_valid_certificate_has_no_validity() {
        let garbage = STANDARD.encode("no certificate");
        let invalid = format!("{{client-certificate-data: {garbage}}}");
        for user in ["{token: t}", invalid.as_str()] {
            assert_eq!(validity(user), None, "{user}");
        }
    }

    /// The API server would refuse the whole status.
    #[test]
    fn an_end_beyond_the_times_of_a_seed_is_reported_as_the_last_time() {
        for (end, reported) in [
            (253_402_300_799, "8999-12-31T23:59:59Z"),
            (1_795_935_790, "2026-11-29T07:03:10Z"),
            (-1, "1970-01-01T00:00:00Z"),
        ] {
            let validity = Validity { start: 0, end };
            assert_eq!(validity.reported_end(), Some(reported.parse().unwrap()));
        }
    }

    #[test]
    fn the_metrics_are_read_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, kubeconfig) = (folder.path().join("c.pem"), folder.path().join("kubeconfig"));
        fs::write(&certificate, CERTIFICATE).unwrap();
        let text = "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                    users: [{name: u, user: {client-certificate: c.pem}}]\n";
        fs::write(&kubeconfig, text).unwrap();
        let metrics = Metrics::default();
        let end = register_validity(&metrics, &kubeconfig);
        assert_eq!(end, Some("2036-11-26T07:03:10Z".parse().unwrap()));
        let shown = metrics.encode();
        for line in [
            "client_certificate_expiration_timestamp_seconds{name=\"garden\"} 2111295790",
            "client_certificate_start_timestamp_seconds{name=\"garden\"} 1795935790",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
    }
}
