//! The connection to a shoot, from the kubeconfig in a Secret.

use std::{collections::BTreeMap, time::Duration};

use kube::config::Kubeconfig;
use runtime::client::{Connection, load_config};

use crate::names::{KUBECONFIG_KEY, KUBECONFIG_SECRET};

/// Longer than a busy machine takes to accept; short, so that an unreachable shoot is reported soon.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Larger than any kubeconfig with certificates, in bytes.
const LARGEST: usize = 256 << 10;

/// Builds a connection from the Secret's data. No message contains any part of the data.
///
/// # Errors
/// The fault of the Secret's data.
pub(super) async fn connection(data: &BTreeMap<String, Vec<u8>>) -> Result<Connection, String> {
    let wrong = |what: &str| format!("key {KUBECONFIG_KEY} of the Secret {KUBECONFIG_SECRET} {what}");
    let bytes = data.get(KUBECONFIG_KEY).ok_or_else(|| wrong("is missing"))?;
    if bytes.len() > LARGEST {
        return Err(wrong("is too large for a kubeconfig"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("is not text"))?;
    let read = Kubeconfig::from_yaml(text).map_err(|_| wrong("is no kubeconfig"))?;
    if leads_out(&read) {
        return Err(wrong(
            "names programs, files or a proxy: it must hold its certificates and keys itself",
        ));
    }
    let mut config = load_config(read)
        .await
        .map_err(|_| wrong("has no context that can be used"))?;
    config.connect_timeout = Some(CONNECT_WITHIN);
    Connection::multiplexed_to_users_cluster(config).map_err(|_| wrong("makes no client"))
}

/// Whether a kubeconfig would start programs, read files, use a proxy or skip the verification of
/// certificates. Such a kubeconfig is refused, because this process uses the kubeconfig.
fn leads_out(kubeconfig: &Kubeconfig) -> bool {
    let users = kubeconfig
        .auth_infos
        .iter()
        .filter_map(|user| user.auth_info.as_ref());
    let clusters = kubeconfig
        .clusters
        .iter()
        .filter_map(|cluster| cluster.cluster.as_ref());
    users.into_iter().any(|user| {
        user.exec.is_some()
            || user.auth_provider.is_some()
            || user.token_file.is_some()
            || user.client_certificate.is_some()
            || user.client_key.is_some()
    }) || clusters.into_iter().any(|cluster| {
        cluster.certificate_authority.is_some()
            || cluster.proxy_url.is_some()
            || cluster.insecure_skip_tls_verify == Some(true)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn data(user: &str, cluster: &str) -> BTreeMap<String, Vec<u8>> {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://192.0.2.1'{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        );
        [(KUBECONFIG_KEY.to_owned(), text.into_bytes())].into()
    }

    #[rstest]
    #[case("token: s3cret", "", "")]
    #[case(
        "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}",
        "",
        "names programs"
    )]
    #[case("tokenFile: /etc/s3cret", "", "names programs")]
    #[case("client-key: /etc/s3cret", "", "names programs")]
    #[case("token: s3cret", ", certificate-authority: /etc/ca", "names programs")]
    #[case("token: s3cret", ", insecure-skip-tls-verify: true", "names programs")]
    #[case("token: s3cret", ", proxy-url: 'http://192.0.2.2'", "names programs")]
    #[case("token: [s3cret", "", "is no kubeconfig")]
    #[tokio::test]
    async fn a_kubeconfig_leads_to_an_api_server_only(
        #[case] user: &str,
        #[case] cluster: &str,
        #[case] told: &str,
    ) {
        // Creating the process installs the TLS provider.
        let _process = runtime::process::Process::new("test");
        let why = connection(&data(user, cluster)).await.err().unwrap_or_default();
        assert!(
            why.contains(told) && why.is_empty() == told.is_empty() && !why.contains("s3cret"),
            "{why}"
        );
    }

    #[tokio::test]
    async fn a_secret_without_the_key_is_told() {
        let why = connection(&BTreeMap::new()).await.err().unwrap_or_default();
        assert_eq!(why, "key kubeconfig of the Secret resource-manager is missing");
    }
}
