//! Infrastructure, machines and isolation of zones against EC2, simulated by moto
//! (docs/operate/provider-aws.md lists the differences). Each call is throttled, each call loses an answer
//! once, the permit ends after each call, and manual changes are fixed or left.
#![allow(clippy::unwrap_used, clippy::panic)]

mod faults;
mod foreign;
mod isolated_zone;
mod listing;
mod machines;
mod nat_failure;
mod recorded;
mod tenant;
mod zones;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use aws_fixture::{
    policy,
    proxy::Fault,
    region::{self, Notebook, Region, SHOOT, allow, is_complete, refused, until_done},
};
use cloud_aws::{
    Call, Tagged,
    infrastructure::{Made, Names, NetworkParts, remove},
    isolation::ZoneAcl,
};
use permit::Permit;
use testkit::Moto;

// At the same time: each scenario has a separate region, and mostly waits.
testkit::scenarios! {
    mod on_ec2 for Moto = Moto::start();
    at_once:
    a_shoot_converges,
    a_shoot_converges_although_answers_are_lost,
    a_shoot_converges_although_calls_are_throttled,
    zones::{
        what_is_changed_by_hand_is_left_or_told,
        a_seed_that_knows_nothing_opens_what_another_closed,
        a_right_that_ends_midway_stops_it,
        an_acl_that_is_not_listed_yet_does_not_count_as_opened,
        a_deletion_removes_an_acl_that_was_left,
    },
    machines::{are_told_apart, are_made_once_although_a_right_ends},
    isolated_zone::{holds_up_no_other_zone},
    nat_failure::{is_reported_and_paced},
    recorded::{parts_without_tags_are_removed};
}

async fn a_shoot_converges(moto: &Moto) -> Result<()> {
    life(moto, "eu-west-1", Fault::None).await
}

async fn a_shoot_converges_although_answers_are_lost(moto: &Moto) -> Result<()> {
    life(moto, "eu-central-1", Fault::LoseFirst).await
}

async fn a_shoot_converges_although_calls_are_throttled(moto: &Moto) -> Result<()> {
    life(moto, "us-east-1", Fault::ThrottleFirst).await
}

#[test]
fn the_page_names_the_rights_to_keys_of_disks() -> Result<()> {
    policy::covers_keys_of_disks()
}

/// The whole life of a shoot. At the end no object of the shoot is left, and the rights in
/// docs/operate/provider-aws.md equal the used rights.
async fn life(moto: &Moto, region: &'static str, fault: Fault) -> Result<()> {
    let region = Region::start(moto, region).await?;
    let names = Names::for_cluster(SHOOT);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let plan = region.plan()?;

    region.proxy.set(fault);
    let notebook = Notebook::default();
    let (made, failed) = until_done(|| notebook.make(&ec2, &names, &plan)).await?;
    ensure!(
        (failed > 20) == (fault == Fault::LoseFirst),
        "{fault:?}: {failed} attempts failed"
    );
    is_complete(&region.list_parts().await?)?;

    region.proxy.set(Fault::None);
    let from = region.proxy.calls().len();
    let again = notebook.make(&ec2, &names, &plan).await?;
    ensure!(again == made, "{again:?} was {made:?}");
    let writes = region.proxy.writes_since(from);
    ensure!(
        writes.is_empty(),
        "an infrastructure without changes writes {writes:?}"
    );

    region.proxy.set(fault);
    isolate(&region, &made).await?;
    mend(&region, &made).await?;

    machines::come_and_go(&region, &made, fault).await?;

    region.proxy.set(fault);
    until_done(|| remove(&ec2, &names, &made.state)).await?;
    let left = format!("{:?}", region.list_parts().await?);
    ensure!(left == format!("{:?}", NetworkParts::default()), "{left}");
    policy::equals(&region.proxy.counts())
}

/// Two rounds: closed, changed by hand, closed again, opened. Then each subnet has the former ACL, with all
/// rules.
async fn isolate(region: &Region, made: &Made) -> Result<()> {
    let [zone, _] = region.zones();
    let (subnets, vpc) = (made.status.subnets_of(&zone), &made.status.vpc.id);
    ensure!(subnets.len() == 2, "{subnets:?}");
    let acl = ZoneAcl::new(region.ec2(&Permit::sole("a test"))?, SHOOT, vpc, "once");
    let other = region.other_acl(vpc).await?;
    let one = subnets.first().unwrap();
    region.set_acl(vpc, one, &other).await?;
    let at_first = region.acls(vpc).await?;
    for _ in 0..2 {
        let (before, _) = until_done(|| region::close(&acl, &subnets, None)).await?;
        let ours = before.isolation_acl.clone().unwrap();
        let closed = region.acls(vpc).await?;
        ensure!(
            closed.acl_ids(&subnets) == BTreeSet::from([ours.clone()]),
            "{closed:#?}"
        );
        let open: Vec<_> = closed
            .subnets
            .iter()
            .filter(|(subnet, _)| !subnets.contains(*subnet))
            .collect();
        ensure!(
            open.len() == 2 && open.iter().all(|(_, acl)| **acl != ours),
            "another zone is closed: {closed:#?}"
        );
        ensure!(closed.rules[&ours].0.len() == 4, "{closed:#?}");

        // Manual changes: an added rule, a removed rule, a different ACL, a changed tag. Each change is
        // fixed.
        let deny = closed.rules[&ours].0[0].clone();
        let direct = &region.direct;
        for drift in 0..4 {
            match drift {
                0 => refused(direct.create_entry(&ours, &allow(5)).await)?,
                1 => refused(direct.delete_entry(&ours, &deny).await)?,
                2 => region.set_acl(vpc, one, &other).await?,
                _ => {
                    let key = format!("aws.provider.extensions.gardener.cloud/former-acl-of-{one}");
                    refused(direct.set_tags(&ours, &[cloud_aws::Tag::new(key, "wrong")]).await)?;
                }
            }
            ensure!(region.acls(vpc).await? != closed, "drift {drift} changes nothing");
            let (known, _) = until_done(|| region::close(&acl, &subnets, Some(&before))).await?;
            ensure!(known == before, "what was there before is forgotten: {known:?}");
            let mended = region.acls(vpc).await?;
            ensure!(mended == closed, "drift {drift}: {mended:#?} was {closed:#?}");
        }
        let from = region.proxy.calls().len();
        acl.close(&subnets, &before).await?;
        let calls: Vec<_> = region.proxy.calls().split_off(from);
        ensure!(calls == ["DescribeNetworkAcls"], "{calls:?}");

        let (changed, _) = until_done(|| acl.open(Some(&before), false)).await?;
        ensure!(changed.is_empty(), "{changed:?}");
        let opened = region.acls(vpc).await?;
        ensure!(opened == at_first, "{opened:#?} was {at_first:#?}");
        until_done(|| acl.open(Some(&before), false)).await?;
    }
    // Back to the default ACL of the VPC, so that the VPC can be removed.
    let default = region
        .direct
        .network_acls(vpc)
        .await?
        .into_iter()
        .find(|acl| acl.is_default)
        .unwrap();
    region.set_acl(vpc, one, &default.network_acl_id).await?;
    Ok(refused(region.direct.delete_network_acl(&other).await)?)
}

/// A part of an infrastructure that a user has removed is made again, and a duplicate part is removed.
async fn mend(region: &Region, made: &Made) -> Result<()> {
    let names = Names::for_cluster(SHOOT);
    let (ec2, plan) = (region.ec2(&Permit::sole("a test"))?, region.plan()?);
    let direct = &region.direct;
    let found = region.list_parts().await?;
    let gone = found.nats[0].nat_gateway_id.clone();
    refused(direct.delete_nat_gateway(&gone).await)?;
    // AWS disassociates the address of the gateway automatically.
    let address = found
        .addresses
        .iter()
        .find(|address| address.name() == found.nats[0].name())
        .unwrap();
    let association = address.association_id.clone().unwrap();
    refused(
        direct
            .tell(&Call::new("DisassociateAddress").with("AssociationId", association))
            .await,
    )?;
    refused(direct.create_vpc("10.250.0.0/16", &names.tags(names.vpc())).await)?;
    refused(direct.create_internet_gateway(&names.tags(names.vpc())).await)?;
    let table = found
        .tables
        .iter()
        .find(|table| table.name().contains("-private-"))
        .unwrap();
    refused(
        direct
            .create_route_table(&made.status.vpc.id, "again", &names.tags(table.name()))
            .await,
    )?;
    refused(
        direct
            .allocate_address(&names.tags(found.addresses[0].name()))
            .await,
    )?;
    let notebook = Notebook::with(made.state.clone());
    let (mended, _) = until_done(|| notebook.make(&ec2, &names, &plan)).await?;
    is_complete(&region.list_parts().await?)?;
    ensure!(
        mended.status == made.status,
        "{:?} was {:?}",
        mended.status,
        made.status
    );
    ensure!(
        !mended.state.ids.values().any(|id| *id == gone),
        "{:?}",
        mended.state
    );
    Ok(())
}
