//! DNSRecord: a name in a DNS server that accepts updates signed by TSIG (RFC 2136, RFC 8945).
//!
//! A record is replaced by a single message, so that the record is never missing. A deletion applies only
//! while the record has the values that this object wrote. A late deletion from a former seed must not remove
//! values of the new seed (I9). Migrate keeps the record.
//!
//! Where owners are checked, names in the zone of the owner record change only in the shoot's present epoch,
//! see `epoch`. Names in further zones change only while the name has the values that were read, see
//! `elsewhere`.
//!
//! The owner record of a shoot (marked by an annotation) is a special case: the record changes only towards a
//! later epoch, see `owner`.

mod claim;
mod elsewhere;
mod epoch;
mod owner;

use api::{
    constants::OWNERSHIP_EPOCH,
    extensions::DNSRecord,
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use cloud_local::dns::{self, Records, Server, absolute};
use extension::{Actuator, Context, Outcome, Released, forced};
use hickory_proto::{op::ResponseCode, rr::Name};
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};
use tracing::info;

use self::{claim::RecordClaim, epoch::Epoch};
use crate::API_VERSION;

/// Reconciles DNSRecords.
pub struct DNSRecordActuator;

/// `status.providerStatus`: the last written values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    api_version: String,
    kind: String,
    values: Vec<String>,
    /// Only for an owner record.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<i64>,
}

#[async_trait]
impl Actuator<DNSRecord> for DNSRecordActuator {
    const NAME: &'static str = "dnsrecord";

    async fn reconcile(&self, context: &Context<DNSRecord>) -> Result<Outcome> {
        let spec = &context.object.spec;
        let claim = claim(context)?;
        let records = Records::new(&spec.name, spec.record_type, &spec.values, spec.ttl)?;
        let server = Server::new(&context.credentials().await?, context.permit())?;
        let zone = zone(context, &server, &records.name).await?;
        if let Some(claim) = &claim {
            owner::write(&server, &zone, claim, spec.ttl).await?;
        } else {
            match Epoch::for_zone(context, &zone)? {
                None => elsewhere::write(&server, &zone, &records).await?,
                Some(epoch) => {
                    match epoch::send(&server, dns::replace(&zone, &records)?, Some(&epoch)).await? {
                        ResponseCode::NoError => {}
                        code => return Err(server.refused(&zone, code)),
                    }
                }
            }
        }
        let written = Written {
            api_version: API_VERSION.into(),
            kind: "DNSRecordStatus".into(),
            values: spec.values.clone(),
            epoch: claim.as_ref().map(RecordClaim::epoch),
        };
        let provider_status = RawExtension::encode(&written)
            .map_err(|e| Error::bug("the status of a DNSRecord does not serialise").caused_by(e))?;
        Ok(Outcome {
            provider_status: Some(provider_status),
            ..Outcome::none()
        }
        .with("zone", zone.to_ascii().trim_end_matches('.')))
    }

    async fn restore(&self, context: &Context<DNSRecord>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, _: &Context<DNSRecord>) -> Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn delete(&self, context: &Context<DNSRecord>) -> Result<()> {
        match claim(context)? {
            Some(claim) => remove_owner(context, claim).await,
            None => remove(context).await,
        }
    }

    async fn force_delete(&self, context: &Context<DNSRecord>) -> Result<Released> {
        let spec = &context.object.spec;
        let what = format!("the {:?} record of {}", spec.record_type, spec.name);
        forced::attempt(&what, || async {
            match claim(context)? {
                // A forced deletion also deletes the shoot.
                Some(claim) => remove_owner(context, claim.forgotten()).await,
                None => remove(context).await,
            }
        })
        .await
    }
}

/// The claim of the object. A former owner record stays an owner record: without the annotation, the record
/// would be overwritten regardless of the present value.
fn claim(context: &Context<DNSRecord>) -> Result<Option<RecordClaim>> {
    let claim = RecordClaim::from_record(&context.object)?;
    if claim.is_none()
        && let Some(epoch) = written(context).epoch
    {
        return Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "{} was written as an owner record of epoch {epoch}, and does not say so any more: put annotation \
                 {OWNERSHIP_EPOCH} and spec.recordType back",
                context.object.spec.name
            ),
        ));
    }
    Ok(claim)
}

fn written(context: &Context<DNSRecord>) -> Written {
    let status = context.object.status.as_ref();
    status
        .and_then(|status| status.default.provider_status.as_ref()?.decode().ok())
        .unwrap_or_default()
}

async fn remove_owner(context: &Context<DNSRecord>, claim: RecordClaim) -> Result<()> {
    let server = Server::new(&context.credentials().await?, context.permit())?;
    let zone = zone(context, &server, &claim.name).await?;
    owner::remove(&server, &zone, &claim).await
}

async fn remove(context: &Context<DNSRecord>) -> Result<()> {
    let spec = &context.object.spec;
    let server = Server::new(&context.credentials().await?, context.permit())?;
    let name = absolute(&spec.name)?;
    let zone = zone(context, &server, &name).await?;
    // The present values of the spec may not have been written yet.
    let written = written(context);
    let epoch = Epoch::for_zone(context, &zone)?;
    let mut ours = vec![spec.values.clone()];
    if !written.values.is_empty() && written.values != spec.values {
        ours.push(written.values);
    }
    for values in ours {
        let records = Records::new(&spec.name, spec.record_type, &values, spec.ttl)?;
        match epoch::send(&server, dns::remove(&zone, &records)?, epoch.as_ref()).await? {
            ResponseCode::NoError => {}
            // The record does not exist with these values.
            ResponseCode::NXRRSet | ResponseCode::NXDomain => {
                info!(
                    name = spec.name,
                    "the record does not have our values and is left alone"
                );
            }
            code => return Err(server.refused(&zone, code)),
        }
    }
    Ok(())
}

/// The zone from the spec, from an earlier reconcile, or from a query now.
async fn zone(context: &Context<DNSRecord>, server: &Server, name: &Name) -> Result<Name> {
    let known = context
        .object
        .status
        .as_ref()
        .and_then(|status| status.zone.as_deref());
    let zone = match context
        .object
        .spec
        .zone
        .as_deref()
        .filter(|zone| !zone.is_empty())
        .or(known)
    {
        Some(zone) => absolute(zone)?,
        None => server.zone_of(name).await?,
    };
    if zone.zone_of(name) {
        return Ok(zone);
    }
    Err(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!("{name} does not lie in zone {zone}: correct spec.zone or spec.name"),
    ))
}
