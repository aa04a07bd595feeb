//! The controllers of the garden by name, and the start of a set of controllers under a lock (RK-01).

use futures::future::{BoxFuture, FutureExt, join, join_all};

use crate::{
    Context, backup_entry_placement, controller_registration, project, seed, shoot_domain, shoot_hibernation,
    shoot_kubeconfig, shoot_migration, shoot_placement, shoot_preparation, shoot_state, shoot_takeover,
    shoot_version, shoot_zone_expiry,
};

type Start = fn(Context) -> BoxFuture<'static, ()>;

/// In the order of [`manager::GARDEN_CONTROLLER_MANAGER`].
const CONTROLLERS: &[(&str, Start)] = &[
    ("backup-entry-placement", |context| {
        backup_entry_placement::run(context).boxed()
    }),
    ("controller-registration", |context| {
        controller_registration::run(context).boxed()
    }),
    ("project", |context| project::run(context).boxed()),
    ("seed-lifecycle", |context| seed::run(context).boxed()),
    ("shoot-hibernation", |context| {
        shoot_hibernation::run(context).boxed()
    }),
    ("shoot-kubeconfig", |context| {
        shoot_kubeconfig::run(context).boxed()
    }),
    ("shoot-migration", |context| shoot_migration::run(context).boxed()),
    ("shoot-placement", |context| {
        join(shoot_placement::run(context.clone()), shoot_domain::run(context))
            .map(|((), ())| ())
            .boxed()
    }),
    ("shoot-preparation", |context| {
        shoot_preparation::run(context).boxed()
    }),
    ("shoot-state", |context| shoot_state::run(context).boxed()),
    ("shoot-takeover", |context| shoot_takeover::run(context).boxed()),
    ("shoot-version", |context| shoot_version::run(context).boxed()),
    ("shoot-zone-expiry", |context| {
        shoot_zone_expiry::run(context).boxed()
    }),
];

/// Runs these controllers until shutdown. Dropping the future stops all controllers.
///
/// # Errors
/// None; a work under a lock requires this signature.
pub async fn run(names: Vec<&'static str>, context: Context) -> Result<(), String> {
    tracing::info!(controllers = names.join(","), "running");
    let chosen = CONTROLLERS.iter().filter(|(name, _)| names.contains(name));
    join_all(chosen.map(|(_, start)| start(context.clone()))).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use manager::GARDEN_CONTROLLER_MANAGER;

    use super::*;

    /// A name without a controller would be a controller that no process runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, GARDEN_CONTROLLER_MANAGER.controllers);
    }
}
