//! Exposure of a shoot's API: the seed's SNI proxy passes TLS connections to the shoot that the client names.
//!
//! The configuration of the SNI proxy is fixed. The proxy finds a shoot by a Service in the proxy's
//! namespace. The name of the Service contains a hash of the host name in the client's request. So the proxy
//! needs no update for a shoot.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use runtime::{
    Error, Result,
    client::{
        Cluster, apply,
        wait::{self, WaitState},
    },
    error::Explain,
};
use serde_json::json;

use crate::{
    FIELD_MANAGER, Facts, Residency, configuration_problem, from_json,
    hex::hex,
    secrets::config::{KUBE_APISERVER, TUNNEL_SERVICE},
    task::{NONE, PartTask},
};

/// Label: the shoot's technical id.
const TECHNICAL_ID: &str = "gardener.cloud/technical-id";

/// Prefix of Services for clients of the API.
const API: &str = "sni";
/// Prefix of Services for tunnel agents, which use the same host name.
const TUNNEL: &str = "tunnel";

/// The shoot's Services at the SNI proxy.
#[derive(Debug)]
pub struct KubeApiserverExposure;

impl KubeApiserverExposure {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Facts> =
        PartTask::new("Exposing Kubernetes API server by its names", NONE, |input| {
            Box::pin(Self::deploy(input))
        });
    /// [`Self::destroy`], as a task.
    pub const DESTROY: PartTask<Residency> =
        PartTask::new("Removing exposure of the Kubernetes API server", NONE, |input| {
            Box::pin(Self::destroy(input))
        });

    /// "Exposing Kubernetes API server by its names": the SNI proxy finds the shoot by all present names, and
    /// by no former name. An entry of a different shoot is refused.
    pub async fn deploy(f: &Facts) -> Result<()> {
        let api: Api<Service> = f
            .residency
            .seed
            .namespaced(&f.residency.settings.exposure_namespace);
        let wanted = services(f)?;
        for entry in &wanted {
            deploy_entry(f, &api, entry).await?;
        }
        let names: BTreeSet<_> = wanted.iter().map(|entry| entry.service.name_any()).collect();
        delete_except(&f.residency, &names).await
    }

    /// Address or name of the edge of a seed, from the status of the Service of the edge.
    #[must_use]
    pub fn edge_address(service: &Service) -> Option<String> {
        address(service)
    }

    /// "Removing exposure of the Kubernetes API server": deletes all Services of the shoot at the SNI proxy.
    pub async fn destroy(residency: &Residency) -> Result<()> {
        delete_except(residency, &BTreeSet::new()).await
    }
}

async fn delete_except(residency: &Residency, kept: &BTreeSet<String>) -> Result<()> {
    let api: Api<Service> = residency.seed.namespaced(&residency.settings.exposure_namespace);
    let selector = format!("{TECHNICAL_ID}={}", residency.namespace);
    let found = api
        .list(&ListParams::default().labels(&selector))
        .await
        .context("could not list the front's Services")?;
    for service in found
        .items
        .iter()
        .filter(|service| !kept.contains(&service.name_any()))
    {
        apply::delete(&api, &service.name_any()).await?;
    }
    Ok(())
}

/// Waits until the address of the seed's SNI proxy is known: the target of the shoot's DNS records.
pub(crate) async fn wait_for_front(residency: &Residency) -> Result<()> {
    let api: Api<Service> = residency.seed.namespaced(&residency.settings.exposure_namespace);
    let timeout = residency.settings.timeouts.kube_apiserver_service;
    let look = |service: Option<&Service>| match service {
        None => WaitState::Wait("it does not exist: install the seed's front".into()),
        Some(service) if address(service).is_some() => WaitState::Done,
        Some(_) => WaitState::Wait("its load balancer has no address yet".into()),
    };
    wait::until(&api, &residency.settings.ingress_service, timeout, look)
        .await
        .map(|_| ())
}

/// Address or name of the seed's SNI proxy.
pub(crate) async fn front_address(residency: &Residency) -> Result<String> {
    let (namespace, name) = (
        &residency.settings.exposure_namespace,
        &residency.settings.ingress_service,
    );
    let api: Api<Service> = residency.seed.namespaced(namespace);
    let service = api
        .get_opt(name)
        .await
        .context(format_args!("could not read Service {namespace}/{name}"))?;
    service.as_ref().and_then(address).ok_or_else(|| {
        Error::transient(format!(
            "the seed's front, Service {namespace}/{name}, has no address in its status yet"
        ))
    })
}

/// An entry of the edge.
struct EdgeEntry {
    service: Service,
    host: String,
    /// The host is the internal name of the shoot, which no second shoot may have.
    is_internal: bool,
}

/// The permitted write of an entry.
#[derive(Debug, PartialEq, Eq)]
enum EntryWrite<'a> {
    /// The shoot has the entry, or the internal name of the shoot is in the entry of a different shoot.
    Update,
    /// A shoot of this technical id has the entry. The entry may be a leftover of a shoot that is gone.
    Foreign(&'a str),
}

fn permitted_write<'a>(entry: &EdgeEntry, found: &'a Service, technical_id: &str) -> EntryWrite<'a> {
    let owner = found.labels().get(TECHNICAL_ID).map_or("", String::as_str);
    if owner == technical_id || entry.is_internal {
        EntryWrite::Update
    } else {
        EntryWrite::Foreign(owner)
    }
}

/// Creates or updates exactly the entry that the decision was made on. A create fails if a second shoot was
/// faster, and the resource version makes an update fail after any other write.
async fn deploy_entry(f: &Facts, api: &Api<Service>, entry: &EdgeEntry) -> Result<()> {
    let name = entry.service.name_any();
    let found = api.get_opt(&name).await;
    let found = found.context(format_args!("could not read Service {name} of the edge"))?;
    let present = match found {
        None => create_entry(api, entry).await?,
        Some(found) => {
            if let EntryWrite::Foreign(owner) = permitted_write(entry, &found, &f.residency.namespace) {
                refuse_unless_gone(f, entry, owner).await?;
            }
            found
        }
    };
    let mut service = entry.service.clone();
    service.metadata.resource_version = present.resource_version();
    FIELD_MANAGER.apply(api, &service).await.map(drop)
}

async fn create_entry(api: &Api<Service>, entry: &EdgeEntry) -> Result<Service> {
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.0.to_owned()),
        ..PostParams::default()
    };
    let created = api.create(&params, &entry.service).await;
    let name = entry.service.name_any();
    created.context(format_args!("could not create Service {name} of the edge"))
}

/// The text is for the members of the project, and does not identify the shoot that has the entry.
async fn refuse_unless_gone(f: &Facts, entry: &EdgeEntry, owner: &str) -> Result<()> {
    let namespaces: Api<Namespace> = f.residency.seed.cluster_wide();
    let is_gone = !owner.is_empty()
        && namespaces
            .get_metadata_opt(owner)
            .await
            .context(format_args!("could not read namespace {owner}"))?
            .is_none();
    if is_gone {
        return Ok(());
    }
    Err(configuration_problem(format!(
        "the edge of seed {} leads {} to a different shoot: delete this Shoot, and create the Shoot with another spec.dns.domain; an          operator of the seed finds the owner of the name in label {TECHNICAL_ID} of Service {} in namespace {}",
        f.seed_object.name_any(),
        entry.host,
        entry.service.name_any(),
        f.residency.settings.exposure_namespace
    )))
}

fn services(f: &Facts) -> Result<Vec<EdgeEntry>> {
    let entry = |what, host: &str, target| {
        Ok(EdgeEntry {
            service: service(
                (what, host),
                target,
                &f.residency.namespace,
                &f.residency.settings.exposure_namespace,
            )?,
            host: host.to_owned(),
            is_internal: f.names.internal_api.as_deref() == Some(host),
        })
    };
    let mut all = f
        .names
        .apis()
        .map(|host| entry(API, host, KUBE_APISERVER))
        .collect::<Result<Vec<_>>>()?;
    if f.wants_tunnel() {
        all.push(entry(TUNNEL, f.api_for_nodes()?, TUNNEL_SERVICE)?);
    }
    Ok(all)
}

fn service(
    (what, host): (&str, &str),
    target: &str,
    namespace: &str,
    exposure_namespace: &str,
) -> Result<Service> {
    from_json(json!({
        "metadata": {
            "name": service_name(what, host),
            "namespace": exposure_namespace,
            "labels": {(TECHNICAL_ID): namespace},
            "annotations": {"gardener.cloud/host": host},
        },
        "spec": {
            "type": "ExternalName",
            "externalName": format!("{target}.{namespace}.svc.cluster.local"),
        },
    }))
}

/// Name of the Service for a host name. The SNI proxy derives the same name from the client's request.
fn service_name(what: &str, host: &str) -> String {
    format!(
        "{what}-{}",
        hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, host.to_ascii_lowercase().as_bytes()).as_ref())
    )
}

fn address(service: &Service) -> Option<String> {
    let ingress = service
        .status
        .as_ref()?
        .load_balancer
        .as_ref()?
        .ingress
        .as_ref()?
        .first()?;
    ingress.ip.clone().or_else(|| ingress.hostname.clone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_name_is_the_hash_of_the_host_in_small_letters() {
        // printf api.example.test | sha1sum
        assert_eq!(
            service_name(API, "api.example.test"),
            "sni-9277b7d0264d408b43b1f827ad9c82c52b399d74"
        );
        assert_eq!(
            service_name(API, "API.example.test"),
            service_name(API, "api.example.test")
        );
    }

    #[test]
    fn an_entry_of_a_different_shoot_is_written_for_an_internal_name_only() {
        let entry = |is_internal| EdgeEntry {
            service: service(
                (API, "api.example.test"),
                KUBE_APISERVER,
                "shoot--dev--web",
                "edge",
            )
            .unwrap(),
            host: "api.example.test".to_owned(),
            is_internal,
        };
        let of = |namespace| service((API, "api.example.test"), KUBE_APISERVER, namespace, "edge").unwrap();
        let (own, other) = (of("shoot--dev--web"), of("shoot--dev--other"));
        let mut unlabelled = other.clone();
        unlabelled.metadata.labels = None;
        let write = |is_internal, found| {
            permitted_write(&entry(is_internal), found, "shoot--dev--web") == EntryWrite::Update
        };
        assert!(write(false, &own));
        assert!(!write(false, &other));
        assert!(!write(false, &unlabelled));
        assert!(
            write(true, &other),
            "the internal name belongs to the shoot by its technical id"
        );
    }

    /// The configuration of the SNI proxy contains the same prefixes.
    #[test]
    fn the_front_knows_what_the_names_begin_with() {
        let front = include_str!("../../../../../charts/seed/files/haproxy.cfg");
        for what in [API, TUNNEL] {
            assert!(front.contains(&format!("\"{what}-%[var(txn.digest)]")), "{what}");
        }
    }

    #[test]
    fn the_front_is_at_its_first_address_or_name() {
        let with = |ingress: serde_json::Value| -> Service {
            from_json(json!({"status": {"loadBalancer": {"ingress": [ingress]}}})).unwrap()
        };
        assert_eq!(
            address(&with(json!({"ip": "172.18.0.5"}))).as_deref(),
            Some("172.18.0.5")
        );
        assert_eq!(
            address(&with(json!({"hostname": "front.example.test"}))).as_deref(),
            Some("front.example.test")
        );
        assert_eq!(address(&Service::default()), None);
    }
}
