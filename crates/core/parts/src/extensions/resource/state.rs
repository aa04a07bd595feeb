//! Writes the state of an extension object from the ShootState into the object's status (R7-12, RX-12, RX-31,
//! RX-33).

use api::{
    extensions::DefaultStatus,
    machine::state::{self, MachineState},
    meta::{NamedResourceReference, RawExtension, ResourceData},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use runtime::{Error, Result, client::Cluster, error::Explain};
use serde_json::json;

use super::kind::ShootExtension;
use crate::{
    FIELD_MANAGER, Facts, Residency, configuration_problem,
    shoot_state::{Opened, Referenced, is_created_by_seed, referenced},
};

/// The kind whose state holds the shoot's machines.
const WORKER: &str = "Worker";

/// State and references for an object.
#[derive(Debug, Default, PartialEq)]
struct Carried {
    state: Option<RawExtension>,
    resources: Vec<NamedResourceReference>,
}

/// Writes the state, unless the object has a state from an earlier run, or a newer state.
pub(super) async fn put_in<K: ShootExtension>(f: &Facts, api: &Api<K>, object: &K) -> Result<()> {
    let kind = K::kind(&());
    let status = object.default_status();
    let has_one = status.is_some_and(|status| status.state.is_some() || !status.resources.is_empty());
    // No other writer sets the machine state: a different state in the status is a contradiction and an
    // error.
    if has_one && kind != WORKER {
        return Ok(());
    }
    let Some(shoot_state) = f.shoot_state().await? else {
        return may_be_empty(object);
    };
    let carried = carried(&shoot_state, &kind, object).await?;
    if has_one {
        return check_machines(&object.name_any(), &carried, status);
    }
    if carried.state.is_none() {
        may_be_empty(object)?;
    }
    if carried == Carried::default() {
        return Ok(());
    }
    let carried_along = |reference: &&NamedResourceReference| !is_created_by_seed(&reference.resource_ref);
    for reference in carried.resources.iter().filter(carried_along) {
        deploy_resource(
            &f.residency,
            &shoot_state.resource(&reference.resource_ref).await?,
        )
        .await?;
    }
    let mut patch = json!({});
    if let Some(state) = carried.state {
        patch["state"] = state.0;
    }
    if !carried.resources.is_empty() {
        patch["resources"] = json!(carried.resources);
    }
    let bytes = patch.to_string().len();
    FIELD_MANAGER
        .merge_status(api, &object.name_any(), &patch)
        .await
        .map(drop)
        // The server may refuse the size, so the error states the size (R7-28).
        .map_err(|error| error.context(format_args!("a state of {bytes} bytes")))
}

/// The data of the ShootState for the object. For a Worker: the Worker's own state or the state of the
/// machines. The state of the machines belongs to a single Worker.
async fn carried<K: ShootExtension>(state: &Opened, kind: &str, object: &K) -> Result<Carried> {
    let name = object.name_any();
    let entry = state.extension(kind, &name, object.purpose()).await?;
    let (own, resources) = entry.map_or((None, Vec::new()), |entry| (entry.state, entry.resources));
    let machines = if kind == WORKER {
        state.machines().await?
    } else {
        None
    };
    match_states(&name, own, machines).map(|state| Carried { state, resources })
}

/// The single existing state. Two different states are an error.
fn match_states(
    name: &str,
    own: Option<RawExtension>,
    machines: Option<RawExtension>,
) -> Result<Option<RawExtension>> {
    match (own, machines) {
        (Some(own), Some(machines)) if own != machines => Err(configuration_problem(format!(
            "the ShootState holds two states of Worker {name} that differ, its own and that of the machines: take the wrong \
             one out of spec.extensions or spec.gardener"
        ))),
        (own, machines) => Ok(machines.or(own)),
    }
}

/// An existing state must equal the carried state, otherwise machines would be lost or created twice. After
/// the restore by the provider, the existing state may be newer: then the carried state was there before.
fn check_machines(name: &str, carried: &Carried, status: Option<&DefaultStatus>) -> Result<()> {
    let was_restored = status.is_some_and(|status| status.last_operation.is_some());
    let there = status.and_then(|status| status.state.as_ref());
    match (there, &carried.state) {
        (Some(there), Some(carried)) if there != carried && !was_restored => {
            Err(configuration_problem(format!(
                "Worker {name} has another state already than the ShootState holds for it, and nobody has worked with it yet: \
                 take its status.state away if the ShootState is right"
            )))
        }
        _ => Ok(()),
    }
}

/// A Worker without any machine state would create new machines. The old machines would keep running, or the
/// provider would collect the old machines as orphans. A Worker with an earlier operation here has the
/// machines here, for example after a cancelled move.
fn may_be_empty<K: ShootExtension>(object: &K) -> Result<()> {
    let was_here = object
        .default_status()
        .is_some_and(|status| status.last_operation.is_some());
    if K::kind(&()) != WORKER || was_here {
        return Ok(());
    }
    let none = state::encode(&MachineState::default())
        .map_err(|error| Error::bug("no machines do not encode").caused_by(error))?;
    Err(configuration_problem(format!(
        "the ShootState says nothing of the machines of Worker {}: it would make new ones and lose the old. Nothing was changed. \
         Put entry {} back into spec.gardener of the ShootState; if there are no machines in the cloud, with type {} and data {}",
        object.name_any(),
        state::ENTRY,
        state::ENTRY,
        none.0
    )))
}

/// Creates the object again in the shoot's namespace. An existing object stays unchanged.
async fn deploy_resource(residency: &Residency, resource: &ResourceData) -> Result<()> {
    match referenced(resource).map_err(configuration_problem)? {
        Referenced::Secret(secret) => make(residency, *secret).await,
        Referenced::ConfigMap(map) => make(residency, *map).await,
    }
}

async fn make<K>(residency: &Residency, mut object: K) -> Result<()>
where
    K: runtime::client::apply::Object + Resource<Scope = NamespaceResourceScope>,
{
    object.meta_mut().namespace = Some(residency.namespace.clone());
    let (api, name): (Api<K>, _) = (residency.seed.namespaced(&residency.namespace), object.name_any());
    let found = api
        .get_opt(&name)
        .await
        .context(format_args!("could not read {} {name}", K::kind(&())))?;
    if found.is_none() {
        FIELD_MANAGER.apply(&api, &object).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_worker_that_was_never_here_does_not_begin_empty() {
        let mut worker = api::extensions::Worker::default();
        worker.metadata.name = Some("web".into());
        let error = may_be_empty(&worker).unwrap_err();
        assert_eq!(error.class(), "Config");
        let none = error.to_string();
        let (_, none) = none.split_once("data ").unwrap();
        let none: RawExtension = serde_json::from_str::<serde_json::Value>(none).unwrap().into();
        assert_eq!(state::decode(&none).unwrap(), MachineState::default());
        let last = json!({"type": "Migrate", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        worker.status = serde_json::from_value(json!({"lastOperation": last})).unwrap();
        may_be_empty(&worker).unwrap();
        may_be_empty(&api::extensions::Infrastructure::default()).unwrap();
    }

    fn state(text: &str) -> RawExtension {
        json!({"state": text}).into()
    }

    #[test]
    fn a_worker_has_one_state() {
        assert_eq!(match_states("web", None, None).unwrap(), None);
        assert_eq!(
            match_states("web", Some(state("a")), None).unwrap(),
            Some(state("a"))
        );
        assert_eq!(
            match_states("web", None, Some(state("b"))).unwrap(),
            Some(state("b"))
        );
        let one = match_states("web", Some(state("a")), Some(state("a"))).unwrap();
        assert_eq!(one, Some(state("a")));
        let two = match_states("web", Some(state("a")), Some(state("b"))).unwrap_err();
        assert!(two.to_string().contains("two states of Worker web"), "{two}");
    }

    #[test]
    fn a_state_of_machines_that_is_there_must_be_the_carried_one() {
        let carried = Carried {
            state: Some(state("a")),
            resources: Vec::new(),
        };
        let status = |text: &str, answered: bool| -> DefaultStatus {
            let last = json!({"type": "Restore", "state": "Processing", "progress": 0, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let mut status = json!({"state": {"state": text}});
            if answered {
                status["lastOperation"] = last;
            }
            serde_json::from_value(status).unwrap()
        };
        check_machines("web", &carried, Some(&status("a", false))).unwrap();
        check_machines("web", &carried, Some(&status("newer", true))).unwrap();
        let error = check_machines("web", &carried, Some(&status("b", false))).unwrap_err();
        assert!(error.to_string().contains("another state already"), "{error}");
    }
}
