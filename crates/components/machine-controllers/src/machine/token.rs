//! Bootstrap tokens: each machine that is to join has a token in the shoot, valid only for as long as joining
//! may take.

use std::{collections::BTreeMap, time::Duration};

use api::machine::Machine;
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, ResourceExt};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use runtime::{
    Error, Result,
    client::{
        Cluster, Shoot,
        apply::{self, FieldManager},
    },
    clock,
    error::Explain as _,
};

use crate::{hex::hex, reach::bounded_write};

/// The namespace in which Kubernetes reads bootstrap tokens.
const NAMESPACE: &str = "kube-system";
/// Label of such a Secret: the name of the Machine.
const MACHINE: &str = "machine.sapcloud.io/machine";
/// How long a token has to be good at least to be given out again. Longer than a machine takes to boot.
const MIN_VALIDITY: Duration = Duration::from_secs(5 * 60);

/// Tokens of a shoot's machines.
pub struct Tokens {
    secrets: Api<Secret>,
    manager: FieldManager,
}

impl Tokens {
    /// For the machines of this shoot.
    pub fn new(shoot: &Shoot, manager: FieldManager) -> Self {
        Self {
            secrets: shoot.namespaced(NAMESPACE),
            manager,
        }
    }

    /// The token with which this Machine joins, valid for `lasts` from the creation of the token.
    pub async fn ensure(&self, machine: &Machine, lasts: Duration) -> Result<String> {
        let (id, name) = (token_id(machine), secret_name(machine));
        let found = self.secrets.get_opt(&name).await;
        let found = found.context(format_args!(
            "could not read the Secret {NAMESPACE}/{name} of the shoot"
        ))?;
        if let Some(secret) = found
            .as_ref()
            .and_then(|secret| valid_secret_half(secret, machine))
        {
            return Ok(format!("{id}.{secret}"));
        }
        let secret = random_secret_half()?;
        let until = clock::now() + lasts.max(MIN_VALIDITY);
        let data = [
            ("token-id", id.clone()),
            ("token-secret", secret.clone()),
            (
                "expiration",
                Timestamp::from_second(until.as_second())
                    .unwrap_or(until)
                    .to_string(),
            ),
            ("usage-bootstrap-authentication", "true".into()),
            ("usage-bootstrap-signing", "true".into()),
            // The holder of the token is in the group system:bootstrappers, whose members may request a
            // certificate for a kubelet.
            (
                "description",
                format!("With it the machine {} joins the cluster.", machine.name_any()),
            ),
        ];
        let wanted = Secret {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(NAMESPACE.into()),
                labels: Some(BTreeMap::from([(MACHINE.to_owned(), machine.name_any())])),
                ..ObjectMeta::default()
            },
            type_: Some("bootstrap.kubernetes.io/token".into()),
            data: Some(
                data.into_iter()
                    .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
                    .collect(),
            ),
            ..Secret::default()
        };
        self.manager.apply(&self.secrets, &wanted).await?;
        Ok(format!("{id}.{secret}"))
    }

    /// Removes the Machine's token, if the token exists.
    pub async fn remove(&self, machine: &Machine) -> Result<()> {
        bounded_write(apply::delete(&self.secrets, &secret_name(machine))).await
    }
}

/// The public half, derived from the Machine's name, so that every manager finds the token again.
fn token_id(machine: &Machine) -> String {
    let hash = digest(&SHA256, machine.name_any().as_bytes());
    let letter = |byte: &u8| char::from_digit(u32::from(*byte) % 36, 36);
    hash.as_ref().iter().take(6).filter_map(letter).collect()
}

fn secret_name(machine: &Machine) -> String {
    format!("bootstrap-token-{}", token_id(machine))
}

/// The secret half of a token that is this Machine's and is good for long enough.
fn valid_secret_half(secret: &Secret, machine: &Machine) -> Option<String> {
    if secret.labels().get(MACHINE) != Some(&machine.name_any()) {
        return None;
    }
    let text = |key: &str| String::from_utf8(secret.data.as_ref()?.get(key)?.0.clone()).ok();
    let until: Timestamp = text("expiration")?.parse().ok()?;
    let left = Duration::try_from(until.duration_since(clock::now())).ok()?;
    let half = text("token-secret").filter(|half| half.len() == 16)?;
    (left >= MIN_VALIDITY).then_some(half)
}

fn random_secret_half() -> Result<String> {
    let mut bytes = [0; 8];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::transient("the operating system gives no random bytes"))?;
    Ok(hex(&bytes))
}
