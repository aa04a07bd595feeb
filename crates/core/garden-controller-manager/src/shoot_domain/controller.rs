//! Watches Shoots with a domain, and reserves the domain or reports the obstacle.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    constants::PROJECT_NAME,
    gardencore::{Seed, Shoot},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Error, Result,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::json;
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::decision::{DomainClaim, obstacle};
use crate::{Context, MANAGER};

/// Between two decisions about a refused domain. A domain becomes free when the Shoot in the way is gone.
const REFUSED_PERIOD: Duration = Duration::from_secs(60);
/// After a concurrent write to the Shoot.
const CONFLICT_REQUEUE: Duration = Duration::from_millis(100);

struct ShootDomain {
    context: Context,
    /// Domains by the uid of their Shoot, for reservations that the cache may not show yet. The lock puts
    /// all decisions in a sequence.
    reserved: Mutex<BTreeMap<String, String>>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context
        .shoots
        .controller(|shoot| runner::fingerprint((shoot.uid(), domain(shoot), reserved(shoot))));
    context
        .run(controller, |context| ShootDomain {
            context,
            reserved: Mutex::default(),
        })
        .await;
}

fn domain(shoot: &Shoot) -> Option<&str> {
    shoot.spec.dns.as_ref()?.domain.as_deref()
}

fn reserved(shoot: &Shoot) -> Option<&str> {
    shoot.status.as_ref()?.reserved_domain.as_deref()
}

fn claim(shoot: &Shoot) -> Option<DomainClaim> {
    let reserved = reserved(shoot);
    Some(DomainClaim {
        uid: shoot.uid()?,
        domain: reserved.or(domain(shoot))?.to_owned(),
        is_reserved: reserved.is_some(),
        created: shoot.creation_timestamp(),
    })
}

impl ShootDomain {
    /// All Shoots with a domain, with the reservations of this process.
    fn claims(&self, reserved: &mut BTreeMap<String, String>) -> Vec<DomainClaim> {
        let shoots = self.context.shoots.store().state();
        let mut claims: Vec<_> = shoots.iter().filter_map(|shoot| claim(shoot)).collect();
        // A Shoot that the cache does not have any more is gone.
        reserved.retain(|uid, _| claims.iter().any(|claim| claim.uid == *uid && !claim.is_reserved));
        for claim in &mut claims {
            claim.is_reserved |= reserved.contains_key(&claim.uid);
        }
        claims
    }

    async fn project(&self, namespace: &str) -> Result<String> {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let found = namespaces.get_metadata_opt(namespace).await;
        let found = found.context(format_args!("could not read namespace {namespace}"))?;
        let project = found.and_then(|found| found.labels().get(PROJECT_NAME).cloned());
        project.ok_or_else(|| {
            Error::transient(format!(
                "namespace {namespace} has no label {PROJECT_NAME}: add the label"
            ))
        })
    }
}

impl Reconciler<Shoot> for ShootDomain {
    const NAME: &'static str = "shoot-domain";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        domain(shoot).is_some() && reserved(shoot).is_none()
    }

    async fn apply(&self, cached: Arc<Shoot>) -> Result<Next> {
        let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
        let mut reserved_here = self.reserved.lock().await;
        self.context.shoots.wait_until_ready().await?;
        let shoots: Api<Shoot> = self.context.garden.namespaced(&namespace);
        let read = shoots.get_opt(&name).await;
        let read = read.context(format_args!("could not read Shoot {name}"))?;
        let is_undecided = |shoot: &Shoot| shoot.uid() == cached.uid() && reserved(shoot).is_none();
        let Some(shoot) = read.filter(is_undecided) else {
            return Ok(Next::Change);
        };
        let Some(claim) = claim(&shoot) else {
            return Ok(Next::Change);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let seeds = seeds.list(&ListParams::default()).await;
        let seeds = seeds.context("could not list Seeds")?.items;
        let own_prefix = format!("{name}.{}", self.project(&namespace).await?);
        let others = self.claims(&mut reserved_here);
        if let Some(why) = obstacle(&claim, &own_prefix, &others, &seeds) {
            drop(reserved_here);
            warn!(namespace, name, why, "a domain is refused");
            let events = &self.context.events;
            events.answer_with_warning(&shoot, "DomainRefused", &why).await;
            return Ok(Next::After(REFUSED_PERIOD));
        }
        // Before the write, whose outcome may stay unknown.
        reserved_here.insert(claim.uid.clone(), claim.domain.clone());
        let status = json!({"reservedDomain": claim.domain});
        let written = MANAGER.try_merge_status_of(&shoots, &shoot, &status).await?;
        if written.is_none() {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        info!(namespace, name, domain = claim.domain, "the domain is reserved");
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}
