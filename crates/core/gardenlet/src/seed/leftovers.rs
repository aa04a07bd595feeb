//! Control planes in this seed of Shoots that run in a different seed and do not name this seed in
//! `status.formerSeeds`, for example after a deletion of the Seed. No process cleans up such a namespace. The
//! own Seed names these namespaces in an annotation, so that the preflight refuses a move back to this seed.

use std::collections::BTreeSet;

use api::{
    constants::{LEFTOVER_NAMESPACES, ROLE, SHOOT_NAME, SHOOT_NAMESPACE, SHOOT_UID},
    gardencore::{Seed, Shoot},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ListParams, core::PartialObjectMeta};
use parts::prepared_in;
use placement::{Role, names, role};
use runtime::{Result, client::Cluster, error::Explain as _};

use crate::{Context, MANAGER};

/// Writes the annotation of the own Seed, unless the annotation has this value already.
pub(super) async fn record(context: &Context, seed: &Seed) -> Result<()> {
    let list = find_leftovers(context).await?.join(",");
    let wanted = Some(list).filter(|list| !list.is_empty());
    if seed.annotations().get(LEFTOVER_NAMESPACES) == wanted.as_ref() {
        return Ok(());
    }
    let seeds: Api<Seed> = context.garden.cluster_wide();
    MANAGER
        .annotate(&seeds, &context.seed_name, LEFTOVER_NAMESPACES, wanted.as_deref())
        .await
        .map(|_| ())
}

/// A namespace that the seed has prepared for a shoot of a different seed. Without the Seed no process would
/// remove the namespace.
pub(super) async fn first_prepared(context: &Context) -> Result<Option<String>> {
    let namespaces: Api<Namespace> = context.seed.cluster_wide();
    let of_shoots = ListParams::default().labels(&format!("{ROLE}=shoot"));
    let found = namespaces.list_metadata(&of_shoots).await;
    let mut found = found.context("could not list namespaces")?.items.into_iter();
    let prepared = found.find(|namespace| prepared_in(namespace).is_some());
    Ok(prepared.map(|namespace| namespace.name_any()))
}

async fn find_leftovers(context: &Context) -> Result<Vec<String>> {
    let all: Api<PartialObjectMeta<Shoot>> = context.garden.all();
    let here = ListParams::default().fields(&format!("status.seedName={}", context.seed_name));
    let hosted = all.list(&here).await.context("could not list Shoots")?;
    let hosted: BTreeSet<(String, String)> = hosted
        .items
        .iter()
        .map(|shoot| (shoot.namespace().unwrap_or_default(), shoot.name_any()))
        .collect();
    let namespaces: Api<Namespace> = context.seed.cluster_wide();
    let of_shoots = ListParams::default().labels(&format!("{ROLE}=shoot"));
    let found = namespaces.list_metadata(&of_shoots).await;
    let mut left = Vec::new();
    for namespace in found.context("could not list namespaces")?.items {
        let labels = namespace.labels();
        let (project, name) = (labels.get(SHOOT_NAMESPACE), labels.get(SHOOT_NAME));
        let uid = namespace.annotations().get(SHOOT_UID);
        let (Some(project), Some(name), Some(uid)) = (project, name, uid) else {
            continue;
        };
        // No control plane, and removed with the grant.
        if prepared_in(&namespace).is_some() {
            continue;
        }
        // Most namespaces belong to Shoots of this seed, which need no further read.
        if hosted.contains(&(project.clone(), name.clone())) {
            continue;
        }
        let shoots: Api<Shoot> = context.garden.namespaced(project);
        let shoot = shoots.get_opt(name).await;
        let shoot = shoot.context(format_args!("could not read Shoot {project}/{name}"))?;
        if shoot.is_none_or(|shoot| !is_leftover(&shoot, &context.seed_name, uid)) {
            continue;
        }
        // The entry in `status.formerSeeds` ends right after the namespace.
        let present = namespaces.get_opt(&namespace.name_any()).await;
        let present = present.context("could not read the namespace")?;
        if present.is_some_and(|present| present.metadata.deletion_timestamp.is_none()) {
            left.push(namespace.name_any());
        }
    }
    left.sort();
    Ok(left)
}

/// Whether no process cleans up the namespace with this uid in the seed, although the Shoot exists.
pub(crate) fn is_leftover(shoot: &Shoot, seed: &str, uid: &str) -> bool {
    names::uid(shoot) == uid && matches!(role(shoot, seed), Role::Nobody | Role::Incoming)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_left_over_where_the_status_does_not_name_the_seed() {
        let shoot = |wanted: &str, host: &str, former: &str| -> Shoot {
            serde_json::from_value(json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
                "spec": {"seedName": wanted, "provider": {"type": "local"}, "region": "local",
                    "kubernetes": {"version": "1.34.4"}},
                "status": {"seedName": host, "uid": "u", "formerSeeds": [{"name": former, "epoch": 1}]},
            }))
            .unwrap()
        };
        for (wanted, host, former, expected) in [
            ("b", "b", "c", true),
            // A move back is wanted.
            ("a", "b", "c", true),
            // The seed hosts the shoot, or cleans up.
            ("a", "a", "c", false),
            ("b", "a", "c", false),
            ("b", "b", "a", false),
            ("a", "b", "a", false),
        ] {
            let found = is_leftover(&shoot(wanted, host, former), "a", "u");
            assert_eq!(found, expected, "{wanted} {host} {former}");
        }
        assert!(!is_leftover(&shoot("b", "b", "c"), "a", "v"), "a different shoot");
    }
}
