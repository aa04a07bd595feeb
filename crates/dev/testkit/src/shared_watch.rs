//! The watch that all controllers of a process share, seen from outside of the process.

use std::future::{Future, ready};
use std::time::Duration;

use anyhow::Result;
use kube::Resource;

use crate::relay::{Asked, Relay};
use crate::wait::eventually;

/// Waits until the metrics of a process report for each of these controllers that the list of all objects has
/// ended. Without any object, no change would wake a controller that waits for the end of the list.
#[track_caller]
pub fn controllers_synced(
    controllers: &[&str],
    limit: Duration,
    metrics: impl Fn() -> String,
) -> impl Future<Output = Result<()>> {
    eventually("all controllers have listed all objects", limit, move || {
        let text = metrics();
        let is_synced =
            |name: &&&str| text.contains(&format!("controller_synced{{controller=\"{name}\"}} 1"));
        let missing: Vec<_> = controllers.iter().filter(|name| !is_synced(name)).collect();
        ready(if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("{missing:?} have not"))
        })
    })
}

impl Relay {
    /// Waits for a watch of all objects of this kind.
    #[track_caller]
    pub fn until_watched<K>(&self, limit: Duration) -> impl Future<Output = Result<()>>
    where
        K: Resource<DynamicType = ()>,
    {
        self.until(1, limit, is_watch_of_all::<K>)
    }

    /// The number of watches of all objects of this kind so far.
    #[must_use]
    pub fn watches<K>(&self) -> usize
    where
        K: Resource<DynamicType = ()>,
    {
        self.asked()
            .iter()
            .filter(|asked| is_watch_of_all::<K>(asked))
            .count()
    }
}

fn is_watch_of_all<K>(asked: &Asked) -> bool
where
    K: Resource<DynamicType = ()>,
{
    let collection = format!("{}?", K::url_path(&(), None));
    asked.is_watch() && asked.path.starts_with(&collection)
}
