//! Closed zones: manual changes, missing records of a seed, and permits that end.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Result, ensure};
use api::meta::ErrorCode;
use aws_fixture::region::{Region, SHOOT, close, refused, right, until_done};
use cloud_aws::{
    infrastructure::{Names, remove},
    isolation::ZoneAcl,
};
use permit::Permit;
use testkit::Moto;

/// A subnet with a manually changed ACL is left unchanged, and reported. A former ACL that is gone is
/// reported with the remedy, and all further former ACLs are given back. After the manual fix the ACL of the
/// isolation is removed. In a deletion the default ACL of the VPC replaces a former ACL that is gone.
pub async fn what_is_changed_by_hand_is_left_or_told(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ap-southeast-2").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let [one, two] = [subnets.first().unwrap(), subnets.last().unwrap()];
    let acl = ZoneAcl::new(region.direct.clone(), SHOOT, vpc, "once");
    let former = region.other_acl(vpc).await?;
    let default = region.acls(vpc).await?.subnets[one].clone();
    region.set_acl(vpc, two, &former).await?;

    let before = close(&acl, &subnets, None).await?;
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

    // The manual fix of the user.
    region.set_acl(vpc, two, &by_hand).await?;
    let changed = acl.open(Some(&before), false).await?;
    let told: Vec<String> = changed.iter().map(ToString::to_string).collect();
    ensure!(
        told.len() == 2 && told.iter().all(|said| said.contains(&by_hand)),
        "{told:?}"
    );
    let opened = region.acls(vpc).await?;
    ensure!(
        opened.acl_ids(&subnets) == BTreeSet::from([by_hand.clone()]) && opened.rules.len() == 2,
        "{opened:#?}"
    );

    // And once more, in a deletion.
    let before = close(&acl, &subnets, None).await?;
    refused(region.direct.delete_network_acl(&by_hand).await)?;
    let changed = acl.open(Some(&before), true).await?;
    ensure!(changed.is_empty(), "{changed:?}");
    let opened = region.acls(vpc).await?;
    ensure!(
        opened.acl_ids(&subnets) == BTreeSet::from([default]) && opened.rules.len() == 1,
        "{opened:#?}"
    );
    Ok(())
}

/// A seed died before the state was carried: the tags name the former ACLs.
pub async fn a_seed_that_knows_nothing_opens_what_another_closed(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "eu-west-2").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let acl = ZoneAcl::new(region.direct.clone(), SHOOT, vpc, "once");
    region
        .set_acl(vpc, subnets.first().unwrap(), &region.other_acl(vpc).await?)
        .await?;
    let open = region.acls(vpc).await?;

    let before = close(&acl, &subnets, None).await?;
    let told = acl.read_former_acls(&subnets, None).await?;
    ensure!(told == before, "{told:?} was {before:?}");
    let closed = region.acls(vpc).await?;
    ensure!(closed != open, "nothing is closed");
    acl.open(None, false).await?;
    let opened = region.acls(vpc).await?;
    ensure!(opened == open, "{opened:#?} was {open:#?}");
    Ok(())
}

/// The permit ends after each single call: no further request leaves, and the next owner completes the
/// operation.
pub async fn a_right_that_ends_midway_stops_it(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "us-east-2").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let by = |permit: &Permit| anyhow::Ok(ZoneAcl::new(region.ec2(permit)?, SHOOT, vpc, "once"));
    let open = region.acls(vpc).await?;
    let mut ended = 0;
    for calls in 1.. {
        let issuer = right();
        region.proxy.end_after(calls, Arc::clone(&issuer));
        let acl = by(&issuer.permit())?;
        let from = region.proxy.calls().len();
        let work = async {
            let before = close(&acl, &subnets, None).await?;
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
        let (before, _) = until_done(|| close(&next, &subnets, None)).await?;
        until_done(|| next.open(Some(&before), false)).await?;
        ensure!(
            region.acls(vpc).await? == open,
            "the right ended after call {calls}"
        );
    }
    ensure!(ended > 10, "it was ended {ended} times only");
    Ok(())
}

/// EC2 is eventually consistent: a list of ACLs may be older than the ACL of the isolation. The subnets do
/// not count as open, and the ACL does not stay.
pub async fn an_acl_that_is_not_listed_yet_does_not_count_as_opened(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "eu-north-1").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    let open = region.acls(vpc).await?;
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let acl = ZoneAcl::new(ec2, SHOOT, vpc, "once");
    acl.read_former_acls(&subnets, None).await?;

    region.proxy.delay(Some("DescribeNetworkAcls"));
    let before = acl.make(&acl.read_former_acls(&subnets, None).await?).await?;
    let direct = ZoneAcl::new(region.direct.clone(), SHOOT, vpc, "once");
    direct.close(&subnets, &before).await?;
    ensure!(
        acl.read_former_acls(&subnets, None)
            .await?
            .isolation_acl
            .is_none(),
        "the list is not delayed"
    );
    until_done(|| acl.open(Some(&before), false)).await?;
    let opened = region.acls(vpc).await?;
    ensure!(opened == open, "it counts as opened: {opened:#?} was {open:#?}");
    Ok(())
}

/// A seed died after creating the ACL of an isolation: the ACL must not hold the VPC.
pub async fn a_deletion_removes_an_acl_that_was_left(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "af-south-1").await?;
    let (status, state) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let subnets = status.subnets_of(&zone);
    close(
        &ZoneAcl::new(region.direct.clone(), SHOOT, vpc, "once"),
        &subnets,
        None,
    )
    .await?;
    let names = Names::for_cluster(SHOOT);
    until_done(|| remove(&region.direct, &names, &state)).await?;
    let left = refused(region.direct.owned_network_acls(&names.owned()).await)?;
    ensure!(left.is_empty(), "{left:#?}");
    Ok(())
}
