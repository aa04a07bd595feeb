//! The last part of the proof: a forced deletion removes as much as possible, and no outside system can hold
//! up the deletion.
//!
//! The part runs in the source, because the test can observe the source's namespace. The object is created
//! while the shoot is lost again and again ([`crate::lost`]). First the outside systems serve, and a forced
//! deletion is as good as an ordinary deletion. Then the outside systems refuse: an ordinary deletion fails,
//! as before a user requests force. The forced deletion succeeds, reports the resources left behind, and
//! leaves no object in the seed.

use std::fmt::Debug;

use api::{
    constants::{CONFIRMATION_FORCE_DELETION, operation::RECONCILE},
    extensions::ExtensionObject,
};
use extension::{Actuator, reconciler::LEFT_BEHIND};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::client::{Cluster, wait};
use serde_json::Value;

use crate::{
    Contract, GONE_WITHIN, is_empty,
    protocol::{GARDENLET, create},
};

impl<K, A> Contract<'_, K, A>
where
    K: ExtensionObject + Debug,
    A: Actuator<K>,
{
    pub(super) async fn delete_by_force(&self, before: &Value) -> Result<(), String> {
        self.make_and_lose().await?;
        self.make().await?;
        self.force("forced delete", Some(before)).await?;

        let made = self.make_again().await?;
        if let Some(refuse) = &self.refuse {
            refuse()
                .await
                .map_err(|e| format!("the world outside could not be made to refuse: {e}"))?;
            self.ordinary_is_held_up().await?;
            self.unchanged(&made, "a delete that was refused").await?;
        }
        let step = "refused forced delete";
        let uid = self.there(&self.api(), &self.source_object, step).await?.uid();
        self.force(step, None).await?;
        let left = self.read_outside("refused forced delete").await?;
        if left != *before && !self.is_told(uid.as_deref()).await? {
            return Err(format!(
                "refused forced delete: {left} is left outside, and no Event {LEFT_BEHIND} tells of it"
            ));
        }
        Ok(())
    }

    async fn make_again(&self) -> Result<Value, String> {
        create(&self.api(), &self.source_object, RECONCILE).await?;
        self.make().await
    }

    async fn make(&self) -> Result<Value, String> {
        self.once(
            &(self.source)(),
            &self.source_object,
            "reconcile before a forced delete",
        )
        .await?;
        self.read_outside("before a forced delete").await
    }

    /// The ordinary deletion must fail. Otherwise the forced deletion would be no proof.
    async fn ordinary_is_held_up(&self) -> Result<(), String> {
        let name = self.source_object.name_any();
        runtime::client::apply::delete(&self.api(), &name)
            .await
            .map_err(|e| e.to_string())?;
        match (self.source)().run(&self.source_object).await {
            Err(_) => Ok(()),
            Ok(_) => Err("delete: the world outside refuses, and it succeeded nevertheless".into()),
        }
    }

    /// Deletes like a gardenlet after a user has requested force.
    async fn force(&self, step: &str, before: Option<&Value>) -> Result<(), String> {
        let (api, name) = (self.api(), self.source_object.name_any());
        GARDENLET
            .annotate(&api, &name, CONFIRMATION_FORCE_DELETION, Some("true"))
            .await
            .map_err(|e| e.to_string())?;
        runtime::client::apply::delete(&api, &name)
            .await
            .map_err(|e| e.to_string())?;
        self.delete_twice(&self.source, &self.source_object, step, before)
            .await?;
        wait::until_gone(&api, &name, GONE_WITHIN)
            .await
            .map_err(|e| format!("{step}: {e}"))?;
        let inside = (self.inside_source)().await?;
        if !is_empty(&inside) {
            return Err(format!("{step}: the namespace still holds {inside}"));
        }
        Ok(())
    }

    async fn is_told(&self, uid: Option<&str>) -> Result<bool, String> {
        // Events of objects without a namespace are in this namespace.
        let namespace = self.source_object.namespace().unwrap_or_else(|| "default".into());
        let events: Api<Event> = (self.source)().seed().namespaced(&namespace);
        let all = events
            .list(&ListParams::default())
            .await
            .map_err(|e| format!("Events could not be listed: {e}"))?;
        Ok(all.iter().any(|event| {
            let of = event.regarding.as_ref().and_then(|object| object.uid.as_deref());
            of == uid
                && event.reason.as_deref() == Some(LEFT_BEHIND)
                && event.type_.as_deref() == Some("Warning")
        }))
    }

    fn api(&self) -> Api<K> {
        (self.source)().api_of(&self.source_object)
    }
}
