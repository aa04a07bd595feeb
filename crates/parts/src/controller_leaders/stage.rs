//! The way on which node IPAM goes from one manager to the other: five stages in a row, and a step changes
//! one manager only.
//!
//! | stage | kube-controller-manager | cloud-controller-manager | who gives ranges |
//! |---|---|---|---|
//! | `AtHome` | as always | knows nothing of it | kube-controller-manager, main lock |
//! | `Offered` | shares its lock with any | knows nothing of it | kube-controller-manager, migration lock |
//! | `Shared` | shares its lock with any | shares its lock with any | whichever holds the migration lock |
//! | `Given` | does not run it | shares its lock with any | cloud-controller-manager, migration lock |
//! | `Away` | does not run it | as one of its own | cloud-controller-manager, main lock |
//!
//! The home gets its configuration first and loses it last: in no stage, and between no two that follow each
//! other, may both managers run it (RK-05). Both ends are without any flag of leader migration (RK-23,
//! RK-26).

use api::{
    extensions::CloudControllerManager,
    gardencore::shoot::{ControllerLeader, ControllerManager, MovableController},
};
use k8s_openapi::api::apps::v1::Deployment;

/// The flag by which the kube-controller-manager leaves node IPAM to another manager.
pub(crate) const WITHOUT_NODE_IPAM: &str = "-node-ipam-controller";
/// The flag by which it takes part in a leader migration.
pub(crate) const ENABLE: &str = "--enable-leader-migration=true";

/// Where on the way a shoot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The kube-controller-manager has it and knows of nobody else.
    AtHome,
    /// The kube-controller-manager has it and would let it go.
    Offered,
    /// Whoever holds the lock has it.
    Shared,
    /// The cloud-controller-manager has it, or gets it as soon as the lock is free.
    Given,
    /// The cloud-controller-manager has it and knows of nobody else.
    Away,
}

/// What the kube-controller-manager does with node IPAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Runs it under its main lock.
    Keeps,
    /// Runs it while it holds the migration lock.
    Shares,
    /// Never runs it.
    Leaves,
}

/// What the cloud-controller-manager does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// Never runs it.
    Absent,
    /// Runs it while it holds the migration lock.
    Shares,
    /// Runs it under its main lock.
    Owns,
}

/// What has to be true before a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awaits {
    /// The kube-controller-manager does what it was told.
    pub(crate) home: bool,
    /// The cloud-controller-manager does what it was told.
    pub(crate) guest: bool,
    /// Who has to hold the migration lock.
    pub(crate) holder: Option<Holder>,
}

/// One of the two managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The kube-controller-manager.
    Home,
    /// The cloud-controller-manager.
    Guest,
}

impl Stage {
    /// All of them, in their order.
    pub(crate) const WAY: [Self; 5] = [Self::AtHome, Self::Offered, Self::Shared, Self::Given, Self::Away];

    /// Where a Shoot with these `spec.kubernetes.controllerLeaders` wants to be.
    pub(crate) fn wanted(leaders: &[ControllerLeader]) -> Self {
        let node_ipam = leaders
            .iter()
            .find(|leader| leader.name == MovableController::NodeIpam);
        match node_ipam.map(|leader| leader.component).unwrap_or_default() {
            ControllerManager::KubeControllerManager => Self::AtHome,
            ControllerManager::CloudControllerManager => Self::Away,
        }
    }

    /// Where a shoot is by what its managers were told; `None` for one that is not there. A shoot without any
    /// is where it wants to be at once: nobody runs whom it would have to wait for.
    ///
    /// A pair that is no stage was not written by this crate. It becomes the stage that is nearest and in
    /// which no two run.
    pub(crate) fn of(home: Option<Home>, guest: Option<Guest>, wanted: Self) -> Self {
        match (home, guest) {
            (None, None) => wanted,
            (None | Some(Home::Keeps), None | Some(Guest::Absent)) => Self::AtHome,
            (Some(Home::Shares), None | Some(Guest::Absent)) => Self::Offered,
            (None | Some(Home::Keeps | Home::Shares), Some(Guest::Shares)) => Self::Shared,
            // Nobody runs who could mind, and a control plane that is being made has not got further.
            (Some(Home::Leaves), None) if wanted == Self::Away => Self::Away,
            (Some(Home::Leaves), None | Some(Guest::Absent | Guest::Shares))
            | (Some(Home::Keeps | Home::Shares), Some(Guest::Owns)) => Self::Given,
            (None | Some(Home::Leaves), Some(Guest::Owns)) => Self::Away,
        }
    }

    /// The next stage on the way; `None` at its end.
    pub(crate) fn towards(self, wanted: Self) -> Option<Self> {
        let mut way = Self::WAY.into_iter();
        if wanted > self {
            way.find(|stage| *stage > self)
        } else {
            way.rfind(|stage| *stage < self && *stage >= wanted)
        }
    }

    /// What has to be true before the next step, or at the end of the way.
    ///
    /// A step changes one manager: the other one must do what it was told, or two could run it. The one that
    /// is changed may be the one that does not start, and then the way back must be open. Forwards, whoever
    /// runs it shows that it can before the next one is let in, or the last one out.
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

    /// What the kube-controller-manager is told.
    pub(crate) fn home(self) -> Home {
        match self {
            Self::AtHome => Home::Keeps,
            Self::Offered | Self::Shared => Home::Shares,
            Self::Given | Self::Away => Home::Leaves,
        }
    }

    /// What the cloud-controller-manager is told.
    pub(crate) fn guest(self) -> Guest {
        match self {
            Self::AtHome | Self::Offered => Guest::Absent,
            Self::Shared | Self::Given => Guest::Shares,
            Self::Away => Guest::Owns,
        }
    }
}

impl Home {
    /// What a Deployment of it was told.
    pub(crate) fn of(deployment: &Deployment) -> Self {
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
    /// What the provider was told of it.
    pub(crate) fn of(told: Option<&CloudControllerManager>) -> Self {
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

    /// Two managers that run it without a lock in common.
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

    /// Managers follow when they like, the user wants what they like, and no two ever run it.
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

    /// Whatever the manager that was changed last does, or does not: the step is taken back without it.
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

    /// The way is found again after a restart at any moment (I5).
    #[test]
    fn what_the_managers_were_told_is_the_stage() {
        for stage in Stage::WAY {
            for wanted in [Stage::AtHome, Stage::Away] {
                assert_eq!(Stage::of(Some(stage.home()), Some(stage.guest()), wanted), stage);
            }
        }
    }

    #[test]
    fn what_nobody_was_told_begins_where_it_is_wanted() {
        assert_eq!(Stage::of(None, None, Stage::Away), Stage::Away);
        assert_eq!(Stage::of(None, None, Stage::AtHome), Stage::AtHome);
        // Its making was interrupted after the first manager.
        assert_eq!(Stage::of(Some(Home::Leaves), None, Stage::Away), Stage::Away);
        assert_eq!(Stage::of(Some(Home::Keeps), None, Stage::AtHome), Stage::AtHome);
    }

    /// What was found is not made worse, in whichever order the two managers follow.
    #[test]
    fn no_pair_becomes_a_stage_by_which_two_run() {
        for (home, guest) in HOMES.iter().flat_map(|home| GUESTS.map(|guest| (*home, guest))) {
            // Who is not there runs nothing.
            let (here, there) = (home.unwrap_or(Home::Leaves), guest.unwrap_or(Guest::Absent));
            for wanted in [Stage::AtHome, Stage::Away] {
                let stage = Stage::of(home, guest, wanted);
                assert!(!twice(stage.home(), stage.guest()));
                if !twice(here, there) {
                    assert!(!twice(here, stage.guest()), "{home:?} {guest:?} to {stage:?}");
                    assert!(!twice(stage.home(), there), "{home:?} {guest:?} to {stage:?}");
                }
            }
        }
    }
}
