//! Merge patches for the status of a Shoot before, during and after a flow, built by pure functions. The
//! fields are `lastOperation`, `lastErrors`, `seedName`, `technicalID`, `uid` and `observedGeneration`. The
//! list `lastErrors` is built and bounded by `placement::last_errors`, and `failure` has the errors of a
//! flow.

use std::time::Duration;

use api::{
    constants::{
        OPERATION,
        condition::{OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED},
    },
    gardencore::{
        Shoot,
        shoot::{FormerSeed, SealedEpoch},
    },
    meta::{
        Condition, ConditionStatus, LastError, LastOperation, LastOperationState as State,
        LastOperationType as Type,
    },
    text::one_line,
};
use flow::Progress;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use ownership::{Ownership, Phase, Step};
use placement::{Journey, Operation, bounded_status, journey, last_errors, names, ownership_status};
use runtime::Error;
use serde_json::{Value, json};

use super::failure::single_error;
use crate::{Context, care::without_api_server};

/// The gardenlet process that writes the status.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Name of the pod or host.
    pub id: String,
    /// Name of the process.
    pub name: &'static str,
    /// Version of the process.
    pub version: &'static str,
    /// Name of the own seed.
    pub seed: String,
}

impl Writer {
    /// This gardenlet.
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            id: context.config.instance_id.clone(),
            name: "gardenlet",
            version: env!("CARGO_PKG_VERSION"),
            seed: context.seed_name.clone(),
        }
    }
}

/// Why an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The gardenlet starts the operation without a request: work is due, or a failed attempt is repeated.
    Due,
    /// A user requests the operation with the annotation `gardener.cloud/operation`.
    Asked,
}

impl Trigger {
    /// The trigger of a Shoot whose annotation the gardenlet has not removed yet.
    pub(crate) fn for_shoot(shoot: &Shoot) -> Self {
        if shoot.annotations().contains_key(OPERATION) {
            Self::Asked
        } else {
            Self::Due
        }
    }
}

/// How an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationStart {
    /// The operation.
    pub operation: Operation,
    /// Whether a user has requested the operation.
    pub trigger: Trigger,
    /// The operation repeats an attempt that has failed or was interrupted.
    pub is_repeated: bool,
    /// The specification has changed since the last operation.
    pub is_edited: bool,
}

impl OperationStart {
    /// `traveller`: the Shoot before the first write of the operation.
    #[must_use]
    pub fn new(traveller: &Shoot, operation: Operation, trigger: Trigger) -> Self {
        let status = traveller.status.as_ref();
        let generation = traveller.metadata.generation;
        Self {
            operation,
            trigger,
            is_repeated: is_repeated(traveller, operation.type_()),
            is_edited: status.map(|status| status.observed_generation) != Some(generation),
        }
    }
}

/// Whether an operation of this type was begun and has not succeeded. After a loss no retry cycle exists to
/// continue.
fn is_repeated(shoot: &Shoot, type_: Type) -> bool {
    shoot
        .status
        .as_ref()
        .filter(|status| status.retry_cycle_start_time.is_some())
        .and_then(|status| status.last_operation.as_ref())
        .is_some_and(|last| last.type_ == type_ && matches!(last.state, State::Error | State::Processing))
}

/// Adds content of the hooks to a patch. A field in both is the field of the content, also a list such as
/// `conditions`.
#[must_use]
pub fn with_content(mut patch: Value, content: Option<Value>) -> Value {
    if let (Some(fields), Some(Value::Object(content))) = (patch.as_object_mut(), content) {
        fields.extend(content);
    }
    patch
}

/// The first write of an operation. The write records this seed as responsible, before the gardenlet creates
/// any object in the seed. `traveller`: the Shoot that the operation works with; `observedGeneration` becomes
/// the generation of this Shoot. `project`: the Project that owns the Shoot's namespace.
#[must_use]
pub fn started(traveller: &Shoot, project: &str, writer: &Writer, operation: Operation, now: &Time) -> Value {
    let (shoot, type_) = (traveller, operation.type_());
    let again = is_repeated(shoot, type_);
    // The percentage of an operation never goes back.
    let progress = if again { reached(shoot) } else { 0 };
    let description = match type_ {
        Type::Restore => "Restoration of Shoot cluster initialized.",
        Type::Migrate => "Preparation of Shoot cluster for migration initialized.",
        Type::Delete => "Deletion of Shoot cluster in progress.",
        _ => "Reconciliation of Shoot cluster initialized.",
    };
    let mut patch = json!({
        "gardener": {"id": writer.id, "name": writer.name, "version": writer.version},
        "observedGeneration": shoot.metadata.generation,
        "lastOperation": last_operation(type_, State::Processing, progress, description, now.clone()),
        "uid": names::uid(shoot),
        "technicalID": names::technical_id(shoot, project),
    });
    if type_ != Type::Migrate {
        patch["seedName"] = json!(writer.seed);
    }
    // Written before the first process wakes. `hibernated: true` means that the shoot has no machine in any
    // seed, and the next gardenlet relies on that.
    if operation.deploys() && placement::is_asleep(shoot) && !placement::is_to_sleep(shoot) {
        patch["hibernated"] = json!(false);
    }
    if operation != Operation::Reconcile {
        patch["settledSeedName"] = Value::Null;
    }
    // The API server conditions come from the former seed. This seed has not started an API server yet.
    if operation == Operation::Restore
        && journey(shoot) == Journey::Arriving
        && let Some(conditions) = without_api_server(shoot, now)
    {
        patch["conditions"] = json!(conditions);
    }
    if !again {
        patch["lastErrors"] = Value::Null;
        patch["retryCycleStartTime"] = json!(now);
    }
    patch
}

/// Task name of errors that occur after the flow, while the gardenlet records the applied owner terms.
pub(crate) const OWNER_TERMS: &str = "Recording the owner terms";
/// Task name of errors that occur after the flow, while the gardenlet deletes the Cluster object.
pub(crate) const CLUSTER_DELETION: &str = "Deleting Cluster resource";

/// The percentage of the last operation, which is at most 99 before the end.
pub(crate) fn reached(shoot: &Shoot) -> i32 {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.map_or(0, |last| last.progress.clamp(0, 99))
}

/// Progress of a running flow. The patch also removes each error of an earlier run that is solved by now.
#[must_use]
pub fn progressed(shoot: &Shoot, type_: Type, progress: &Progress, now: &Time) -> Value {
    let description = if progress.running.is_empty() {
        "Waiting for tasks.".to_owned()
    } else {
        progress.running.join(", ")
    };
    let percent = i32::from(progress.percent.min(99));
    let operation = last_operation(type_, State::Processing, percent, &description, now.clone());
    let mut patch = json!({"lastOperation": operation});
    let [stops_api, _] = <parts::Writers as parts::Destroy>::TASKS;
    let has_stopped_api = progress.running.contains(&stops_api) || progress.succeeded.contains(&stops_api);
    if type_ == Type::Migrate
        && has_stopped_api
        && let Some(conditions) = without_api_server(shoot, now)
    {
        patch["conditions"] = json!(conditions);
    }
    if let Some(unsolved) = last_errors::without_solved(shoot, |error| is_unsolved(shoot, error, progress)) {
        patch["lastErrors"] = unsolved;
    }
    patch
}

/// Whether the step of an error has not succeeded yet in this run. All steps before the flow have succeeded
/// by now, and a task that this flow lacks is no longer needed.
fn is_unsolved(shoot: &Shoot, error: &LastError, progress: &Progress) -> bool {
    error.task_id.as_deref().is_none_or(|task| match task {
        last_errors::LEFT_BEHIND => last_errors::may_leave_behind(shoot),
        OWNER_TERMS | CLUSTER_DELETION => true,
        _ => progress.unfinished.contains(&task),
    })
}

/// The operation succeeded. A migration ends with [`handed_over`] instead.
#[must_use]
pub fn succeeded(type_: Type, now: Time) -> Value {
    let description = match type_ {
        Type::Restore => "Shoot cluster has been successfully restored.",
        Type::Migrate => "Shoot cluster has been successfully prepared for migration.",
        Type::Delete => "Shoot cluster has been successfully deleted.",
        _ => "Shoot cluster has been successfully reconciled.",
    };
    json!({
        "lastOperation": last_operation(type_, State::Succeeded, 100, description, now),
        "lastErrors": null,
        "retryCycleStartTime": null,
    })
}

/// [`succeeded`] for an operation that leaves the control plane as the Shoot specifies: awake, or asleep
/// completely.
#[must_use]
pub fn settled(traveller: &Shoot, operation: Operation, now: Time) -> Value {
    let mut patch = succeeded(operation.type_(), now);
    if operation.deploys() {
        patch["hibernated"] = json!(placement::is_to_sleep(traveller));
        // From here on a move to this seed is over.
        let status = traveller.status.as_ref();
        patch["settledSeedName"] = json!(status.and_then(|status| status.seed_name.as_deref()));
        patch["reconciledSpecHash"] = json!(placement::spec_hash(&traveller.spec));
    }
    patch
}

/// Ends the former residency of the seed that has the shoot again: the operation has used or replaced the
/// leftovers of that residency, and no clean-up is due any more. The list comes from the newest Shoot,
/// because other former seeds remove their own entries.
#[must_use]
pub fn with_own_residency_ended(newest: &Shoot, seed: &str, operation: Operation, mut patch: Value) -> Value {
    let formers = newest.status.iter().flat_map(|status| &status.former_seeds);
    let (own, others): (Vec<_>, Vec<_>) = formers.partition(|former| former.name == seed);
    if operation.deploys() && !own.is_empty() {
        patch["formerSeeds"] = json!(others);
    }
    patch
}

/// The hand-over: the single write that names the new seed (I1), and the point of no return. The write starts
/// a new record of the ownership and adds the source to `formerSeeds`, because the source still has objects
/// to clean up. `end`: the end of this seed's epoch, which the copy of the destination must reach. `None` if
/// the approval does not match the wanted move, or if this seed has not opened the received data yet.
#[must_use]
pub fn handed_over(newest: &Shoot, end: &SealedEpoch, now: &Time) -> Option<Value> {
    let shoot = &bounded_status::bounded(newest);
    let status = shoot.status.as_ref()?;
    let approval = placement::approval(shoot)?;
    if placement::is_claimed(shoot) {
        return None;
    }
    let epoch = status.epoch();
    let recorded = status.ownership.as_ref().and_then(|recorded| recorded.phase);
    let mut former = status.former_seeds.clone();
    former.retain(|former| former.name != approval.source);
    former.push(FormerSeed {
        name: approval.source.clone(),
        epoch,
    });
    let mut patch = succeeded(Type::Migrate, now.clone());
    patch["seedName"] = json!(approval.destination);
    patch["ownership"] = json!({"epoch": epoch + 1});
    if recorded.is_some() {
        // A merge patch keeps every field that the patch omits, so the patch sets the complete record of the
        // new epoch.
        patch["ownership"] = json!(ownership_status::recorded(&hand_over_shoot(
            shoot,
            &approval.destination
        )?));
        patch["ownership"]["chain"] = Value::Null;
    }
    patch["ownership"]["sealed"] = json!(end);
    patch["formerSeeds"] = json!(former);
    let of_this_seed = [OWNERSHIP_VERIFIED, OWNER_CHECKS_COMPLETE];
    let is_of_this_seed = |condition: &Condition| of_this_seed.contains(&condition.type_.as_str());
    // The conditions about the owner describe this seed only, and the API server is stopped.
    let mut conditions = without_api_server(shoot, now).unwrap_or_else(|| status.conditions.clone());
    conditions.retain(|condition| !is_of_this_seed(condition));
    if conditions != status.conditions {
        patch["conditions"] = json!(conditions);
    }
    patch["migration"] = json!({"progress": {
        "seedName": approval.source,
        "step": "Handing over the Shoot",
        "startTime": now,
        "awaited": format!("the gardenlet of seed {} begins the restoration", approval.destination),
    }});
    Some(bounded_status::add_bounds(newest, patch))
}

/// The ownership after the hand-over. The migration succeeds only after all extensions are migrated, the
/// owner record is removed, and the final snapshot is verified.
fn hand_over_shoot(shoot: &Shoot, to: &str) -> Option<Ownership<String>> {
    // A seed without an owner record writes no phase while leaving: this write ends the epoch of the seed.
    let ended = Ownership {
        phase: Phase::Sealing,
        ..ownership_status::ownership(shoot).ok()?
    };
    let by = ownership::Writer::Seed(ended.now.seed.clone());
    let step = Step::HandOver {
        to: to.to_owned(),
        final_seen: true,
        drained: true,
    };
    Some(ended.step(&by, step).ok()?.becomes)
}

/// The operation failed. The gardenlet repeats the operation until `retry_duration` after the first attempt;
/// after that the state is `Failed`.
#[must_use]
pub fn failed(
    shoot: &Shoot,
    type_: Type,
    progress: i32,
    errors: &[LastError],
    retry_duration: Duration,
    now: Time,
) -> Value {
    let began = shoot
        .status
        .as_ref()
        .and_then(|status| status.retry_cycle_start_time.as_ref());
    let over = began.is_some_and(|began| is_older_than(began.0, retry_duration, now.0));
    let state = if over { State::Failed } else { State::Error };
    let mut description = errors
        .iter()
        .map(|error| error.description.as_str())
        .collect::<Vec<_>>()
        .join("; ");
    if !description.ends_with('.') {
        description.push('.');
    }
    if !over {
        description.push_str(" Operation will be retried.");
    }
    json!({
        "lastOperation": last_operation(type_, state, progress, &description, now),
        "lastErrors": last_errors::patch_value(errors),
    })
}

/// The operation waits without a failure. `why` names the process or user that has to act next.
#[must_use]
pub fn waiting(type_: Type, progress: i32, why: &str, now: Time) -> Value {
    json!({"lastOperation": last_operation(type_, State::Processing, progress, why, now), "lastErrors": null})
}

/// Task name of the error that reports that the seed has lost the right to act for the shoot.
pub const OWNERSHIP: &str = "Confirming that the seed has the shoot";

/// The seed has lost the shoot in this epoch. The gardenlet neither repeats the operation nor marks the
/// operation as `Failed`: the next epoch starts with a new retry cycle. `None` if the status reports the loss
/// already.
#[must_use]
pub fn lost(shoot: &Shoot, type_: Type, sentence: &str, now: Time) -> Option<Value> {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let is_reported =
        last.is_some_and(|last| last.state == State::Error) && last_errors::is_only_error(shoot, sentence);
    if is_reported {
        return None;
    }
    let progress = last.map_or(0, |last| last.progress);
    let error = single_error(OWNERSHIP, &Error::not_owner(sentence), &now);
    Some(json!({
        "lastOperation": last_operation(type_, State::Error, progress, &format!("{sentence}."), now),
        "lastErrors": last_errors::patch_value(&[error]),
        "retryCycleStartTime": null,
    }))
}

/// Task name under which `lastErrors` reports the preflight of a move.
const PREFLIGHT: &str = "Checking whether the destination seed can take the shoot";

/// Reports the constraint of the preflight in `lastErrors`, where users look for errors. `None` if the
/// constraint is `True`, or if the status reports the error already. The first write of the next operation
/// removes the error.
#[must_use]
pub fn move_cannot_begin(shoot: &Shoot, constraint: &Condition, now: &Time) -> Option<Value> {
    if constraint.status == ConditionStatus::True {
        return None;
    }
    let is_reported = matches!(last_errors::reported(shoot), [only]
        if only.description == one_line(&constraint.message) && only.codes == constraint.codes);
    let error = last_errors::new_error(PREFLIGHT, &constraint.message, constraint.codes.clone(), now);
    (!is_reported).then(|| json!({"lastErrors": last_errors::patch_value(&[error])}))
}

/// Reason of the Event that reports the start of an operation.
#[must_use]
pub fn start_reason(type_: Type) -> &'static str {
    match type_ {
        Type::Migrate => "Migrating",
        Type::Restore => "Restoring",
        Type::Delete => "Deleting",
        _ => "Reconciling",
    }
}

/// Reason of the Event that reports the success of an operation.
#[must_use]
pub fn success_reason(type_: Type) -> &'static str {
    match type_ {
        Type::Migrate => "MigrationPrepared",
        Type::Restore => "Restored",
        Type::Delete => "Deleted",
        _ => "Reconciled",
    }
}

fn last_operation(type_: Type, state: State, progress: i32, description: &str, now: Time) -> LastOperation {
    LastOperation {
        // The cloud of a tenant writes parts of the cause of a wait.
        description: one_line(description).into_owned(),
        last_update_time: now,
        progress,
        state,
        type_,
    }
}

fn is_older_than(then: Timestamp, period: Duration, now: Timestamp) -> bool {
    SignedDuration::try_from(period).is_ok_and(|period| now.duration_since(then) > period)
}
