//! The NAT gateway of a zone, with an address. EC2 accepts the call for a gateway and may report minutes
//! later that the gateway has failed.

use std::time::Duration;

use runtime::{Error, Result, clock};

use super::Maker;
use crate::{
    Ec2, Tagged,
    infrastructure::state::{Failure, Journal},
    refusal::{CREATE_NAT_GATEWAY, ServiceError},
    routing::{Address, NatGateway},
    token::token_since,
};

/// Pause between the failure of a gateway and the next gateway: the longest pause of the reconciler. The
/// pauses of the reconciler restart while a gateway is pending.
const RETRY_AFTER: Duration = Duration::from_secs(60);
const NO_CODE: &str = "no failureCode";
const NO_MESSAGE: &str = "EC2 gives no failureMessage";

impl<J: Journal> Maker<'_, '_, J> {
    /// The NAT gateway of a zone. `None`: the last gateway has failed, and the error is in [`Maker::failed`].
    pub(super) async fn nat(&mut self, zone: &str, subnet: &str) -> Result<Option<NatGateway>> {
        let name = self.names.in_zone("nat", zone);
        let key = format!("natGateway/{zone}");
        let address = self.address(zone, &name).await?;
        let found = self.found.nats.clone();
        if !found.iter().any(|nat| nat.name() == name)
            && let Some(error) = self.pause_after_failure(zone, &name, &key).await?
        {
            self.failed.push(error);
            return Ok(None);
        }
        let (nat, others) = self.ledger.choose(&key, found, &name, NatGateway::is_available)?;
        for other in others {
            self.ledger.change(&key)?;
            self.ec2.delete_nat_gateway(other.id()).await?;
        }
        let nat = if let Some(nat) = nat {
            nat
        } else {
            let token = token_since(&self.vpc, &name, self.ledger.begin(&key).await?);
            let (id, tags) = (&address.allocation_id, self.names.tags(&name));
            let made = self.ec2.create_nat_gateway(subnet, id, &token, &tags).await;
            let nat = made.map_err(|failed| self.ledger.failed(&key, failed))?;
            self.ledger.made(&key, nat.id());
            nat
        };
        if nat.is_available() {
            self.ledger.clear_failure(&key);
        }
        self.egress.push(format!("{}/32", address.public_ip));
        Ok(Some(nat))
    }

    /// Removes a gateway that has failed. Returns the failure until the next gateway may be made.
    async fn pause_after_failure(&mut self, zone: &str, name: &str, key: &str) -> Result<Option<Error>> {
        // EC2 may list a gateway as failed after the removal, and may not list the next gateway yet.
        let recorded = self.ledger.failure(key).map(|failure| failure.id.clone());
        let is_new = |nat: &NatGateway| nat.name() == name && recorded.as_deref() != Some(nat.id());
        if let Some(failed) = self.found.failed.iter().find(|nat| is_new(nat)).cloned() {
            self.ec2.delete_nat_gateway(failed.id()).await?;
            // EC2 lists the failed gateway, so that the gateway is not awaited any more.
            self.ledger.shown(key);
            let reported = |text: Option<String>, none: &str| text.unwrap_or_else(|| none.to_owned());
            self.ledger.record_failure(
                key,
                Failure {
                    id: failed.nat_gateway_id,
                    code: reported(failed.failure_code, NO_CODE),
                    message: reported(failed.failure_message, NO_MESSAGE),
                    since: clock::now(),
                },
            );
        }
        let failure = self.ledger.failure(key);
        Ok(failure.and_then(|failure| failure_error(self.ec2, zone, failure)))
    }

    async fn address(&mut self, zone: &str, name: &str) -> Result<Address> {
        let key = format!("address/{zone}");
        let found = self.found.addresses.clone();
        let (address, others) = self.ledger.choose(&key, found, name, Address::is_used)?;
        for other in others.iter().filter(|other| !other.is_used()) {
            self.ledger.change(&key)?;
            self.ec2.release_address(other.id()).await?;
        }
        if let Some(address) = address {
            return Ok(address);
        }
        self.ledger.begin(&key).await?;
        let made = self.ec2.allocate_address(&self.names.tags(name)).await;
        let address = made.map_err(|failed| self.ledger.failed(&key, failed))?;
        self.ledger.made(&key, address.id());
        Ok(address)
    }
}

/// The error of a gateway that has failed. `None`: the pause is over.
fn failure_error(ec2: &Ec2, zone: &str, failure: &Failure) -> Option<Error> {
    let pause = failure.pause(RETRY_AFTER);
    if pause.is_zero() {
        return None;
    }
    let Failure {
        id, code, message, ..
    } = failure;
    let refusal = ServiceError::of_failure(CREATE_NAT_GATEWAY, &ec2.account, code, message);
    Some(refusal.error_with(format!(
        "EC2 could not make NAT gateway {id} of zone {zone}: {code} ({message}). The gateway is removed, and the next gateway is \
         made in {} s",
        pause.as_secs().max(1)
    )))
}
