//! Extensions of a shoot, with a provider that follows the contract, on a real API server. Each extension is
//! handled at the extension's lifecycle time and is restored from the state written in migrate. Unwanted
//! extensions are removed, and faults are reported.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Result;
use api::{
    extensions::{self, ExtensionClass},
    gardencore::{
        ExtensionResourceState,
        LifecycleStrategy::{AfterKubeAPIServer, BeforeKubeAPIServer},
        ShootStateSpec,
    },
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use extension::{
    Actuator, Context, Outcome, OwnerChecks, controller,
    reconciler::{Provider, namespaced},
};
use kube::{ResourceExt, api::ListParams};
use parts::{
    AllExtensions, Cluster, Destroy, Facts, FurtherExtensions, Namespace, Operation, Settings, ShootState,
    Wait,
};
use parts_fixture::{NAMESPACE, PROJECT, World};
use runtime::{
    Error,
    client::{Permit, Seed, apply::FieldManager},
    controller::{Events, runner},
    process::Process,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const CORE: &str = "core.gardener.cloud/v1beta1";
/// More than a provider on a busy machine takes.
const LONG: Duration = Duration::from_secs(120);
/// Timeout for an extension that never answers.
const SHORT: Duration = Duration::from_secs(2);

/// The outside things of the provider: by type, the number of creations.
type Outside = Arc<Mutex<BTreeMap<String, u32>>>;

#[derive(Clone, Default)]
struct Guest {
    outside: Outside,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Configuration {
    greeting: String,
}

#[async_trait]
impl Actuator<extensions::Extension> for Guest {
    const NAME: &'static str = "guest";

    async fn reconcile(&self, context: &Context<extensions::Extension>) -> runtime::Result<Outcome> {
        let greeting = context.provider_config::<Configuration>()?.greeting;
        if context.state::<Value>()?.is_none() {
            let mut outside = self.outside.lock().unwrap();
            *outside.entry(context.name()).or_default() += 1;
        }
        Ok(state(json!({"greeting": greeting})))
    }

    async fn restore(&self, context: &Context<extensions::Extension>) -> runtime::Result<Outcome> {
        let carried = context.state::<Value>()?;
        let carried = carried.ok_or_else(|| Error::bug("restored without its state"))?;
        Ok(state(json!({"restored": carried})))
    }

    async fn migrate(&self, context: &Context<extensions::Extension>) -> runtime::Result<Outcome> {
        Ok(state(json!({"left": context.state::<Value>()?})))
    }

    async fn delete(&self, context: &Context<extensions::Extension>) -> runtime::Result<()> {
        self.outside.lock().unwrap().remove(&context.name());
        Ok(())
    }
}

fn state(value: Value) -> Outcome {
    Outcome {
        state: Some(RawExtension::from(value)),
        ..Outcome::none()
    }
}

/// Runs a provider for objects of this type.
fn serve(world: &World, running: &mut JoinSet<()>, type_: &'static str, guest: &Guest) {
    let permit = Permit::sole("a test");
    let provider = Provider {
        seed: Seed::new(world.client(), &permit),
        manager: FieldManager("guest"),
        type_,
        classes: &[ExtensionClass::Shoot],
        owners: OwnerChecks::default(),
    };
    let process = Process::new("guest");
    let settings = runner::Settings {
        concurrency: 2,
        shutdown: process.shutdown.clone(),
        permit,
        metrics: process.metrics.clone(),
        events: Events::new(world.client(), "guest"),
    };
    let guest = guest.clone();
    running.spawn(async move {
        let _process = process;
        controller::run(provider, namespaced, guest, settings).await;
    });
}

/// The Shoot with these extensions, at the begin of a flow.
async fn begin(world: &World, operation: Operation, named: &Value) -> Result<Facts> {
    Box::pin(begin_with(world, operation, named, LONG)).await
}

async fn begin_with(world: &World, operation: Operation, named: &Value, timeout: Duration) -> Result<Facts> {
    let shoot = json!({"spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
        "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}, "extensions": named}});
    world.apply(CORE, "Shoot", Some(PROJECT), "web", shoot).await?;
    let mut settings = Settings::default();
    settings.timeouts.extension = Wait {
        severe: timeout / 2,
        timeout,
    };
    let facts = world.facts(operation, settings).await?;
    if operation.deploys() {
        Namespace::deploy(&facts).await?;
    }
    Cluster::sync(&facts).await?;
    Ok(facts)
}

async fn there(world: &World) -> Result<Vec<String>> {
    let api = world.any("extensions.gardener.cloud/v1alpha1", "Extension", Some(NAMESPACE));
    let all = api.list(&ListParams::default()).await?;
    Ok(all.items.iter().map(ResourceExt::name_any).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_has_its_time_and_takes_its_state_along() -> Result<()> {
    let world = Box::pin(World::start("further")).await?;
    let extension = |type_: &str, more: Value| {
        let mut resource = json!({"kind": "Extension", "type": type_, "workerlessSupported": true});
        resource
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        resource
    };
    let early = extension(
        "early",
        json!({"lifecycle": {"reconcile": "BeforeKubeAPIServer"}}),
    );
    let late = extension(
        "late",
        json!({"autoEnable": ["shoot"],
        "lifecycle": {"migrate": "AfterKubeAPIServer", "delete": "AfterKubeAPIServer"}}),
    );
    let refused = extension("refused", json!({"workerlessSupported": false}));
    let resources = json!({"spec": {"resources": [early, late, refused]}});
    world
        .apply(CORE, "ControllerRegistration", None, "guest", resources)
        .await?;
    let (guest, mut running) = (Guest::default(), JoinSet::new());
    for type_ in ["early", "late"] {
        serve(&world, &mut running, type_, &guest);
    }

    Box::pin(what_is_wrong_is_told(&world)).await?;
    let wanted = json!([{"type": "early", "providerConfig": {"greeting": "hello"}}]);
    let source = Box::pin(begin(&world, Operation::Reconcile, &wanted)).await?;
    each_comes_at_its_time(&world, &source).await?;
    Box::pin(nobody_answers_and_nobody_wants_it(&world, &wanted)).await?;
    Box::pin(state_is_carried(&world, &wanted)).await?;
    assert_eq!(
        *guest.outside.lock().unwrap(),
        BTreeMap::from([("early".into(), 1), ("late".into(), 1)]),
        "nothing outside was made anew by a move"
    );
    Box::pin(each_goes_at_its_time(&world, &guest)).await
}

/// An unsupported extension, and an invalid configuration.
async fn what_is_wrong_is_told(world: &World) -> Result<()> {
    let named = json!([{"type": "refused"}]);
    let error = Box::pin(begin(world, Operation::Reconcile, &named))
        .await
        .unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("\"refused\" in spec.extensions is not for shoots without workers"),
        "{error}"
    );
    // An existing extension is still migrated and deleted.
    Box::pin(begin(world, Operation::Delete, &named)).await?;

    let garbage = json!([{"type": "early", "providerConfig": {"greeting": 5}}]);
    let facts = Box::pin(begin(world, Operation::Reconcile, &garbage)).await?;
    FurtherExtensions::deploy_in(&facts, BeforeKubeAPIServer).await?;
    let error = FurtherExtensions::ready_in(&facts, BeforeKubeAPIServer)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("Extension early: ") && text.contains("spec.providerConfig"),
        "{text}"
    );
    let Error::Config { codes, .. } = error else {
        panic!("a user has to mend it: {text}");
    };
    assert_eq!(codes, [ErrorCode::ErrConfigurationProblem]);
    Ok(())
}

async fn each_comes_at_its_time(world: &World, facts: &Facts) -> Result<()> {
    FurtherExtensions::deploy_in(facts, BeforeKubeAPIServer).await?;
    FurtherExtensions::ready_in(facts, BeforeKubeAPIServer).await?;
    assert_eq!(there(world).await?, ["early"]);
    FurtherExtensions::deploy_in(facts, AfterKubeAPIServer).await?;
    FurtherExtensions::ready_in(facts, AfterKubeAPIServer).await?;
    assert_eq!(
        there(world).await?,
        ["early", "late"],
        "a registration enables it"
    );
    Ok(())
}

/// The wait for a silent extension ends with an error that names the extension. After the Shoot stops naming
/// the extension, exactly this extension is removed.
async fn nobody_answers_and_nobody_wants_it(world: &World, wanted: &Value) -> Result<()> {
    let mut more = wanted.clone();
    more.as_array_mut().unwrap().push(json!({"type": "silent"}));
    let facts = Box::pin(begin_with(world, Operation::Reconcile, &more, SHORT)).await?;
    FurtherExtensions::deploy_in(&facts, AfterKubeAPIServer).await?;
    let error = FurtherExtensions::ready_in(&facts, AfterKubeAPIServer)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("extensions/silent") && text.contains("its provider has not"),
        "{text}"
    );

    let facts = Box::pin(begin(world, Operation::Reconcile, wanted)).await?;
    FurtherExtensions::ready_in(&facts, AfterKubeAPIServer).await?;
    FurtherExtensions::delete_stale(&facts).await?;
    FurtherExtensions::stale_gone(&facts).await?;
    assert_eq!(there(world).await?, ["early", "late"]);
    Ok(())
}

/// Both extensions migrate, each at its lifecycle time; the state written then is the input of the restore
/// (RX-11, RX-31).
async fn state_is_carried(world: &World, wanted: &Value) -> Result<()> {
    let facts = Box::pin(begin(world, Operation::Migrate, wanted)).await?;
    world.make_shoot_state(ShootStateSpec::default()).await?;
    FurtherExtensions::migrate_in(&facts, BeforeKubeAPIServer).await?;
    FurtherExtensions::migrated_in(&facts, BeforeKubeAPIServer).await?;
    let late: extensions::Extension = world.read("late").await?;
    assert!(
        !late.annotations().contains_key("gardener.cloud/operation"),
        "it is not told yet"
    );
    FurtherExtensions::migrate_in(&facts, AfterKubeAPIServer).await?;
    FurtherExtensions::migrated_in(&facts, AfterKubeAPIServer).await?;
    ShootState::persist(&facts).await?;
    let carried = ShootState::whole(&facts).await?.unwrap().extensions;
    let state_of = |entry: &ExtensionResourceState| entry.state.as_ref().unwrap().0.clone();
    let states: Vec<_> = carried.iter().map(state_of).collect();
    let left = |greeting: &str| json!({"left": {"greeting": greeting}});
    assert_eq!(states, [left("hello"), left("")]);

    AllExtensions::destroy(&facts.residency).await?;
    AllExtensions::gone(&facts.residency).await?;
    Namespace::destroy(&facts.residency).await?;
    Namespace::gone(&facts.residency).await?;
    let facts = Box::pin(begin(world, Operation::Restore, wanted)).await?;
    for phase in [BeforeKubeAPIServer, AfterKubeAPIServer] {
        FurtherExtensions::deploy_in(&facts, phase).await?;
        FurtherExtensions::ready_in(&facts, phase).await?;
    }
    let early: extensions::Extension = world.read("early").await?;
    let state = early.status.unwrap().state.unwrap().0;
    assert_eq!(state, json!({"restored": left("hello")}));
    Ok(())
}

async fn each_goes_at_its_time(world: &World, guest: &Guest) -> Result<()> {
    let outside = || guest.outside.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    // The Shoot does not name the extension any more, but the object still exists: the object is deleted as
    // well.
    let facts = Box::pin(begin(world, Operation::Delete, &json!([]))).await?;
    FurtherExtensions::destroy_in(&facts, BeforeKubeAPIServer).await?;
    FurtherExtensions::gone_in(&facts, BeforeKubeAPIServer).await?;
    assert_eq!(
        (there(world).await?, outside()),
        (vec!["late".into()], vec!["late".into()])
    );
    FurtherExtensions::destroy_in(&facts, AfterKubeAPIServer).await?;
    FurtherExtensions::gone_in(&facts, AfterKubeAPIServer).await?;
    assert_eq!((there(world).await?.len(), outside().len()), (0, 0));
    Ok(())
}
