//! The requests for each object of a phase: read, decide (`crate::plan`), apply. `established` waits for a
//! new definition, so that objects of the kind can follow. `apply.rs` calls this module for each phase.

use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use runtime::client::wait::{self, WaitState};
use serde_json::Value;

use super::{
    Controller, keeps,
    place::{Placed, Work},
    remove::Removed,
};
use crate::{
    health,
    kinds::Served,
    live::Live,
    names::MANAGER,
    object::{Dress, Key, dressed},
    plan::{self, Overwrite, Step},
    target::Target,
    trouble::Trouble,
};

/// Concurrent requests of a ManagedResource.
const AT_ONCE: usize = 4;
/// Wait until a definition is served: a kube-apiserver takes about a second.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(5);

impl Controller {
    /// Applies objects, some at the same time.
    pub(super) async fn send(&self, work: &Work<'_>, objects: &[Placed<'_>]) -> Vec<Trouble> {
        let requests: Vec<_> = objects
            .iter()
            .map(|object| self.send_one(work, object).boxed())
            .collect();
        let mut sent = stream::iter(requests).buffer_unordered(AT_ONCE);
        let mut troubles = Vec::new();
        while let Some(done) = sent.next().await {
            troubles.extend(done.err());
            if troubles.iter().any(Trouble::ends_all) {
                break;
            }
        }
        troubles
    }

    async fn send_one(&self, work: &Work<'_>, object: &Placed<'_>) -> Result<(), Trouble> {
        let (target, key, handling) = (work.target, &object.key, &object.wanted.handling);
        let api = target.api(&object.served, key);
        let refused = |refused| Trouble::from_refused(key, refused);
        let live = target.ask(api.get_opt(&key.name)).await.map_err(refused)?;
        if let Some(live) = &live {
            self.may_take(work.owner, target, key, live).await?;
        }
        let dress = Dress {
            owner: work.owner,
            labels: &work.resource.spec.inject_labels,
        };
        let body = dressed(&object.wanted.body, key, &dress);
        let body = match plan::step(handling, body, live.as_ref().map(Live::value)) {
            Step::Send(body) => body,
            Step::Leave => return Ok(()),
            Step::Await => {
                return Err(Trouble::awaited(
                    key,
                    "is being deleted; it is made anew when it is gone",
                ));
            }
        };
        let params = PatchParams::apply(MANAGER.0).force();
        let written = match target
            .ask(api.patch(&key.name, &params, &Patch::Apply(&body)))
            .await
        {
            Ok(written) => written,
            Err(invalid) if invalid.is_invalid() && handling.remade && live.is_some() => {
                return self
                    .make_anew(work, key, Trouble::from_refused(key, invalid))
                    .await;
            }
            Err(invalid)
                if invalid.is_immutable()
                    && !handling.kept
                    && live
                        .as_ref()
                        .is_some_and(|live| is_own_immutable(work, key, live)) =>
            {
                return self
                    .make_anew(work, key, Trouble::from_refused(key, invalid))
                    .await;
            }
            Err(changed) if changed.is_conflict() && (handling.own_replicas || handling.own_resources) => {
                return Err(Trouble::Awaited(
                    format!("{key} was changed by somebody at this moment"),
                    Duration::from_secs(1),
                ));
            }
            Err(gone) => {
                if gone.is_not_found() {
                    target.kinds.forget(key);
                    return Err(Trouble::awaited(
                        key,
                        "cannot be made yet: its namespace or its kind is not there",
                    ));
                }
                return Err(Trouble::from_refused(key, gone));
            }
        };
        let exactly = Overwrite {
            labels: work.resource.spec.force_overwrite_labels == Some(true),
            annotations: work.resource.spec.force_overwrite_annotations == Some(true),
        };
        let written = self.overwrite(work, &api, key, exactly, &body, written).await?;
        if let Some(watch) = &object.item.watch {
            watch.applied(key, work.owner, &written, exactly != Overwrite::default());
        }
        if key.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            established(target, &object.served, key).await;
        }
        Ok(())
    }

    /// Removes additions of other writers, in the lists that must equal the manifest.
    async fn overwrite(
        &self,
        work: &Work<'_>,
        api: &Api<Live>,
        key: &Key,
        exactly: Overwrite,
        sent: &Value,
        written: Live,
    ) -> Result<Live, Trouble> {
        let Some(patch) = plan::overwrite(exactly, sent, written.value()) else {
            return Ok(written);
        };
        let params = PatchParams {
            field_manager: Some(MANAGER.0.to_owned()),
            ..PatchParams::default()
        };
        let merged = work
            .target
            .ask(api.patch(&key.name, &params, &Patch::Merge(patch)))
            .await;
        merged.map_err(|refused| Trouble::from_refused(key, refused))
    }

    /// Deletes an object that cannot be updated; the object is created when the deletion has ended.
    async fn make_anew(&self, work: &Work<'_>, key: &Key, why: Trouble) -> Result<(), Trouble> {
        if keeps(work.resource) {
            return Err(why);
        }
        match self.remove(work.owner, work.target, key, false).await? {
            Removed::Spared | Removed::Kept => Err(why),
            Removed::Gone => Err(Trouble::Awaited(
                format!("{key} could not be changed and is made anew"),
                Duration::from_millis(100),
            )),
            Removed::Lingers(_, after) => Err(Trouble::Awaited(
                format!("{key} cannot be changed: it was deleted, and is made anew when it is gone"),
                after,
            )),
        }
    }
}

/// Whether this ManagedResource has created the object, and `immutable` forbids each change. An object
/// without the origin may belong to a user.
fn is_own_immutable(work: &Work<'_>, key: &Key, live: &Live) -> bool {
    let holds_data = key.is("", "ConfigMap") || key.is("", "Secret");
    holds_data && live.value()["immutable"] == true && live.origin() == Some(work.owner.origin().as_str())
}

/// Waits until a definition is served, so that objects of the kind can be applied in the same run. After a
/// longer wait the troubles of those objects report the missing kind.
async fn established(target: &Target, served: &Served, key: &Key) {
    let api = target.api(served, key);
    let is_established = |definition: Option<&Live>| {
        let health = definition.map(|found| health::assess(&key.group, &key.kind, found.value()));
        match health.map(|health| health.wrong) {
            Some(None) => WaitState::Done,
            Some(Some(why)) => WaitState::Wait(why.into()),
            None => WaitState::Wait("it is not there".to_owned()),
        }
    };
    // A timeout is no error: each object of the kind then reports the missing kind, and is repeated.
    let _ = wait::until(&api, &key.name, ESTABLISHED_WITHIN, is_established).await;
}
