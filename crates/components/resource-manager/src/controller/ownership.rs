//! The owner of an existing object: exactly one ManagedResource manages an object.

use kube::Api;
use runtime::client::Cluster;

use super::Controller;
use crate::{
    live::Live,
    names::RESOURCES_ORIGIN,
    object::{Key, Owner},
    status,
    target::{Refused, Target},
    trouble::Trouble,
};

impl Controller {
    /// Refuses to take over an object that another ManagedResource manages. An object without a manager may
    /// be taken over: the former ManagedResource is gone, or has released the object.
    ///
    /// # Errors
    /// The ManagedResource that manages the object.
    pub(super) async fn may_take(
        &self,
        owner: &Owner,
        target: &Target,
        key: &Key,
        live: &Live,
    ) -> Result<(), Trouble> {
        let Some(origin) = live.origin().filter(|origin| *origin != owner.origin()) else {
            return Ok(());
        };
        let Some(other) = target.scope.owner(origin) else {
            return Err(Trouble::Wrong(format!(
                "{key} is kept from elsewhere ({origin}): give it another name, or take the annotation {RESOURCES_ORIGIN} \
                 away where nobody keeps it any more"
            )));
        };
        let others: Api<api::resources::ManagedResource> = self.seed.namespaced(&other.namespace);
        let found = others
            .get_opt(&other.name)
            .await
            .map_err(|error| Trouble::from_refused(key, Refused::from(error)))?;
        let has_it = found.is_some_and(|found| {
            Owner::from_resource(&found).as_ref() == Some(&other)
                && status::keys(&found)
                    .iter()
                    .any(|kept| kept.identity() == key.identity())
        });
        if has_it {
            return Err(Trouble::Wrong(format!(
                "{key} is kept by ManagedResource {}/{}: take it out of one of the two",
                other.namespace, other.name
            )));
        }
        Ok(())
    }
}
