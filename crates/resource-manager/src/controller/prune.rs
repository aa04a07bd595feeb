//! Deletes what was applied once and is not wanted any more.

use super::{Controller, place::Work, remove::Removed};
use crate::{
    object::{Key, Phase},
    trouble::Trouble,
};

impl Controller {
    /// Deletes what is not wanted any more. Gives what is still there.
    pub(super) async fn prune(&self, work: &Work<'_>, unwanted: Vec<Key>) -> (Vec<Key>, Vec<Trouble>) {
        let delete_claims = work.resource.spec.delete_persistent_volume_claims == Some(true);
        let (mut left, mut troubles) = (Vec::new(), Vec::new());
        // What lies in a namespace, or is of a kind, goes before that.
        let mut unwanted = unwanted;
        unwanted.sort_by_key(|key| std::cmp::Reverse(Phase::of(key)));
        for key in unwanted {
            match self.remove(work.owner, work.target, &key, delete_claims).await {
                Ok(Removed::Gone | Removed::Kept) => {}
                // It is wanted kept for now: it goes when that is over.
                Ok(Removed::Spared) => left.push(key),
                Ok(Removed::Lingers(why, after)) => {
                    troubles.push(Trouble::Awaited(
                        format!("{key} is not wanted any more: {why}"),
                        after,
                    ));
                    left.push(key);
                }
                Err(trouble) => {
                    troubles.push(trouble);
                    left.push(key);
                }
            }
        }
        (left, troubles)
    }
}
