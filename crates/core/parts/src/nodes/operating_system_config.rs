//! OperatingSystemConfig: the first configuration of the machines of a pool, an object per pool. The provider
//! translates the object to the format of the operating system. The result is the user data of new machines.
//!
//! Two placeholders are replaced for each machine at creation: the machine name, and a bootstrap token.

use api::{
    extensions::{
        DefaultSpec, OperatingSystemConfig,
        operating_system_config::{
            DropIn, File, FileContent, FileContentInline, OperatingSystemConfigPurpose,
            OperatingSystemConfigSpec, Unit,
        },
    },
    gardencore::shoot::Worker,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::try_join_all;
use runtime::Result;
use serde_json::json;

use super::{
    cloud_controller_manager::{EXTERNAL, describes_nodes},
    kubelet, machine_image,
};
use crate::{
    ExtensionResource, Facts, Residency, configuration_problem,
    secrets::config::{CA, CA_KUBELET},
    task::{CLOUD, ExternalSystems},
    verbs::{Deploy, Tasks},
};

/// Placeholders that are replaced for each machine.
const MACHINE_NAME: &str = "<<MACHINE_NAME>>";
const BOOTSTRAP_TOKEN: &str = "<<BOOTSTRAP_TOKEN>>";
const BOOTSTRAP_KUBECONFIG: &str = "/var/lib/kubelet/bootstrap-kubeconfig";

/// The configurations of all pools.
#[derive(Debug)]
pub struct OperatingSystemConfigs;

impl Deploy for OperatingSystemConfigs {
    const TASKS: Tasks = [
        "Deploying operating system specific configuration for shoot workers",
        "Waiting until operating system configurations for worker nodes have been reconciled",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        let authorities = Authorities {
            api: certificate(&f.residency, CA).await?,
            kubelets: certificate(&f.residency, CA_KUBELET).await?,
        };
        let pools = &f.shoot.spec.provider.workers;
        let before = match pools.first() {
            Some(pool) => object_of(&f.residency, pool).get().await?,
            None => return Ok(()),
        };
        let is_external = describes_nodes(f, before.as_ref()).await?;
        for pool in pools {
            let object = operating_system_config(f, pool, &authorities, is_external)?;
            object_of(&f.residency, pool).deploy(f, object).await?;
        }
        Ok(())
    }

    async fn ready(f: &Facts) -> Result<()> {
        let pools = f.shoot.spec.provider.workers.iter();
        try_join_all(pools.map(|pool| async move { object_of(&f.residency, pool).wait_until_ready().await }))
            .await
            .map(drop)
    }
}

/// CA certificates that machines trust: all are carried over a move.
struct Authorities {
    api: Vec<u8>,
    kubelets: Vec<u8>,
}

/// Name of the object of a pool.
pub(super) fn name_of(pool: &Worker) -> String {
    format!("cloud-config-{}", pool.name)
}

/// The object of a pool.
pub(super) fn object_of<'a>(
    residency: &'a Residency,
    pool: &Worker,
) -> ExtensionResource<'a, OperatingSystemConfig> {
    ExtensionResource::new(residency, name_of(pool), residency.settings.timeouts.extension)
}

async fn certificate(residency: &Residency, name: &str) -> Result<Vec<u8>> {
    let mut data = residency.secret_data(name).await?;
    data.remove("ca.crt")
        .ok_or_else(|| configuration_problem(format!("Secret {name} in the shoot's namespace has no ca.crt")))
}

fn operating_system_config(
    f: &Facts,
    pool: &Worker,
    authorities: &Authorities,
    is_external: bool,
) -> Result<OperatingSystemConfig> {
    let image = machine_image::select_image(pool, &f.cloud_profile)?;
    let server = f.api_for_nodes()?;
    let user = kubelet::wanted(f.shoot.spec.kubernetes.kubelet.as_ref(), pool);
    let kubelet = kubelet::configuration(&f.names, user.as_ref())?;
    Ok(OperatingSystemConfig::new(
        &name_of(pool),
        OperatingSystemConfigSpec {
            default: DefaultSpec {
                type_: image.name,
                provider_config: image.provider_config,
                ..DefaultSpec::default()
            },
            purpose: OperatingSystemConfigPurpose::Provision,
            units: vec![kubelet_unit(is_external)],
            files: vec![
                file(
                    &format!("{}/ca.crt", kubelet::DIRECTORY),
                    0o644,
                    &authorities.kubelets,
                ),
                file(
                    BOOTSTRAP_KUBECONFIG,
                    0o600,
                    bootstrap_kubeconfig(server, &authorities.api)
                        .to_string()
                        .as_bytes(),
                ),
                file(
                    &format!("{}/config.yaml", kubelet::DIRECTORY),
                    0o644,
                    kubelet.to_string().as_bytes(),
                ),
            ],
            ..OperatingSystemConfigSpec::default()
        },
    ))
}

/// JSON is valid YAML. The placeholders must stay readable in the text, so this file is not encoded as a
/// whole ([`file`]).
fn bootstrap_kubeconfig(server: &str, authority: &[u8]) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "shoot", "cluster": {
            "server": format!("https://{server}"), "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "kubelet-bootstrap", "user": {"token": BOOTSTRAP_TOKEN}}],
        "contexts": [{"name": "shoot", "context": {"cluster": "shoot", "user": "kubelet-bootstrap"}}],
        "current-context": "shoot",
    })
}

/// The kubelet's start options of this shoot, which override the unit of the operating system. `is_external`:
/// the Node has a taint until a cloud-controller-manager has described the Node.
fn kubelet_unit(is_external: bool) -> Unit {
    let mut flags = vec![
        format!("--config={}/config.yaml", kubelet::DIRECTORY),
        format!("--bootstrap-kubeconfig={BOOTSTRAP_KUBECONFIG}"),
        format!("--kubeconfig={}/kubeconfig", kubelet::DIRECTORY),
        format!("--cert-dir={}/pki", kubelet::DIRECTORY),
        format!("--hostname-override={MACHINE_NAME}"),
        "--container-runtime-endpoint=unix:///run/containerd/containerd.sock".to_owned(),
        "--runtime-cgroups=/system.slice/containerd.service".to_owned(),
    ];
    flags.extend(is_external.then(|| EXTERNAL.to_owned()));
    Unit {
        name: "kubelet.service".to_owned(),
        enable: Some(true),
        command: Some("restart".to_owned()),
        drop_ins: vec![DropIn {
            name: "10-shoot.conf".to_owned(),
            content: format!(
                "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet {}\n",
                flags.join(" ")
            ),
        }],
        ..Unit::default()
    }
}

fn file(path: &str, permissions: i32, content: &[u8]) -> File {
    let inline = match std::str::from_utf8(content) {
        Ok(text) => FileContentInline {
            encoding: String::new(),
            data: text.to_owned(),
        },
        Err(_) => FileContentInline {
            encoding: "b64".to_owned(),
            data: STANDARD.encode(content),
        },
    };
    File {
        path: path.to_owned(),
        permissions: Some(permissions),
        content: FileContent {
            inline: Some(inline),
            ..FileContent::default()
        },
        ..File::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_waits_for_a_cloud_controller_manager_only_where_told() {
        let command = |is_external| kubelet_unit(is_external).drop_ins[0].content.clone();
        assert!(
            command(true).contains(" --cloud-provider=external\n"),
            "{}",
            command(true)
        );
        assert!(!command(false).contains("--cloud-provider"), "{}", command(false));
    }
}
