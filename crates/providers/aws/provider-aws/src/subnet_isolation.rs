//! SubnetIsolation: this provider closes and opens the subnets of a zone. [`extension::subnet_isolation`]
//! decides the time, and keeps the record.
//!
//! A network ACL is in front of each subnet. The ACL of the isolation denies IPv4 and IPv6, in both
//! directions, including established flows (an ACL keeps no state). Before the first swap the former ACL of
//! each subnet is written to `status.state` and to the tags of the ACL of the isolation. So no record is lost
//! with a dead seed. The id of the ACL of the isolation is recorded in the same places, as EC2 may not list
//! an ACL that was just made. The record names the ACL and not the association with the subnet, because the
//! id of the association changes with each swap. The association is looked up right before the swap.
//!
//! The ACL of the isolation does not stop packets between machines of the same subnet. The ACL also does not
//! stop packets that never pass a subnet's border (the instance metadata service, the resolver of the VPC,
//! NTP). The machines of the zone are gone or silent by then.

use api::extensions::SubnetIsolation;
use async_trait::async_trait;
use cloud_aws::{
    identity::HomeAccount,
    infrastructure::InfrastructureStatus,
    isolation::{Before, ZoneAcl},
};
use extension::{Context, subnet_isolation::ZoneNetwork};
use runtime::{Result, client::Cluster, controller::Events};
use serde_json::{Map, Value, json};

use crate::{API_VERSION, MANAGER, account::AccountAccess, identity::shoot_uid, zone};

/// Reason of the Event for manual changes of the network.
const CHANGED_BY_HAND: &str = "ChangedByHand";
/// Reason of the Event for subnets that do not exist any more.
const SUBNET_MISSING: &str = "SubnetMissing";
/// Field of the provider status with the ACL that closes the zone.
const ACL_ID: &str = "aclID";
/// Field of the provider status with the subnets that do not exist any more.
const MISSING_SUBNETS: &str = "missingSubnets";

/// Zones of AWS.
pub struct AwsZones(pub AccountAccess);

#[async_trait]
impl ZoneNetwork for AwsZones {
    const API_VERSION: &'static str = API_VERSION;

    type Before = Before;

    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> Result<String> {
        let infrastructure = infrastructure(context)?;
        zone::named(&infrastructure.zones, &context.object.spec.isolated_zone_id).map(str::to_owned)
    }

    async fn read_former_state(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Before>,
    ) -> Result<Before> {
        let subnets = infrastructure(context)?.subnets_of(zone);
        let observed = self.acl(context).await?.observe(&subnets, known).await?;
        // A closing that was interrupted is no manual change: the status names the ACL of a complete closing.
        let was_closed = reported(context, ACL_ID).is_some();
        if was_closed && !observed.reopened.is_empty() {
            warn(context, CHANGED_BY_HAND, &observed.reopened).await;
        }
        Ok(observed.before)
    }

    async fn prepare(&self, context: &Context<SubnetIsolation>, before: &Before) -> Result<Before> {
        self.acl(context).await?.make(before).await
    }

    async fn close(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        before: &Before,
    ) -> Result<Map<String, Value>> {
        let subnets = infrastructure(context)?.subnets_of(zone);
        let closed = self.acl(context).await?.close(&subnets, before).await?;
        let mut status = Map::from_iter([
            (ACL_ID.to_owned(), json!(closed.acl)),
            ("aclStatus".to_owned(), json!("created")),
        ]);
        if !closed.missing_subnets.is_empty() {
            let missing = json!(closed.missing_subnets);
            if reported(context, MISSING_SUBNETS) != Some(&missing) {
                let note = missing_note(zone, &closed.missing_subnets);
                warn(context, SUBNET_MISSING, &[note]).await;
            }
            status.insert(MISSING_SUBNETS.to_owned(), missing);
        }
        Ok(status)
    }

    async fn open(
        &self,
        context: &Context<SubnetIsolation>,
        before: Option<&Before>,
        deleting: bool,
    ) -> Result<()> {
        // Without an infrastructure no zone was ever closed.
        if context.object.spec.infrastructure_provider_status.is_none() {
            return Ok(());
        }
        let changed = self.acl(context).await?.open(before, deleting).await?;
        if !changed.is_empty() {
            let note: Vec<String> = changed.iter().map(ToString::to_string).collect();
            warn(context, CHANGED_BY_HAND, &note).await;
        }
        Ok(())
    }
}

impl AwsZones {
    async fn acl(&self, context: &Context<SubnetIsolation>) -> Result<ZoneAcl> {
        let ec2 = self.0.open(context, &context.object.spec.region).await?;
        let infrastructure = infrastructure(context)?;
        let acl = ZoneAcl::new(
            ec2,
            &context.namespace()?,
            &infrastructure.vpc.id,
            context.object.metadata.uid.as_deref().unwrap_or_default(),
        );
        let home = HomeAccount::new(infrastructure.account_id.as_deref());
        let uid = context.cluster.as_ref().and_then(shoot_uid);
        Ok(acl.in_account(home).of_shoot(uid))
    }
}

/// A field of the provider status that an earlier reconciliation has reported.
fn reported<'c>(context: &'c Context<SubnetIsolation>, field: &str) -> Option<&'c Value> {
    let status = context.object.status.as_ref()?;
    status.provider_status.as_ref()?.0.get(field)
}

fn missing_note(zone: &str, missing: &[String]) -> String {
    format!(
        "the subnets {} of zone {zone} are not in the account any more; all other subnets of the zone are closed. Reconcile the \
         Infrastructure after the failback to make the subnets again",
        missing.join(", ")
    )
}

async fn warn(context: &Context<SubnetIsolation>, reason: &str, sentences: &[String]) {
    tracing::warn!(
        reason,
        ?sentences,
        "the network of the zone differs from the record"
    );
    let events = Events::new(context.seed.client().clone(), MANAGER.0);
    events.warnings(context.object.as_ref(), reason, sentences).await;
}

fn infrastructure(context: &Context<SubnetIsolation>) -> Result<InfrastructureStatus> {
    zone::infrastructure(context.object.spec.infrastructure_provider_status.as_ref())
}
