//! Watches Shoots with a domain, and reserves the domain or reports the obstacle.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{
    constants::PROJECT_NAME,
    gardencore::{Project, Seed, SeedSpec, Shoot},
};
use futures::{
    FutureExt as _, StreamExt as _,
    stream::{BoxStream, iter, select},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Change, Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::json;
use tokio::{sync::OnceCell, task::unconstrained};
use tracing::{info, warn};

use super::{
    claim::DomainClaim,
    decision::{Obstacle, is_allowed, obstacle},
    index::DomainIndex,
    refusals::Refusals,
};
use crate::{
    Context, MANAGER,
    changes::{Keys, cache_trimmed, concerned, hash},
    shoot_placement::status_of_refused_domain,
};

/// After a concurrent write to the Shoot, or to the obstacle.
const CONFLICT_REQUEUE: Duration = Duration::from_millis(100);

struct ShootDomain {
    context: Context,
    /// The lock puts all decisions in a sequence.
    claims: tokio::sync::Mutex<Claims>,
    refusals: Arc<Mutex<Refusals>>,
    seeds: Store<Seed>,
    listed: OnceCell<()>,
}

/// All claims, and the changes of Shoots that the index does not have yet.
struct Claims {
    index: DomainIndex,
    changes: BoxStream<'static, Change<Shoot>>,
}

/// The outcome of a decision.
enum Decision {
    /// The domain belongs to the Shoot from this decision on. The obstacle overlaps a domain from before
    /// reservations.
    Reserve(Option<Obstacle>),
    Refuse(Obstacle),
    /// The watch does not show the Shoot yet.
    Later,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let refusals = Arc::<Mutex<Refusals>>::default();
    let of_shoots = concerned(&context.shoots, uid_of_claim, content_of_claim);
    let (seeds, of_seeds) = cache_trimmed(
        context.garden.cluster_wide(),
        watcher::Config::default(),
        keep_domains,
        |seed: &Seed| Keys::from([seed.name_any()]),
    );
    let (after_shoot, after_seed) = (Arc::clone(&refusals), Arc::clone(&refusals));
    let freed = select(
        of_shoots.flat_map(move |uid| iter(lock(&after_shoot).after_change_of_shoot(&uid))),
        of_seeds.flat_map(move |_| iter(lock(&after_seed).after_change_of_seed())),
    );
    let controller = context
        .shoots
        .controller(|shoot| runner::fingerprint((shoot.uid(), domain(shoot), reserved(shoot))))
        .reconcile_on(freed);
    let claims = Claims {
        index: DomainIndex::default(),
        changes: context.shoots.subscribe().boxed(),
    };
    context
        .run(controller, |context| ShootDomain {
            context,
            claims: tokio::sync::Mutex::new(claims),
            refusals,
            seeds,
            listed: OnceCell::new(),
        })
        .await;
}

fn lock(refusals: &Mutex<Refusals>) -> MutexGuard<'_, Refusals> {
    refusals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the fields of a Seed that no decision reads. A report of a seed wakes no Shoot.
fn keep_domains(seed: &mut Seed) {
    seed.metadata.labels = None;
    seed.metadata.annotations = None;
    seed.spec = SeedSpec {
        dns: std::mem::take(&mut seed.spec.dns),
        ..SeedSpec::default()
    };
    seed.status = None;
}

fn domain(shoot: &Shoot) -> Option<&str> {
    shoot.spec.dns.as_ref()?.domain.as_deref()
}

fn reserved(shoot: &Shoot) -> Option<&str> {
    shoot.status.as_ref()?.reserved_domain.as_deref()
}

/// The claim of a Shoot, without the project. A released Shoot claims no domain: no seed serves the name.
fn claim(shoot: &Shoot) -> Option<DomainClaim> {
    if placement::is_released(shoot) {
        return None;
    }
    let reserved = reserved(shoot);
    Some(DomainClaim {
        uid: shoot.uid()?,
        shoot: ObjectRef::new(&shoot.name_any()).within(&shoot.namespace()?),
        domain: reserved.or(domain(shoot))?.to_owned(),
        // Two shoots never serve one name, also while a shoot that is older than the reservations is deleted.
        is_reserved: reserved.is_some() || placement::unreserved_domain(shoot).is_none(),
        created: shoot.creation_timestamp(),
        is_deleting: shoot.metadata.deletion_timestamp.is_some(),
        own_prefix: None,
    })
}

fn uid_of_claim(shoot: &Shoot) -> Keys {
    claim(shoot).into_iter().map(|claim| claim.uid).collect()
}

/// The fields of a claim that decisions about other Shoots read.
fn content_of_claim(shoot: &Shoot) -> u64 {
    let claim = claim(shoot);
    hash(claim.map(|claim| (claim.uid, claim.domain, claim.is_reserved, claim.is_deleting)))
}

fn own_prefix(shoot: &str, project: &str) -> String {
    format!("{shoot}.{project}")
}

impl Claims {
    /// Takes over all changes that the watch has reported. The budget of the task must not end this before
    /// the last change.
    fn follow(&mut self) {
        while let Some(Some(change)) = unconstrained(self.changes.next()).now_or_never() {
            let claim = change.object.as_deref().and_then(claim);
            self.index.set_claim(&change.reference, claim);
        }
    }
}

impl ShootDomain {
    /// Waits until the caches of Shoots and Seeds were filled once.
    async fn wait_until_listed(&self) -> Result<()> {
        self.context.shoots.wait_until_ready().await?;
        let listed = self.listed.get_or_try_init(|| self.seeds.wait_until_ready());
        let listed = listed.await;
        listed.map_err(|_| Error::transient("the watch of Seeds has ended"))?;
        Ok(())
    }

    /// Decides, and reserves the domain in this process, before the write whose outcome may stay unknown.
    async fn decide(&self, claim: &DomainClaim, is_allowed: bool) -> Result<Decision> {
        let mut claims = self.claims.lock().await;
        claims.follow();
        if !claims.index.has(claim) {
            return Ok(Decision::Later);
        }
        let found = if is_allowed {
            self.obstacle(claim, &claims.index).await?
        } else {
            Some(Obstacle::Operator)
        };
        match found {
            Some(obstacle) if !claim.is_reserved => Ok(Decision::Refuse(obstacle)),
            overlap => {
                claims.index.reserve(claim);
                Ok(Decision::Reserve(overlap))
            }
        }
    }

    async fn obstacle(&self, claim: &DomainClaim, index: &DomainIndex) -> Result<Option<Obstacle>> {
        let seeds = self.seeds.state();
        let found = obstacle(claim, index, &[], &seeds);
        if found.is_some() {
            return Ok(found);
        }
        let mut older = index.older(claim);
        // Each namespace is read once.
        let mut projects = BTreeMap::new();
        for other in &mut older {
            let namespace = other.shoot.namespace.clone().unwrap_or_default();
            let project = match projects.get(&namespace) {
                Some(project) => Option::clone(project),
                None => self.project(&namespace).await?,
            };
            let allowed = project.as_deref();
            let allowed = allowed.filter(|project| self.is_allowed(&other.domain, project));
            other.own_prefix = allowed.map(|project| own_prefix(&other.shoot.name, project));
            projects.insert(namespace, project);
        }
        Ok(obstacle(claim, index, &older, &seeds))
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

    /// Reports the refusal. The next decision follows a change of the obstacle, or the pause.
    async fn refuse(
        &self,
        shoots: &Api<Shoot>,
        shoot: &Shoot,
        claim: &DomainClaim,
        obstacle: &Obstacle,
    ) -> Result<Next> {
        let pause = lock(&self.refusals).record(claim, obstacle);
        let why = obstacle.explain(&claim.domain);
        warn!(shoot = %claim.shoot, why, "a domain is refused");
        let events = &self.context.events;
        events.answer_with_warning(shoot, "DomainRefused", &why).await;
        if let Some(report) = status_of_refused_domain(shoot, &why, clock::now_k8s()) {
            // After a concurrent write, the next decision reports the refusal.
            MANAGER.try_merge_status_of(shoots, shoot, &report).await?;
        }
        let is_present = self.is_present(claim, obstacle).await;
        Ok(Next::After(if is_present { pause } else { CONFLICT_REQUEUE }))
    }

    /// Whether the obstacle still exists. A change before the record of the refusal wakes no Shoot.
    async fn is_present(&self, claim: &DomainClaim, found: &Obstacle) -> bool {
        match found {
            Obstacle::Reserved(_) | Obstacle::Seed { .. } => {
                let mut claims = self.claims.lock().await;
                claims.follow();
                obstacle(claim, &claims.index, &[], &self.seeds.state()).as_ref() == Some(found)
            }
            Obstacle::Operator | Obstacle::PublicSuffix(_) | Obstacle::Older(_) => true,
        }
    }
}

impl Reconciler<Shoot> for ShootDomain {
    const NAME: &'static str = "shoot-domain";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        domain(shoot).is_some() && reserved(shoot).is_none()
    }

    async fn apply(&self, cached: Arc<Shoot>) -> Result<Next> {
        let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
        self.wait_until_listed().await?;
        let shoots: Api<Shoot> = self.context.garden.namespaced(&namespace);
        let read = self.context.latest(&cached).await?;
        let is_undecided = |shoot: &Shoot| shoot.uid() == cached.uid() && reserved(shoot).is_none();
        let Some(shoot) = read.filter(is_undecided) else {
            return Ok(Next::Change);
        };
        let Some(mut claim) = claim(&shoot) else {
            return Ok(Next::Change);
        };
        let project = self.project(&namespace).await?;
        if project.is_none() && !claim.is_reserved {
            return Err(Error::transient(format!(
                "namespace {namespace} has no label {PROJECT_NAME} of a Project that is not being deleted: create the Project"
            )));
        }
        let is_allowed = project
            .as_deref()
            .is_none_or(|project| self.is_allowed(&claim.domain, project));
        claim.own_prefix = project.map(|project| own_prefix(&name, &project));
        match self.decide(&claim, is_allowed).await? {
            Decision::Later => return Ok(Next::After(CONFLICT_REQUEUE)),
            Decision::Refuse(obstacle) => return self.refuse(&shoots, &shoot, &claim, &obstacle).await,
            Decision::Reserve(None) => {}
            Decision::Reserve(Some(overlap)) => {
                let why = overlap.explain(&claim.domain);
                warn!(
                    namespace,
                    name, why, "a running shoot keeps a domain that overlaps"
                );
                let note = format!("the shoot ran before domains were reserved, and keeps its domain: {why}");
                let events = &self.context.events;
                events.answer_with_warning(&shoot, "DomainOverlaps", &note).await;
            }
        }
        // The write holds for the version of the Shoot that the decision read.
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
