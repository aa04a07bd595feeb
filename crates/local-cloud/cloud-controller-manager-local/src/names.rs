//! The names of the controllers, and the selection by a list of names.

use std::{collections::BTreeSet, fmt};

use leader_migration::Manager;

/// This process in a configuration of leader migration. The component has the common name of all cloud
/// controller managers, so that a single file serves every manager of a shoot, for any cloud. The main lock
/// has a separate name.
pub const AS_MANAGER: Manager = Manager {
    component: "cloud-controller-manager",
    controllers: &[
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "service-lb-controller",
    ],
    guests: &["node-ipam-controller"],
};

/// A controller of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Describes new Nodes.
    CloudNode,
    /// Removes and marks Nodes.
    CloudNodeLifecycle,
    /// Load balancers of Services.
    Service,
    /// Ranges of pod addresses.
    NodeIpam,
}

impl Name {
    /// All controllers.
    pub const ALL: [Self; 4] = [
        Self::CloudNode,
        Self::CloudNodeLifecycle,
        Self::Service,
        Self::NodeIpam,
    ];

    /// The name of the controller in Kubernetes since 1.28.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloudNode => "cloud-node-controller",
            Self::CloudNodeLifecycle => "cloud-node-lifecycle-controller",
            Self::Service => "service-lb-controller",
            Self::NodeIpam => "node-ipam-controller",
        }
    }

    /// The controller of a present or former name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = manager::SUITE.present_name(name);
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads `--controllers`: `*` is all, `name` adds a controller, `-name` excludes a controller. As in
/// Kubernetes, the first entry that names a controller counts, and `*` applies only to controllers without an
/// entry.
pub fn select(list: &[String]) -> Result<BTreeSet<Name>, String> {
    let mut rest = false;
    let (mut chosen, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for entry in list.iter().map(|entry| entry.trim()) {
        if entry == "*" {
            rest = true;
            continue;
        }
        let text = entry.strip_prefix('-');
        let name = Name::parse(text.unwrap_or(entry)).ok_or_else(|| {
            let known = Name::ALL.map(Name::as_str).join(", ");
            format!("--controllers: there is no controller {entry:?}; known: {known}")
        })?;
        if text.is_some() && !chosen.contains(&name) {
            refused.insert(name);
        } else if text.is_none() && !refused.contains(&name) {
            chosen.insert(name);
        }
    }
    let others = Name::ALL
        .into_iter()
        .filter(|name| rest && !refused.contains(name));
    Ok(chosen.iter().copied().chain(others).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::all("*", "cloud-node,cloud-node-lifecycle,service,nodeipam")]
    #[case::one("service", "service")]
    #[case::by_present_names("service-lb-controller,node-ipam-controller", "service,nodeipam")]
    #[case::all_but_one("*,-nodeipam", "cloud-node,cloud-node-lifecycle,service")]
    #[case::in_any_order("-node-ipam-controller,*", "cloud-node,cloud-node-lifecycle,service")]
    #[case::only_one_away("-service", "")]
    #[case::the_first_counts("service,-service,-nodeipam,nodeipam", "service")]
    fn controllers_are_chosen_as_in_kubernetes(#[case] list: &str, #[case] expected: &str) {
        let list: Vec<_> = list.split(',').map(ToOwned::to_owned).collect();
        let expected = expected.split(',').filter_map(Name::parse).collect();
        assert_eq!(select(&list).unwrap(), expected);
    }

    /// A name without a controller would be a controller that never runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        assert!(AS_MANAGER.all().eq(Name::ALL.map(Name::as_str)));
    }

    #[test]
    fn a_name_that_is_not_known_is_told() {
        let why = select(&["*".into(), "-route".into()]).unwrap_err();
        assert!(
            why.contains("\"-route\"") && why.contains("service-lb-controller"),
            "{why}"
        );
    }
}
