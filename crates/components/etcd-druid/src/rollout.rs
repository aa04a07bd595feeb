//! Restarts pods whose template changed, unless the change only takes effect at their next start.
//!
//! An etcd that has served must not start empty if its volume and its backups are ever gone. That is a flag
//! of the init container. So the template changes when etcd becomes ready for the first time, or when this
//! process learns a new flag of that kind. A restart for such a change would interrupt the shoot's API for no
//! benefit. Kubernetes keeps the template of each running pod as a ControllerRevision, named in a label of
//! the pod. The controller compares two of these templates without the parts that only take effect at the
//! next start.

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::Pod,
};
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::{Cluster, Seed, apply::delete_exactly},
    error::Explain,
};
use serde_json::{Value, json};

use crate::{
    names::{BACKUP_CONTAINER, DATA_MOUNT, ETCD_CONTAINER, INITIALIZE_CONTAINER},
    objects::{
        backup_restore::{self, EPOCH, PREPARE, QUOTA, REPLACED_BESIDE, REQUIRE_SNAPSHOT},
        etcd,
    },
};

/// Label of a pod: the ControllerRevision that it was made from.
const REVISION_LABEL: &str = "controller-revision-hash";

/// Names of the pods whose template differs in parts that take effect now. `None` if the StatefulSet's
/// controller has not observed the newest template yet.
pub async fn outdated(seed: &Seed, set: &StatefulSet, pods: &[Pod]) -> Result<Option<Vec<String>>> {
    let status = set.status.clone().unwrap_or_default();
    if status.observed_generation < set.metadata.generation {
        return Ok(None);
    }
    let Some(newest) = status.update_revision else {
        return Ok(None);
    };
    let mut outdated = Vec::new();
    for pod in pods {
        let made_from = pod.labels().get(REVISION_LABEL);
        if made_from == Some(&newest) {
            continue;
        }
        let revisions: Api<ControllerRevision> = seed.namespaced(&set.namespace().unwrap_or_default());
        let old = match made_from {
            Some(name) => template(&revisions, name).await?,
            None => None,
        };
        let new = template(&revisions, &newest).await?;
        // A template that does not exist any more counts as different.
        if old.is_none_or(|old| new.is_none_or(|new| differ(&old, new))) {
            outdated.push(pod.name_any());
        }
    }
    Ok(Some(outdated))
}

/// Replaces outdated pods.
pub async fn replace(seed: &Seed, pods: &[Pod], outdated: &[String]) -> Result<()> {
    for pod in pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && outdated.contains(&pod.name_any()))
    {
        tracing::info!(pod = pod.name_any(), "replaced, as its template changed");
        delete_exactly(&seed.namespaced(&pod.namespace().unwrap_or_default()), pod).await?;
    }
    Ok(())
}

async fn template(revisions: &Api<ControllerRevision>, name: &str) -> Result<Option<Value>> {
    let found = revisions
        .get_opt(name)
        .await
        .context(format_args!("could not read ControllerRevision {name}"))?;
    let data = found.and_then(|revision| revision.data);
    Ok(data.map(|data| essence(data.0)))
}

/// Whether two essences differ. A pod of an earlier release began without `prepare` and is not restarted for
/// this command: the pod runs since before the epoch changed.
fn differ(old: &Value, mut new: Value) -> bool {
    let has_preparation = |data: &Value| {
        let containers = data.pointer("/spec/template/spec/initContainers");
        containers.is_some_and(|containers| is_preparation(&containers[0]))
    };
    if !has_preparation(old)
        && has_preparation(&new)
        && let Some(spec) = new
            .pointer_mut("/spec/template/spec")
            .and_then(Value::as_object_mut)
    {
        spec.remove("initContainers");
    }
    *old != new
}

fn is_preparation(container: &Value) -> bool {
    container["args"][0] == PREPARE
}

/// Of the preparation only the epoch takes effect before the next start.
fn strip_preparation(container: &mut Value) {
    let args = container["args"].as_array().into_iter().flatten();
    let epoch = args.filter(|arg| arg.as_str().is_some_and(|arg| arg.starts_with(EPOCH)));
    let args: Vec<_> = [json!(PREPARE)].into_iter().chain(epoch.cloned()).collect();
    *container = json!({"name": INITIALIZE_CONTAINER, "args": args});
}

/// A template without the parts that only take effect when a pod starts.
fn essence(mut data: Value) -> Value {
    for (name, default) in [
        (ETCD_CONTAINER, etcd::default_resources()),
        (BACKUP_CONTAINER, backup_restore::default_resources()),
        (INITIALIZE_CONTAINER, backup_restore::default_resources()),
    ] {
        for list in ["containers", "initContainers"] {
            let path = format!("/spec/template/spec/{list}");
            let containers = data.pointer_mut(&path).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter(|c| c["name"] == name) {
                if container["resources"] == json!(default) {
                    container["resources"] = json!({});
                }
                strip(name, container);
            }
        }
    }
    data
}

fn strip(name: &str, container: &mut Value) {
    if is_preparation(container) {
        return strip_preparation(container);
    }
    let flags: &[&str] = match name {
        INITIALIZE_CONTAINER => &[REQUIRE_SNAPSHOT, QUOTA],
        BACKUP_CONTAINER => &[REPLACED_BESIDE],
        _ => return,
    };
    let flag = |arg: &Value| {
        let arg = arg.as_str().unwrap_or_default();
        flags.contains(&arg.split('=').next().unwrap_or_default())
    };
    if let Some(args) = container["args"].as_array_mut() {
        args.retain(|arg| !flag(arg));
    }
    if name == BACKUP_CONTAINER
        && let Some(mounts) = container["volumeMounts"].as_array_mut()
    {
        mounts.retain(|mount| mount["mountPath"] != DATA_MOUNT);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::objects::{
        owner_tests::checked,
        stateful_set::stateful_set,
        tests::{MAIN, etcd, wanted},
    };

    fn data(resources: &Value, args: &Value, image: &str) -> Value {
        json!({"spec": {"template": {"$patch": "replace", "spec": {
            "containers": [{"name": "etcd", "image": image, "resources": resources}],
            "initContainers": [{"name": "initialize", "args": args}],
        }}}})
    }

    fn revision(etcd: &api::druid::Etcd) -> Value {
        let set = stateful_set(&wanted(etcd).unwrap());
        essence(json!({"spec": {"template": set.spec.unwrap().template}}))
    }

    /// Decision 8, R17-13: these flags take effect now, in both directions. Flags for the next start still do
    /// not restart the pod.
    #[test]
    fn an_etcd_that_gets_or_loses_its_owner_check_is_restarted_once() {
        assert_ne!(revision(&checked()), revision(&etcd(MAIN)));
        let mut later = checked();
        later.metadata.annotations = Some(
            [(
                api::constants::DRUID_REQUIRE_SNAPSHOT.to_owned(),
                "true".to_owned(),
            )]
            .into(),
        );
        assert_eq!(revision(&later), revision(&checked()));
        let mut epoch = checked();
        epoch.metadata.annotations =
            Some([(crate::names::OWNERSHIP_EPOCH.to_owned(), "2".to_owned())].into());
        assert_ne!(revision(&epoch), revision(&checked()));
    }

    /// Only the epoch restarts an etcd without backups: its revisions must be above those of the former
    /// residency.
    #[test]
    fn an_etcd_without_backups_is_restarted_for_a_new_epoch_and_not_for_an_upgrade_of_the_suite() {
        let events = |epoch: &str, image: &str| {
            let mut etcd = etcd(MAIN);
            etcd.spec.backup = serde_json::from_value(json!({"image": image})).unwrap();
            etcd.metadata.annotations =
                Some([(crate::names::OWNERSHIP_EPOCH.to_owned(), epoch.to_owned())].into());
            revision(&etcd)
        };
        let second = events("2", "restore:1");
        assert!(!differ(&second, events("2", "restore:2")));
        assert!(differ(&second, events("3", "restore:1")));
        assert!(differ(&second, revision(&etcd(MAIN))));
        // Before the command existed.
        let mut earlier = events("2", "restore:1");
        let spec = earlier.pointer_mut("/spec/template/spec").unwrap();
        spec.as_object_mut().unwrap().remove("initContainers");
        assert!(!differ(&earlier, second));
        assert!(differ(&earlier, revision(&etcd(MAIN))));
    }

    #[test]
    fn an_upgrade_of_the_suite_restarts_no_etcd_for_what_counts_at_the_next_start() {
        let requests = json!(etcd::default_resources());
        let old = essence(data(&json!({}), &json!(["initialize", "--name=a"]), "etcd:1"));
        let flags = json!([
            "initialize",
            "--name=a",
            "--require-snapshot",
            "--embedded-etcd-quota-bytes=1"
        ]);
        assert_eq!(essence(data(&requests, &flags, "etcd:1")), old);
        assert_ne!(essence(data(&requests, &flags, "etcd:2")), old);
        assert_ne!(
            essence(data(&json!({"requests": {"cpu": "2"}}), &flags, "etcd:1")),
            old
        );
        let epoch = json!(["initialize", "--name=a", "--ownership-epoch=2"]);
        assert_ne!(essence(data(&requests, &epoch, "etcd:1")), old);
    }
}
