//! The content of the garden's etcd on disk.

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{landscape::Landscape, manifests::kubectl};

const PKI: &str = "/etc/kubernetes/pki/etcd";

/// The number of objects below this key, if each object is encrypted (R7-25).
///
/// # Errors
/// An object is not encrypted, or no object exists.
pub async fn encrypted_below(landscape: &Landscape, prefix: &str) -> Result<usize> {
    let pod = format!("etcd-{}", landscape.variable("GARDEN_NODE")?);
    let [authority, certificate, key] = [
        ("cacert", "ca.crt"),
        ("cert", "server.crt"),
        ("key", "server.key"),
    ]
    .map(|(flag, file)| format!("--{flag}={PKI}/{file}"));
    let asked = [
        "-n",
        "kube-system",
        "exec",
        &pod,
        "--",
        "etcdctl",
        "--endpoints=https://127.0.0.1:2379",
        &authority,
        &certificate,
        &key,
        "get",
        "--prefix",
        "--write-out=json",
        prefix,
    ];
    let said = kubectl(landscape, &asked, "").await?;
    let found: Value = serde_json::from_str(&said).with_context(|| format!("etcdctl said {said:.300}"))?;
    let objects = found["kvs"].as_array().context("there is nothing")?;
    for object in objects {
        let decoded = |field: &str| STANDARD.decode(object[field].as_str().unwrap_or_default());
        let (name, value) = (decoded("key")?, decoded("value")?);
        let name = String::from_utf8_lossy(&name);
        ensure!(value.starts_with(b"k8s:enc:"), "{name} lies in etcd as it is");
    }
    Ok(objects.len())
}
