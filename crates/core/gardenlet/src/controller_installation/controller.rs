//! Watches the ControllerInstallations of this seed, and installs or removes the extensions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::{
    constants::{EXTENSION_HEARTBEAT, GARDEN_NAMESPACE, finalizer::CONTROLLER_INSTALLATION},
    gardencore::{ControllerDeployment, ControllerInstallation, ControllerRegistration, Seed as SeedObject},
    meta::{ErrorCode, ObjectReference},
    resources::ManagedResource,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, conditions as written, runner},
    error::Explain,
    workload::rollout::checksum,
};
use tokio::time::Instant;

use super::{
    chart,
    conditions::{self, ConditionReport},
    kinds, objects,
    release::Release,
    render::{self, Failure, Template},
    sign_of_life::{Sign, Watched},
    values,
};
use crate::{Context, MANAGER};

/// How often a chart is rendered without a change: for inputs without a watch, the labels and the version of
/// the Seed.
const RENDER_AGAIN: Duration = Duration::from_secs(600);
/// How often a deleted installation is checked for extension objects. Only a fallback: the objects are
/// watched.
const DELETION_REQUEUE: Duration = Duration::from_secs(30);

/// The last rendered input. A report about applied objects must not render the same input again.
#[derive(Clone)]
struct Rendered {
    of: String,
    checksum: String,
}

struct Installations {
    context: Arc<Context>,
    rendered: Mutex<HashMap<String, Rendered>>,
    signs: Watched,
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let (garden, seed) = (&context.garden, &context.seed);
    let installations: Api<ControllerInstallation> = garden.cluster_wide();
    let mine = watcher::Config::default().fields(&format!("spec.seedRef.name={}", context.seed_name));
    let controller = runner::controller(installations.clone(), mine, fingerprint);
    let stores = [controller.store(), controller.store(), controller.store()];
    let [of_registration, of_deployment, of_resource] = stores;
    let controller = controller
        .watches(
            garden.cluster_wide::<ControllerRegistration>(),
            watcher::Config::default(),
            move |changed| {
                let name = changed.name_any();
                concerned(&of_registration, |installation| {
                    registration_of(installation) == name
                })
            },
        )
        .watches(
            garden.cluster_wide::<ControllerDeployment>(),
            watcher::Config::default(),
            move |changed| {
                let name = changed.name_any();
                concerned(&of_deployment, |installation| {
                    deployment_of(installation) == Some(&name)
                })
            },
        )
        .watches(
            seed.namespaced::<ManagedResource>(GARDEN_NAMESPACE),
            watcher::Config::default(),
            move |changed| {
                let name = changed.name_any();
                concerned(&of_resource, |installation| {
                    Release::resource_name(registration_of(installation)) == name
                })
            },
        )
        .reconcile_all_on(kinds::come_and_go(seed));
    let settings = context.runner();
    let reconciler = Arc::new(Installations {
        context,
        rendered: Mutex::default(),
        signs: Watched::default(),
    });
    runner::run(controller, move |_| installations.clone(), reconciler, settings).await;
}

/// The specification only, because this controller itself writes the status.
fn fingerprint(installation: &ControllerInstallation) -> Option<u64> {
    let meta = &installation.metadata;
    runner::fingerprint((
        meta.uid.as_ref(),
        meta.generation,
        meta.deletion_timestamp.as_ref().map(|time| time.0),
    ))
}

fn concerned(
    all: &Store<ControllerInstallation>,
    holds: impl Fn(&ControllerInstallation) -> bool,
) -> Vec<ObjectRef<ControllerInstallation>> {
    let all = all.state();
    let concerned = all.iter().filter(|installation| holds(installation));
    concerned
        .map(|installation| ObjectRef::from_obj(installation.as_ref()))
        .collect()
}

fn registration_of(installation: &ControllerInstallation) -> &str {
    installation
        .spec
        .registration_ref
        .name
        .as_deref()
        .unwrap_or_default()
}

fn deployment_of(installation: &ControllerInstallation) -> Option<&String> {
    let reference: Option<&ObjectReference> = installation.spec.deployment_ref.as_ref();
    reference.and_then(|reference| reference.name.as_ref())
}

impl Reconciler<ControllerInstallation> for Installations {
    const NAME: &'static str = "controller-installation";
    const FINALIZER: Option<&'static str> = Some(CONTROLLER_INSTALLATION);

    fn is_responsible(&self, installation: &ControllerInstallation) -> bool {
        let seed = installation
            .spec
            .seed_ref
            .as_ref()
            .and_then(|seed| seed.name.as_ref());
        seed == Some(&self.context.seed_name)
    }

    async fn apply(&self, installation: Arc<ControllerInstallation>) -> Result<Next> {
        let name = registration_of(&installation).to_owned();
        self.look_whether_in_use(&installation).await?;
        let release = self.release(&name);
        let Some(deployment) = deployment_of(&installation) else {
            release.withdraw().await?;
            self.forget(&installation);
            self.tell(&installation, &conditions::by_other_means()).await?;
            return Ok(Next::Change);
        };
        let done = Box::pin(self.deploy(&installation, &release, deployment)).await;
        let resource = release.resource().await?;
        let checksum = self
            .last_rendered(&installation)
            .map(|rendered| rendered.checksum);
        let mut told = conditions::of_resource(resource.as_ref(), checksum.as_deref()).to_vec();
        let again = self.listen(&installation, &mut told).await?;
        match done {
            Ok(()) => told.push(conditions::valid()),
            Err(Failure::Chart(why)) => {
                told.push(conditions::invalid(&why));
                let events = &self.context.garden_events;
                events
                    .warning(installation.as_ref(), "ChartCannotBeRendered", &why)
                    .await;
            }
            Err(Failure::Here(error)) => {
                if error.is_failure() {
                    told.retain(|told| told.type_ != conditions::INSTALLED);
                    told.push(conditions::failed(&error.to_string()));
                }
                self.tell(&installation, &told).await?;
                return Err(error);
            }
        }
        self.tell(&installation, &told).await?;
        Ok(Next::After(RENDER_AGAIN.min(again.unwrap_or(RENDER_AGAIN))))
    }

    async fn cleanup(&self, installation: Arc<ControllerInstallation>) -> Result<Next> {
        let in_use = self.look_whether_in_use(&installation).await?;
        if let Some(first) = in_use.first() {
            let note = format!("it stays until nothing in the seed needs it: there is {first}");
            let events = &self.context.garden_events;
            events
                .warning(installation.as_ref(), "ControllerInstallationRequired", &note)
                .await;
            return Err(Error::not_ready(DELETION_REQUEUE, note));
        }
        self.release(registration_of(&installation)).remove().await?;
        self.forget(&installation);
        Ok(Next::Change)
    }
}

impl Installations {
    fn release<'a>(&'a self, registration: &'a str) -> Release<'a> {
        Release {
            seed: &self.context.seed,
            registration,
        }
    }

    /// The objects in the seed that need the extension, reported at once: while the objects are unknown, the
    /// extension is not removed.
    async fn look_whether_in_use(&self, installation: &ControllerInstallation) -> Result<Vec<String>> {
        let name = registration_of(installation);
        let api: Api<ControllerRegistration> = self.context.garden.cluster_wide();
        let read = api.get_opt(name).await;
        let read = read.context(format_args!("could not read ControllerRegistration {name}"))?;
        let Some(registration) = read else {
            let why = format!(
                "ControllerRegistration {name} is gone, so that nobody knows which objects of the seed need the installation: create it again"
            );
            self.tell(installation, &[conditions::unknown(&why)]).await?;
            return Err(Error::config(ErrorCode::ErrConfigurationProblem, why));
        };
        let in_use = kinds::in_use(&self.context.seed, &registration.spec.resources).await?;
        self.tell(installation, &[conditions::required(&in_use)]).await?;
        Ok(in_use)
    }

    /// Compares `Healthy` with the sign of life of an extension that renews a Lease, and returns the delay
    /// until the next check. While this process cannot decide, the earlier report stays.
    async fn listen(
        &self,
        installation: &ControllerInstallation,
        told: &mut Vec<ConditionReport>,
    ) -> Result<Option<Duration>> {
        let Ok(namespace) = chart::namespace_of(registration_of(installation)) else {
            return Ok(None);
        };
        let lease = format!("{namespace}/{EXTENSION_HEARTBEAT}");
        let leases: Api<Lease> = self.context.seed.namespaced(&namespace);
        let read = leases.get_opt(EXTENSION_HEARTBEAT).await;
        let read = read.context(format_args!("could not read Lease {lease}"))?;
        let Some(renewed) = read.and_then(|read| read.spec?.renew_time) else {
            self.signs.forget(&installation.name_any());
            return Ok(None);
        };
        let moment = (clock::now(), Instant::now());
        let sign = self.signs.sign(&installation.name_any(), renewed.0, moment);
        match sign {
            Sign::Lives(_) => {}
            Sign::Open(_) => told.retain(|told| told.type_ != conditions::HEALTHY),
            Sign::Gone(_) => conditions::without_sign_of_life(told, &lease, renewed.0),
        }
        Ok(Some(sign.again()))
    }

    /// Renders the chart and writes the objects, unless the input is unchanged and the objects are applied.
    async fn deploy(
        &self,
        installation: &ControllerInstallation,
        release: &Release<'_>,
        deployment: &str,
    ) -> Result<(), Failure> {
        let garden = &self.context.garden;
        let read = garden
            .cluster_wide::<ControllerDeployment>()
            .get_opt(deployment)
            .await;
        let read = read.context(format_args!("could not read ControllerDeployment {deployment}"))?;
        let read = read.ok_or_else(|| {
            Failure::Chart(format!(
                "there is no ControllerDeployment {deployment}: create it"
            ))
        })?;
        let chart = chart::read_chart(&read).map_err(Failure::Chart)?;
        let namespace = chart::namespace_of(release.registration).map_err(Failure::Chart)?;
        let seed = garden
            .cluster_wide::<SeedObject>()
            .get(&self.context.seed_name)
            .await;
        let seed = seed.context("could not read the Seed")?;
        let known = values::of_seed(&seed, &self.context.config.garden_identity);
        let values = values::merged(chart.values, known);
        let kubernetes = seed
            .status
            .as_ref()
            .and_then(|status| status.kubernetes_version.as_deref());
        let of = checksum([
            ("chart", chart.archive),
            ("values", values.to_string().as_bytes()),
            ("kubernetes", kubernetes.unwrap_or_default().as_bytes()),
        ]);
        let rendered = self.last_rendered(installation);
        if let Some(known) = rendered.filter(|rendered| rendered.of == of)
            && release.is_current(&namespace, &known.checksum).await?
        {
            return Ok(());
        }
        let template = Template {
            archive: chart.archive,
            values: &values,
            release: release.registration,
            namespace: &namespace,
            kubernetes,
        };
        let text = render::render(&self.context.config.helm, &template).await?;
        let objects = objects::parse_objects(&text, &namespace).map_err(Failure::Chart)?;
        let checksum = release.deploy(&namespace, &objects).await?;
        self.rendered()
            .insert(installation.name_any(), Rendered { of, checksum });
        Ok(())
    }

    async fn tell(&self, installation: &ControllerInstallation, told: &[ConditionReport]) -> Result<()> {
        let api: Api<ControllerInstallation> = self.context.garden.cluster_wide();
        let now = clock::now_k8s();
        written::change(MANAGER, &api, &installation.name_any(), "conditions", |list| {
            for told in told {
                told.at(&now).merge_into(list);
            }
        })
        .await
        .map(drop)
    }

    fn last_rendered(&self, installation: &ControllerInstallation) -> Option<Rendered> {
        self.rendered().get(&installation.name_any()).cloned()
    }

    fn forget(&self, installation: &ControllerInstallation) {
        self.rendered().remove(&installation.name_any());
        self.signs.forget(&installation.name_any());
    }

    fn rendered(&self) -> std::sync::MutexGuard<'_, HashMap<String, Rendered>> {
        self.rendered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
