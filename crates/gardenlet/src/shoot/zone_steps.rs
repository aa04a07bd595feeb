//! Steps by which zones are opened and closed (GEP-21). One is opened before the infrastructure is touched, and closed when its machines
//! are gone (RZ-11, RZ-12, RZ-35). Only where a zone is to be cut off, or one was: for all other shoots nothing of it runs.

use flow::{Graph, TaskId};
use parts::{Facts, SubnetIsolation};
use runtime::{Error, Result};

use super::graph::{Steps, when};

/// What is to be done with zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// One is to be closed.
    pub closes: bool,
    /// One is closed that is not to be, or not any more.
    pub opens: bool,
}

impl Zones {
    /// Looks at what is there. What a shoot brings from another seed is opened by the next reconciliation, if it is to be.
    pub(super) async fn of(f: &Facts, namespace_is_active: bool, restoring: bool) -> Result<Self> {
        Ok(Self {
            closes: f.isolation.cuts_off(),
            opens: namespace_is_active && !restoring && SubnetIsolation::is_stale(f).await?,
        })
    }
}

/// Opens zones that are not to be closed any more.
pub(super) fn open<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    zones: Zones,
    after: impl IntoIterator<Item = TaskId>,
) -> TaskId {
    let [work, wait] = SubnetIsolation::REMOVAL_OF_STALE;
    let mut g = when(g, zones.opens);
    let asked = g.step(work, after, || SubnetIsolation::destroy_stale(f));
    g.step(wait, asked, || SubnetIsolation::stale_gone(f))
}

/// Closes the zone that is cut off.
pub(super) fn close<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, zones: Zones, machines: TaskId) -> TaskId {
    when(g, zones.closes).deploy::<SubnetIsolation>(f, machines)
}
