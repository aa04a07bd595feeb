//! A NAT gateway that EC2 accepts and cannot make.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::meta::ErrorCode;
use aws_fixture::region::{Notebook, Region, SHOOT, is_complete, refused, until_done};
use cloud_aws::{Call, Tagged, infrastructure::Names};
use permit::Permit;
use testkit::Moto;

const AVAILABLE: &str = "<state>available</state>";
const FAILED: &str = "<state>failed</state><failureCode>InsufficientFreeAddressesInSubnet</failureCode>\
                      <failureMessage>Subnet has insufficient free addresses</failureMessage>";

/// The code and the sentence of EC2 are reported, the gateway is removed, and no further gateway is made
/// until the pause is over.
pub async fn is_reported_and_paced(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "me-south-1").await?;
    let (_, state) = region.made().await?;
    let (names, plan) = (Names::for_cluster(SHOOT), region.plan()?);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let ([zone, _], notebook) = (region.zones(), Notebook::with(state.clone()));
    let key = format!("natGateway/{zone}");
    let gateway = &state.ids[&key];
    region
        .proxy
        .replace("DescribeNatGateways", gateway, AVAILABLE, FAILED);

    for writes in [&["DeleteNatGateway"][..], &[]] {
        let from = region.proxy.calls().len();
        let made = notebook.make(&ec2, &names, &plan).await;
        let error = made.err().context("a failed gateway is used")?;
        ensure!(error.codes() == [ErrorCode::ErrInfraQuotaExceeded], "{error}");
        let report = error.to_string();
        for part in [
            gateway.as_str(),
            zone.as_str(),
            "InsufficientFreeAddressesInSubnet",
            "Subnet has insufficient free addresses",
            "free addresses in the public subnet",
        ] {
            ensure!(report.contains(part), "{part}: {report}");
        }
        ensure!(
            region.proxy.writes_since(from) == writes,
            "{:?}",
            region.proxy.calls()
        );
    }

    // AWS releases the address without a call.
    let found = region.list_parts().await?;
    let name = names.in_zone("nat", &zone);
    let address = found.addresses.iter().find(|address| address.name() == name);
    let association = address.and_then(|address| address.association_id.clone());
    let association = association.context("the address has no association")?;
    let disassociate = Call::new("DisassociateAddress").with("AssociationId", association);
    refused(region.direct.tell(&disassociate).await)?;

    let mut later = notebook.state().context("no state")?;
    let failure = later.failures.get_mut(&key).context("no failure is recorded")?;
    failure.since = runtime::clock::now() - Duration::from_secs(3600);
    let notebook = Notebook::with(later);
    let (made, _) = until_done(|| notebook.make(&ec2, &names, &plan)).await?;
    ensure!(made.state.failures.is_empty(), "{:?}", made.state);
    ensure!(made.state.ids[&key] != *gateway, "{:?}", made.state);
    is_complete(&region.list_parts().await?)
}
