//! Collects the pieces of a ShootState from the objects in a shoot's namespace, in sequence.
//! [`super::carried`] defines the valid content, for collection and restore.

use std::{collections::BTreeMap, fmt::Debug};

use api::{
    constants,
    extensions::{Worker, WorkerStatus},
    gardencore::{ExtensionResourceState, GardenerResourceData},
    machine::{Machine, MachineClass, MachineDeployment, MachineSet, labels, state},
    meta::{CrossVersionObjectReference, NamedResourceReference, RawExtension, ResourceData},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams, ObjectList},
};
use runtime::{
    Error, Result,
    client::{Cluster, Seed, apply::Object},
    error::Explain,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    carried::{is_created_by_seed, is_reserved},
    content::content,
    entries,
    overlay::Overlay,
    piece::{Key, Piece, version},
    unfit::{self, Unfit},
    writer::Unwritten,
};
use crate::{Kinds, Residency};

/// Page size of lists. An object has at most 1.5 MiB (R7-28), so the page size bounds the memory.
const PAGE: u32 = 8;

/// Adds the state of the shoot's namespace, in the order of pieces. Without `into`, only checks the state.
pub(super) async fn collect(
    residency: &Residency,
    mut into: Option<&mut Overlay>,
    unfit: &mut Unfit,
) -> Result<(), Unwritten> {
    let machines = machines(residency).await?;
    let machines_are_carried = machines.is_some();
    if let Some(machines) = machines {
        add_piece(&mut into, Piece::Gardener(machines)).await?;
    }
    let secrets: Api<Secret> = residency.seed.namespaced(&residency.namespace);
    let carried = ListParams::default().labels(&format!("{}=true", constants::PERSIST));
    let mut pages = Pages::new(&secrets, carried);
    while let Some(page) = pages.next().await? {
        for secret in page.iter().filter(|secret| !is_reserved(&secret.name_any())) {
            if let Some(why) = unfit::why_not_secret(secret) {
                unfit.leave_out(&unfit::describe_secret(secret), &why)?;
                continue;
            }
            add_piece(&mut into, Piece::Gardener(entries::to_entry(secret)?)).await?;
        }
    }
    let mut references = BTreeMap::new();
    for kind in residency.extension_kinds(Kinds::All).await? {
        let api = residency.any_api(&kind);
        let mut pages = Pages::new(&api, ListParams::default());
        while let Some(page) = pages.next().await? {
            for object in page {
                let holder = describe(&kind.kind, &object);
                if let Some(why) = unfit::why_not_kind(&kind.kind) {
                    let status = &object.data["status"];
                    if !status["state"].is_null() || !status["resources"].is_null() {
                        unfit.leave_out(&format!("the state of {holder}"), why)?;
                    }
                    continue;
                }
                let found = state_of(&kind.kind, &object, machines_are_carried)?;
                let Some(found) = found else { continue };
                let found = fit_references(residency, found, &holder, unfit).await?;
                for reference in &found.resources {
                    let target = reference.resource_ref.clone();
                    if is_created_by_seed(&target) {
                        continue;
                    }
                    references.insert(Key::resource(&target), (holder.clone(), target));
                }
                add_piece(&mut into, Piece::Extension(found)).await?;
            }
        }
    }
    if into.is_none() {
        return Ok(());
    }
    for (holder, target) in references.into_values() {
        let resource = referenced(&residency.seed, &residency.namespace, &holder, target).await?;
        add_piece(&mut into, Piece::Resource(resource)).await?;
    }
    Ok(())
}

async fn add_piece(into: &mut Option<&mut Overlay>, piece: Piece) -> Result<(), Unwritten> {
    match into {
        Some(into) => into.add_piece(piece).await,
        None => Ok(()),
    }
}

/// The state without references to objects that are unfit to be carried.
async fn fit_references(
    residency: &Residency,
    mut found: ExtensionResourceState,
    holder: &str,
    unfit: &mut Unfit,
) -> Result<ExtensionResourceState> {
    let mut fit = Vec::new();
    for reference in std::mem::take(&mut found.resources) {
        let target = &reference.resource_ref;
        if !is_created_by_seed(target)
            && let Some(why) = unfit::why_not_reference(&residency.seed, &residency.namespace, target).await?
        {
            let what = format!("{} {}, to which {holder} refers,", target.kind, target.name);
            unfit.leave_out(&what, &why)?;
            continue;
        }
        fit.push(reference);
    }
    found.resources = fit;
    Ok(found)
}

/// The objects of a kind, in pages, in the order of their names.
struct Pages<'a, K> {
    api: &'a Api<K>,
    next: Option<ListParams>,
}

impl<'a, K: Resource + Clone + DeserializeOwned + Debug> Pages<'a, K> {
    fn new(api: &'a Api<K>, params: ListParams) -> Self {
        let next = Some(params.limit(PAGE));
        Self { api, next }
    }

    async fn next(&mut self) -> Result<Option<Vec<K>>> {
        let Some(params) = self.next.take() else {
            return Ok(None);
        };
        let page: ObjectList<K> = self
            .api
            .list(&params)
            .await
            .context(format_args!("could not list {}", self.api.resource_url()))?;
        let token = page.metadata.continue_.filter(|token| !token.is_empty());
        self.next = token.map(|token| params.continue_token(&token));
        Ok(Some(page.items))
    }
}

/// The entry for the shoot's machines, if the shoot has machines or could have machines (R7-12). An empty
/// entry is carried, too: without an entry, the machines may have been lost. A Worker with a state in the
/// status needs no entry, because the state holds all data of the provider.
async fn machines(residency: &Residency) -> Result<Option<GardenerResourceData>> {
    let deployments = all_of::<MachineDeployment>(residency).await?;
    let sets = all_of::<MachineSet>(residency).await?;
    let machines = all_of::<Machine>(residency).await?;
    let workers = all_of::<Worker>(residency).await?;
    if deployments.is_empty() && sets.is_empty() && machines.is_empty() {
        let is_silent = |worker: &Worker| !worker.status.as_ref().is_some_and(has_state);
        if !workers.iter().any(is_silent) {
            return Ok(None);
        }
    }
    let classes = all_of::<MachineClass>(residency).await?;
    let mut collected = state::collect(&deployments, &sets, &machines, &classes);
    collected.sizes_before_isolation = workers
        .iter()
        .find_map(|worker| worker.annotations().get(labels::SIZES_BEFORE_ISOLATION).cloned());
    let data = state::encode(&collected)
        .map_err(|error| Error::bug("the machine state does not encode").caused_by(error))?;
    Ok(Some(GardenerResourceData {
        name: state::ENTRY.to_owned(),
        type_: state::ENTRY.to_owned(),
        data,
        labels: BTreeMap::new(),
    }))
}

fn has_state(status: &WorkerStatus) -> bool {
    let state = status.default.state.as_ref();
    state.is_some_and(|state| !state.0.is_null())
}

async fn all_of<K>(residency: &Residency) -> Result<Vec<K>>
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let api: Api<K> = residency.seed.namespaced(&residency.namespace);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error).context(format_args!("could not list objects of kind {}", K::kind(&()))),
    }
}

/// An extension object's state, if the object has a state. State and references are opaque (R7-24). The
/// machine state that a restore wrote into a Worker is not carried twice (gardener#12579, #12821).
fn state_of(
    kind: &str,
    object: &DynamicObject,
    machines_are_carried: bool,
) -> Result<Option<ExtensionResourceState>> {
    let status = &object.data["status"];
    let resources = references(kind, object)?;
    let is_about_machines = kind == "Worker" && machines_are_carried;
    let state = Some(&status["state"])
        .filter(|state| !state.is_null() && !is_about_machines)
        .cloned()
        .map(RawExtension::from);
    if state.is_none() && resources.is_empty() {
        return Ok(None);
    }
    Ok(Some(ExtensionResourceState {
        kind: kind.to_owned(),
        name: object.metadata.name.clone(),
        purpose: object.data["spec"]["purpose"].as_str().map(str::to_owned),
        state,
        resources,
    }))
}

fn references(kind: &str, object: &DynamicObject) -> Result<Vec<NamedResourceReference>> {
    let resources: &Value = &object.data["status"]["resources"];
    if resources.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(resources.clone()).map_err(|error| {
        Error::bug(format!(
            "status.resources of {} does not decode",
            describe(kind, object)
        ))
        .caused_by(error)
    })
}

fn describe(kind: &str, object: &DynamicObject) -> String {
    format!("{kind} {}", object.name_any())
}

/// Reads an object that an extension object refers to (RX-33). A missing object is an error: the destination
/// could not restore without the object.
async fn referenced(
    seed: &Seed,
    namespace: &str,
    holder: &str,
    target: CrossVersionObjectReference,
) -> Result<ResourceData> {
    let data = match (version(target.api_version.as_deref()), target.kind.as_str()) {
        ("v1", "Secret") => read::<Secret>(seed, namespace, &target.name).await?,
        ("v1", "ConfigMap") => read::<ConfigMap>(seed, namespace, &target.name).await?,
        (version, other) => {
            return Err(Error::bug(format!(
                "{holder} refers to a {version} {other}; only Secrets and ConfigMaps can be carried to another seed"
            )));
        }
    };
    let data = data.ok_or_else(|| {
        Error::transient(format!(
            "{holder} refers to {} {} which does not exist; its controller must create it again or drop the reference",
            target.kind, target.name
        ))
    })?;
    Ok(ResourceData {
        api_version: target.api_version,
        kind: target.kind,
        name: target.name,
        data,
    })
}

async fn read<K>(seed: &Seed, namespace: &str, name: &str) -> Result<Option<RawExtension>>
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let found = seed.namespaced::<K>(namespace).get_opt(name).await?;
    found.map(content).transpose()
}
