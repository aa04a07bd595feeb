//! The watch of Shoots: each controller caches all Shoots of all tenants, so the cache keeps only the fields
//! that the controller reads.

use api::gardencore::{Shoot, ShootSpec};
use kube::runtime::Controller;
use placement::remembered;
use runtime::{client::Cluster, controller::runner};

use crate::Context;

/// A controller of all Shoots. Its cache keeps of each specification the fields that [`remembered`] selects
/// with `more`. `wakes` is the parameter of [`runner::controller`].
pub fn controller(
    context: &Context,
    more: fn(ShootSpec) -> ShootSpec,
    wakes: impl Fn(&Shoot) -> Option<u64> + Send + 'static,
) -> Controller<Shoot> {
    let slim = move |shoot: &mut Shoot| remembered(shoot, more);
    runner::controller_of(context.garden.all(), runner::few_at_a_time(), slim, wakes)
}
