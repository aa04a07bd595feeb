//! Machines of a shoot with a forced deletion. The machine manager gets a bounded time to delete the
//! instances. The gardenlet names each remaining instance while the Machine object still reports the provider
//! ID. The instance costs money until a user deletes the instance in the provider's account.
//!
//! The time begins with the first request and is recorded in the shoot's namespace. So a repeated attempt, or
//! a restart of the gardenlet, gives the machine manager no further time.

use std::time::Duration;

use api::{
    constants::{FORCED_DELETION_BEGAN, seed_user},
    gardencore::Shoot,
    machine::labels,
    meta::LastOperationType,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PropagationPolicy},
};
use placement::last_errors::{add_left_behind, named_left_behind};
use runtime::{
    Error, Result,
    client::{
        Cluster,
        wait::{self, WaitState},
    },
    clock,
    controller::Events,
};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::{
    ConflictLimit, FIELD_MANAGER, Facts, Residency,
    extensions::dynamic,
    nodes::machine::{MachineResources, kinds},
    task::{CLOUD, NONE, PartTask},
    verbs::Destroy,
};

/// Error codes of a Machine that no further attempt of the machine manager changes: the cloud refuses the
/// credentials. The last two codes are gRPC codes, which further machine managers write.
const REFUSALS: [&str; 4] = [
    "ErrInfraUnauthenticated",
    "ErrInfraUnauthorized",
    "Unauthenticated",
    "PermissionDenied",
];
/// Pause after a list or a watch that has failed. Short compared with the time of the machine manager.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The machines of a shoot with a forced deletion.
#[derive(Debug)]
pub struct ForcedMachines;

impl ForcedMachines {
    /// [`Self::ask`], as a task.
    pub const ASK: PartTask<Residency> = PartTask::new(
        "Asking the machine manager to delete all machines",
        CLOUD,
        |input| Box::pin(Self::ask(input)),
    );
    /// [`Self::wait`], as a task.
    pub const WAIT: PartTask<Facts> = PartTask::new(
        "Waiting until the machine manager has deleted all machines",
        CLOUD,
        |input| Box::pin(Self::wait(input)),
    );
    /// [`Self::release`], as a task.
    pub const RELEASE: PartTask<Facts> = PartTask::new(MachineResources::TASKS[0], NONE, |input| {
        Box::pin(Self::release(input))
    });

    /// "Asking the machine manager to delete all machines": without draining, as the shoot's API may be dead.
    pub async fn ask(residency: &Residency) -> Result<()> {
        record_begin(residency).await?;
        let [deployments, sets, machines, _] = kinds();
        for kind in [deployments, sets] {
            let api = residency.any_api(&kind);
            for object in dynamic::list(&api, &kind).await? {
                let background = Some(PropagationPolicy::Background);
                dynamic::delete(&api, &kind, &object.name_any(), background).await?;
            }
        }
        let api = residency.any_api(&machines);
        let forced = json!({"metadata": {"labels": {(labels::FORCE_DELETION): "True"}}});
        for machine in dynamic::list(&api, &machines).await? {
            let name = machine.name_any();
            dynamic::merge(&api, &machines, &name, &forced).await?;
            dynamic::delete(&api, &machines, &name, None).await?;
        }
        Ok(())
    }

    /// "Waiting until the machine manager has deleted all machines": at most for the configured time since
    /// the first request. Ends earlier when the cloud refuses the credentials. Names each machine that is
    /// left.
    pub async fn wait(f: &Facts) -> Result<()> {
        let began = f
            .residency
            .read_namespace()
            .await?
            .as_ref()
            .and_then(recorded_begin);
        let end =
            Instant::now() + time_left(began, f.residency.settings.timeouts.forced_machines, clock::now());
        loop {
            let waited = wait_for_each(&f.residency, end).await;
            let is_late = Instant::now() >= end;
            match waited {
                Ok(left) if left.is_empty() => return Ok(()),
                Ok(left) if is_late || left.iter().all(is_refused) => return report(f, &left).await,
                Err(error) if is_late => return Err(error),
                Err(_) => sleep(RETRY_PAUSE).await,
                // A Worker that was still being reconciled may have created machines.
                Ok(_) => Self::ask(&f.residency).await?,
            }
        }
    }

    /// "Shallow-deleting machine resources from the Shoot namespace": no machine manager may run any more.
    /// Names the machines that the provider of the Worker has left.
    pub async fn release(f: &Facts) -> Result<()> {
        report(f, &machines(&f.residency).await?).await?;
        MachineResources::destroy(&f.residency).await
    }
}

/// Records when the forced deletion began in this seed, unless an earlier attempt has.
async fn record_begin(residency: &Residency) -> Result<()> {
    let Some(namespace) = residency.read_namespace().await? else {
        return Ok(());
    };
    if recorded_begin(&namespace).is_some() {
        return Ok(());
    }
    let api: Api<Namespace> = residency.seed.cluster_wide();
    let began = json!({FORCED_DELETION_BEGAN: clock::now_rfc3339_nano()});
    let body = json!({"metadata": {"uid": namespace.uid(), "annotations": began}});
    FIELD_MANAGER
        .merge(&api, &residency.namespace, &body)
        .await
        .map(drop)
}

fn recorded_begin(namespace: &Namespace) -> Option<Timestamp> {
    namespace.annotations().get(FORCED_DELETION_BEGAN)?.parse().ok()
}

/// Remaining time of the machine manager. A start in the future comes from a wrong clock and does not count.
fn time_left(began: Option<Timestamp>, limit: Duration, now: Timestamp) -> Duration {
    let spent = began.and_then(|began| Duration::try_from(now.duration_since(began)).ok());
    limit.saturating_sub(spent.unwrap_or_default())
}

pub(crate) async fn machines(residency: &Residency) -> Result<Vec<DynamicObject>> {
    let [_, _, kind, _] = kinds();
    dynamic::list(&residency.any_api(&kind), &kind).await
}

/// Waits for each machine in sequence, with a single watch at a time, and returns the machines that are left.
async fn wait_for_each(residency: &Residency, end: Instant) -> Result<Vec<DynamicObject>> {
    let [_, _, kind, _] = kinds();
    let api = residency.any_api(&kind);
    for machine in machines(residency).await? {
        let rest = end.saturating_duration_since(Instant::now());
        let ended = |machine: Option<&DynamicObject>| match machine {
            Some(machine) if is_asked(machine) && !is_refused(machine) => WaitState::Wait(String::new()),
            _ => WaitState::Done,
        };
        match wait::until(&api, &machine.name_any(), rest, ended).await {
            Ok(_) | Err(Error::NotReady { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    machines(residency).await
}

fn is_asked(machine: &DynamicObject) -> bool {
    machine.metadata.deletion_timestamp.is_some()
}

/// Whether the cloud has refused the deletion of the instance, and refuses the next attempt, too.
fn is_refused(machine: &DynamicObject) -> bool {
    let operation = &machine.data["status"]["lastOperation"];
    let codes = operation["errorCode"].as_str().unwrap_or_default();
    is_asked(machine)
        && operation["type"] == "Delete"
        && operation["state"] == "Failed"
        && codes.split(',').any(|code| REFUSALS.contains(&code))
}

/// Start of the sentence about a machine. A later step finds reported machines by this text.
fn subject(machine: &str) -> String {
    format!("machine {machine} (")
}

fn sentence(machine: &DynamicObject) -> String {
    let id = machine.data["spec"]["providerID"]
        .as_str()
        .filter(|id| !id.is_empty());
    let operation = &machine.data["status"]["lastOperation"];
    let text = |field: &str| operation[field].as_str().unwrap_or_default();
    let why = match (text("type"), text("state")) {
        ("Delete", state) if !text("description").is_empty() => {
            format!("Delete is {state}: {}", text("description"))
        }
        _ => "no machine manager reports a deletion".to_owned(),
    };
    sentence_of(&machine.name_any(), id, &why)
}

/// The sentence about a machine: the instance, the cause and the remedy.
pub(crate) fn sentence_of(machine: &str, provider_id: Option<&str>, why: &str) -> String {
    format!(
        "{}{}) may be left behind: {why}. Delete the instance in the provider's account",
        subject(machine),
        provider_id.unwrap_or("no provider ID is recorded"),
    )
}

/// Names the machines in the log, in Events of the Shoot and in `lastErrors`. Machines that `lastErrors`
/// names already are left out, so that a repeated step reports no machine twice.
async fn report(f: &Facts, machines: &[DynamicObject]) -> Result<()> {
    let newest = f.newest_shoot().await?;
    let reported = named_left_behind(&newest);
    let is_new = |machine: &&DynamicObject| {
        let subject = subject(&machine.name_any());
        !reported.iter().any(|earlier| earlier.starts_with(&subject))
    };
    let sentences: Vec<_> = machines.iter().filter(is_new).map(sentence).collect();
    if sentences.is_empty() {
        return Ok(());
    }
    for what in &sentences {
        warn!(
            shoot = f.shoot.name_any(),
            what, "left behind by a forced deletion"
        );
    }
    let user = seed_user(&f.seed_object.name_any());
    Events::of_seed(f.garden.client().clone(), FIELD_MANAGER.0, user)
        .warnings(&newest, "LeftBehind", &sentences)
        .await;
    record(f, &sentences).await
}

/// Adds the sentences to `lastErrors`, while this seed has the Shoot and deletes the Shoot.
async fn record(f: &Facts, sentences: &[String]) -> Result<()> {
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let mut conflicts = ConflictLimit::default();
    loop {
        let newest = f.newest_shoot().await?;
        let status = newest.status.as_ref();
        let operation = status.and_then(|status| status.last_operation.as_ref());
        let has_shoot =
            status.and_then(|status| status.seed_name.as_deref()) == f.seed_object.metadata.name.as_deref();
        if !has_shoot || operation.is_some_and(|last| last.type_ != LastOperationType::Delete) {
            return Err(Error::not_owner(format!(
                "the deletion of Shoot {} is over for this seed",
                newest.name_any()
            )));
        }
        let patch = add_left_behind(&newest, sentences, &clock::now_k8s());
        if FIELD_MANAGER
            .try_merge_status_of(&api, &newest, &patch)
            .await?
            .is_some()
        {
            return Ok(());
        }
        conflicts.count("Shoot", &newest.name_any())?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    fn machine(operation: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": "m-1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"providerID": "aws:///i-1"}, "status": {"lastOperation": operation},
        }))
        .unwrap()
    }

    fn deletion(state: &str, code: Option<&str>) -> Value {
        json!({"type": "Delete", "state": state, "description": "no", "errorCode": code})
    }

    #[test]
    fn only_refused_credentials_end_the_wait_early() {
        for (operation, refused) in [
            (deletion("Failed", Some("ErrInfraUnauthenticated")), true),
            (
                deletion("Failed", Some("ErrInfraDependencies,ErrInfraUnauthorized")),
                true,
            ),
            (deletion("Failed", Some("PermissionDenied")), true),
            (deletion("Failed", Some("ErrInfraDependencies")), false),
            (deletion("Failed", None), false),
            (deletion("Processing", Some("Unauthenticated")), false),
            (
                json!({"type": "Create", "state": "Failed", "errorCode": "Unauthenticated"}),
                false,
            ),
            (Value::Null, false),
        ] {
            assert_eq!(is_refused(&machine(&operation)), refused, "{operation}");
        }
        let mut stays = machine(&deletion("Failed", Some("Unauthenticated")));
        stays.metadata.deletion_timestamp = None;
        assert!(!is_refused(&stays));
    }

    #[test]
    fn the_time_of_the_machine_manager_is_counted_from_the_recorded_beginning() {
        let limit = Duration::from_secs(300);
        let at = |second| Timestamp::from_second(second).unwrap();
        for (began, now, left) in [
            (None, 1000, 300),
            (Some(1000), 1000, 300),
            (Some(1000), 1200, 100),
            (Some(1000), 5000, 0),
            // The clock of an earlier gardenlet was ahead.
            (Some(9000), 1000, 300),
        ] {
            let expected = Duration::from_secs(left);
            assert_eq!(time_left(began.map(at), limit, at(now)), expected, "{began:?}");
        }
    }

    #[test]
    fn the_report_names_machine_instance_and_reason() {
        assert_eq!(
            sentence(&machine(&deletion("Failed", None))),
            "machine m-1 (aws:///i-1) may be left behind: Delete is Failed: no. Delete the instance in the provider's account"
        );
        let mut silent = machine(&Value::Null);
        silent.data["spec"] = json!({});
        assert!(sentence(&silent).starts_with(
            "machine m-1 (no provider ID is recorded) may be left behind: no machine manager reports"
        ));
    }
}
