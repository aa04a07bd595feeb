//! How controllers of this process watch Shoots: each remembers all Shoots of all tenants, so it keeps of
//! each what it looks at.

use api::gardencore::{Shoot, ShootSpec};
use kube::runtime::Controller;
use placement::remembered;
use runtime::{Cluster, runner};

use crate::Context;

/// A controller of all Shoots, which remembers of each specification what [`remembered`] leaves with `more`.
/// `wakes` is that of [`runner::controller`].
pub fn controller(
    context: &Context,
    more: fn(ShootSpec) -> ShootSpec,
    wakes: impl Fn(&Shoot) -> Option<u64> + Send + 'static,
) -> Controller<Shoot> {
    let slim = move |shoot: &mut Shoot| remembered(shoot, more);
    runner::controller_of(context.garden.all(), runner::few_at_a_time(), slim, wakes)
}
