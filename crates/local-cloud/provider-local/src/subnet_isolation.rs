//! SubnetIsolation: closes and opens a zone of the local cloud. [`extension::subnet_isolation`] decides on
//! the time and keeps the state.
//!
//! The cloud has an object per cluster that names the closed zone ([`cloud_local::isolation`]). Agents on the
//! hosts drop the packets and confirm the closing. No further program closes zones there, so the former state
//! is always open. An object that names a different zone is foreign, and is not touched.

use api::{extensions::SubnetIsolation, meta::ErrorCode};
use async_trait::async_trait;
use cloud_local::{Isolation, zones};
use extension::{Context, subnet_isolation::ZoneNetwork};
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tracing::warn;

use crate::{API_VERSION, account};

/// Zones of the local cloud.
pub struct LocalZones;

/// The state of a zone before the closing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Before {
    /// Whether packets passed.
    pub access: Access,
}

/// Whether packets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Access {
    /// All packets pass.
    Open,
}

#[async_trait]
impl ZoneNetwork for LocalZones {
    const API_VERSION: &'static str = API_VERSION;

    type Before = Before;

    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> Result<String> {
        zones::name_of(&context.object.spec.isolated_zone_id).map(str::to_owned)
    }

    async fn read_former_state(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Before>,
    ) -> Result<Before> {
        if let Some(known) = known {
            return Ok(known.clone());
        }
        // A zone that is already closed was closed by this provider, if a seed died before the state was
        // carried.
        match isolation(context).await?.find().await? {
            Some(closed) if closed.zone != zone => Err(Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "zone {} is closed in the cloud, and it is not known why: two zones are never closed at a time. Open it by \
                     hand (ConfigMap {}) before zone {zone} is closed",
                    closed.zone,
                    cloud_local::isolation::name_of(&context.namespace()?)
                ),
            )),
            _ => Ok(Before { access: Access::Open }),
        }
    }

    async fn close(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        _: &Before,
    ) -> Result<Map<String, Value>> {
        let isolation = isolation(context).await?;
        isolation.close(zone).await?;
        let since = isolation.find().await?.map(|closed| closed.since);
        Ok(Map::from_iter([("closedSince".to_owned(), json!(since))]))
    }

    async fn open(&self, context: &Context<SubnetIsolation>, _: Option<&Before>, _: bool) -> Result<()> {
        // No zone was ever closed for an invalid ID.
        let Ok(zone) = zones::name_of(&context.object.spec.isolated_zone_id) else {
            return Ok(());
        };
        let isolation = isolation(context).await?;
        match isolation.find().await? {
            None => Ok(()),
            Some(closed) if closed.zone != zone => {
                warn!(
                    closed = closed.zone,
                    zone, "another zone is closed, which is left alone"
                );
                Ok(())
            }
            Some(_) => isolation.open().await,
        }
    }
}

async fn isolation(context: &Context<SubnetIsolation>) -> Result<Isolation> {
    Ok(Isolation::new(
        account::open(context).await?,
        &context.namespace()?,
    ))
}
