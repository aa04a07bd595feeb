//! Creates the namespace of a project, and deletes an empty namespace.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{PROJECT_NAME, finalizer::GARDENER},
    gardencore::{BackupEntry, Project, ProjectPhase, Shoot},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
    core::PartialObjectMeta,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Error, Result,
    client::{Cluster, apply},
    clock,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::json;

use super::{
    namespace::{
        MADE_FOR, Verdict, desired_namespace, name_of, obstacle, pod_restriction, remaining_finalizers,
        verdict,
    },
    quota,
};
use crate::{Context, MANAGER};

/// Requeue interval of a project that cannot be deleted or created. The namespace is watched; the interval
/// detects changes of shoots and backups, which are not watched.
const BLOCKED_REQUEUE: Duration = Duration::from_secs(10);

struct ProjectController {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let projects: Api<Project> = context.garden.cluster_wide();
    let namespaces: Api<Namespace> = context.garden.cluster_wide();
    let controller = runner::controller(projects.clone(), watcher::Config::default(), |_| None).watches(
        namespaces,
        watcher::Config::default().labels(PROJECT_NAME),
        |namespace| {
            namespace
                .labels()
                .get(PROJECT_NAME)
                .map(|name| ObjectRef::new(name))
        },
    );
    let settings = context.runner();
    runner::run(
        controller,
        move |_| projects.clone(),
        Arc::new(ProjectController { context }),
        settings,
    )
    .await;
}

impl Reconciler<Project> for ProjectController {
    const NAME: &'static str = "project";
    const FINALIZER: Option<&'static str> = Some(GARDENER);

    async fn apply(&self, project: Arc<Project>) -> Result<Next> {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let name = name_of(&project);
        let found = self.namespace(&name).await?;
        let verdict = match self.other_namespace(&project).await? {
            Some(why) => Verdict::Refused(why),
            None => verdict(&project, found.as_ref()),
        };
        match verdict {
            Verdict::Refused(why) => {
                self.set_phase(&project, ProjectPhase::Failed).await?;
                return Err(Error::config(api::meta::ErrorCode::ErrConfigurationProblem, why));
            }
            Verdict::Create => {
                if !self.create(&project).await? {
                    // A concurrent writer created the namespace: the next run judges the namespace again.
                    return Ok(Next::After(BLOCKED_REQUEUE));
                }
            }
            Verdict::Made => {
                MANAGER.apply(&namespaces, &desired_namespace(&project)).await?;
            }
            Verdict::Adopted => self.restrict_pods(found.as_ref()).await?,
        }
        let next = quota::deploy(&self.context, &project, &name).await?;
        if project.spec.namespace.as_deref().unwrap_or_default().is_empty() {
            let projects: Api<Project> = self.context.garden.cluster_wide();
            MANAGER
                .merge(
                    &projects,
                    &project.name_any(),
                    &json!({"spec": {"namespace": name}}),
                )
                .await?;
        }
        self.set_phase(&project, ProjectPhase::Ready).await?;
        Ok(next)
    }

    async fn cleanup(&self, project: Arc<Project>) -> Result<Next> {
        self.set_phase(&project, ProjectPhase::Terminating).await?;
        let name = name_of(&project);
        let Some(found) = self.namespace(&name).await? else {
            return Ok(Next::Change);
        };
        if found.labels().get(PROJECT_NAME) != Some(&project.name_any()) {
            return Ok(Next::Change);
        }
        if let Some(why) = self.still_used(&name).await? {
            let note = format!("the project stays until its namespace is empty: {why}");
            self.context
                .events
                .warning(project.as_ref(), "ProjectInUse", &note)
                .await;
            return Ok(Next::After(BLOCKED_REQUEUE));
        }
        // A namespace that an operator assigned to the project, or that was created for an earlier project,
        // must not be deleted.
        if found.annotations().get(MADE_FOR) != project.uid().as_ref() {
            return Ok(Next::Change);
        }
        if let Some(why) = remaining_finalizers(&found, clock::now()) {
            let note = format!("the project stays until namespace {name} is gone: {why}");
            self.context
                .events
                .answer_with_warning(project.as_ref(), "ProjectInUse", &note)
                .await;
        }
        apply::delete(&self.context.garden.cluster_wide::<Namespace>(), &name).await?;
        Ok(Next::After(BLOCKED_REQUEUE))
    }
}

impl ProjectController {
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>> {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        namespaces
            .get_opt(name)
            .await
            .context(format_args!("could not read namespace {name}"))
    }

    async fn other_namespace(&self, project: &Project) -> Result<Option<String>> {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let labelled = ListParams::default().labels(&format!("{PROJECT_NAME}={}", project.name_any()));
        let labelled = namespaces
            .list(&labelled)
            .await
            .context("could not list the namespaces of the project")?;
        Ok(obstacle(project, &labelled.items))
    }

    /// Not by apply: that would take a namespace that another user created in between. Returns whether the
    /// namespace was created.
    async fn create(&self, project: &Project) -> Result<bool> {
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let params = PostParams {
            field_manager: Some(MANAGER.0.to_owned()),
            ..PostParams::default()
        };
        match namespaces.create(&params, &desired_namespace(project)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
            Err(error) => Err(error).context("could not make the namespace of the project"),
        }
    }

    /// A merge and no apply, which would create a namespace that an operator has just deleted. The operator
    /// decides about the Pods in the namespace of this process.
    async fn restrict_pods(&self, found: Option<&Namespace>) -> Result<()> {
        let home = &self.context.config.lease.leader_elect_resource_namespace;
        let Some(found) = found.filter(|found| found.name_any() != *home) else {
            return Ok(());
        };
        if let Some(patch) = pod_restriction(found) {
            let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
            MANAGER.merge(&namespaces, &found.name_any(), &patch).await?;
        }
        Ok(())
    }

    async fn set_phase(&self, project: &Project, phase: ProjectPhase) -> Result<()> {
        let status = project.status.as_ref();
        let seen = status.and_then(|s| s.observed_generation);
        if status.and_then(|s| s.phase) == Some(phase) && seen == project.metadata.generation {
            return Ok(());
        }
        let api: Api<Project> = self.context.garden.cluster_wide();
        let body = json!({"phase": phase, "observedGeneration": project.metadata.generation});
        MANAGER
            .merge_status(&api, &project.name_any(), &body)
            .await
            .map(|_| ())
    }

    /// The objects that still need the namespace, if any.
    async fn still_used(&self, namespace: &str) -> Result<Option<String>> {
        let some = ListParams::default();
        let shoots: Api<PartialObjectMeta<Shoot>> = self.context.garden.namespaced(namespace);
        let shoots = shoots.list(&some).await.context("could not list Shoots")?;
        if !shoots.items.is_empty() {
            let names: Vec<_> = shoots.items.iter().map(ResourceExt::name_any).collect();
            return Ok(Some(format!("delete these shoots first: {}", names.join(", "))));
        }
        let entries: Api<BackupEntry> = self.context.garden.namespaced(namespace);
        let entries = entries
            .list(&some)
            .await
            .context("could not list BackupEntries")?;
        Ok((!entries.items.is_empty()).then(|| {
            format!(
                "{} BackupEntries wait for the end of their grace period",
                entries.items.len()
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use http::{Method, Request, Response, StatusCode};
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;

    /// No watch reports a namespace that has gone during an interruption, or a ResourceQuota.
    #[tokio::test]
    async fn a_namespace_or_quota_that_vanishes_without_an_event_is_created_again_after_a_bounded_time() {
        let project = json!({"metadata": {"name": "dev", "uid": "u"}, "spec": {"namespace": "garden-dev"}});
        let written = project.to_string().into_bytes();
        let service = service_fn(move |request: Request<Body>| {
            let is_list = request.uri().path().ends_with("/namespaces");
            let (status, body) = match *request.method() {
                Method::GET if is_list => {
                    let list =
                        json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": {}, "items": []});
                    (StatusCode::OK, list.to_string().into_bytes())
                }
                Method::GET => {
                    let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                        "reason": "NotFound", "message": "none", "code": 404});
                    (StatusCode::NOT_FOUND, missing.to_string().into_bytes())
                }
                // The answer to a write has no field that the controller reads.
                _ => (StatusCode::OK, written.clone()),
            };
            let answer = Response::builder().status(status).body(Body::from(body));
            async move { answer }
        });
        let context = Context::of_simulated_garden(&Client::new(service, "default"));
        let project: Project = serde_json::from_value(project).unwrap();
        let next = ProjectController { context }.apply(Arc::new(project)).await;
        assert_eq!(next.unwrap(), Next::After(quota::RESYNC_PERIOD));
    }
}
