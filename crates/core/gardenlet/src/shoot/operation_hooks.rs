//! The hooks of an operation: the interface of a second concern about the same Shoots, with requests of the
//! user, tasks in the flows, and fields in the status. The controller of shoots calls the hooks and knows no
//! detail of the concern.
//!
//! | when | calls |
//! |---|---|
//! | a Shoot has changed | `flow_fingerprint`, `own_fingerprint` |
//! | before an operation | `answer`, `schedule`, `delay`, `recorded`, `begin` |
//! | during an operation | `steps`, `supervise_flow` |
//! | after a write of the status | `written` |
//! | content for the status | `content_at_start`, `content_at_failure` |

use std::{fmt::Debug, sync::Arc, time::Duration};

use api::{gardencore::Shoot, meta::LastError};
use flow::TaskId;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::Controller;
use parts::Facts;
use placement::Operation;
use runtime::Result;
use serde_json::Value;

use super::{
    flows::graph::ShootGraph,
    operation::{failure::Failure, status::OperationStart},
    ownership::{
        ownership_lost::LostShoots,
        status_writer::{StatusObserver, StatusWriter},
    },
};

/// When the hooks need a reconciliation of a Shoot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookSchedule {
    /// A reconciliation has to begin at once, also in state `Failed`.
    pub is_due: bool,
    /// The longest time between two successful reconciliations; `None` for the period of the controller.
    pub period: Option<Duration>,
}

/// The tasks that the hooks add to a flow. A task without work is added as skipped, so that the drawing of a
/// flow shows every task.
pub trait HookTasks: Debug + Send + Sync {
    /// Adds the tasks that end before the infrastructure changes, and returns the last task.
    fn before_infrastructure<'a>(
        &self,
        graph: &mut ShootGraph<'a>,
        facts: &'a Facts,
        after: [TaskId; 2],
    ) -> TaskId;

    /// The longest wait for the machines, where the hooks delay the machines; `None` for the limit of the
    /// flow.
    fn machines_limit(&self) -> Option<Duration>;

    /// Adds the tasks that follow the machines, and returns the last task.
    fn after_machines<'a>(&self, graph: &mut ShootGraph<'a>, facts: &'a Facts, machines: TaskId) -> TaskId;

    /// Adds the tasks that end before the infrastructure is deleted, and returns the last task. `after`: no
    /// machine is left.
    fn before_infrastructure_goes<'a>(
        &self,
        graph: &mut ShootGraph<'a>,
        facts: &'a Facts,
        after: TaskId,
    ) -> TaskId;
}

/// Plans the tasks of the hooks.
pub(crate) trait PlanSteps: Send + Sync {
    /// Reads the present state in the seed, and plans the tasks for the flow of an operation.
    ///
    /// # Errors
    /// The seed does not answer.
    fn plan<'a>(
        &'a self,
        facts: &'a Facts,
        operation: Operation,
        namespace_is_active: bool,
    ) -> BoxFuture<'a, Result<Box<dyn HookTasks>>>;
}

/// The hooks of a second concern about the same Shoots.
pub(crate) trait OperationHooks: StatusObserver {
    /// The fields of the concern that wake the controller of flows.
    fn flow_fingerprint(&self, shoot: &Shoot) -> Option<u64>;

    /// The fields that wake the controller of the concern, besides the fields that wake the controller of
    /// flows. `None` for a Shoot without work for this controller.
    fn own_fingerprint(&self, shoot: &Shoot) -> Option<u64>;

    /// Runs the controller of the concern until shutdown.
    fn run(&self, controller: Controller<Shoot>, lost: Arc<LostShoots>) -> BoxFuture<'static, ()>;

    /// Answers requests of the user that need no operation, and returns the Shoot after the answer. `None`
    /// after a concurrent write: the next pass answers.
    ///
    /// # Errors
    /// The answer could not be written.
    fn answer(&self, shoot: Arc<Shoot>) -> BoxFuture<'_, Result<Option<Arc<Shoot>>>>;

    /// When the hooks need a reconciliation. Pure.
    fn schedule(&self, shoot: &Shoot, now: Timestamp) -> HookSchedule;

    /// The time by which the hooks delay the operation; `None` without a delay.
    ///
    /// # Errors
    /// The delay could not be reported in the Shoot.
    fn delay<'a>(&'a self, shoot: &'a Shoot, operation: Operation)
    -> BoxFuture<'a, Result<Option<Duration>>>;

    /// The operation is recorded in the Shoot. Returns when the controller of the concern works on the
    /// seed no longer, where the operation must be alone in the seed.
    fn recorded<'a>(&'a self, begun: &'a Shoot, operation: Operation) -> BoxFuture<'a, ()>;

    /// Decides the part of the concern in the operation, before the flow is built.
    ///
    /// # Errors
    /// The garden or the seed does not answer.
    fn begin<'a>(
        &'a self,
        facts: &'a mut Facts,
        status_writer: &'a StatusWriter<'a>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// The plan of the tasks for a flow.
    fn steps(&self) -> &dyn PlanSteps;

    /// Runs `work`, the flow of an operation, and records the outcome for the concern. The hooks
    /// may drop `work`.
    ///
    /// # Errors
    /// The failure of `work`, or the reason why the hooks have dropped `work`.
    fn supervise_flow<'a>(
        &'a self,
        facts: &'a Facts,
        operation: Operation,
        status_writer: &'a StatusWriter<'a>,
        work: BoxFuture<'a, Result<(), Failure>>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// Content for the first status of an operation; `None` without a change. Pure.
    fn content_at_start(&self, shoot: &Shoot, start: OperationStart, now: &Time) -> Option<Value>;

    /// Content for the status after a failure; `None` without a change. `is_given_up`: no attempt follows.
    /// Pure.
    fn content_at_failure(
        &self,
        newest: &Shoot,
        operation: Operation,
        errors: &[LastError],
        is_given_up: bool,
        now: &Time,
    ) -> Option<Value>;
}
