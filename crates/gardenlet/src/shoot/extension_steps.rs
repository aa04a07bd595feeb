//! Steps for further extensions: objects of kind `Extension`, each handled in the phase of the registration
//! (api.md 4.3).

use flow::{Graph, TaskId};
use parts::{Facts, FurtherExtensions};
use runtime::Error;

pub(super) use api::gardencore::LifecycleStrategy::{
    self as Phase, AfterKubeAPIServer, AfterWorker, BeforeKubeAPIServer,
};

/// Deploys the extensions of a phase. Without such extensions no task is added, so that later steps do not
/// wait for the prerequisites of the extensions.
pub(super) fn deploy<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    phase: Phase,
    after: impl IntoIterator<Item = TaskId>,
) -> Option<TaskId> {
    f.extensions.reconciled(phase).next()?;
    let [work, wait] = FurtherExtensions::deployment(phase);
    let told = g.step(work, after, move || FurtherExtensions::deploy_in(f, phase));
    Some(g.step(wait, told, move || FurtherExtensions::ready_in(f, phase)))
}

/// The providers of a phase release the extensions.
pub(super) fn migrate<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, phase: Phase, after: TaskId) -> TaskId {
    let [work, wait] = FurtherExtensions::migration(phase);
    let told = g.step(work, after, move || FurtherExtensions::migrate_in(f, phase));
    g.step(wait, told, move || FurtherExtensions::migrated_in(f, phase))
}

/// Deletes the extensions of a phase together with the shoot.
pub(super) fn destroy<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, phase: Phase, after: TaskId) -> TaskId {
    let [work, wait] = FurtherExtensions::removal(phase);
    let asked = g.step(work, after, move || FurtherExtensions::destroy_in(f, phase));
    g.step(wait, asked, move || FurtherExtensions::gone_in(f, phase))
}

/// Deletes the extensions that the shoot no longer has, and the external resources of these extensions.
pub(super) fn delete_stale<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, after: TaskId) -> TaskId {
    let [work, wait] = FurtherExtensions::REMOVAL_OF_STALE;
    let asked = g.step(work, after, || FurtherExtensions::delete_stale(f));
    g.step(wait, asked, || FurtherExtensions::stale_gone(f))
}
