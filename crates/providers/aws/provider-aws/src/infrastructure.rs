//! Infrastructure: a dedicated VPC with two subnets in each zone of the shoot. A zone has a subnet for
//! machines, a subnet for the NAT gateway, and a route table. So the outgoing traffic of a zone never passes
//! a different zone.
//!
//! Each part has the cluster's tag and a name from the creating call on. A part is looked up by tag and name
//! first. So no part is made twice, and a seed without a record finds all parts. The state (RX-30) has the
//! ids, kept as soon as a part is begun. For an unchanged Infrastructure the actuator neither writes nor
//! waits. Migrate removes no object of the seed, and touches no object outside of the seed.

use std::time::Duration;

use api::{
    extensions::Infrastructure,
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use cloud_aws::infrastructure::{
    InfrastructureConfig, Journal, Made, Plan, State, confirm_removal, make, remove,
};
use extension::{Actuator, Context, Outcome, Released, forced};
use runtime::{Error, Result};
use serde::Serialize;
use serde_json::json;

use crate::{
    API_VERSION,
    account::AccountAccess,
    identity::{confirmed_account, names},
};

/// How long a forced deletion awaits NAT gateways that EC2 removes. EC2 takes about a minute. Shorter than
/// the gardenlet's timeout for an Infrastructure.
const REMOVED_WITHIN: Duration = Duration::from_secs(3 * 60);

/// Looks after Infrastructures.
pub struct InfrastructureActuator(pub AccountAccess);

#[async_trait]
impl Actuator<Infrastructure> for InfrastructureActuator {
    const NAME: &'static str = "infrastructure";

    async fn reconcile(&self, context: &Context<Infrastructure>) -> Result<Outcome> {
        let config: InfrastructureConfig = context.provider_config()?;
        let plan = Plan::from_config(&config)?.isolating(context.isolated_zone_id());
        let known: Option<State> = context.state()?;
        let ec2 = self.0.open(context, &context.object.spec.region).await?;
        let names = names(context)?;
        outcome(make(&ec2, &names, &plan, known.as_ref(), &StatusJournal(context)).await?)
    }

    async fn restore(&self, context: &Context<Infrastructure>) -> Result<Outcome> {
        if context.state::<State>()?.is_none() {
            let ec2 = self.0.open(context, &context.object.spec.region).await?;
            let names = names(context)?;
            if ec2.vpcs(&names.owned()).await?.is_empty() {
                return Err(Error::config(
                    ErrorCode::ErrInfraDependencies,
                    format!(
                        "no state was carried for the infrastructure of {}, and no VPC in {} has its tag {}: put the ShootState's \
                         entry of kind Infrastructure back, or correct the Secret if it is of another account",
                        context.namespace()?,
                        ec2.region(),
                        names.owned().key()
                    ),
                ));
            }
        }
        self.reconcile(context).await
    }

    async fn migrate(&self, _: &Context<Infrastructure>) -> Result<Outcome> {
        // All is outside, and the state of the last reconciliation is complete (RX-11).
        Ok(Outcome::none())
    }

    async fn delete(&self, context: &Context<Infrastructure>) -> Result<()> {
        let ec2 = self.0.open(context, &context.object.spec.region).await?;
        // A state that cannot be read does not stop the deletion.
        let mut known = context.state::<State>().ok().flatten().unwrap_or_default();
        if known.account_id.is_none() {
            known.account_id = confirmed_account(context.cluster.as_ref()).map(str::to_owned);
        }
        let mut names = names(context)?;
        if names.owned().shoot_uid().is_none() {
            names = names.of_shoot(known.shoot_uid.as_deref());
        }
        confirm_removal(&ec2, &names, &known, &StatusJournal(context)).await?;
        remove(&ec2, &names, &known).await
    }

    async fn force_delete(&self, context: &Context<Infrastructure>) -> Result<Released> {
        let names = names(context)?;
        // A state that cannot be read is no reason to hold on.
        let vpc = match context.state::<State>() {
            Ok(Some(state)) => state.vpc().unwrap_or("the VPC").to_owned(),
            _ => "the VPC".into(),
        };
        let what = format!("{vpc}, with all that has the tag {},", names.owned().key());
        forced::attempt_within(&what, REMOVED_WITHIN, || self.delete(context)).await
    }
}

/// Keeps the ids of begun parts in `status.state`, during the operation.
struct StatusJournal<'a>(&'a Context<Infrastructure>);

impl Journal for StatusJournal<'_> {
    async fn save(&self, state: &State) -> Result<()> {
        let outcome = Outcome {
            state: Some(encode(state)?),
            ..Outcome::none()
        };
        self.0.keep(&outcome).await
    }
}

fn outcome(mut made: Made) -> Result<Outcome> {
    made.status.api_version = API_VERSION.into();
    made.status.kind = "InfrastructureStatus".into();
    let range = made.range;
    let outcome = Outcome {
        state: Some(encode(&made.state)?),
        provider_status: Some(encode(&made.status)?),
        ..Outcome::none()
    };
    Ok(outcome
        .with("nodesCIDR", range.clone())
        .with("networking", json!({"nodes": [range]}))
        .with("egressCIDRs", json!(made.egress)))
}

fn encode(value: &impl Serialize) -> Result<RawExtension> {
    RawExtension::encode(value)
        .map_err(|e| Error::bug("the infrastructure's status does not serialise").caused_by(e))
}
