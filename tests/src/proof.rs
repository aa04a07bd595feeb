//! Proofs of the state that a move must keep (data, identities, carried secrets, I7), and of no leftovers
//! (I6).

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use api::{extensions, gardencore::BackupEntry};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{
    api::{
        authentication::v1::{SelfSubjectReview, TokenRequest, TokenRequestSpec},
        core::v1::{ConfigMap, Event, Namespace, PersistentVolume, Secret, Service, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
    config::{AuthInfo, Kubeconfig},
    runtime::wait::conditions,
};
use serde_json::{Value, json};
use testkit::WaitBound;

use crate::{shoot::UserShoot, watched};

/// Label of the objects of [`write_data`].
const MADE: &str = "repot.test/made=before-the-move";
/// So many creations at once: quick, and far from the API's limits.
const AT_ONCE: usize = 20;

fn widgets(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("repot.test", "v1", "Widget");
    Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&kind, "widgets"),
    )
}

/// Writes `count` ConfigMaps and a CRD with ten objects through the shoot's API.
pub async fn write_data(client: &Client, count: usize) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.repot.test"},
        "spec": {"group": "repot.test", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]},
    }))?;
    crds.patch(
        &crd.name_any(),
        &PatchParams::apply("repot-test"),
        &Patch::Apply(&with_type(
            &crd,
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
        )?),
    )
    .await?;
    let established = conditions::is_crd_established();
    watched::until(&crds, "widgets.repot.test", Duration::from_secs(30), established)
        .await
        .context("the CRD is not served")?;
    let labels = json!({"repot.test/made": "before-the-move"});
    for number in 0..10 {
        let widget = json!({"apiVersion": "repot.test/v1", "kind": "Widget", "spec": {"size": number},
            "metadata": {"name": format!("widget-{number}"), "labels": labels}});
        widgets(client)
            .patch(
                &format!("widget-{number}"),
                &PatchParams::apply("repot-test"),
                &Patch::Apply(&widget),
            )
            .await?;
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    stream::iter(0..count)
        .map(|number| {
            let (maps, labels) = (maps.clone(), labels.clone());
            async move {
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"number": number.to_string()},
                    "metadata": {"name": format!("kept-{number}"), "labels": labels}});
                maps.patch(&format!("kept-{number}"), &PatchParams::apply("repot-test"), &Patch::Apply(&map)).await
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    Ok(())
}

/// Checks that the shoot acknowledges and stores Events.
pub async fn stores_events(client: &Client) -> Result<()> {
    let api: Api<Event> = Api::default_namespaced(client.clone());
    let event = serde_json::from_value(json!({
        "metadata": {"generateName": "stored-"}, "reason": "Stored", "type": "Normal",
        "involvedObject": {"namespace": client.default_namespace()},
    }))?;
    let made = api.create(&PostParams::default(), &event).await;
    let made = made.context("an Event is not acknowledged")?;
    api.get(&made.name_any()).await.context("an Event is lost")?;
    Ok(())
}

fn with_type<T: serde::Serialize>(object: &T, version: &str, kind: &str) -> Result<Value> {
    let mut value = serde_json::to_value(object)?;
    value["apiVersion"] = json!(version);
    value["kind"] = json!(kind);
    Ok(value)
}

/// The state that must be equal after a move.
#[derive(Clone, Debug, PartialEq)]
pub struct PreservedState {
    /// Every object that was made: name to uid, resourceVersion and content.
    pub objects: BTreeMap<String, (Option<String>, Option<String>, String)>,
    /// The certificate authority that the user's kubeconfig trusts.
    pub ca: String,
    /// The carried secrets in the seed, byte for byte: type, immutable flag, data.
    pub secrets: BTreeMap<String, Value>,
}

/// Reads the state that must be preserved, from the shoot through its own name and from the hosting seed.
pub async fn read(shoot: &UserShoot, seed: &Client) -> Result<PreservedState> {
    let client = shoot.client().await?;
    let selected = ListParams::default().labels(MADE);
    let mut objects = BTreeMap::new();
    for map in Api::<ConfigMap>::default_namespaced(client.clone())
        .list(&selected)
        .await?
    {
        let content = serde_json::to_string(&map.data)?;
        objects.insert(
            format!("ConfigMap/{}", map.name_any()),
            (map.uid(), map.resource_version(), content),
        );
    }
    for widget in widgets(&client).list(&selected).await? {
        let content = widget.data["spec"].to_string();
        objects.insert(
            format!("Widget/{}", widget.name_any()),
            (widget.uid(), widget.resource_version(), content),
        );
    }
    let kubeconfig = shoot.kubeconfig().await?;
    let ca = kubeconfig
        .clusters
        .first()
        .and_then(|named| named.cluster.as_ref()?.certificate_authority_data.clone());
    let namespace = technical_id(shoot).await?;
    let secrets = Api::<Secret>::namespaced(seed.clone(), &namespace)
        .list(&ListParams::default().labels("persist=true"))
        .await?;
    let secrets = secrets
        .into_iter()
        .map(|secret| {
            let content = json!({"type": secret.type_, "immutable": secret.immutable, "data": secret.data});
            (secret.name_any(), content)
        })
        .collect();
    Ok(PreservedState {
        objects,
        ca: ca.context("the kubeconfig has no certificate authority")?,
        secrets,
    })
}

impl PreservedState {
    /// The differences; empty without a difference.
    #[must_use]
    pub fn differences(&self, after: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.ca != after.ca {
            found.push("the cluster's certificate authority is another one".to_owned());
        }
        compare("object", &self.objects, &after.objects, &mut found);
        compare("carried secret", &self.secrets, &after.secrets, &mut found);
        found
    }
}

fn compare<T: PartialEq>(
    what: &str,
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    found: &mut Vec<String>,
) {
    for (name, value) in before {
        match after.get(name) {
            None => found.push(format!("{what} {name} is missing")),
            Some(other) if other != value => found.push(format!("{what} {name} has changed")),
            Some(_) => {}
        }
    }
    found.extend(
        after
            .keys()
            .filter(|name| !before.contains_key(*name))
            .map(|name| format!("{what} {name} is new")),
    );
}

/// The namespace of the shoot's control plane in the seed.
pub async fn technical_id(shoot: &UserShoot) -> Result<String> {
    let id = shoot
        .get()
        .await?
        .status
        .map(|status| status.technical_id)
        .unwrap_or_default();
    ensure!(!id.is_empty(), "the Shoot has no technicalID yet");
    Ok(id)
}

/// A token of a service account of the shoot, for use after the move.
pub async fn service_account_token(client: &Client) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while accounts.get_opt("default").await?.is_none() {
        ensure!(
            tokio::time::Instant::now() < end,
            "the shoot has no service account 'default': does its kube-controller-manager run?"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: Vec::new(),
            expiration_seconds: Some(3600),
            ..Default::default()
        },
        ..Default::default()
    };
    let answer = accounts
        .create_token_request("default", &PostParams::default(), &request)
        .await?;
    Ok(answer.status.context("the token request has no answer")?.token)
}

/// The user that the API derives from the token.
pub async fn whoami(shoot: &UserShoot, token: &str) -> Result<String> {
    let mut kubeconfig: Kubeconfig = shoot.kubeconfig().await?;
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(AuthInfo {
            token: Some(token.to_owned().into()),
            ..AuthInfo::default()
        });
    }
    let reviews: Api<SelfSubjectReview> = Api::all(shoot.client_with(kubeconfig).await?);
    let review = reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await?;
    Ok(review
        .status
        .and_then(|status| status.user_info?.username)
        .unwrap_or_default())
}

/// The leftovers of a shoot in a former seed (I6); empty without leftovers.
pub async fn left_behind(seed: &Client, technical_id: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if Api::<Namespace>::all(seed.clone())
        .get_opt(technical_id)
        .await?
        .is_some()
    {
        found.push(format!("Namespace {technical_id}"));
    }
    if Api::<extensions::Cluster>::all(seed.clone())
        .get_opt(technical_id)
        .await?
        .is_some()
    {
        found.push(format!("Cluster {technical_id}"));
    }
    for entry in Api::<extensions::BackupEntry>::all(seed.clone())
        .list(&ListParams::default())
        .await?
    {
        if entry.name_any().contains(&format!("{technical_id}--")) {
            found.push(format!("BackupEntry {}", entry.name_any()));
        }
    }
    for secret in Api::<Secret>::namespaced(seed.clone(), "garden")
        .list(&ListParams::default())
        .await?
    {
        if secret.name_any().contains(technical_id) {
            found.push(format!("Secret garden/{}", secret.name_any()));
        }
    }
    for service in Api::<Service>::namespaced(seed.clone(), "garden-exposure")
        .list(&ListParams::default())
        .await?
    {
        if service
            .spec
            .and_then(|spec| spec.external_name)
            .is_some_and(|name| name.contains(technical_id))
        {
            found.push("an ExternalName Service in garden-exposure".to_owned());
        }
    }
    for volume in Api::<PersistentVolume>::all(seed.clone())
        .list(&ListParams::default())
        .await?
    {
        let claim = volume
            .spec
            .and_then(|spec| spec.claim_ref)
            .and_then(|claim| claim.namespace);
        if claim.as_deref() == Some(technical_id) {
            found.push("a PersistentVolume".to_owned());
        }
    }
    Ok(found)
}

/// The leftovers of a completed move in the garden: the source BackupEntry. The objects of the ShootState
/// stay there (R7-42).
pub async fn left_in_garden(shoot: &UserShoot, garden: &Client) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in Api::<BackupEntry>::namespaced(garden.clone(), &shoot.namespace)
        .list(&ListParams::default())
        .await?
    {
        if entry.name_any().starts_with("source-") {
            found.push(format!("BackupEntry {}", entry.name_any()));
        }
    }
    Ok(found)
}

/// Repeats `look` until no finding is left, for `within` at most; returns the remaining findings. For objects
/// that are deleted in the background (volumes, garbage collection).
///
/// # Errors
/// The error of the last call. A cluster that was away closes connections for a while.
#[track_caller]
pub fn until_nothing<F>(
    within: Duration,
    mut look: impl FnMut() -> F,
) -> impl Future<Output = Result<Vec<String>>>
where
    F: Future<Output = Result<Vec<String>>>,
{
    let bound = WaitBound::new("no finding is left", within);
    async move {
        let begun = tokio::time::Instant::now();
        loop {
            let found = look().await;
            if found.as_ref().is_ok_and(Vec::is_empty) {
                bound.report(begun.elapsed());
                return found;
            }
            if begun.elapsed() >= within {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}
