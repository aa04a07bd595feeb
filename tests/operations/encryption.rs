//! The EncryptionConfiguration of the documentation, and the configuration of the landscapes, encrypt the
//! garden's stored state (R7-25), on a real kube-apiserver. The test reads the values from etcd.

use std::{fs, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};
use tokio::process::Command;

use crate::programs::{Desk, root};

const KEY: &str = "<head -c 32 /dev/urandom | base64>";
/// 32 bytes.
const A_KEY: &str = "c2VjcmV0Ym94IHdhbnRzIHRoaXJ0eS10d28gYnl0ZXM=";
/// A CRD is served a moment after the creation; long enough for several runs of kubectl on a busy machine.
const SOON: Duration = Duration::from_secs(90);

/// The block of the documentation.
fn documented() -> Result<String> {
    let page = fs::read_to_string(root().join("docs/understand/shoot-state.md"))?;
    let blocks = page.split("```yaml\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains("kind: EncryptionConfiguration"));
    block
        .map(str::to_owned)
        .context("the page has no EncryptionConfiguration")
}

#[test]
fn landscapes_have_what_the_documentation_says() {
    let of_landscapes = fs::read_to_string(root().join("hack/landscape/encryption.yaml")).unwrap();
    let parsed = |text: &str| -> Value { serde_yaml_ng::from_str(text).unwrap() };
    let documented = documented().unwrap().replace(KEY, "KEY");
    assert_eq!(parsed(&of_landscapes), parsed(&documented));
}

/// The value of a key in etcd.
async fn stored(plane: &ControlPlane, key: &str) -> Result<Vec<u8>> {
    let said = Command::new(testkit::find_program("etcdctl")?)
        .args(["get", "--print-value-only", key, "--endpoints", plane.etcd_url()])
        // The defaults of etcdctl are two and five seconds.
        .args(["--dial-timeout=60s", "--command-timeout=60s"])
        .output()
        .await?;
    ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    ensure!(said.stdout.len() > 1, "etcd has nothing under {key}");
    Ok(said.stdout)
}

fn definition(kind: &str, plural: &str) -> Result<Value> {
    let file = root().join(format!("crds/garden/core.gardener.cloud_{plural}.yaml"));
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let definition: Value = serde_yaml_ng::from_str(&text)?;
    ensure!(
        definition["spec"]["names"]["kind"] == kind,
        "{plural} are of no kind {kind}"
    );
    Ok(definition)
}

/// Each object contains the same word.
fn objects() -> Result<Vec<Value>> {
    let object = |version: &str, kind: &str, content: &Value| {
        let mut object = content.clone();
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "web", "namespace": "default"});
        object
    };
    let state = json!({"spec": {"gardener": [{"name": "ca", "type": "secret", "data": {"k": "s3cret"}}]}});
    let (secret, plain) = (
        json!({"data": {"k": "czNjcmV0"}}),
        json!({"data": {"k": "s3cret"}}),
    );
    Ok(vec![
        definition("ShootState", "shootstates")?,
        definition("InternalSecret", "internalsecrets")?,
        object("core.gardener.cloud/v1beta1", "ShootState", &state),
        object("core.gardener.cloud/v1beta1", "InternalSecret", &secret),
        object("v1", "Secret", &secret),
        object("v1", "ConfigMap", &plain),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_garden_keeps_is_encrypted_in_etcd() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("configuration.yaml");
    let configuration = documented()?.replace(KEY, A_KEY);
    ensure!(
        configuration.contains(A_KEY),
        "the page does not say where the key goes"
    );
    fs::write(&file, configuration)?;
    let flag = format!("--encryption-provider-config={}", file.display());
    let plane = ControlPlane::start_with("encrypted", vec![flag]).await?;
    let desk = Desk::at(plane.admin_kubeconfig_file())?;
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects()?});
    desk.write("objects.json", &list.to_string())?;
    eventually("all can be made", SOON, || async {
        let said = desk
            .run("kubectl", &["apply", "--server-side", "-f", "objects.json"])
            .await?;
        said.or_fail("kubectl apply")
    })
    .await?;
    let readable = |value: &[u8]| {
        let has = |word: &[u8]| value.windows(word.len()).any(|part| part == word);
        has(b"s3cret") || has(b"czNjcmV0")
    };
    for key in [
        "/registry/core.gardener.cloud/shootstates/default/web",
        "/registry/core.gardener.cloud/internalsecrets/default/web",
        "/registry/secrets/default/web",
    ] {
        let value = stored(&plane, key).await?;
        ensure!(
            value.starts_with(b"k8s:enc:secretbox:v1:key-1:"),
            "{key} is not encrypted"
        );
        ensure!(!readable(&value), "{key} can be read");
    }
    // An unlisted resource is stored in plain text: this proves that the read from etcd works.
    let plain = stored(&plane, "/registry/configmaps/default/web").await?;
    ensure!(readable(&plain), "a ConfigMap cannot be read");
    let read = desk
        .run("kubectl", &["get", "shootstate", "web", "-o", "json"])
        .await?;
    ensure!(
        read.or_fail("kubectl get")?.contains("s3cret"),
        "it cannot be read back"
    );
    Ok(())
}
