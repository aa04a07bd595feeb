//! The next step of a rolling update: pure.
//!
//! Bounds hold at every moment. A machine in deletion counts for as long as the Machine exists, because the
//! instance uses an address and quota until the end. (Upstream does not count machines in deletion, and may
//! have twice as many machines while pods take long to leave.)

use api::machine::{MachineDeploymentSpec, RollingUpdateMachineDeployment};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use runtime::{Error, Result};

use crate::isolation::is_isolated;

/// The numbers of machines of a set, by state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineCounts {
    /// Requested number of machines.
    pub replicas: usize,
    /// Number of machines, without machines in deletion.
    pub staying: usize,
    /// Number of machines in deletion.
    pub terminating: usize,
    /// Number of machines that have been ready for long enough.
    pub available: usize,
}

impl MachineCounts {
    /// Number of machines that exist, or that the set may create before a change of `replicas` takes effect.
    fn occupied(&self) -> usize {
        self.replicas.max(self.staying) + self.terminating
    }

    /// Minimum number of available machines among the requested machines.
    fn available_replicas(&self) -> usize {
        self.available.min(self.replicas)
    }
}

/// The wanted state of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutSpec {
    /// The wanted number of machines.
    pub replicas: usize,
    /// The highest number of machines beyond the wanted number.
    pub surge: usize,
    /// The highest number of wanted machines that may be unavailable.
    pub unavailable: usize,
    /// The strategy of the replacement.
    pub strategy: RolloutStrategy,
}

/// How machines are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutStrategy {
    /// Within bounds.
    Rolling,
    /// All old machines go before any new machine comes.
    Recreate,
    /// No replacement for now; only the number of machines is kept.
    Paused,
}

impl RolloutSpec {
    /// The wanted state in the specification of a deployment.
    pub fn from_deployment(name: &str, spec: &MachineDeploymentSpec) -> Result<Self> {
        let replicas = usize::try_from(spec.replicas.unwrap_or_default()).unwrap_or_default();
        let settings = spec.strategy.clone().unwrap_or_default();
        let wrong = |what: String| {
            Error::config(
                api::meta::ErrorCode::ErrConfigurationProblem,
                format!("spec.strategy of MachineDeployment {name}: {what}"),
            )
        };
        let is_in_isolated_zone = spec.template.spec.as_ref().is_some_and(is_isolated);
        let strategy = match settings.type_.as_deref() {
            _ if spec.paused == Some(true) || is_in_isolated_zone => RolloutStrategy::Paused,
            None | Some("" | "RollingUpdate") => RolloutStrategy::Rolling,
            Some("Recreate") => RolloutStrategy::Recreate,
            Some(other) => {
                return Err(wrong(format!(
                    "{other} is not supported: write RollingUpdate or Recreate"
                )));
            }
        };
        let bounds = settings.rolling_update.unwrap_or_default();
        let (surge, unavailable) = resolve_bounds(&bounds, replicas).map_err(wrong)?;
        Ok(Self {
            replicas,
            surge,
            unavailable,
            strategy,
        })
    }
}

/// Percentages as numbers: surge is rounded up, unavailability is rounded down. With both 0 no machine could
/// ever be replaced: then a single machine may be missing, as in Kubernetes.
fn resolve_bounds(
    bounds: &RollingUpdateMachineDeployment,
    replicas: usize,
) -> Result<(usize, usize), String> {
    let surge = parse_bound("maxSurge", bounds.max_surge.as_ref(), replicas, true)?;
    let unavailable = parse_bound("maxUnavailable", bounds.max_unavailable.as_ref(), replicas, false)?;
    Ok((
        surge,
        if surge == 0 {
            unavailable.max(1)
        } else {
            unavailable
        },
    ))
}

fn parse_bound(field: &str, value: Option<&IntOrString>, of: usize, up: bool) -> Result<usize, String> {
    let wrong =
        |value: &dyn std::fmt::Display| format!("{field} {value} is no number and no percentage from 0%");
    match value {
        None => Ok(1),
        Some(IntOrString::Int(number)) => usize::try_from(*number).map_err(|_| wrong(number)),
        Some(IntOrString::String(text)) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|n| n.trim().parse::<usize>().ok());
            let part = percent.ok_or_else(|| wrong(text))?.saturating_mul(of);
            Ok(if up { part.div_ceil(100) } else { part / 100 })
        }
    }
}

/// The next number of replicas of each old set (oldest first) and of the new set. Called again when the sets
/// have these numbers. Returns the present numbers when there is no step to take.
pub fn next_replicas(
    wanted: &RolloutSpec,
    old: &[MachineCounts],
    new: Option<&MachineCounts>,
) -> (Vec<usize>, Option<usize>) {
    let as_is = || old.iter().map(|set| set.replicas).collect::<Vec<_>>();
    match (wanted.strategy, new) {
        (RolloutStrategy::Paused, _) => keep_number(wanted, old, new),
        // The new set has to be created first.
        (_, None) => (as_is(), None),
        (RolloutStrategy::Recreate, Some(new)) => {
            let gone = old.iter().all(|set| set.occupied() == 0);
            let replicas = if gone {
                wanted.replicas
            } else {
                new.replicas.min(wanted.replicas)
            };
            (vec![0; old.len()], Some(replicas))
        }
        (RolloutStrategy::Rolling, Some(new)) => {
            let replicas = grow_new_set(wanted, old, new);
            if replicas == new.replicas {
                (shrink_old_sets(wanted, old, new), Some(replicas))
            } else {
                (as_is(), Some(replicas))
            }
        }
    }
}

/// The replicas of the new set: as many as the bounds allow.
fn grow_new_set(wanted: &RolloutSpec, old: &[MachineCounts], new: &MachineCounts) -> usize {
    if new.replicas >= wanted.replicas {
        return wanted.replicas;
    }
    let occupied: usize = old.iter().map(MachineCounts::occupied).sum::<usize>() + new.occupied();
    let room = (wanted.replicas + wanted.surge).saturating_sub(occupied);
    (new.replicas + room).min(wanted.replicas)
}

/// Old sets first lose machines that are not ready, and then as many ready machines as the surplus of ready
/// machines allows.
fn shrink_old_sets(wanted: &RolloutSpec, old: &[MachineCounts], new: &MachineCounts) -> Vec<usize> {
    let least = wanted.replicas.saturating_sub(wanted.unavailable);
    let all: usize = old.iter().map(|set| set.replicas).sum::<usize>() + new.replicas;
    let mut removable = all.saturating_sub(least + new.replicas - new.available_replicas());
    let all_available = old.iter().chain([new]).map(MachineCounts::available_replicas);
    let available: usize = all_available.sum();
    let mut removable_ready = available.saturating_sub(least);
    old.iter()
        .map(|set| {
            let unavailable = (set.replicas - set.available_replicas()).min(removable);
            removable -= unavailable;
            let available = set.available_replicas().min(removable_ready).min(removable);
            removable_ready -= available;
            removable -= available;
            set.replicas - unavailable - available
        })
        .collect()
}

/// Keeps only the number, without a replacement. With more than a single set in use, an existing surge stays.
fn keep_number(
    wanted: &RolloutSpec,
    old: &[MachineCounts],
    new: Option<&MachineCounts>,
) -> (Vec<usize>, Option<usize>) {
    let mut all: Vec<usize> = old.iter().chain(new).map(|set| set.replicas).collect();
    let active = all.iter().filter(|replicas| **replicas > 0).count();
    let sum: usize = all.iter().sum();
    let most = wanted.replicas + if active > 1 { wanted.surge } else { 0 };
    let newest = all
        .iter()
        .rposition(|replicas| *replicas > 0)
        .or(all.len().checked_sub(1));
    if let Some(newest) = newest.filter(|_| sum < wanted.replicas) {
        all[newest] += wanted.replicas - sum;
    }
    let mut surplus = sum.saturating_sub(most);
    for replicas in &mut all {
        let fewer = surplus.min(*replicas);
        *replicas -= fewer;
        surplus -= fewer;
    }
    let new = new.and_then(|_| all.pop());
    (all, new)
}

#[cfg(test)]
#[path = "rolling_tests.rs"]
mod tests;
