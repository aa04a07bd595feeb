//! Certificates of etcd and backup-restore. Both use TLS only, because the Secrets of a whole shoot pass
//! through their connections.

use api::{
    druid::{EtcdConfig, TLSConfig},
    meta::SecretReference,
};
use runtime::Result;

use super::field::wrong;

/// Default key of a certificate authority in its Secret.
const CA_KEY: &str = "ca.crt";

/// Secrets with etcd's certificates.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The authority of servers and clients.
    pub ca_secret: String,
    /// The authority's key in that Secret.
    pub ca_key: String,
    /// etcd's own certificate.
    pub server_secret: String,
    /// The certificate with which backup-restore calls etcd; empty if not specified.
    pub client_secret: String,
}

/// Reads `spec.etcd.clientUrlTls`.
pub(crate) fn tls(etcd: &EtcdConfig, namespace: &str) -> Result<Tls> {
    let Some(tls) = &etcd.client_url_tls else {
        return Err(wrong(
            "spec.etcd.clientUrlTls",
            "is missing; etcd is served over TLS only, so name its Secrets",
        ));
    };
    let ca = &tls.tls_ca_secret_ref;
    Ok(Tls {
        ca_secret: local(
            "spec.etcd.clientUrlTls.tlsCASecretRef",
            ca.name.as_deref(),
            ca.namespace.as_deref(),
            namespace,
        )?,
        ca_key: ca.data_key.clone().unwrap_or_else(|| CA_KEY.to_owned()),
        server_secret: secret(
            "spec.etcd.clientUrlTls.serverTLSSecretRef",
            &tls.server_tls_secret_ref,
            namespace,
        )?,
        client_secret: match &tls.client_tls_secret_ref {
            Some(reference) => secret("spec.etcd.clientUrlTls.clientTLSSecretRef", reference, namespace)?,
            None => String::new(),
        },
    })
}

/// Reads the server's Secret of `spec.backup.tls`; etcd's own Secret if unset.
pub(crate) fn backup_server(tls: Option<&TLSConfig>, etcd: &Tls, namespace: &str) -> Result<String> {
    tls.map_or_else(
        || Ok(etcd.server_secret.clone()),
        |tls| {
            secret(
                "spec.backup.tls.serverTLSSecretRef",
                &tls.server_tls_secret_ref,
                namespace,
            )
        },
    )
}

/// The name of a Secret, which must be in the Etcd's namespace: a pod cannot mount Secrets of other
/// namespaces.
pub(crate) fn secret(field: &str, reference: &SecretReference, namespace: &str) -> Result<String> {
    local(
        field,
        reference.name.as_deref(),
        reference.namespace.as_deref(),
        namespace,
    )
}

fn local(field: &str, name: Option<&str>, in_namespace: Option<&str>, namespace: &str) -> Result<String> {
    match (name.unwrap_or_default(), in_namespace.unwrap_or_default()) {
        ("", _) => Err(wrong(field, "names no Secret; set its name")),
        (name, "") => Ok(name.to_owned()),
        (name, other) if other == namespace => Ok(name.to_owned()),
        (name, other) => Err(wrong(
            field,
            format!(
                "names Secret {other}/{name}; pods can only mount Secrets of their own namespace {namespace}"
            ),
        )),
    }
}
