//! SubnetIsolation: how a zone's subnets are closed and opened. When, and what is remembered, is
//! [`extension::subnet_isolation`]'s.
//!
//! In front of each subnet is one network ACL. Ours denies IPv4 and IPv6, both ways, established flows too
//! (an ACL keeps no state). Which ACL each subnet had stands in `status.state` and in the tags of ours before
//! anything is swapped: a dead seed takes nothing with it. So does the id of ours, as EC2 may not list an ACL
//! that was just made. The ACL is remembered and not its association with the subnet, whose id is another
//! after each swap; it is looked up right before.
//!
//! What ours does not stop: packets between machines of the same subnet, and what never passes a subnet's
//! border (the instance metadata service, the resolver of the VPC, NTP). The machines of the zone are gone or
//! silent by then.

use api::extensions::SubnetIsolation;
use async_trait::async_trait;
use cloud_aws::{
    infrastructure::InfrastructureStatus,
    isolation::{Before, ZoneAcl},
};
use extension::{Context, subnet_isolation::ZoneNetwork};
use runtime::{Cluster, Events, Result};
use serde_json::{Map, Value, json};

use crate::{API_VERSION, MANAGER, account::Place, zone};

/// Reason of the Event that tells what somebody has changed by hand.
const CHANGED_BY_HAND: &str = "ChangedByHand";

/// Zones of AWS.
pub struct AwsZones(pub Place);

#[async_trait]
impl ZoneNetwork for AwsZones {
    const API_VERSION: &'static str = API_VERSION;

    type Before = Before;

    async fn zone_code(&self, context: &Context<SubnetIsolation>) -> Result<String> {
        let infrastructure = infrastructure(context)?;
        zone::named(&infrastructure.zones, &context.object.spec.isolated_zone_id).map(str::to_owned)
    }

    async fn look(
        &self,
        context: &Context<SubnetIsolation>,
        zone: &str,
        known: Option<&Before>,
    ) -> Result<Before> {
        let subnets = infrastructure(context)?.subnets_of(zone);
        self.acl(context).await?.look(&subnets, known).await
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
        let acl = self.acl(context).await?.close(&subnets, before).await?;
        Ok(Map::from_iter([
            ("aclID".to_owned(), json!(acl)),
            ("aclStatus".to_owned(), json!("created")),
        ]))
    }

    async fn open(
        &self,
        context: &Context<SubnetIsolation>,
        before: Option<&Before>,
        deleting: bool,
    ) -> Result<()> {
        // Without an infrastructure nothing was ever closed.
        if context.object.spec.infrastructure_provider_status.is_none() {
            return Ok(());
        }
        let changed = self.acl(context).await?.open(before, deleting).await?;
        if !changed.is_empty() {
            let events = Events::new(context.seed.client().clone(), MANAGER.0);
            let note: Vec<String> = changed.iter().map(ToString::to_string).collect();
            let note = note.join("; ");
            tracing::warn!(note, "left as somebody has set it by hand");
            events
                .warning(context.object.as_ref(), CHANGED_BY_HAND, &note)
                .await;
        }
        Ok(())
    }
}

impl AwsZones {
    async fn acl(&self, context: &Context<SubnetIsolation>) -> Result<ZoneAcl> {
        let ec2 = self.0.open(context, &context.object.spec.region).await?;
        Ok(ZoneAcl::new(
            ec2,
            &context.namespace()?,
            &infrastructure(context)?.vpc.id,
            context.object.metadata.uid.as_deref().unwrap_or_default(),
        ))
    }
}

fn infrastructure(context: &Context<SubnetIsolation>) -> Result<InfrastructureStatus> {
    zone::infrastructure(context.object.spec.infrastructure_provider_status.as_ref())
}
