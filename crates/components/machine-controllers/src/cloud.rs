//! The driver as the controllers call it: under the permit, in bounded time, with the MachineClass and the
//! Secrets read.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{
    machine::{Machine, MachineClass},
    meta::{ErrorCode, SecretReference},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{Cluster, Credentials, Permit, Seed},
    error::Explain as _,
};
use tokio::time::Instant;

use crate::{
    context::Context,
    driver::{Driver, Instance, InstancePower, ListedInstance, Request},
};

/// Key of the Secret with the user data, which a machine runs at the first boot.
const USER_DATA: &str = "userData";

/// The cloud.
pub struct Cloud {
    driver: Arc<dyn Driver>,
    seed: Seed,
    namespace: String,
    permit: Permit,
    answers_within: Duration,
    /// Machines whose instance the cloud was asked to delete, and the time since when the cloud ends the
    /// instance. Kept in memory only: a new process gives the cloud the whole time again.
    ending: Mutex<BTreeMap<String, Option<Instant>>>,
}

impl Cloud {
    /// The cloud of this context.
    pub fn new(context: &Context) -> Self {
        Self {
            driver: Arc::clone(&context.driver),
            seed: context.control.clone(),
            namespace: context.namespace.clone(),
            permit: context.settings.permit.and(context.control.permit()),
            answers_within: context.timing.driver_answers_within,
            ending: Mutex::default(),
        }
    }

    /// The class of a Machine.
    pub async fn class(&self, machine: &Machine) -> Result<Arc<MachineClass>> {
        let of = machine.name_any();
        let name = machine
            .spec
            .class
            .as_ref()
            .and_then(|class| class.name.as_deref());
        let name = name.filter(|name| !name.is_empty()).ok_or_else(|| {
            configuration_error(format!(
                "spec.class of Machine {of} names no MachineClass: add it"
            ))
        })?;
        let classes: Api<MachineClass> = self.seed.namespaced(&self.namespace);
        let class = classes.get_opt(name).await;
        class
            .context(format_args!("could not read MachineClass {name}"))?
            .map(Arc::new)
            .ok_or_else(|| {
                configuration_error(format!(
                    "MachineClass {name} of Machine {of} does not exist: create it, or name another"
                ))
            })
    }

    /// The user data of the class, with all placeholders.
    pub async fn user_data(&self, class: &MachineClass) -> Result<String> {
        let reference = class.spec.secret_ref.as_ref().ok_or_else(|| {
            configuration_error(format!(
                "MachineClass {} has no secretRef: it names the Secret with {USER_DATA}",
                class.name_any()
            ))
        })?;
        let data = self.secret(class, reference).await?;
        data.optional_text(USER_DATA)?.ok_or_else(|| {
            configuration_error(format!(
                "the Secret {} of MachineClass {} has no key {USER_DATA:?}: a machine would run nothing and never \
                 join; add it",
                data.origin(),
                class.name_any()
            ))
        })
    }

    /// Makes the instance of a Machine.
    pub async fn create(
        &self,
        machine: &Arc<Machine>,
        class: &Arc<MachineClass>,
        user_data: String,
    ) -> Result<Instance> {
        let call = self.build_call(machine, class, Some(user_data)).await?;
        let doing = format!("could not create the instance of Machine {}", machine.name_any());
        let asking = async move { call.driver.create(&call.request()).await };
        self.run_change(doing, asking).await
    }

    /// Takes the instance of a Machine away.
    pub async fn delete(&self, machine: &Arc<Machine>, class: &Arc<MachineClass>) -> Result<()> {
        let call = self.build_call(machine, class, None).await?;
        let doing = format!("could not delete the instance of Machine {}", machine.name_any());
        let asking = async move { call.driver.delete(&call.request()).await };
        let deleted = self.run_change(doing, asking).await;
        let mut ending = self.ending();
        match &deleted {
            Ok(()) => drop(ending.remove(&machine.name_any())),
            // Accepted. A refusal does not begin the time, as the instance still runs.
            Err(Error::NotReady { .. }) => {
                let since = ending.entry(machine.name_any()).or_default();
                since.get_or_insert_with(Instant::now);
            }
            Err(_) => drop(ending.entry(machine.name_any()).or_default()),
        }
        deleted
    }

    /// Whether this process has asked the cloud to delete the instance of a Machine.
    pub fn has_asked_to_delete(&self, machine: &Machine) -> bool {
        self.ending().contains_key(&machine.name_any())
    }

    fn ending(&self) -> MutexGuard<'_, BTreeMap<String, Option<Instant>>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance of a Machine.
    pub async fn status(
        &self,
        machine: &Arc<Machine>,
        class: &Arc<MachineClass>,
    ) -> Result<Option<Instance>> {
        let call = self.build_call(machine, class, None).await?;
        let doing = format!(
            "could not look for the instance of Machine {}",
            machine.name_any()
        );
        self.run_read(doing, async { call.driver.status(&call.request()).await })
            .await
    }

    /// Whether the instance of a Machine runs.
    pub async fn power(&self, machine: &Arc<Machine>, class: &Arc<MachineClass>) -> Result<InstancePower> {
        let call = self.build_call(machine, class, None).await?;
        let doing = format!(
            "could not ask whether the instance of Machine {} runs",
            machine.name_any()
        );
        self.run_read(doing, async { call.driver.power(&call.request()).await })
            .await
    }

    /// The reason for which the cloud has ended the instance of a Machine that never joined.
    pub async fn launch_failure(
        &self,
        machine: &Arc<Machine>,
        class: &Arc<MachineClass>,
    ) -> Result<Option<Error>> {
        let call = self.build_call(machine, class, None).await?;
        let doing = format!(
            "could not ask whether the launch of Machine {} was ended",
            machine.name_any()
        );
        self.run_read(doing, async { call.driver.launch_failure(&call.request()).await })
            .await
    }

    /// All instances of this cluster that the account of the class has.
    pub async fn list(&self, class: &MachineClass) -> Result<Vec<ListedInstance>> {
        let credentials = self.credentials(class).await?;
        let doing = format!("could not list instances for MachineClass {}", class.name_any());
        self.run_read(doing, self.driver.list(class, credentials)).await
    }

    /// Counts a call that changes the cloud: the process waits for the answer before a clean shutdown.
    async fn run_change<T: Send + 'static>(
        &self,
        doing: String,
        asking: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let asking = tokio::time::timeout(self.answers_within, asking);
        self.unwrap_answer(doing, self.permit.effect(asking).await?)
    }

    async fn run_read<T>(&self, doing: String, asking: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let asking = tokio::time::timeout(self.answers_within, asking);
        self.unwrap_answer(doing, self.permit.guard(asking).await?)
    }

    fn unwrap_answer<T>(
        &self,
        doing: String,
        answer: Result<Result<T>, tokio::time::error::Elapsed>,
    ) -> Result<T> {
        answer
            .unwrap_or_else(|_| {
                Err(Error::transient(format!(
                    "the cloud did not answer within {:?}",
                    self.answers_within
                )))
            })
            .context(doing)
    }

    async fn build_call(
        &self,
        machine: &Arc<Machine>,
        class: &Arc<MachineClass>,
        user_data: Option<String>,
    ) -> Result<Call> {
        let credentials = self.credentials(class).await?;
        Ok(Call {
            driver: Arc::clone(&self.driver),
            machine: Arc::clone(machine),
            class: Arc::clone(class),
            origin: credentials.origin().to_owned(),
            data: credentials.data().clone(),
            user_data,
            ending_for: self
                .ending()
                .get(&machine.name_any())
                .and_then(|since| since.as_ref().map(Instant::elapsed))
                .unwrap_or_default(),
        })
    }

    async fn credentials(&self, class: &MachineClass) -> Result<Credentials> {
        let reference = class
            .spec
            .credentials_secret_ref
            .as_ref()
            .or(class.spec.secret_ref.as_ref());
        let reference = reference.ok_or_else(|| {
            configuration_error(format!(
                "MachineClass {} has neither credentialsSecretRef nor secretRef: name the Secret with the credentials",
                class.name_any()
            ))
        })?;
        self.secret(class, reference).await
    }

    /// Reads a Secret of this namespace. A Secret of a different namespace is refused.
    async fn secret(&self, class: &MachineClass, reference: &SecretReference) -> Result<Credentials> {
        let name = reference.name.clone().unwrap_or_default();
        let elsewhere = reference
            .namespace
            .as_deref()
            .filter(|n| !n.is_empty() && *n != self.namespace);
        if let Some(elsewhere) = elsewhere {
            return Err(configuration_error(format!(
                "MachineClass {} refers to the Secret {elsewhere}/{name}: Secrets of other namespaces are not read",
                class.name_any()
            )));
        }
        let secrets: Api<Secret> = self.seed.namespaced(&self.namespace);
        let secret = secrets.get_opt(&name).await;
        let origin = format!("{}/{name}", self.namespace);
        let secret = secret
            .context(format_args!("could not read the Secret {origin}"))?
            .ok_or_else(|| {
                configuration_error(format!(
                    "the Secret {origin} of MachineClass {} does not exist: create it",
                    class.name_any()
                ))
            })?;
        let data = secret.data.unwrap_or_default();
        Ok(Credentials::new(
            origin,
            data.into_iter().map(|(key, value)| (key, value.0)).collect(),
        ))
    }
}

/// All inputs of a call, owned, so that the call may outlive the caller.
struct Call {
    driver: Arc<dyn Driver>,
    machine: Arc<Machine>,
    class: Arc<MachineClass>,
    origin: String,
    data: BTreeMap<String, Vec<u8>>,
    user_data: Option<String>,
    ending_for: Duration,
}

impl Call {
    fn request(&self) -> Request<'_> {
        Request {
            machine: &self.machine,
            class: &self.class,
            credentials: Credentials::new(&self.origin, self.data.clone()),
            user_data: self.user_data.clone(),
            ending_for: self.ending_for,
        }
    }
}

fn configuration_error(message: String) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}
