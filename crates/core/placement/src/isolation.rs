//! Which zone of a shoot is cut off (GEP-21): what its user asks for, what is recorded, and what one
//! operation makes of both.

use api::{
    constants::{SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_CLOSE_NOW, SHOOT_ISOLATED_ZONE_DRY_RUN},
    gardencore::{
        ControllerRegistration, Shoot,
        shoot::{ZoneIsolation, ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
};
use kube::ResourceExt;

use crate::{named, operation::Operation, status};

/// The kind of the objects by which a provider closes the network of a zone.
pub const KIND: &str = "SubnetIsolation";

/// What becomes of a shoot's zones in one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// All are used. One that was cut off is taken back.
    #[default]
    Nothing,
    /// This one is cut off, by its provider's ID of it.
    CutOff(String),
    /// This one was cut off, or on its way there or back, where the shoot comes from. It is restored as it
    /// was, also where the user takes the zone back by now: the next reconciliation does what is wanted.
    Carried {
        /// The provider's ID of it.
        zone: String,
        /// Its machines were to go, whether its network was closed already or not.
        is_left: bool,
    },
    /// One is to be cut off, and cannot be. Nothing of it is begun.
    Refused(IsolationRefusal),
}

/// Why a zone is not cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationRefusal {
    /// One word, for machines.
    pub reason: &'static str,
    /// A sentence, for the shoot's user.
    pub message: String,
}

impl Isolation {
    /// What an operation makes of the zones of this Shoot, by what the garden knows of providers.
    #[must_use]
    pub fn for_shoot(shoot: &Shoot, operation: Operation, registrations: &[ControllerRegistration]) -> Self {
        match operation {
            Operation::Restore => wanted_or_ending(shoot).map(carried).unwrap_or_default(),
            Operation::Create | Operation::Reconcile => {
                let Some(zone) = asked_zone(shoot) else {
                    return Self::Nothing;
                };
                let refusal = (!is_begun(shoot, zone)).then(|| refusal(shoot, registrations));
                match refusal.flatten() {
                    Some(refusal) => Self::Refused(refusal),
                    None => Self::CutOff(zone.to_owned()),
                }
            }
            Operation::Migrate | Operation::Delete | Operation::ForceDelete => Self::Nothing,
        }
    }

    /// Whether a zone is cut off when the operation has ended.
    #[must_use]
    pub fn cuts_off(&self) -> bool {
        matches!(self, Self::CutOff(_) | Self::Carried { .. })
    }
}

/// The zone that the Shoot's user wants to be cut off, by its provider's ID.
#[must_use]
pub fn asked_zone(shoot: &Shoot) -> Option<&str> {
    named(shoot.annotations().get(SHOOT_ISOLATED_ZONE).map(String::as_str))
}

/// Whether the user requests to spend the rest of the failover's budget, so that the network of the zone is
/// closed now (RZ-32). The request may be older than the admission of the failover.
#[must_use]
pub fn asks_to_close_now(shoot: &Shoot) -> bool {
    let annotation = shoot.annotations().get(SHOOT_ISOLATED_ZONE_CLOSE_NOW);
    annotation.is_some_and(|value| value == "true")
}

/// Whether the shoot has no failover that could use [`asks_to_close_now`]: the user asks for no zone, or the
/// failover is done. A request that stayed would close the network at the begin of the next failover.
#[must_use]
pub fn is_close_now_over(shoot: &Shoot) -> bool {
    asked_zone(shoot).is_none_or(|zone| {
        let recorded = recorded(shoot).filter(|recorded| is_failover_of(recorded, zone));
        recorded.is_some_and(|recorded| recorded.status == Status::Done)
    })
}

/// What is recorded of a zone that is cut off, or not all back yet.
#[must_use]
pub fn recorded(shoot: &Shoot) -> Option<&ZoneIsolation> {
    let recorded = status(shoot)?.zone_isolation.as_ref()?;
    (!recorded.is_over()).then_some(recorded)
}

/// Whether a reconciliation is wanted for it: what is recorded is not what is asked for. One that has failed
/// waits for somebody to ask again (RZ-03).
#[must_use]
pub fn is_due(shoot: &Shoot) -> bool {
    match (asked_zone(shoot), recorded(shoot)) {
        (None, None) => false,
        (None, Some(recorded)) => (recorded.phase, recorded.status) != (Phase::Failback, Status::Failed),
        (Some(zone), Some(recorded)) if is_failover_of(recorded, zone) => {
            !matches!(recorded.status, Status::Done | Status::Failed)
        }
        (Some(_), _) => true,
    }
}

/// Whether the shoot needs a provider of the kind: a zone is asked for or recorded, and a registration offers
/// the kind for the shoot's provider. Without such a registration no seed could ever take the shoot over,
/// only because the host has recorded a zone.
#[must_use]
pub fn needs_provider<'a>(
    shoot: &Shoot,
    registrations: impl IntoIterator<Item = &'a ControllerRegistration>,
) -> bool {
    (recorded(shoot).is_some_and(has_begun) || asked_zone(shoot).is_some())
        && offers(registrations, KIND, &shoot.spec.provider.type_)
}

/// The recorded zone that the user asks for, or that is on the way back. A destination must not close a zone
/// only because the source has recorded a failover. The first write of a restore turns the failover of a zone
/// that the user takes back into a failback, so an honest record always counts.
fn wanted_or_ending(shoot: &Shoot) -> Option<&ZoneIsolation> {
    recorded(shoot).filter(|recorded| {
        recorded.phase == Phase::Failback || asked_zone(shoot) == Some(recorded.isolated_zone_id.as_str())
    })
}

/// What a shoot brings with it from another seed.
fn carried(recorded: &ZoneIsolation) -> Isolation {
    Isolation::Carried {
        zone: recorded.isolated_zone_id.clone(),
        is_left: recorded.phase == Phase::Failover
            && recorded.status != Status::Aborting
            && has_begun(recorded),
    }
}

/// Whether the failover of this zone was admitted before. The recorded deadline proves the admission: a
/// restart before the provider names the zone must not judge, and maybe refuse, the failover again.
#[must_use]
pub fn is_begun(shoot: &Shoot, zone: &str) -> bool {
    recorded(shoot).is_some_and(|recorded| {
        is_failover_of(recorded, zone)
            && (recorded.status == Status::Done
                || recorded.isolated_zone_code.is_some()
                || recorded.close_deadline_time.is_some())
    })
}

/// Whether the failover of this zone is under way with a deadline.
#[must_use]
pub fn has_deadline(shoot: &Shoot, zone: &str) -> bool {
    recorded(shoot).is_some_and(|recorded| {
        is_failover_of(recorded, zone)
            && recorded.status == Status::InProgress
            && recorded.close_deadline_time.is_some()
    })
}

/// Whether anything may have been done for it: not where it waits, nor where it was refused before the
/// provider knew of it.
fn has_begun(recorded: &ZoneIsolation) -> bool {
    match recorded.status {
        Status::Pending => false,
        Status::Failed => recorded.isolated_zone_code.is_some(),
        _ => true,
    }
}

fn is_failover_of(recorded: &ZoneIsolation, zone: &str) -> bool {
    recorded.phase == Phase::Failover && recorded.isolated_zone_id == zone
}

/// Why a failover must not begin. Admission refuses most of it before; a Shoot may be older than the policy.
fn refusal(shoot: &Shoot, registrations: &[ControllerRegistration]) -> Option<IsolationRefusal> {
    let refused = |reason, message: &str| {
        Some(IsolationRefusal {
            reason,
            message: message.to_owned(),
        })
    };
    let pools = &shoot.spec.provider.workers;
    if pools.is_empty() {
        return refused(
            "NoWorkers",
            "The shoot has no worker pools, so that no zone of it can be cut off.",
        );
    }
    if let Some((pool, zone)) = twice(shoot) {
        let message = format!(
            "Worker pool {pool} names zone {zone} twice, so that it has two deployments there: take one of them out of its zones first."
        );
        return refused("ZoneNamedTwice", &message);
    }
    let mut zones: Vec<_> = pools.iter().flat_map(|pool| &pool.zones).collect();
    zones.sort_unstable();
    zones.dedup();
    if zones.len() < 2 {
        return refused(
            "NoOtherZone",
            "The worker pools have one zone at most, and what runs in it would have nowhere to go: add another zone first.",
        );
    }
    let type_ = &shoot.spec.provider.type_;
    // Of one that was installed by other means nothing is known.
    if offers(registrations, "Infrastructure", type_) && !offers(registrations, KIND, type_) {
        let message = format!(
            "Provider {type_} cannot close the network of a zone: no ControllerRegistration has kind {KIND} of this type."
        );
        return refused("NotSupportedByProvider", &message);
    }
    None
}

/// The first pool that names a zone twice, and the zone.
fn twice(shoot: &Shoot) -> Option<(&str, &str)> {
    shoot.spec.provider.workers.iter().find_map(|pool| {
        let zones = pool.zones.iter().enumerate();
        let mut again = zones.filter(|(place, zone)| pool.zones[..*place].contains(zone));
        again.next().map(|(_, zone)| (pool.name.as_str(), zone.as_str()))
    })
}

/// The zone of which the Shoot's user wants to know what would move if it were cut off, by its provider's ID.
#[must_use]
pub fn planned_zone(shoot: &Shoot) -> Option<&str> {
    named(
        shoot
            .annotations()
            .get(SHOOT_ISOLATED_ZONE_DRY_RUN)
            .map(String::as_str),
    )
}

/// Pools that have no other zone than this one, by the account's name of it: while it is cut off they have no
/// machines.
pub fn only_in<'a>(shoot: &'a Shoot, name: &'a str) -> impl Iterator<Item = &'a str> {
    let pools = shoot.spec.provider.workers.iter();
    let confined =
        pools.filter(move |pool| !pool.zones.is_empty() && pool.zones.iter().all(|zone| zone == name));
    confined.map(|pool| pool.name.as_str())
}

/// Whether a registration serves objects of this kind and type.
fn offers<'a>(
    registrations: impl IntoIterator<Item = &'a ControllerRegistration>,
    kind: &str,
    type_: &str,
) -> bool {
    registrations
        .into_iter()
        .flat_map(|registration| &registration.spec.resources)
        .any(|resource| resource.kind == kind && resource.type_ == type_)
}

#[cfg(test)]
#[path = "isolation_tests.rs"]
mod tests;
