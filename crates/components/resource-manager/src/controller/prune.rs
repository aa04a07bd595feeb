//! Deletes objects that were applied once and are no longer wanted.

use super::{Controller, place::Work, remove::Removed};
use crate::{
    object::{Key, Phase},
    trouble::Trouble,
};

impl Controller {
    /// Deletes unwanted objects. Returns the objects that still exist.
    pub(super) async fn prune(&self, work: &Work<'_>, unwanted: Vec<Key>) -> (Vec<Key>, Vec<Trouble>) {
        let delete_claims = work.resource.spec.delete_persistent_volume_claims == Some(true);
        let (mut left, mut troubles) = (Vec::new(), Vec::new());
        // Objects in a namespace, or of a custom kind, are deleted before the namespace or the definition.
        let mut unwanted = unwanted;
        unwanted.sort_by_key(|key| std::cmp::Reverse(Phase::from_key(key)));
        for key in unwanted {
            match self.remove(work.owner, work.target, &key, delete_claims).await {
                Ok(Removed::Gone | Removed::Kept) => {}
                // The object stays for now. After the removal of `keepObjects`, or after the return of the
                // shoot to this namespace, the object is deleted.
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
