//! SubnetIsolation: how a zone of the local cloud is closed. When, and what is remembered, is
//! [`extension::subnet_isolation`]'s.
//!
//! The cloud has one object a cluster that says which zone of it is closed ([`cloud_local::isolation`]), and
//! agents of its hosts drop the packets and confirm it. Nothing else closes zones there, so that what was
//! there before is always an open one; an object that names another zone is not ours, and is left alone.

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

/// What a zone was before it was closed.
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
    /// All do.
    Open,
}

#[async_trait]
impl ZoneNetwork for LocalZones {
    const API_VERSION: &'static str = API_VERSION;

    type Before = Before;

    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> Result<String> {
        zones::name_of(&context.object.spec.isolated_zone_id).map(str::to_owned)
    }

    async fn look(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Before>,
    ) -> Result<Before> {
        if let Some(known) = known {
            return Ok(known.clone());
        }
        // One that is closed already was closed by us, where a seed died before its state was carried.
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
        // Nothing was ever closed for an ID that is none.
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
