//! The controllers of a gardenlet by name, and the run of a set of controllers under a lock (RK-01).

use std::sync::Arc;

use backup_controllers::{backup_bucket, backup_entry};
use futures::future::{BoxFuture, FutureExt, join_all};

use crate::{Context, care, controller_installation, seed, shoot, shoot_state};

type Start = fn(Arc<Context>) -> BoxFuture<'static, ()>;

/// In the order of [`manager::GARDENLET`].
const CONTROLLERS: &[(&str, Start)] = &[
    ("shoot", |context| shoot::run(context).boxed()),
    ("shoot-care", |context| care::run(context).boxed()),
    ("shoot-state-sync", |context| shoot_state::run(context).boxed()),
    ("seed", |context| seed::run(context).boxed()),
    ("seed-lease", |context| seed::renew_lease(context).boxed()),
    ("backup-bucket", |context| {
        backup_bucket::run(Arc::new(context.backups())).boxed()
    }),
    ("backup-entry", |context| {
        backup_entry::run(Arc::new(context.backups())).boxed()
    }),
    ("controller-installation", |context| {
        controller_installation::run(context).boxed()
    }),
];

/// Runs these controllers until shutdown. Dropping the future stops all of the controllers.
///
/// # Errors
/// The Seed could not be registered, or belongs to a different cluster.
pub async fn run(names: Vec<&'static str>, context: Context) -> Result<(), String> {
    let context = Arc::new(context);
    if names.contains(&"seed") {
        // Not ready before the registration: no controller works without the Seed.
        let _registered = context.metrics.begin_sync("seed");
        seed::register(&context)
            .await
            .map_err(|error| error.to_string())?;
        seed::check_cluster(&context)
            .await
            .map_err(|error| error.to_string())?;
    }
    tracing::info!(controllers = names.join(","), "running");
    let chosen = CONTROLLERS.iter().filter(|(name, _)| names.contains(name));
    join_all(chosen.map(|(_, start)| start(Arc::clone(&context)))).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use manager::GARDENLET;

    use super::*;

    /// A name without a controller would be a controller that never runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, GARDENLET.controllers);
    }

    /// The controllers of backups keep the field manager of the gardenlet, so that they can still remove
    /// fields from before the split of the crate.
    #[test]
    fn the_controllers_of_backups_write_as_a_gardenlet() {
        assert_eq!(backup_controllers::MANAGER.0, crate::MANAGER.0);
    }
}
