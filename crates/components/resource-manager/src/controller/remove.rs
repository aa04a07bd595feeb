//! Deletes a single object, if the deletion is still wanted at this moment (RX-02, RX-23).

use std::{collections::BTreeMap, ops::ControlFlow, time::Duration};

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy},
    core::Request,
};
use runtime::bounds::survey;
use serde::Deserialize;
use serde_json::json;

use super::{Controller, keeps};
use crate::{
    live::Live,
    names::{MANAGER, UNWATCHED_REQUEUE},
    object::{Handling, Key, Owner},
    plan::{self, Leaving},
    target::{Refused, Target},
    trouble::Trouble,
};

/// The result for an object that is no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// The object does not exist, or belongs to another owner.
    Gone,
    /// An annotation of the object keeps the object.
    Kept,
    /// The ManagedResource has `keepObjects`, or the shoot has left the namespace.
    Spared,
    /// The object is being deleted: the reason of the wait, and the time of the next check.
    Lingers(String, Duration),
}

impl Controller {
    /// Deletes a single object. The permission is read just before the deletion: since the begin a user may
    /// have set `keepObjects`, or the gardenlet may have marked the namespace as left.
    pub(super) async fn remove(
        &self,
        owner: &Owner,
        target: &Target,
        key: &Key,
        delete_claims: bool,
    ) -> Result<Removed, Trouble> {
        // An object that this ManagedResource may not create is not deleted either, whatever the status
        // lists.
        if owner.reaches(key).is_err() {
            return Ok(Removed::Gone);
        }
        let refused = |refused| Trouble::from_refused(key, refused);
        let Some(served) = target.served_in_any_version(key).await.map_err(refused)? else {
            return Ok(Removed::Gone);
        };
        let api = target.api(&served, key);
        let Some(live) = target.ask(api.get_opt(&key.name)).await.map_err(refused)? else {
            return Ok(Removed::Gone);
        };
        if live.origin().is_some_and(|origin| origin != owner.origin()) {
            return Ok(Removed::Gone);
        }
        let body = live.value();
        // An annotation with an invalid value must not prevent the deletion: such a value is ignored.
        let handling = Handling::from_object(body).unwrap_or_default();
        match plan::leaving(&handling, body, runtime::clock::now()) {
            Leaving::Keep => Ok(Removed::Kept),
            Leaving::Wait(why, after) => Ok(Removed::Lingers(why, after.unwrap_or(UNWATCHED_REQUEUE))),
            Leaving::Finalize => {
                if !self.may_delete(owner, key).await? {
                    return Ok(Removed::Spared);
                }
                finalize(target, &api, &live).await.map_err(refused)?;
                Ok(Removed::Lingers(
                    "its finalizers were taken away".to_owned(),
                    Duration::from_secs(1),
                ))
            }
            Leaving::Delete => {
                if !self.may_delete(owner, key).await? {
                    return Ok(Removed::Spared);
                }
                if delete_claims && key.is("apps", "StatefulSet") {
                    delete_claims_of(target, key, body).await.map_err(refused)?;
                }
                delete(target, &api, &live).await.map_err(refused)
            }
        }
    }

    /// Whether the present ManagedResource and the present Namespace allow the deletion of objects. A deleted
    /// ManagedResource does not, and neither does a shoot that has left since the begin.
    async fn may_delete(&self, owner: &Owner, key: &Key) -> Result<bool, Trouble> {
        let read = self.api(owner).get_opt(&owner.name).await;
        let read = read.map_err(|error| Trouble::from_refused(key, Refused::from(error)))?;
        if read.is_none_or(|resource| keeps(&resource)) {
            return Ok(false);
        }
        let has_left = self.shoot_has_left(owner).await;
        let has_left = has_left.map_err(|error| Trouble::Failed(format!("{key}: {error}")))?;
        Ok(!has_left)
    }
}

/// Deletes exactly this object, and dependent objects afterwards. The answer may be the object itself, so
/// only the kind of the answer is read.
async fn delete(target: &Target, api: &Api<Live>, live: &Live) -> Result<Removed, Refused> {
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: live.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let request = Request::new(api.resource_url())
        .delete(&live.name_any(), &params)
        .map_err(|error| Refused::from(kube::Error::BuildRequest(error)))?;
    match target.ask(target.client().request_text(request)).await {
        // The answer is the object as before, or a status. A status means gone; an object means that the
        // deletion waits.
        Ok(answer) if is_status(&answer) => Ok(Removed::Gone),
        Ok(_) => Ok(Removed::Lingers(
            "its deletion was asked for".to_owned(),
            UNWATCHED_REQUEUE,
        )),
        Err(gone) if gone.is_not_found() || gone.is_conflict() => Ok(Removed::Lingers(
            "it is another object than a moment ago".to_owned(),
            Duration::from_secs(1),
        )),
        Err(refused) => Err(refused),
    }
}

fn is_status(answer: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        kind: String,
    }
    serde_json::from_str::<Answer>(answer).is_ok_and(|answer| answer.kind == "Status")
}

/// Removes all finalizers of exactly this object.
async fn finalize(target: &Target, api: &Api<Live>, live: &Live) -> Result<(), Refused> {
    let body = json!({"metadata": {"finalizers": null, "uid": live.uid(), "resourceVersion": live.resource_version()}});
    let params = PatchParams {
        field_manager: Some(MANAGER.0.to_owned()),
        ..PatchParams::default()
    };
    match target
        .ask(api.patch(&live.name_any(), &params, &Patch::Merge(body)))
        .await
    {
        Err(refused) if !refused.is_not_found() && !refused.is_conflict() => Err(refused),
        _ => Ok(()),
    }
}

/// Deletes the claims that a StatefulSet has created from the templates.
async fn delete_claims_of(target: &Target, key: &Key, set: &serde_json::Value) -> Result<(), Refused> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(
        target.client().clone(),
        key.namespace.as_deref().unwrap_or_default(),
    );
    let labels: BTreeMap<String, String> =
        serde_json::from_value(set["spec"]["selector"]["matchLabels"].clone()).unwrap_or_default();
    if labels.is_empty() {
        return Ok(());
    }
    let selector: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let (of_set, mut own) = (ListParams::default().labels(&selector.join(",")), Vec::new());
    let found = survey::<PersistentVolumeClaim, Live>(&claims, &of_set, |claim| {
        own.extend(Some(claim.name_any()).filter(|name| plan::is_claim_of(set, name)));
        ControlFlow::Continue(())
    });
    target.ask(found).await?;
    let params = DeleteParams::default();
    try_join_all(own.into_iter().map(|name| {
        let (claims, params) = (claims.clone(), params.clone());
        async move {
            match target.ask(claims.delete(&name, &params)).await {
                Err(refused) if !refused.is_not_found() => Err(refused),
                _ => Ok(()),
            }
        }
    }))
    .await
    .map(drop)
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
