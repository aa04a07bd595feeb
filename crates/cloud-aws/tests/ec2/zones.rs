//! Zones that are closed: what somebody has changed by hand, what a seed does not know, and rights that end.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Result, ensure};
use api::meta::ErrorCode;
use cloud_aws::isolation::ZoneAcl;
use permit::Permit;
use testkit::Moto;

use super::world::{Region, SHOOT, refused, right, until_done};

/// A subnet that somebody has given another ACL is left so, and told. A former ACL that is gone is told with what to do, and the rest is
/// given back; when somebody has done it the rest goes. In a deletion the VPC's default takes its place.
pub async fn what_is_changed_by_hand_is_left_or_told(moto: &Moto) -> Result<()> {
    let region = Region::of(moto, "ap-southeast-2").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let [one, two] = [subnets.first().unwrap(), subnets.last().unwrap()];
    let acl = ZoneAcl::new(region.direct.clone(), SHOOT, vpc, "once");
    let former = region.other_acl(vpc).await?;
    let default = region.acls(vpc).await?.subnets[one].clone();
    region.set_acl(vpc, two, &former).await?;

    let before = acl.look(&subnets, None).await?;
    acl.close(&subnets, &before).await?;
    let by_hand = region.other_acl(vpc).await?;
    region.set_acl(vpc, one, &by_hand).await?;
    refused(region.direct.delete_network_acl(&former).await)?;

    let error = acl.open(Some(&before), false).await.unwrap_err();
    ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error:?}");
    let said = error.to_string();
    ensure!(
        said.contains(two) && said.contains(&former) && said.contains("by hand"),
        "{said}"
    );
    let left = region.acls(vpc).await?;
    ensure!(
        left.subnets[one] == by_hand && left.subnets[two] != default,
        "{left:#?}"
    );

    // Somebody does it by hand.
    region.set_acl(vpc, two, &by_hand).await?;
    let changed = acl.open(Some(&before), false).await?;
    let told: Vec<String> = changed.iter().map(ToString::to_string).collect();
    ensure!(
        told.len() == 2 && told.iter().all(|said| said.contains(&by_hand)),
        "{told:?}"
    );
    let opened = region.acls(vpc).await?;
    ensure!(
        opened.of(&subnets) == BTreeSet::from([by_hand.clone()]) && opened.rules.len() == 2,
        "{opened:#?}"
    );

    // And once more, in a deletion.
    let before = acl.look(&subnets, None).await?;
    acl.close(&subnets, &before).await?;
    refused(region.direct.delete_network_acl(&by_hand).await)?;
    let changed = acl.open(Some(&before), true).await?;
    ensure!(changed.is_empty(), "{changed:?}");
    let opened = region.acls(vpc).await?;
    ensure!(
        opened.of(&subnets) == BTreeSet::from([default]) && opened.rules.len() == 1,
        "{opened:#?}"
    );
    Ok(())
}

/// A seed died before its state was carried: the tags tell what was there.
pub async fn a_seed_that_knows_nothing_opens_what_another_closed(moto: &Moto) -> Result<()> {
    let region = Region::of(moto, "eu-west-2").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let acl = ZoneAcl::new(region.direct.clone(), SHOOT, vpc, "once");
    region
        .set_acl(vpc, subnets.first().unwrap(), &region.other_acl(vpc).await?)
        .await?;
    let open = region.acls(vpc).await?;

    let before = acl.look(&subnets, None).await?;
    acl.close(&subnets, &before).await?;
    let told = acl.look(&subnets, None).await?;
    ensure!(told == before, "{told:?} was {before:?}");
    let closed = region.acls(vpc).await?;
    ensure!(closed != open, "nothing is closed");
    acl.open(None, false).await?;
    let opened = region.acls(vpc).await?;
    ensure!(opened == open, "{opened:#?} was {open:#?}");
    Ok(())
}

/// The right ends after each single call: nothing more leaves, and whoever has the next right brings it to its end.
pub async fn a_right_that_ends_midway_stops_it(moto: &Moto) -> Result<()> {
    let region = Region::of(moto, "us-east-2").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let by = |permit: &Permit| anyhow::Ok(ZoneAcl::new(region.ec2(permit)?, SHOOT, vpc, "once"));
    let open = region.acls(vpc).await?;
    let before = by(&Permit::sole("a test"))?.look(&subnets, None).await?;
    let mut ended = 0;
    for calls in 1.. {
        let issuer = right();
        region.proxy.end_after(calls, Arc::clone(&issuer));
        let acl = by(&issuer.permit())?;
        let from = region.proxy.calls().len();
        let work = async {
            acl.close(&subnets, &before).await?;
            acl.open(Some(&before), false).await
        };
        let done = issuer.permit().guard(work).await;
        let made = region.proxy.calls().len() - from;
        let next = by(&Permit::sole("a test"))?;
        if made < calls {
            ensure!(matches!(done, Ok(Ok(_))), "{done:?}");
            break;
        }
        ensure!(
            made == calls,
            "after its right had ended it made {} calls more",
            made - calls
        );
        ended += 1;
        until_done(|| next.close(&subnets, &before)).await?;
        until_done(|| next.open(Some(&before), false)).await?;
        ensure!(
            region.acls(vpc).await? == open,
            "the right ended after call {calls}"
        );
    }
    ensure!(ended > 10, "it was ended {ended} times only");
    Ok(())
}
