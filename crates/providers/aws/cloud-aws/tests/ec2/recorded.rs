//! Parts of a network without tags.

use anyhow::{Context as _, Result, ensure};
use api::meta::ErrorCode;
use aws_fixture::{
    keys::HOME,
    region::{Notebook, Region, SHOOT, refused, until_done},
};
use cloud_aws::{
    Call, Tag,
    infrastructure::{Names, State, confirm_removal, remove},
};
use permit::Permit;
use testkit::Moto;

/// The state names the parts, so that a removal finds the parts. A part with the tag of a different cluster
/// is left, and named.
pub async fn parts_without_tags_are_removed(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ap-northeast-3").await?;
    let (_, state) = region.made().await?;
    let (names, direct) = (Names::for_cluster(SHOOT), &region.direct);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let ids: Vec<&str> = state.ids.values().map(String::as_str).collect();
    ensure!(ids.len() == 14, "{ids:?}");
    refused(direct.tell(&untag(&ids, &names.owned().key())).await)?;
    ensure!(region.list_parts().await?.vpcs.is_empty(), "the tags are left");

    // The ids prove the account, too.
    let old = State {
        account_id: None,
        ..state.clone()
    };
    let notebook = Notebook::with(old.clone());
    confirm_removal(&ec2, &names, &old, &notebook).await?;
    let recorded = notebook.state().and_then(|state| state.account_id);
    ensure!(recorded.as_deref() == Some(HOME), "{recorded:?}");

    let foreign = "kubernetes.io/cluster/other";
    let address = state
        .ids
        .iter()
        .find(|(key, _)| key.starts_with("address/"))
        .map(|(_, id)| id)
        .context("no address")?;
    refused(direct.set_tags(address, &[Tag::new(foreign, "1")]).await)?;
    let refusal = confirm_removal(&ec2, &names, &state, &notebook).await;
    let error = refusal
        .err()
        .context("a part of a different cluster is removed")?;
    ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error}");
    let text = error.to_string();
    ensure!(text.contains(address) && text.contains(foreign), "{text}");
    refused(direct.tell(&untag(&[address.as_str()], foreign)).await)?;

    until_done(|| remove(&ec2, &names, &state)).await?;
    for (key, id) in &state.ids {
        let (action, parameter) = match key.split('/').next().unwrap_or_default() {
            "vpc" => ("DescribeVpcs", "VpcId.1"),
            "internetGateway" => ("DescribeInternetGateways", "InternetGatewayId.1"),
            "subnet" => ("DescribeSubnets", "SubnetId.1"),
            "securityGroup" => ("DescribeSecurityGroups", "GroupId.1"),
            "routeTable" => ("DescribeRouteTables", "RouteTableId.1"),
            "address" => ("DescribeAddresses", "AllocationId.1"),
            // EC2 lists removed gateways for a while.
            _ => continue,
        };
        let left = direct.tell(&Call::new(action).with(parameter, id)).await;
        ensure!(
            left.is_err_and(|failed| failed.is_missing()),
            "{key} {id} is left"
        );
    }
    Ok(())
}

fn untag(ids: &[&str], key: &str) -> Call {
    Call::new("DeleteTags")
        .with_each("ResourceId", ids.iter().copied())
        .with("Tag.1.Key", key)
}
