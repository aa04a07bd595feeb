//! Watches Shoots with a domain, and reserves the domain or reports the obstacle.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    constants::PROJECT_NAME,
    gardencore::{Project, Seed, Shoot},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::json;
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::decision::{DomainClaim, is_allowed, may_precede, obstacle, refusal_by_operator};
use crate::{Context, MANAGER, shoot_placement::status_of_refused_domain};

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

/// The claim of a Shoot, without the project.
fn claim(shoot: &Shoot) -> Option<DomainClaim> {
    let reserved = reserved(shoot);
    Some(DomainClaim {
        uid: shoot.uid()?,
        domain: reserved.or(domain(shoot))?.to_owned(),
        // Two shoots never serve one name, also while a shoot that is older than the reservations is deleted.
        is_reserved: reserved.is_some() || placement::unreserved_domain(shoot).is_none(),
        created: shoot.creation_timestamp(),
        is_deleting: shoot.metadata.deletion_timestamp.is_some(),
        own_prefix: None,
    })
}

fn own_prefix(shoot: &Shoot, project: &str) -> String {
    format!("{}.{project}", shoot.name_any())
}

impl ShootDomain {
    /// All Shoots with a domain, with the reservations of this process, and with the projects that the
    /// decision about `own` needs.
    async fn claims(
        &self,
        own: &DomainClaim,
        reserved: &mut BTreeMap<String, String>,
    ) -> Result<Vec<DomainClaim>> {
        let shoots = self.context.shoots.store().state();
        let claims = shoots.iter().filter_map(|shoot| Some((shoot, claim(shoot)?)));
        let mut claims: Vec<_> = claims.collect();
        // A Shoot that the cache does not have any more is gone.
        reserved.retain(|uid, _| {
            let is_of = |claim: &DomainClaim| claim.uid == *uid && !claim.is_reserved;
            claims.iter().any(|(_, claim)| is_of(claim))
        });
        // Each namespace is read once.
        let mut projects = BTreeMap::new();
        for (shoot, claim) in &mut claims {
            claim.is_reserved |= reserved.contains_key(&claim.uid);
            if !may_precede(claim, own) {
                continue;
            }
            let namespace = shoot.namespace().unwrap_or_default();
            let project = match projects.get(&namespace) {
                Some(project) => Option::clone(project),
                None => self.project(&namespace).await?,
            };
            let allowed = project.as_deref();
            let allowed = allowed.filter(|project| self.is_allowed(&claim.domain, project));
            claim.own_prefix = allowed.map(|project| own_prefix(shoot, project));
            projects.insert(namespace, project);
        }
        Ok(claims.into_iter().map(|(_, claim)| claim).collect())
    }

    fn is_allowed(&self, domain: &str, project: &str) -> bool {
        is_allowed(domain, project, &self.context.config.reserved_domain)
    }

    /// The project of a namespace, by the label of the namespace. `None` also for a Project that is gone or
    /// in deletion.
    async fn project(&self, namespace: &str) -> Result<Option<String>> {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let found = namespaces.get_metadata_opt(namespace).await;
        let found = found.context(format_args!("could not read namespace {namespace}"))?;
        let Some(name) = found.and_then(|found| found.labels().get(PROJECT_NAME).cloned()) else {
            return Ok(None);
        };
        let projects: Api<Project> = self.context.garden.cluster_wide();
        let project = projects.get_metadata_opt(&name).await;
        let project = project.context(format_args!("could not read Project {name}"))?;
        let is_active = project.is_some_and(|project| project.metadata.deletion_timestamp.is_none());
        Ok(is_active.then_some(name))
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
        let Some(mut claim) = claim(&shoot) else {
            return Ok(Next::Change);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let seeds = seeds.list(&ListParams::default()).await;
        let seeds = seeds.context("could not list Seeds")?.items;
        let project = self.project(&namespace).await?;
        if project.is_none() && !claim.is_reserved {
            return Err(Error::transient(format!(
                "namespace {namespace} has no label {PROJECT_NAME} of a Project that is not being deleted: create the Project"
            )));
        }
        let is_allowed = project
            .as_deref()
            .is_none_or(|project| self.is_allowed(&claim.domain, project));
        claim.own_prefix = project.map(|project| own_prefix(&shoot, &project));
        let others = self.claims(&claim, &mut reserved_here).await?;
        let events = &self.context.events;
        let refusal = (!is_allowed).then(|| refusal_by_operator(&claim.domain));
        match refusal.or_else(|| obstacle(&claim, &others, &seeds)) {
            Some(why) if !claim.is_reserved => {
                drop(reserved_here);
                warn!(namespace, name, why, "a domain is refused");
                events.answer_with_warning(&shoot, "DomainRefused", &why).await;
                if let Some(report) = status_of_refused_domain(&shoot, &why, clock::now_k8s()) {
                    // After a concurrent write, the next decision reports the refusal.
                    MANAGER.try_merge_status_of(&shoots, &shoot, &report).await?;
                }
                return Ok(Next::After(REFUSED_PERIOD));
            }
            Some(why) => {
                warn!(
                    namespace,
                    name, why, "a running shoot keeps a domain that overlaps"
                );
                let note = format!("the shoot ran before domains were reserved, and keeps its domain: {why}");
                events.answer_with_warning(&shoot, "DomainOverlaps", &note).await;
            }
            None => {}
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
