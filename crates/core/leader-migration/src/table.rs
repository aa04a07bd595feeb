//! The managers, aliases and locks that a configuration is compared with. The author of a manager passes the
//! table in.
//!
//! A leader migration configuration names controllers and managers as text. The comparison with the table
//! turns an unknown name into a warning, so that a misspelt name does not silently switch a controller off
//! (RK-34). All managers that share a migration lock need the same aliases, because the digest of the list
//! has the present names ([`super::Migration::digest`]).

/// The controllers that a controller manager can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Name of the manager: the value of `component` in a configuration, and the default name of the main
    /// lock.
    pub component: &'static str,
    /// Controllers that the manager runs by default. A controller is in this list of exactly one manager, the
    /// controller's *home*.
    pub controllers: &'static [&'static str],
    /// Controllers with a home in a different manager. This manager runs such a controller only when a
    /// configuration hands the controller over.
    pub guests: &'static [&'static str],
}

/// A former name and the present name of a controller.
pub type Alias = (&'static str, &'static str);

/// The managers that a configuration may name, the former names of controllers, and the main locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerTable {
    /// The managers. The component of each manager is also reserved as the name of a main lock.
    pub managers: &'static [Manager],
    /// Lists of former and present names. The name of a controller in `managers` is never an alias: where a
    /// manager has a controller `job`, the alias (`job`, `job-controller`) has no effect.
    pub aliases: &'static [&'static [Alias]],
    /// Main locks with a name that is not the component of a manager: the name of the Lease, and the name of
    /// the manager for messages. No migration lock may have the name of a main lock.
    pub locks: &'static [(&'static str, &'static str)],
}

impl Manager {
    /// All controllers that the manager can run: home controllers and guests.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.controllers.iter().chain(self.guests).copied()
    }

    /// Whether the manager can run the controller with this present name.
    #[must_use]
    pub fn can_run(&self, controller: &str) -> bool {
        self.all().any(|own| own == controller)
    }

    /// Whether the manager runs the controller with this present name by default.
    #[must_use]
    pub fn is_home_of(&self, controller: &str) -> bool {
        self.controllers.contains(&controller)
    }
}

impl ManagerTable {
    /// A table without entries: every name stands for itself.
    pub const EMPTY: Self = Self {
        managers: &[],
        aliases: &[],
        locks: &[],
    };

    /// The manager with this component.
    #[must_use]
    pub fn manager(&self, component: &str) -> Option<&'static Manager> {
        self.managers
            .iter()
            .find(|manager| manager.component == component)
    }

    /// The present name of a controller. A name without an alias is returned unchanged, and so is the name of
    /// a controller in the table.
    #[must_use]
    pub fn present_name<'n>(&self, controller: &'n str) -> &'n str {
        if self.managers.iter().any(|manager| manager.can_run(controller)) {
            return controller;
        }
        let mut aliases = self.aliases.iter().flat_map(|list| list.iter());
        match aliases.find(|(former, _)| *former == controller) {
            Some(&(_, present)) => present,
            None => controller,
        }
    }

    /// The name of the manager with this main lock.
    #[must_use]
    pub fn lock_owner(&self, lease: &str) -> Option<&'static str> {
        let component = self.manager(lease).map(|manager| manager.component);
        component.or_else(|| {
            let lock = self.locks.iter().find(|(name, _)| *name == lease);
            lock.map(|(_, owner)| *owner)
        })
    }
}

/// The names that a process compares a configuration with: the table, with the manager of the process in
/// place of the table's entry of the same component. So the lists of a process count before the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownNames {
    pub(crate) table: ManagerTable,
    /// The manager of this process; `None` where a configuration is read for no particular manager.
    pub(crate) own: Option<Manager>,
}

impl KnownNames {
    /// The names for a process of this manager.
    pub(crate) fn for_manager(table: &ManagerTable, own: &Manager) -> Self {
        Self {
            table: *table,
            own: Some(*own),
        }
    }

    /// All managers, each once.
    pub(crate) fn managers(&self) -> impl Iterator<Item = Manager> {
        let own = self.own;
        let stranger = own.filter(|own| self.table.manager(own.component).is_none());
        let listed = self.table.managers.iter().map(move |listed| {
            own.filter(|own| own.component == listed.component)
                .unwrap_or(*listed)
        });
        listed.chain(stranger)
    }

    /// Whether a manager has this component.
    pub(crate) fn has_manager(&self, component: &str) -> bool {
        self.managers().any(|manager| manager.component == component)
    }

    /// The present name of a controller, see [`ManagerTable::present_name`]. The names of this process's
    /// controllers are never rewritten.
    pub(crate) fn present_name<'n>(&self, controller: &'n str) -> &'n str {
        if self.own.is_some_and(|own| own.can_run(controller)) {
            return controller;
        }
        self.table.present_name(controller)
    }
}
