//! Reads what the conditions are worked out from.

use api::{
    druid::Etcd,
    extensions::{BackupEntry, ControlPlane, DNSRecord, ExtensionObject, Infrastructure},
    gardencore::Shoot,
    meta::{LastError, LastOperation},
};
use k8s_openapi::{NamespaceResourceScope, api::apps::v1::Deployment, api::core::v1::Node};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use runtime::{Result, clusters::Cluster, error::Context as _};

use super::probe::{self, Answer};
use crate::Context;

/// How an extension object stands.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    /// Kind and name.
    pub title: String,
    /// What was done last.
    pub last_operation: Option<LastOperation>,
    /// What stood in the way last.
    pub last_error: Option<LastError>,
}

/// What was seen of a shoot's control plane.
#[derive(Debug)]
pub(super) struct Observed {
    /// Why the API is not available; `None` if it is.
    pub api_error: Option<String>,
    /// The API could not even be asked.
    pub api_not_asked: bool,
    /// The nodes, or why they are not known.
    pub nodes: std::result::Result<Vec<Node>, String>,
    /// Deployments in the shoot's namespace.
    pub deployments: Vec<Deployment>,
    /// Etcds in the shoot's namespace.
    pub etcds: Vec<Etcd>,
    /// Extension objects of the shoot.
    pub extensions: Vec<Extension>,
}

/// Looks at everything.
pub(super) async fn look(context: &Context, shoot: &Shoot, namespace: &str) -> Result<Observed> {
    let seed = &context.seed;
    let (answer, deployments, etcds, infrastructures, control_planes, dns_records) = futures::join!(
        probe::api_server(seed, &context.settings, namespace),
        list::<Deployment>(context, namespace),
        list::<Etcd>(context, namespace),
        list::<Infrastructure>(context, namespace),
        list::<ControlPlane>(context, namespace),
        list::<DNSRecord>(context, namespace),
    );
    let mut extensions = described(&infrastructures?);
    extensions.extend(described(&control_planes?));
    extensions.extend(described(&dns_records?));
    let uid = shoot.status.as_ref().map(|s| s.uid.as_str()).unwrap_or_default();
    let entries: Api<BackupEntry> = seed.cluster_wide();
    let entry = entries
        .get_opt(&format!("{namespace}--{uid}"))
        .await
        .context("could not read the BackupEntry")?;
    extensions.extend(described(entry.as_slice()));
    let (api_error, api_not_asked, nodes) = match answer {
        Answer::Ok(_) if shoot.spec.provider.workers.is_empty() => (None, false, Ok(Vec::new())),
        Answer::Ok(client) => (None, false, probe::nodes(&client).await),
        Answer::No(why) => (
            Some(why),
            false,
            Err("the shoot's API is not available".to_owned()),
        ),
        Answer::NotAsked(why) => (
            Some(why),
            true,
            Err("the shoot's API is not available".to_owned()),
        ),
    };
    Ok(Observed {
        api_error,
        api_not_asked,
        nodes,
        deployments: deployments?,
        etcds: etcds?,
        extensions,
    })
}

async fn list<K>(context: &Context, namespace: &str) -> Result<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = context.seed.namespaced(namespace);
    let list = api
        .list(&ListParams::default())
        .await
        .context(format_args!("could not list {}", K::plural(&())))?;
    Ok(list.items)
}

fn described<K: ExtensionObject>(objects: &[K]) -> Vec<Extension> {
    objects
        .iter()
        .map(|object| {
            let status = object.default_status();
            Extension {
                title: format!("{} {}", K::kind(&()), object.name_any()),
                last_operation: status.and_then(|s| s.last_operation.clone()),
                last_error: status.and_then(|s| s.last_error.clone()),
            }
        })
        .collect()
}
