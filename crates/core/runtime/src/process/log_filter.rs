//! The filter of the log. No value of `RUST_LOG` lets bodies of requests and answers into the log, since
//! these may be Secrets.

use tracing_subscriber::{EnvFilter, filter::Directive};

/// The filter where `RUST_LOG` is missing or cannot be parsed.
const DEFAULT: &str = "info,kube=warn";
/// Directives that hold beside each filter. A client of kube logs an answer that cannot be decoded in full,
/// as a warning. The crate h2 logs the headers of requests, which hold credentials, as traces.
const GUARD: [&str; 2] = ["kube_client::client=error", "h2=info"];

/// The filter that `given`, a value of `RUST_LOG`, asks for, without bodies of requests and answers.
pub(crate) fn log_filter(given: Option<&str>) -> EnvFilter {
    let asked = given.and_then(|given| EnvFilter::try_new(given).ok());
    let asked = asked.unwrap_or_else(|| EnvFilter::new(DEFAULT));
    let guard = GUARD
        .iter()
        .filter_map(|directive| directive.parse::<Directive>().ok());
    // The most specific directive counts, and a later directive replaces an earlier directive of the same
    // target.
    guard.fold(asked, EnvFilter::add_directive)
}

#[cfg(test)]
mod tests {
    // No permit is needed: the test writes nothing.
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]

    use std::{
        io::{self, Write},
        path::Path,
        sync::{Arc, Mutex},
    };

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Secret;
    use kube::{Api, Client, client::Body};
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    const KEY: &str = "a2V5IG1hdGVyaWFs";

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Log {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// The log after a client of kube has received a Secret that cannot be decoded.
    async fn logged_of_a_secret(filter: EnvFilter) -> String {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(log.clone());
        let guard = tracing::subscriber::set_default(subscriber.finish());
        let answer = format!(r#"{{"kind": "Secret", "data": {{"k": "{KEY}"}}, "immutable": "neither"}}"#);
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = Body::from(answer.clone().into_bytes());
            async move { Ok::<_, io::Error>(Response::new(answer)) }
        });
        let secrets: Api<Secret> = Api::namespaced(Client::new(service, "shoot"), "shoot");
        secrets.get("ca").await.unwrap_err();
        tracing::info!("the end");
        drop(guard);
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
    }

    /// The values of `logLevel` in the charts, which become `RUST_LOG`.
    fn of_charts() -> Vec<String> {
        let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../charts");
        let values = std::fs::read_dir(charts).unwrap().filter_map(|chart| {
            let values = std::fs::read_to_string(chart.unwrap().path().join("values.yaml")).ok()?;
            let level = values.lines().find_map(|line| line.strip_prefix("logLevel: "))?;
            Some(level.to_owned())
        });
        values.collect()
    }

    #[tokio::test]
    async fn no_value_of_the_filter_lets_a_secret_into_the_log() {
        let open = logged_of_a_secret(EnvFilter::new("info")).await;
        assert!(open.contains(KEY), "without the guard the client logs it: {open}");
        let mut values = of_charts();
        assert!(values.len() >= 6, "{values:?}");
        values.extend(
            [
                "trace",
                "kube_client::client=trace,info",
                "kube=trace,info",
                "n=o=t a filter",
            ]
            .map(String::from),
        );
        for value in values {
            let log = logged_of_a_secret(log_filter(Some(&value))).await;
            assert!(log.contains("the end") && !log.contains(KEY), "{value}: {log}");
        }
        let log = logged_of_a_secret(log_filter(None)).await;
        assert!(log.contains("the end") && !log.contains(KEY), "{log}");
    }
}
