//! The controllers of the garden by name, and how a set of them runs under a lock (RK-01).

use futures::future::{BoxFuture, FutureExt, join_all};
use lease::Held;
use runtime::{Cluster, Events, Garden};

use crate::{Context, project, seed, shoot_migration, shoot_placement, shoot_state};

type Start = fn(Context) -> BoxFuture<'static, ()>;

/// In the order of [`lease::migration::GARDEN_CONTROLLER_MANAGER`].
const CONTROLLERS: &[(&str, Start)] = &[
    ("project", |context| project::run(context).boxed()),
    ("seed-lifecycle", |context| seed::run(context).boxed()),
    ("shoot-migration", |context| shoot_migration::run(context).boxed()),
    ("shoot-placement", |context| shoot_placement::run(context).boxed()),
    ("shoot-state", |context| shoot_state::run(context).boxed()),
];

/// Runs these controllers until shutdown. Dropping the future stops all of them. With `held`, no request of theirs leaves
/// once the lock is lost.
///
/// # Errors
/// None; the signature is that of a work under a lock.
pub async fn run(names: Vec<&'static str>, context: Context, held: Option<Held>) -> Result<(), String> {
    let context = fenced(context, held.as_ref());
    tracing::info!(controllers = names.join(","), "running");
    let chosen = CONTROLLERS.iter().filter(|(name, _)| names.contains(name));
    join_all(chosen.map(|(_, start)| start(context.clone()))).await;
    Ok(())
}

/// The same context with a client that falls silent when the lock is lost.
fn fenced(context: Context, held: Option<&Held>) -> Context {
    let Some(held) = held else { return context };
    let garden = Garden::new(held.fence(context.garden.client()));
    Context {
        events: Events::new(garden.client().clone(), "garden-controller-manager"),
        garden,
        ..context
    }
}

#[cfg(test)]
mod tests {
    use lease::migration::GARDEN_CONTROLLER_MANAGER;

    use super::*;

    /// A name without a controller would be a controller that nobody runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, GARDEN_CONTROLLER_MANAGER.controllers);
    }
}
