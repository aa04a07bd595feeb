//! The interface of the isolation of zones for the controller of shoots: the [`OperationHooks`]. The
//! controller calls no further module of this folder.

use std::{sync::Arc, time::Duration};

use api::{gardencore::Shoot, meta::LastError};
use flow::TaskId;
use futures::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::Controller;
use parts::Facts;
use placement::{
    Operation,
    isolation::{asked_zone, asks_to_close_now, is_due},
};
use runtime::{Result, controller::runner};
use serde_json::Value;

use super::{
    budget,
    change_limit::ChangeLimit,
    deadline::{self, SeedGates},
    dry_run, events, recheck,
    steps::{self, Zones},
    watch,
    zone_status::{self, Retry},
};
use crate::{
    context::Context,
    shoot::{
        flows::graph::ShootGraph,
        operation::{
            failure::{Failure, outside},
            status::{OperationStart, Trigger},
        },
        operation_hooks::{HookSchedule, HookTasks, OperationHooks, PlanSteps},
        ownership::{
            ownership_lost::LostShoots,
            status_writer::{StatusObserver, StatusWriter},
        },
    },
};

/// The hooks that isolate zones.
pub(crate) fn hooks(context: Arc<Context>) -> Arc<dyn OperationHooks> {
    events::register(&context.metrics, &context.seed_name, &context.shoots.store());
    Arc::new(ZoneHooks {
        context,
        gates: Arc::default(),
        changes: ChangeLimit::default(),
    })
}

struct ZoneHooks {
    context: Arc<Context>,
    gates: Arc<SeedGates>,
    changes: ChangeLimit,
}

impl StatusObserver for ZoneHooks {
    fn written<'a>(&'a self, before: &'a Shoot, after: &'a Shoot) -> BoxFuture<'a, ()> {
        events::report_change(&self.context, before, after).boxed()
    }
}

impl OperationHooks for ZoneHooks {
    /// The deadline: the controller of deadlines has admitted a failover.
    fn flow_fingerprint(&self, shoot: &Shoot) -> Option<u64> {
        let zone = shoot.status.as_ref()?.zone_isolation.as_ref();
        runner::fingerprint(zone.and_then(|zone| Some(zone.close_deadline_time.as_ref()?.0)))
    }

    fn own_fingerprint(&self, shoot: &Shoot) -> Option<u64> {
        let asks = asked_zone(shoot).is_some() || asks_to_close_now(shoot);
        if !asks || shoot.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let status = shoot.status.as_ref();
        let last = status.and_then(|status| status.last_operation.as_ref());
        let zone = status.and_then(|status| status.zone_isolation.as_ref());
        runner::fingerprint((
            last.map(|last| last.type_.to_string()),
            zone.map(|zone| format!("{:?} {:?}", zone.phase, zone.status)),
        ))
    }

    fn run(&self, controller: Controller<Shoot>, lost: Arc<LostShoots>) -> BoxFuture<'static, ()> {
        let (context, gates) = (Arc::clone(&self.context), Arc::clone(&self.gates));
        deadline::run(context, controller, gates, lost).boxed()
    }

    fn answer(&self, shoot: Arc<Shoot>) -> BoxFuture<'_, Result<Option<Arc<Shoot>>>> {
        dry_run::answer(&self.context, shoot).boxed()
    }

    fn schedule(&self, shoot: &Shoot, now: Timestamp) -> HookSchedule {
        schedule(shoot, now)
    }

    fn delay<'a>(
        &'a self,
        shoot: &'a Shoot,
        operation: Operation,
    ) -> BoxFuture<'a, Result<Option<Duration>>> {
        self.changes.delay_flow(&self.context, shoot, operation).boxed()
    }

    fn recorded<'a>(&'a self, begun: &'a Shoot, operation: Operation) -> BoxFuture<'a, ()> {
        self.gates.pass(begun, operation).boxed()
    }

    fn begin<'a>(
        &'a self,
        facts: &'a mut Facts,
        status_writer: &'a StatusWriter<'a>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            budget::begin(facts, &self.context.config, status_writer)
                .await
                .map_err(|error| outside(watch::TASK, error))
        })
    }

    fn steps(&self) -> &dyn PlanSteps {
        &StepPlanner
    }

    fn supervise_flow<'a>(
        &'a self,
        facts: &'a Facts,
        operation: Operation,
        status_writer: &'a StatusWriter<'a>,
        work: BoxFuture<'a, Result<(), Failure>>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        watch::during(facts, operation, status_writer, &self.changes, work).boxed()
    }

    fn content_at_start(&self, shoot: &Shoot, start: OperationStart, now: &Time) -> Option<Value> {
        content_at_start(shoot, start, now)
    }

    fn content_at_failure(
        &self,
        newest: &Shoot,
        operation: Operation,
        errors: &[LastError],
        is_given_up: bool,
        now: &Time,
    ) -> Option<Value> {
        let retry = if is_given_up {
            Retry::Never
        } else {
            Retry::ByItself
        };
        zone_status::failed(newest, operation, errors, retry, now)
    }
}

/// A failed zone may be the cause of state `Failed`, so a change of the zone starts a reconciliation (RZ-01,
/// RZ-02).
fn schedule(shoot: &Shoot, now: Timestamp) -> HookSchedule {
    HookSchedule {
        is_due: is_due(shoot),
        period: recheck::period(shoot, now),
    }
}

/// Content for the first status of an operation; `None` without a change.
#[must_use]
pub fn content_at_start(shoot: &Shoot, start: OperationStart, now: &Time) -> Option<Value> {
    // A request by a user or an edit of the Shoot may have removed the cause of a zone failure. So the zone
    // is tried again (RZ-03).
    let is_repeated = start.is_repeated || recheck::is_refused(shoot);
    let by_itself = is_repeated && start.trigger == Trigger::Due && !start.is_edited;
    zone_status::begun(shoot, start.operation, by_itself, now)
}

/// Plans the tasks for zones.
pub(crate) struct StepPlanner;

impl PlanSteps for StepPlanner {
    fn plan<'a>(
        &'a self,
        facts: &'a Facts,
        operation: Operation,
        namespace_is_active: bool,
    ) -> BoxFuture<'a, Result<Box<dyn HookTasks>>> {
        Box::pin(async move {
            let zones = Zones::plan(facts, operation, namespace_is_active).await?;
            Ok(Box::new(zones) as Box<dyn HookTasks>)
        })
    }
}

impl HookTasks for Zones {
    fn before_infrastructure<'a>(
        &self,
        graph: &mut ShootGraph<'a>,
        facts: &'a Facts,
        after: [TaskId; 2],
    ) -> TaskId {
        steps::open(graph, facts, *self, after)
    }

    fn machines_limit(&self) -> Option<Duration> {
        self.closes.then_some(steps::PATIENCE)
    }

    fn after_machines<'a>(&self, graph: &mut ShootGraph<'a>, facts: &'a Facts, machines: TaskId) -> TaskId {
        steps::close(graph, facts, *self, machines)
    }

    fn before_infrastructure_goes<'a>(
        &self,
        graph: &mut ShootGraph<'a>,
        facts: &'a Facts,
        after: TaskId,
    ) -> TaskId {
        steps::open_all(graph, facts, *self, after)
    }
}

#[cfg(test)]
#[path = "interface_tests.rs"]
mod tests;
