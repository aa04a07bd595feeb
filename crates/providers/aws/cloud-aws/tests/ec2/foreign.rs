//! Keys of a different account, objects of a second garden, and manual changes of a closed zone: no object
//! counts as gone, no foreign object is taken, and a zone stays closed.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::meta::ErrorCode;
use aws_fixture::{
    keys::{HOME, OTHER, issue},
    region::{Notebook, Region, SHOOT, allow, close, is_complete, refused, until_done},
};
use cloud_aws::{
    Call, Ec2, Ec2Access, Tag,
    identity::{CONFIRMED_ACCOUNT, HomeAccount},
    infrastructure::{InfrastructureStatus, Names, State, confirm_removal, remove},
    isolation::{Before, ZoneAcl},
    machines::{LISTED_WITHIN, Machines, ProviderId},
    tags::SHOOT_UID,
};
use permit::Permit;
use runtime::Error;
use testkit::Moto;

use super::machines::spec;

testkit::scenarios! {
    mod keys_of_a_different_account_prove_nothing for Moto = Moto::start();
    at_once:
    a_network_is_not_gone,
    a_closed_zone_and_instances_are_not_gone,
    an_account_is_adopted_while_the_vpc_is_shown;
}

testkit::scenarios! {
    mod a_second_garden_takes_no_object for Moto = Moto::start();
    at_once:
    objects_of_a_second_garden_are_refused,
    an_acl_with_changed_tags_closes_the_zone,
    an_acl_that_was_removed_is_replaced_and_reported,
    a_missing_subnet_keeps_no_other_subnet_open,
    objects_that_nothing_claims_are_not_removed;
}

/// No object is made in the foreign account, and a deletion does not succeed.
async fn a_network_is_not_gone(moto: &Moto) -> Result<()> {
    let region = "eu-west-1";
    let (names, home) = (Names::for_cluster(SHOOT), Region::start(moto, region).await?);
    let (status, state) = home.made().await?;
    ensure!(state.account_id.as_deref() == Some(HOME), "{state:?}");
    ensure!(status.account_id.as_deref() == Some(HOME), "{status:?}");

    let other = keys_of(moto, OTHER, region).await?;
    ensure!(
        refused(other.account_id().await)? == OTHER,
        "the keys are of no other account"
    );
    let notebook = Notebook::with(state.clone());
    names_both_accounts(notebook.make(&other, &names, &home.plan()?).await)?;
    names_both_accounts(confirm_removal(&other, &names, &state, &notebook).await)?;
    let made = refused(other.vpcs(&names.owned()).await)?;
    ensure!(made.is_empty(), "{made:?} was made in the other account");

    // The VPC is not made yet: the answer to the call was lost.
    let begun = State {
        account_id: state.account_id.clone(),
        ..State::default()
    };
    names_both_accounts(Notebook::with(begun).make(&other, &names, &home.plan()?).await)?;

    // With the right keys again the network is unchanged.
    let again = notebook.make(&home.direct, &names, &home.plan()?).await?;
    ensure!(again.status == status, "{:?} was {status:?}", again.status);
    confirm_removal(&home.direct, &names, &state, &notebook).await?;
    Ok(())
}

async fn a_closed_zone_and_instances_are_not_gone(moto: &Moto) -> Result<()> {
    let region = "eu-central-1";
    let home = Region::start(moto, region).await?;
    let (status, state) = home.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, home.zones());
    let subnets = status.subnets_of(&zone);
    let by = |ec2: &Ec2| ZoneAcl::new(ec2.clone(), SHOOT, vpc, "once").in_account(state.home());
    let before = close(&by(&home.direct), &subnets, None).await?;
    let closed = home.acls(vpc).await?;

    let other = keys_of(moto, OTHER, region).await?;
    names_both_accounts(by(&other).read_former_acls(&subnets, Some(&before)).await)?;
    for deleting in [false, true] {
        names_both_accounts(by(&other).open(Some(&before), deleting).await)?;
    }
    let left = home.acls(vpc).await?;
    ensure!(left == closed, "{left:#?} was {closed:#?}");
    by(&home.direct).open(Some(&before), false).await?;

    let machines =
        |ec2: &Ec2| Machines::for_cluster(ec2.clone(), SHOOT).in_account(HomeAccount::new(Some(HOME)));
    let known = format!("aws:///{zone}/i-0123456789abcdef0");
    let known: ProviderId = known.parse().map_err(anyhow::Error::msg)?;
    for known in [None, Some(&known)] {
        let ended = machines(&other).terminate("a-x1", known, LISTED_WITHIN).await;
        names_both_accounts(ended)?;
        machines(&home.direct)
            .terminate("a-x1", known, LISTED_WITHIN)
            .await?;
    }
    names_both_accounts(
        machines(&other)
            .find_launched("a-x1", Some(&known), LISTED_WITHIN)
            .await,
    )?;
    names_both_accounts(machines(&other).list().await)?;

    // No account is recorded: keys that show the subnet of the machines prove the account.
    let subnet = subnets.first().context("no subnet")?;
    let by_subnet = |ec2: &Ec2| {
        let home = HomeAccount::new(None).with_subnet(subnet);
        Machines::for_cluster(ec2.clone(), SHOOT).in_account(home)
    };
    let unproved = by_subnet(&other);
    let ended = unproved.terminate("a-x1", Some(&known), LISTED_WITHIN).await;
    let error = ended.err().context("the instance counts as gone")?;
    ensure!(error.codes() == [ErrorCode::ErrConfigurationProblem], "{error}");
    ensure!(
        error.to_string().contains(subnet) && error.to_string().contains(OTHER),
        "{error}"
    );
    by_subnet(&home.direct)
        .terminate("a-x1", Some(&known), LISTED_WITHIN)
        .await?;
    Ok(())
}

/// A state that is older than the record of the account gets the account only from keys that show the VPC.
async fn an_account_is_adopted_while_the_vpc_is_shown(moto: &Moto) -> Result<()> {
    let region = "us-east-1";
    let (names, home) = (Names::for_cluster(SHOOT), Region::start(moto, region).await?);
    let (_, state) = home.made().await?;
    let old = State {
        account_id: None,
        ..state.clone()
    };
    let account = |notebook: &Notebook| notebook.state().and_then(|state| state.account_id);

    let other = keys_of(moto, OTHER, region).await?;
    let notebook = Notebook::with(old.clone());
    let error = confirm_removal(&other, &names, &old, &notebook)
        .await
        .err()
        .context("the network counts as gone in an account that was never confirmed")?;
    ensure!(error.codes() == [ErrorCode::ErrConfigurationProblem], "{error}");
    let (text, confirmation) = (error.to_string(), format!("{CONFIRMED_ACCOUNT}={OTHER}"));
    ensure!(
        text.contains("no account is recorded") && text.contains(&confirmation),
        "{text}"
    );
    ensure!(text.contains("into the Secret"), "{text}");
    // The user confirms the account, or no part was ever made.
    let confirmed = State {
        account_id: Some(OTHER.to_owned()),
        ..state.clone()
    };
    for known in [confirmed, State::default()] {
        confirm_removal(&other, &names, &known, &Notebook::default()).await?;
    }
    let error = notebook.make(&other, &names, &home.plan()?).await;
    ensure!(error.is_err(), "a network of a different account is made anew");
    ensure!(account(&notebook).is_none(), "{:?}", notebook.state());

    confirm_removal(&home.direct, &names, &old, &notebook).await?;
    ensure!(
        account(&notebook).as_deref() == Some(HOME),
        "{:?}",
        notebook.state()
    );
    let notebook = Notebook::with(old);
    notebook.make(&home.direct, &names, &home.plan()?).await?;
    ensure!(
        account(&notebook).as_deref() == Some(HOME),
        "{:?}",
        notebook.state()
    );
    Ok(())
}

/// Objects that are older than the tag get the tag. A Shoot with a different uid changes and removes none of
/// these objects.
async fn objects_of_a_second_garden_are_refused(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "eu-west-1").await?;
    let [first, second] = ["uid-a", "uid-b"].map(|uid| Names::for_cluster(SHOOT).of_shoot(Some(uid)));
    let (_, state) = region.made().await?;
    let (plan, ec2) = (region.plan()?, region.ec2(&Permit::sole("a test"))?);
    let notebook = Notebook::with(state);
    let made = notebook.make(&ec2, &first, &plan).await?;
    let from = region.proxy.calls().len();
    ensure!(
        notebook.make(&ec2, &first, &plan).await? == made,
        "it is made anew"
    );
    let writes = region.proxy.writes_since(from);
    ensure!(writes.is_empty(), "the tag is written again: {writes:?}");
    ensure!(
        made.state.shoot_uid.as_deref() == Some("uid-a"),
        "{:?}",
        made.state
    );
    let found = region.list_parts().await?;
    is_complete(&found)?;
    let text = format!("{found:?}");
    let tagged = text.matches("uid-a").count();
    ensure!(tagged == 14, "{tagged} objects have the tag in {text}");

    let (vpc, [zone, _]) = (&made.status.vpc.id, region.zones());
    let subnets = made.status.subnets_of(&zone);
    let acl_of = |uid| ZoneAcl::new(ec2.clone(), SHOOT, vpc, "once").of_shoot(Some(uid));
    let before = close(&acl_of("uid-a"), &subnets, None).await?;
    let from = region.proxy.calls().len();
    let refusals = [
        acl_of("uid-b").read_former_acls(&subnets, None).await.err(),
        acl_of("uid-b").open(None, true).await.err(),
        Notebook::default().make(&ec2, &second, &plan).await.err(),
        confirm_removal(&ec2, &second, &made.state, &notebook).await.err(),
    ];
    for refusal in refusals {
        let error = refusal.context("objects of the first garden are used")?;
        ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error}");
        let text = error.to_string();
        let names_all = [SHOOT_UID, "uid-a", "uid-b", "use a different account"];
        ensure!(names_all.iter().all(|part| text.contains(part)), "{text}");
    }
    // A Shoot that could not be made is deleted, and leaves foreign objects alone.
    let nothing = State::default();
    confirm_removal(&ec2, &second, &nothing, &Notebook::default()).await?;
    remove(&ec2, &second, &nothing).await?;
    let writes = region.proxy.writes_since(from);
    ensure!(writes.is_empty(), "{writes:?} for the second garden");
    an_instance_of_a_second_garden_is_left_alone(&region, &ec2, &made.status).await?;

    acl_of("uid-a").open(Some(&before), false).await?;
    until_done(|| remove(&ec2, &first, &made.state)).await?;
    let left = region.list_parts().await?;
    ensure!(left.vpcs.is_empty(), "{left:?}");
    Ok(())
}

/// No orphan is collected and no machine is found by the name or the id of a foreign instance.
async fn an_instance_of_a_second_garden_is_left_alone(
    region: &Region,
    ec2: &Ec2,
    status: &InfrastructureStatus,
) -> Result<()> {
    let of = |uid| Machines::for_cluster(ec2.clone(), SHOOT).of_shoot(Some(uid));
    let (first, second) = (of("uid-a"), of("uid-b"));
    let instance = first.launch("a-x1", &spec(region, status), "").await?;
    let id = ProviderId::from(&instance);
    ensure!(
        first.find("a-x1", None).await?.is_some() && first.list().await?.len() == 1,
        "it is not found"
    );

    ensure!(
        second.list().await?.is_empty(),
        "it is an orphan of the second garden"
    );
    ensure!(
        second.find("a-x1", None).await?.is_none(),
        "it is a machine of the second garden"
    );
    second.terminate("a-x1", None, LISTED_WITHIN).await?;
    let error = second
        .terminate("a-x1", Some(&id), LISTED_WITHIN)
        .await
        .unwrap_err()
        .to_string();
    ensure!(error.contains("uid-a") && error.contains("left alone"), "{error}");
    ensure!(first.list().await?.len() == 1, "it was terminated");
    until_done(|| first.terminate("a-x1", Some(&id), LISTED_WITHIN)).await?;
    Ok(())
}

/// An administrator renames the ACL of a closed zone, or removes the tag of the cluster. The recorded id
/// counts.
async fn an_acl_with_changed_tags_closes_the_zone(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "eu-central-1").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let (subnets, direct) = (status.subnets_of(&zone), &region.direct);
    let acl = ZoneAcl::new(direct.clone(), SHOOT, vpc, "once");
    let open = region.acls(vpc).await?;
    let before = close(&acl, &subnets, None).await?;
    let ours = before.isolation_acl.clone().context("the ACL is not recorded")?;
    let closed = region.acls(vpc).await?;
    let cluster = Names::for_cluster(SHOOT).owned().key();
    let untag = Call::new("DeleteTags")
        .with("ResourceId.1", &ours)
        .with("Tag.1.Key", cluster);

    for change in 0..2 {
        match change {
            0 => refused(direct.set_tags(&ours, &[Tag::new("Name", "by-hand")]).await)?,
            _ => refused(direct.tell(&untag).await)?,
        }
        // A second change opens the zone: the ACL with the changed tags has to close the zone again.
        region
            .set_acl(
                vpc,
                subnets.first().unwrap(),
                &open.subnets[subnets.first().unwrap()],
            )
            .await?;
        let (known, _) = until_done(|| close(&acl, &subnets, Some(&before))).await?;
        ensure!(known == before, "{known:?} was {before:?}");
        let again = region.acls(vpc).await?;
        ensure!(again == closed, "{again:#?} was {closed:#?}");
    }
    refused(direct.set_tags(&ours, &[Tag::new("Name", "by-hand")]).await)?;
    until_done(|| acl.open(Some(&before), false)).await?;
    let opened = region.acls(vpc).await?;
    ensure!(opened == open, "{opened:#?} was {open:#?}");
    Ok(())
}

/// An administrator gives the subnets of a closed zone an ACL that lets packets pass, and removes the ACL of
/// the isolation.
async fn an_acl_that_was_removed_is_replaced_and_reported(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "us-east-1").await?;
    let (status, _) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let (subnets, direct) = (status.subnets_of(&zone), &region.direct);
    let acl = ZoneAcl::new(direct.clone(), SHOOT, vpc, "once");
    let open = region.acls(vpc).await?;
    let before = close(&acl, &subnets, None).await?;
    ensure!(
        acl.observe(&subnets, Some(&before)).await?.reopened.is_empty(),
        "nothing was changed"
    );
    let ours = before.isolation_acl.clone().context("the ACL is not recorded")?;
    let by_hand = region.other_acl(vpc).await?;
    for subnet in &subnets {
        region.set_acl(vpc, subnet, &by_hand).await?;
    }
    refused(direct.delete_network_acl(&ours).await)?;

    let reopened = acl.observe(&subnets, Some(&before)).await?.reopened;
    let text = reopened.join("; ");
    ensure!(
        reopened.len() == 3 && text.contains(&ours) && text.contains(&by_hand),
        "{text}"
    );
    let again = close(&acl, &subnets, Some(&before)).await?;
    let closed = region.acls(vpc).await?;
    let new = again.isolation_acl.clone().context("no ACL closes the zone")?;
    ensure!(
        new != ours && closed.acl_ids(&subnets) == BTreeSet::from([new.clone()]),
        "{closed:#?}"
    );
    ensure!(!closed.rules[&new].0.contains(&allow(10)), "{closed:#?}");
    ensure!(again.acls == before.acls, "{again:?} was {before:?}");
    acl.open(Some(&again), false).await?;
    let opened = region.acls(vpc).await?;
    ensure!(opened.subnets == open.subnets, "{opened:#?} was {open:#?}");
    Ok(())
}

/// A subnet that does not exist carries no packets. EC2 may not show yet a subnet that was just made. All
/// known subnets are closed at once, and the missing subnet counts as gone when the bound has passed.
async fn a_missing_subnet_keeps_no_other_subnet_open(moto: &Moto) -> Result<()> {
    const GONE: &str = "subnet-0123456789abcdef0";
    let region = Region::start(moto, "eu-west-2").await?;
    let (status, state) = region.made().await?;
    let (vpc, [zone, _]) = (&status.vpc.id, region.zones());
    let there = status.subnets_of(&zone);
    let mut subnets = there.clone();
    subnets.insert(GONE.to_owned());
    let by = |ec2: &Ec2| ZoneAcl::new(ec2.clone(), SHOOT, vpc, "once").in_account(state.home());

    let patient = by(&region.ec2_listing_within(Duration::from_secs(3600))?);
    let before: Before = patient
        .make(&patient.read_former_acls(&subnets, None).await?)
        .await?;
    let error = patient
        .close(&subnets, &before)
        .await
        .err()
        .context("it counts as gone at once")?;
    ensure!(
        error.is_retryable() && error.to_string().contains(GONE),
        "{error}"
    );
    let closed = region.acls(vpc).await?;
    let ours = before.isolation_acl.clone().context("the ACL is not recorded")?;
    ensure!(closed.acl_ids(&there) == BTreeSet::from([ours]), "{closed:#?}");

    let late = by(&region.ec2_listing_within(Duration::ZERO)?);
    let known = late.read_former_acls(&subnets, Some(&before)).await?;
    ensure!(known.missing == before.missing, "the time begins anew: {known:?}");
    let zone = late.close(&subnets, &known).await?;
    ensure!(zone.missing_subnets == [GONE], "{zone:?}");
    late.open(Some(&known), false).await?;
    Ok(())
}

/// An error of configuration with both account ids.
fn names_both_accounts<T>(result: runtime::Result<T>) -> Result<()> {
    let error: Error = result.err().context("keys of a different account are used")?;
    ensure!(error.codes() == [ErrorCode::ErrConfigurationProblem], "{error}");
    let text = error.to_string();
    ensure!(
        text.contains(HOME) && text.contains(OTHER) && text.contains("into the Secret"),
        "{text}"
    );
    Ok(())
}

/// EC2 with keys of an account.
async fn keys_of(moto: &Moto, account: &str, region: &str) -> Result<Ec2> {
    // EC2 lists all objects at once, so that a missing object counts as gone.
    let access = Ec2Access::with_bound(Some(moto.endpoint.clone()), Duration::ZERO);
    let keys = issue(moto, account).await?;
    Ok(access.open(&keys, region, &Permit::sole("a test"))?)
}

/// A different installation tags with the same cluster tag and no uid. A Shoot without a state removes no
/// object of this installation.
async fn objects_that_nothing_claims_are_not_removed(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ap-south-1").await?;
    let (status, state) = region.made().await?;
    let names = Names::for_cluster(SHOOT).of_shoot(Some("uid-of-a-new-shoot"));
    let notebook = Notebook::with(State::default());
    let removal = confirm_removal(&region.direct, &names, &State::default(), &notebook).await;
    let error = removal
        .err()
        .context("the removal of unclaimed objects is confirmed")?;
    ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error}");
    ensure!(
        error.to_string().contains("may belong to another installation"),
        "{error}"
    );
    ensure!(error.to_string().contains(&status.vpc.id), "{error}");
    // The state claims the objects of a Shoot that is older than the tag.
    confirm_removal(&region.direct, &names, &state, &notebook).await?;
    Ok(())
}
