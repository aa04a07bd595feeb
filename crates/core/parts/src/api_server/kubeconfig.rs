//! Kubeconfig files.

use base64::{Engine, engine::general_purpose::STANDARD};
use runtime::{Error, Result};
use serde_json::json;

/// A kubeconfig that logs on with a client certificate. All parameters but the server are PEM.
pub(crate) fn with_certificate(server: &str, ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Vec<u8>> {
    named("shoot", server, ca, certificate, key)
}

/// The same with a name that users see as context.
pub(crate) fn named(name: &str, server: &str, ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Vec<u8>> {
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": STANDARD.encode(ca)}}],
        "users": [{"name": name, "user": {
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key),
        }}],
    });
    serde_yaml_ng::to_string(&file)
        .map(String::into_bytes)
        .map_err(|e| Error::bug(runtime::ErrorMessage::from_source(e)))
}
