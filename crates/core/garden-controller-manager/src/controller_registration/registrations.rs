//! Keeps a ControllerRegistration while installations refer to the registration: without the registration the
//! extension objects of an installation in its seed would be unknown.

use std::{sync::Arc, time::Duration};

use api::{
    constants::finalizer::CONTROLLER_REGISTRATION,
    gardencore::{ControllerInstallation, ControllerRegistration},
};
use kube::{
    Api, ResourceExt,
    api::ListParams,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Error, Result,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use crate::Context;

/// Only a safety net: the deletion of an installation triggers the controller.
const DELETION_REQUEUE: Duration = Duration::from_secs(60);

struct RegistrationFinalizer {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let registrations: Api<ControllerRegistration> = context.garden.cluster_wide();
    let installations: Api<ControllerInstallation> = context.garden.cluster_wide();
    let controller = runner::controller(registrations.clone(), watcher::Config::default(), |_| None).watches(
        installations,
        runner::few_at_a_time(),
        |installation| {
            installation
                .spec
                .registration_ref
                .name
                .as_deref()
                .map(ObjectRef::new)
        },
    );
    let settings = context.runner();
    let reconciler = Arc::new(RegistrationFinalizer { context });
    runner::run(controller, move |_| registrations.clone(), reconciler, settings).await;
}

impl Reconciler<ControllerRegistration> for RegistrationFinalizer {
    const NAME: &'static str = "controller-registration-in-use";
    const FINALIZER: Option<&'static str> = Some(CONTROLLER_REGISTRATION);

    async fn apply(&self, _: Arc<ControllerRegistration>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, registration: Arc<ControllerRegistration>) -> Result<Next> {
        let name = registration.name_any();
        let api: Api<ControllerInstallation> = self.context.garden.cluster_wide();
        let some = ListParams::default().fields(&format!("spec.registrationRef.name={name}"));
        let found = api
            .list(&some)
            .await
            .context("could not list ControllerInstallations")?;
        let Some(first) = found.items.first() else {
            return Ok(Next::Change);
        };
        let note = format!(
            "it stays until its installations are gone ({}, e.g. {}): they go when no object of its kinds is left in their seeds",
            found.items.len(),
            first.name_any()
        );
        let events = &self.context.events;
        events
            .warning(registration.as_ref(), "ControllerRegistrationInUse", &note)
            .await;
        Err(Error::not_ready(DELETION_REQUEUE, note))
    }
}
