//! Makes the namespace of a project, and takes it away when nothing is left in it.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{PROJECT_NAME, finalizer::GARDENER},
    gardencore::{BackupEntry, Project, ProjectPhase, Shoot},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::ListParams,
    runtime::{Controller, reflector::ObjectRef, watcher},
};
use runtime::{Error, Next, Reconciler, Result, apply, clusters::Cluster, error::Context as _, runner};
use serde_json::json;

use super::namespace::{Verdict, desired_namespace, name_of, verdict};
use crate::{Context, MANAGER};

/// When a project that cannot go or cannot be made is looked at again. The namespace is watched; this is for shoots and
/// backups, which are not.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

struct ProjectController {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let projects: Api<Project> = context.garden.cluster_wide();
    let namespaces: Api<Namespace> = context.garden.cluster_wide();
    let controller = Controller::new(projects.clone(), watcher::Config::default()).watches(
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
        let found = namespaces
            .get_opt(&name)
            .await
            .context(format_args!("could not read namespace {name}"))?;
        if let Verdict::Refused(why) = verdict(&project, found.as_ref()) {
            self.set_phase(&project, ProjectPhase::Failed).await?;
            return Err(Error::config(api::meta::ErrorCode::ErrConfigurationProblem, why));
        }
        MANAGER.apply(&namespaces, &desired_namespace(&project)).await?;
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
        Ok(Next::Change)
    }

    async fn cleanup(&self, project: Arc<Project>) -> Result<Next> {
        self.set_phase(&project, ProjectPhase::Terminating).await?;
        let name = name_of(&project);
        if let Some(why) = self.still_used(&name).await? {
            let note = format!("the project stays until its namespace is empty: {why}");
            self.context
                .events
                .warning(project.as_ref(), "ProjectInUse", &note)
                .await;
            return Ok(Next::After(LOOK_AGAIN));
        }
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let Some(found) = namespaces
            .get_opt(&name)
            .await
            .context(format_args!("could not read namespace {name}"))?
        else {
            return Ok(Next::Change);
        };
        if found.labels().get(PROJECT_NAME) != Some(&project.name_any()) {
            return Ok(Next::Change);
        }
        apply::delete(&namespaces, &name).await?;
        Ok(Next::After(LOOK_AGAIN))
    }
}

impl ProjectController {
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

    /// What still needs the namespace, if anything.
    async fn still_used(&self, namespace: &str) -> Result<Option<String>> {
        let some = ListParams::default();
        let shoots: Api<Shoot> = self.context.garden.namespaced(namespace);
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
