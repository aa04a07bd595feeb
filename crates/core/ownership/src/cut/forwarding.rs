//! The route of a request through the gates of the source and the destination.

use super::source::{CutProgress, SourceMark};

/// The decision of a gate about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateRoute {
    /// To the etcd of this seed.
    Etcd,
    /// To the gate of the peer seed, which is open, or becomes open, in this epoch.
    Peer {
        /// The epoch.
        epoch: i64,
    },
    /// The request waits, up to the bound of the hold.
    Hold,
    /// The request is refused.
    Refuse,
}

/// The route at the source's gate. `passed_to`: the epoch of the record, once this seed or the destination
/// has read the record. `peer_permit_is_valid`: the permit that the destination's gate relays. The source
/// acknowledges writes of the new epoch by that permit. So forwarding outlives the permit of the former
/// epoch, and ends with the permit of the new epoch.
#[must_use]
pub fn source_route(
    progress: &CutProgress,
    mark: Option<&SourceMark>,
    passed_to: Option<i64>,
    permit_is_valid: bool,
    peer_permit_is_valid: bool,
) -> GateRoute {
    let is_passed = mark.is_some_and(|mark| mark.report().is_some());
    match passed_to {
        Some(epoch) if peer_permit_is_valid => GateRoute::Peer { epoch },
        Some(_) => GateRoute::Hold,
        None if is_passed || progress.holds() => GateRoute::Hold,
        None if permit_is_valid => GateRoute::Etcd,
        None => GateRoute::Refuse,
    }
}

/// The route at the destination's gate. `source`: the epoch of the source that this seed follows.
/// `knows_record`: this seed has read the record, and etcd opens soon.
#[must_use]
pub fn destination_route(
    has_opened: bool,
    permit_is_valid: bool,
    knows_record: bool,
    source: Option<i64>,
) -> GateRoute {
    match source {
        _ if has_opened && permit_is_valid => GateRoute::Etcd,
        _ if has_opened || knows_record => GateRoute::Hold,
        Some(epoch) => GateRoute::Peer { epoch },
        None => GateRoute::Refuse,
    }
}

/// The epoch that a request carries to the gate of `epoch`; `None` if the request waits instead. A request is
/// only forwarded to a later epoch than the epoch that the request carries. So no request goes in a circle,
/// and a request that the destination forwarded before the cut returns to the destination.
#[must_use]
pub fn forwarded_epoch(carried: Option<i64>, epoch: i64) -> Option<i64> {
    carried.is_none_or(|carried| carried < epoch).then_some(epoch)
}
