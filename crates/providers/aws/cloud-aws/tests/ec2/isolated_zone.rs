//! The infrastructure of a shoot with an isolated zone: the zone gets no new part, no change and no wait.

use anyhow::{Context as _, Result, ensure};
use aws_fixture::region::{Notebook, Region, SHOOT, until_done};
use cloud_aws::infrastructure::Names;
use permit::Permit;
use testkit::Moto;

/// EC2 does not list the NAT gateway of the sick zone, as after a failure of the gateway. Without the
/// isolation a new gateway would be made, and awaited. During the isolation the Infrastructure is ready
/// without the gateway, and reports the subnets for closing the zone.
pub async fn holds_up_no_other_zone(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "eu-south-1").await?;
    let (names, plan) = (Names::for_cluster(SHOOT), region.plan()?);
    let notebook = Notebook::default();
    let (made, _) = until_done(|| notebook.make(&region.direct, &names, &plan)).await?;
    let [sick, _] = region.zones();
    let mut zones = made.status.zones.iter();
    let id = &zones.find(|zone| zone.name == sick).context("the zone")?.id;
    let isolating = plan.clone().isolating(Some(id));

    let gateway = &made.state.ids[&format!("natGateway/{sick}")];
    region.proxy.hide("DescribeNatGateways", gateway);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let from = region.proxy.calls().len();
    let kept = notebook.make(&ec2, &names, &isolating).await?;
    let writes = region.proxy.writes_since(from);
    ensure!(writes.is_empty(), "{writes:?}");
    ensure!(kept == made, "{kept:?} was {made:?}");
    // Fails without the isolation, or the gateway would not count here.
    let from = region.proxy.calls().len();
    let _ = notebook.make(&ec2, &names, &plan).await;
    let writes = format!("{:?}", region.proxy.writes_since(from));
    ensure!(writes.contains("CreateNatGateway"), "{writes}");
    Ok(())
}
