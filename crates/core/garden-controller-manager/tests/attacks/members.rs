//! No user can read the keys of a shoot: neither in their storage for the next seed, nor in another project.
//! An operator grants the rights of a project member; the widest usual grant is Kubernetes' own role `admin`
//! in the project's namespace.

use api::gardencore::{InternalSecret, InternalSecretFields, ShootState, ShootStateSpec};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

use crate::garden::{self, Garden, NAMESPACE, Object, allowed, refused};

/// A namespace of another project.
const OTHERS: &str = "garden-others";

pub async fn a_member_of_a_project_gets_at_no_key(garden: &Garden) {
    let member = garden.member(NAMESPACE).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}});
    garden.bring(&namespace).await.unwrap();
    garden.state("kept").await;

    let mut key = Secret::default();
    key.metadata.name = Some("key".into());
    let own: Api<Secret> = Api::namespaced(member.clone(), NAMESPACE);
    // The member has a role at all.
    garden::until_allowed(|| garden::try_create(&own, key.clone())).await;
    allowed(own.create(&PostParams::default(), &key).await.map(drop));
    let theirs: Api<Secret> = garden.admin(OTHERS);
    theirs.create(&PostParams::default(), &key).await.unwrap();

    is_kept_out(garden, &member, OTHERS, key).await;
    is_kept_out(
        garden,
        &member,
        "garden",
        named::<Secret>("key", Secret::default()),
    )
    .await;
    for namespace in [NAMESPACE, OTHERS] {
        let state = ShootState::new("kept", ShootStateSpec::default());
        is_kept_out(garden, &member, namespace, state).await;
        let chunk = InternalSecret::new("kept", InternalSecretFields::default());
        is_kept_out(garden, &member, namespace, chunk).await;
    }
}

fn named<K: Resource>(name: &str, mut object: K) -> K {
    object.meta_mut().name = Some(name.to_owned());
    object
}

/// From reading and from writing.
async fn is_kept_out<K>(garden: &Garden, member: &Client, namespace: &str, object: K)
where
    K: Object + serde::Serialize + Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let (api, name): (Api<K>, _) = (Api::namespaced(member.clone(), namespace), object.name_any());
    refused(api.get(&name).await.map(drop), "cannot get resource");
    refused(
        api.list(&ListParams::default()).await.map(drop),
        "cannot list resource",
    );
    let created = api.create(&PostParams::default(), &object).await;
    refused(created.map(drop), "cannot create resource");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    refused(garden.patch(&api, &name, label).await, "cannot patch resource");
    let deleted = api.delete(&name, &DeleteParams::default()).await;
    refused(deleted.map(drop), "cannot delete resource");
}

/// No chart grants such a right: the charts bind roles to processes only.
#[test]
fn the_charts_give_users_no_rights() {
    for (file, document) in garden::rights_of_charts() {
        let labels = &document["metadata"]["labels"];
        let widens = labels
            .as_object()
            .is_some_and(|labels| labels.keys().any(|label| label.contains("aggregate-to-")));
        assert!(
            !widens && document["aggregationRule"].is_null(),
            "{file}: a role of every member would become wider"
        );
        for subject in document["subjects"].as_array().into_iter().flatten() {
            let is_a_process =
                subject["kind"] == "ServiceAccount" || subject["name"] == "gardener.cloud:system:seeds";
            assert!(is_a_process, "{file}: {subject} is given rights");
        }
    }
}
