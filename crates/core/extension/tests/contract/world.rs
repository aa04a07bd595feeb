//! The test environment: two seeds with shoots.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use api::{
    Target, crds_of,
    extensions::{Cluster, ExtensionClass, ExtensionObject},
};
use extension::{
    Actuator, ExtensionReconciler, OwnerChecks,
    reconciler::{Provider, Scope},
};
use extension_contract::Proof;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{Api, Client, api::PostParams};
use runtime::client::{
    Permit, Seed,
    apply::{FieldManager, Object},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The field manager of the test in the role of a gardenlet or a user.
pub const TEST: FieldManager = FieldManager("test");

/// Two seeds.
pub struct Seeds {
    _planes: [testkit::ControlPlane; 2],
    /// The source of moves.
    pub a: Client,
    /// The destination of moves.
    pub b: Client,
}

impl Seeds {
    /// Starts the API servers of both seeds.
    pub async fn start() -> Result<Self> {
        let planes = testkit::ControlPlane::start_all(["seed-a", "seed-b"]).await?;
        let [a, b] = [&planes[0], &planes[1]].map(testkit::ControlPlane::admin);
        for seed in [&a, &b] {
            testkit::apply_crds(seed, &crds_of(Target::Seed)).await?;
        }
        Ok(Self {
            _planes: planes,
            a,
            b,
        })
    }

    /// Creates a shoot's namespace with a Secret in both seeds; the Cluster in each seed names that seed as
    /// the owner.
    pub async fn shoot(&self, name: &str, secret: (&str, &[(&str, &str)])) -> Result<()> {
        for seed in [&self.a, &self.b] {
            let cluster: Cluster = object(json!({"metadata": {"name": name}, "spec": {
                "cloudProfile": {}, "seed": {"metadata": {"name": "this"}}, "shoot": {"status": {"seedName": "this"}},
            }}))?;
            create(&Api::all(seed.clone()), &cluster).await?;
            let namespace: Namespace = object(json!({"metadata": {"name": name}}))?;
            create(&Api::all(seed.clone()), &namespace).await?;
            set_secret(seed, name, secret).await?;
        }
        Ok(())
    }
}

/// Writes a Secret.
pub async fn set_secret(
    seed: &Client,
    namespace: &str,
    (name, entries): (&str, &[(&str, &str)]),
) -> Result<()> {
    let mut secret: Secret = object(json!({"metadata": {"name": name}}))?;
    let data: BTreeMap<_, _> = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
        .collect();
    secret.data = Some(data);
    TEST.apply(&Api::namespaced(seed.clone(), namespace), &secret)
        .await?;
    Ok(())
}

/// A reconciler as a process creates at start.
pub fn reconciler<K: ExtensionObject, A: Actuator<K>>(
    seed: &Client,
    scope: Scope<K>,
    actuator: A,
) -> ExtensionReconciler<K, A> {
    let provider = Provider {
        seed: Seed::new(seed.clone(), &Permit::sole("a test")),
        manager: FieldManager("provider-toy"),
        type_: "toy",
        classes: &[ExtensionClass::Shoot],
        owners: OwnerChecks::default(),
    };
    ExtensionReconciler::new(provider, scope, actuator)
}

/// An object from JSON.
pub fn object<K: DeserializeOwned>(object: Value) -> Result<K> {
    serde_json::from_value(object).context("the object does not fit its kind")
}

/// Creates an object.
pub async fn create<K: Object>(api: &Api<K>, object: &K) -> Result<K> {
    let made = api.create(&PostParams::default(), object).await;
    made.with_context(|| format!("could not create {}", K::kind(&())))
}

/// Checks for enough disturbances.
pub fn proven(outcome: Result<Proof, String>) -> Result<()> {
    let proof = outcome.map_err(anyhow::Error::msg)?;
    println!("{proof:?}");
    ensure!(
        proof.dropped > 20 && proof.failed > 10,
        "little was disturbed: {proof:?}"
    );
    Ok(())
}

/// Errors in the form that the contract expects.
#[allow(clippy::needless_pass_by_value)] // for map_err
pub fn text(error: anyhow::Error) -> String {
    format!("{error:#}")
}
