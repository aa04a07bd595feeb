//! The migration of node IPAM between the two managers: five stages in a row. A step changes one manager
//! only.
//!
//! | stage | kube-controller-manager (KCM) | cloud-controller-manager (CCM) | manager assigning node ranges |
//! |---|---|---|---|
//! | `AtHome` | default configuration | no node IPAM | KCM, main lock |
//! | `Offered` | node IPAM under the migration lock | no node IPAM | KCM, migration lock |
//! | `Shared` | node IPAM under the migration lock | the same | the holder of the migration lock |
//! | `Given` | no node IPAM | node IPAM under the migration lock | CCM, migration lock |
//! | `Away` | no node IPAM | node IPAM under the main lock | CCM, main lock |
//!
//! The kube-controller-manager ("home") gets the migration configuration first and loses the configuration
//! last. Both managers may run node IPAM in no stage, and between no two neighbouring stages (RK-05). At both
//! ends, no manager has a flag of leader migration (RK-23, RK-26).

use api::{
    extensions::CloudControllerManager,
    gardencore::shoot::{ControllerLeader, ControllerManager, MovableController},
};
use k8s_openapi::api::apps::v1::Deployment;

/// Entry of `--controllers` that switches node IPAM off in the kube-controller-manager.
pub(crate) const WITHOUT_NODE_IPAM: &str = "-node-ipam-controller";
/// The flag that makes the kube-controller-manager take part in a leader migration.
pub(crate) const ENABLE: &str = "--enable-leader-migration=true";

/// Present stage of a shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The kube-controller-manager runs node IPAM, without leader migration.
    AtHome,
    /// The kube-controller-manager runs node IPAM under the migration lock, and would release the lock.
    Offered,
    /// The holder of the migration lock runs node IPAM.
    Shared,
    /// The cloud-controller-manager runs node IPAM, or starts as soon as the lock is free.
    Given,
    /// The cloud-controller-manager runs node IPAM, without leader migration.
    Away,
}

/// Configuration of node IPAM in the kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Runs node IPAM under the main lock.
    Keeps,
    /// Runs node IPAM while the kube-controller-manager holds the migration lock.
    Shares,
    /// Never runs node IPAM.
    Leaves,
}

/// Configuration of node IPAM in the cloud-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// Never runs node IPAM.
    Absent,
    /// Runs node IPAM while the cloud-controller-manager holds the migration lock.
    Shares,
    /// Runs node IPAM under the main lock.
    Owns,
}

/// Conditions for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaits {
    /// The kube-controller-manager runs with the configuration of the present stage, and leads.
    pub(crate) home: bool,
    /// The cloud-controller-manager runs with the configuration of the present stage, and leads.
    pub(crate) guest: bool,
    /// The manager that has to hold the migration lock.
    pub(crate) holder: Option<Holder>,
}

/// A manager, as the holder of the migration lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The kube-controller-manager.
    Home,
    /// The cloud-controller-manager.
    Guest,
}

impl Stage {
    /// All stages in their order.
    pub(crate) const WAY: [Self; 5] = [Self::AtHome, Self::Offered, Self::Shared, Self::Given, Self::Away];

    /// The final stage for a Shoot with these `spec.kubernetes.controllerLeaders`.
    pub(crate) fn wanted(leaders: &[ControllerLeader]) -> Self {
        let node_ipam = leaders
            .iter()
            .find(|leader| leader.name == MovableController::NodeIpam);
        match node_ipam.map(|leader| leader.component).unwrap_or_default() {
            ControllerManager::KubeControllerManager => Self::AtHome,
            ControllerManager::CloudControllerManager => Self::Away,
        }
    }

    /// The stage of a shoot, from the configuration of the managers. `None` means that a manager does not
    /// exist. A shoot without both managers starts in the final stage: there is no running manager to wait
    /// for.
    ///
    /// This crate never writes a pair that matches no stage. Such a pair maps to the nearest stage in which
    /// only one manager runs node IPAM.
    pub(crate) fn from_managers(home: Option<Home>, guest: Option<Guest>, wanted: Self) -> Self {
        match (home, guest) {
            (None, None) => wanted,
            (None | Some(Home::Keeps), None | Some(Guest::Absent)) => Self::AtHome,
            (Some(Home::Shares), None | Some(Guest::Absent)) => Self::Offered,
            (None | Some(Home::Keeps | Home::Shares), Some(Guest::Shares)) => Self::Shared,
            // No manager runs, so no conflict is possible: the creation of the control plane stopped after
            // the first manager.
            (Some(Home::Leaves), None) if wanted == Self::Away => Self::Away,
            (Some(Home::Leaves), None | Some(Guest::Absent | Guest::Shares))
            | (Some(Home::Keeps | Home::Shares), Some(Guest::Owns)) => Self::Given,
            (None | Some(Home::Leaves), Some(Guest::Owns)) => Self::Away,
        }
    }

    /// The next stage towards `wanted`; `None` when the stage is `wanted`.
    pub(crate) fn towards(self, wanted: Self) -> Option<Self> {
        let mut way = Self::WAY.into_iter();
        if wanted > self {
            way.find(|stage| *stage > self)
        } else {
            way.rfind(|stage| *stage < self && *stage >= wanted)
        }
    }

    /// Conditions for the next step, or for the end of the migration.
    ///
    /// A step changes one manager: the manager that does not change must first run with the present
    /// configuration, or both could run node IPAM. The manager that a step changes may be a manager that does
    /// not start, and then the path back must be open. Forwards, the manager that runs node IPAM must hold
    /// the migration lock. Only then the next manager joins, or the previous manager leaves.
    pub(crate) fn awaits(self, next: Option<Self>) -> Awaits {
        let forwards = next.is_some_and(|next| next > self);
        Awaits {
            home: next.is_none_or(|next| next.home() == self.home()),
            guest: next.is_none_or(|next| next.guest() == self.guest()),
            holder: match self {
                Self::Offered if forwards => Some(Holder::Home),
                Self::Given if forwards => Some(Holder::Guest),
                _ => None,
            },
        }
    }

    /// Configuration of the kube-controller-manager in this stage.
    pub(crate) fn home(self) -> Home {
        match self {
            Self::AtHome => Home::Keeps,
            Self::Offered | Self::Shared => Home::Shares,
            Self::Given | Self::Away => Home::Leaves,
        }
    }

    /// Configuration of the cloud-controller-manager in this stage.
    pub(crate) fn guest(self) -> Guest {
        match self {
            Self::AtHome | Self::Offered => Guest::Absent,
            Self::Shared | Self::Given => Guest::Shares,
            Self::Away => Guest::Owns,
        }
    }
}

impl Home {
    /// Reads the configuration from the arguments of the Deployment.
    pub(crate) fn from_deployment(deployment: &Deployment) -> Self {
        let containers = deployment
            .spec
            .iter()
            .filter_map(|spec| spec.template.spec.as_ref());
        let args: Vec<&String> = containers
            .flat_map(|pod| &pod.containers)
            .flat_map(|container| container.args.iter().flatten())
            .collect();
        let leaves = |arg: &&String| {
            arg.strip_prefix("--controllers=")
                .is_some_and(|list| list.split(',').any(|name| name == WITHOUT_NODE_IPAM))
        };
        if args.iter().any(|arg| *arg == ENABLE) {
            Self::Shares
        } else if args.iter().any(leaves) {
            Self::Leaves
        } else {
            Self::Keeps
        }
    }
}

impl Guest {
    /// Reads the configuration from the `ControlPlane` of the provider.
    pub(crate) fn from_config(told: Option<&CloudControllerManager>) -> Self {
        match told {
            Some(told) if told.leader_migration.is_some() => Self::Shares,
            Some(told) if told.node_ipam.is_some() => Self::Owns,
            _ => Self::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOMES: [Option<Home>; 4] = [None, Some(Home::Keeps), Some(Home::Shares), Some(Home::Leaves)];
    const GUESTS: [Option<Guest>; 4] = [None, Some(Guest::Absent), Some(Guest::Shares), Some(Guest::Owns)];

    /// Both managers run node IPAM without a common lock.
    fn twice(home: Home, guest: Guest) -> bool {
        matches!(
            (home, guest),
            (Home::Keeps, Guest::Shares | Guest::Owns) | (Home::Shares, Guest::Owns)
        )
    }

    #[test]
    fn a_step_goes_to_a_neighbour_and_changes_one_manager_only() {
        for (from, wanted) in Stage::WAY
            .iter()
            .flat_map(|from| [(*from, Stage::AtHome), (*from, Stage::Away)])
        {
            let mut stage = from;
            let mut steps = 0;
            while let Some(next) = stage.towards(wanted) {
                let changes =
                    usize::from(stage.home() != next.home()) + usize::from(stage.guest() != next.guest());
                assert_eq!(changes, 1, "{stage:?} to {next:?}");
                stage = next;
                steps += 1;
                assert!(steps <= 4, "{from:?} to {wanted:?}: it does not end");
            }
            assert_eq!(stage, wanted);
        }
    }

    #[test]
    fn no_two_run_it_in_a_stage_nor_while_one_manager_is_still_as_before() {
        for pair in Stage::WAY.windows(2) {
            for (here, there) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                assert!(!twice(here.home(), here.guest()), "{here:?}");
                assert!(!twice(there.home(), here.guest()), "{here:?} to {there:?}");
                assert!(!twice(here.home(), there.guest()), "{here:?} to {there:?}");
            }
        }
    }

    /// Managers apply their configuration at any time, the user edits at any time, and at most one manager
    /// runs node IPAM.
    #[test]
    fn no_two_run_it_however_late_they_follow_and_however_often_the_user_turns_round() {
        let begin = (Stage::AtHome, Home::Keeps, Guest::Absent, Stage::AtHome);
        let mut seen = vec![begin];
        let mut ends = [false; 2];
        for at in 0.. {
            let Some(&(stage, home, guest, wanted)) = seen.get(at) else {
                break;
            };
            assert!(!twice(home, guest), "{stage:?}: {home:?} {guest:?}");
            let other = if wanted == Stage::Away {
                Stage::AtHome
            } else {
                Stage::Away
            };
            let mut after = vec![
                (stage, stage.home(), guest, wanted),
                (stage, home, stage.guest(), wanted),
                (stage, home, guest, other),
            ];
            let next = stage.towards(wanted);
            let awaits = stage.awaits(next);
            let settled = (!awaits.home || home == stage.home()) && (!awaits.guest || guest == stage.guest());
            match next {
                Some(next) if settled => after.push((next, home, guest, wanted)),
                None if settled => ends[usize::from(wanted == Stage::Away)] = true,
                _ => {}
            }
            for state in after {
                if !seen.contains(&state) {
                    seen.push(state);
                }
            }
        }
        assert_eq!(ends, [true; 2]);
        assert!(seen.len() > 20, "{}", seen.len());
    }

    /// A step is taken back without a wait for the manager that changed last, even when that manager never
    /// starts.
    #[test]
    fn the_way_back_does_not_wait_for_the_manager_that_was_changed_last() {
        for pair in Stage::WAY.windows(2) {
            for (from, to) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                let awaits = to.awaits(Some(from));
                assert_eq!(awaits.home, from.home() == to.home());
                assert_eq!(awaits.guest, from.guest() == to.guest());
                if from < to {
                    assert_eq!(awaits.holder, None, "{to:?} back to {from:?}");
                }
            }
        }
    }

    /// After a restart at any moment, the configuration of the managers yields the same stage (I5).
    #[test]
    fn what_the_managers_were_told_is_the_stage() {
        for stage in Stage::WAY {
            for wanted in [Stage::AtHome, Stage::Away] {
                assert_eq!(
                    Stage::from_managers(Some(stage.home()), Some(stage.guest()), wanted),
                    stage
                );
            }
        }
    }

    #[test]
    fn what_nobody_was_told_begins_where_it_is_wanted() {
        assert_eq!(Stage::from_managers(None, None, Stage::Away), Stage::Away);
        assert_eq!(Stage::from_managers(None, None, Stage::AtHome), Stage::AtHome);
        // The creation was interrupted after the first manager.
        assert_eq!(
            Stage::from_managers(Some(Home::Leaves), None, Stage::Away),
            Stage::Away
        );
        assert_eq!(
            Stage::from_managers(Some(Home::Keeps), None, Stage::AtHome),
            Stage::AtHome
        );
    }

    /// The stage that is chosen for a pair never adds a second manager, in any order of the two updates.
    #[test]
    fn no_pair_becomes_a_stage_by_which_two_run() {
        for (home, guest) in HOMES.iter().flat_map(|home| GUESTS.map(|guest| (*home, guest))) {
            // A missing manager runs nothing.
            let (here, there) = (home.unwrap_or(Home::Leaves), guest.unwrap_or(Guest::Absent));
            for wanted in [Stage::AtHome, Stage::Away] {
                let stage = Stage::from_managers(home, guest, wanted);
                assert!(!twice(stage.home(), stage.guest()));
                if !twice(here, there) {
                    assert!(!twice(here, stage.guest()), "{home:?} {guest:?} to {stage:?}");
                    assert!(!twice(stage.home(), there), "{home:?} {guest:?} to {stage:?}");
                }
            }
        }
    }
}
