//! Steps for further extensions: objects of kind `Extension`, each handled in the phase of the registration
//! (api.md 4.3).

use flow::TaskId;
use parts::{Facts, FurtherExtensions};

pub(crate) use api::gardencore::LifecycleStrategy::{
    self as Phase, AfterKubeAPIServer, AfterWorker, BeforeKubeAPIServer,
};

use super::graph::{ShootGraph, Steps};

/// Deploys the extensions of a phase. Without such extensions no task is added, so that later steps do not
/// wait for the prerequisites of the extensions.
pub(crate) fn deploy<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    phase: Phase,
    after: impl IntoIterator<Item = TaskId>,
) -> Option<TaskId> {
    f.extensions.reconciled(phase).next()?;
    let [_, ready] = g.steps(FurtherExtensions::deployment(phase), f, after);
    Some(ready)
}

/// The providers of a phase release the extensions.
pub(crate) fn migrate<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, phase: Phase, after: TaskId) -> TaskId {
    let [_, migrated] = g.steps(FurtherExtensions::migration(phase), f, after);
    migrated
}

/// Deletes the extensions of a phase together with the shoot.
pub(crate) fn destroy<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, phase: Phase, after: TaskId) -> TaskId {
    let [_, gone] = g.steps(FurtherExtensions::removal(phase), f, after);
    gone
}

/// Deletes the extensions that the shoot no longer has, and the external resources of these extensions.
pub(crate) fn delete_stale<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, after: TaskId) -> TaskId {
    let [_, gone] = g.steps(FurtherExtensions::DELETE_STALE, f, after);
    gone
}
