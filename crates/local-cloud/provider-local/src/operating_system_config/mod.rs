//! OperatingSystemConfig: files and units of machines as a shell script. The local cloud runs the script when
//! an instance starts.
//!
//! The script is the user data of new machines, in a Secret beside the object. There is no outside resource,
//! so restore is a plain reconcile (RX-32). The restore generates the same script, because the script
//! contains no data of the seed. Migrate removes the Secret (RX-20).

mod script;

use std::collections::BTreeMap;

use api::{
    extensions::{OperatingSystemConfig, operating_system_config::CloudConfig},
    meta::{ErrorCode, SecretReference},
};
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Api;
use runtime::{
    Error, Result,
    client::{Cluster, apply},
    error::Explain as _,
};
use serde_json::json;

use crate::unread;

/// Key of the Secret.
const KEY: &str = "cloud_config";

/// Reconciles OperatingSystemConfigs.
pub struct OperatingSystemConfigActuator;

#[async_trait]
impl Actuator<OperatingSystemConfig> for OperatingSystemConfigActuator {
    const NAME: &'static str = "operatingsystemconfig";

    async fn reconcile(&self, context: &Context<OperatingSystemConfig>) -> Result<Outcome> {
        let namespace = context.namespace()?;
        let spec = &context.object.spec;
        unread::refuse(
            "machine.image.providerConfig of the worker pool",
            spec.default.provider_config.as_ref(),
        )?;
        let mut secrets = BTreeMap::new();
        for reference in spec
            .files
            .iter()
            .filter_map(|file| file.content.secret_ref.as_ref())
        {
            let bytes = read(context, &namespace, &reference.name, &reference.data_key).await?;
            secrets.insert((reference.name.clone(), reference.data_key.clone()), bytes);
        }
        let user_data = script::render_script(&spec.files, &spec.units, &secrets)
            .map_err(|why| Error::config(ErrorCode::ErrConfigurationProblem, why))?;
        let name = secret_name(&context.name());
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(
                KEY.to_owned(),
                ByteString(user_data.into_bytes()),
            )])),
            ..Secret::default()
        };
        let secrets: Api<Secret> = context.seed.namespaced(&namespace);
        context.manager.apply(&secrets, &secret).await?;
        let told = CloudConfig {
            secret_ref: SecretReference::new(&namespace, &name),
        };
        Ok(Outcome::none().with("cloudConfig", json!(told)))
    }

    async fn restore(&self, context: &Context<OperatingSystemConfig>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<OperatingSystemConfig>) -> Result<Outcome> {
        self.delete(context).await.map(|()| Outcome::none())
    }

    async fn delete(&self, context: &Context<OperatingSystemConfig>) -> Result<()> {
        let secrets: Api<Secret> = context.seed.namespaced(&context.namespace()?);
        apply::delete(&secrets, &secret_name(&context.name())).await
    }
}

fn secret_name(object: &str) -> String {
    format!("osc-result-{object}")
}

async fn read(
    context: &Context<OperatingSystemConfig>,
    namespace: &str,
    name: &str,
    key: &str,
) -> Result<Vec<u8>> {
    let found = context.seed.namespaced::<Secret>(namespace).get_opt(name).await;
    let found = found.context(format_args!("could not read the Secret {name}"))?;
    let bytes = found
        .and_then(|secret| secret.data)
        .and_then(|mut data| data.remove(key));
    bytes.map(|bytes| bytes.0).ok_or_else(|| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("a file of the machines comes from key {key} of the Secret {name}, which does not exist: create it"),
        )
    })
}
