//! EC2 is eventually consistent: a new object is not listed for a time, and lists come in pages.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use api::meta::ErrorCode;
use aws_fixture::{
    proxy::Fault,
    region::{Notebook, Region, SHOOT, is_complete, refused, until_shown},
};
use cloud_aws::{
    Tag, Tagged,
    infrastructure::{Names, NetworkParts, State, confirm_removal, remove},
    machines::{Machines, ProviderId},
};
use permit::Permit;
use runtime::Error;
use testkit::Moto;

use super::machines::{bring, spec};

/// How late EC2 lists objects in these tests.
const LAG: Duration = Duration::from_millis(300);
/// A bound of the wait for a list: longer than a first attempt takes on a busy machine.
const BOUND: Duration = Duration::from_secs(10);

// At the same time: each scenario has a separate region.
testkit::scenarios! {
    mod what_ec2_lists_late for Moto = Moto::start();
    at_once:
    parts_are_made_once,
    parts_are_made_once_although_answers_are_lost,
    of_two_vpcs_the_hidden_one_is_waited_for,
    an_object_of_others_is_named_when_the_bound_has_passed,
    a_deletion_waits_for_what_is_not_listed_yet,
    an_instance_is_made_once_and_is_not_gone,
    all_pages_are_read;
}

async fn parts_are_made_once(moto: &Moto) -> Result<()> {
    makes_parts_once(moto, "us-west-1", Fault::None).await
}

async fn parts_are_made_once_although_answers_are_lost(moto: &Moto) -> Result<()> {
    makes_parts_once(moto, "ap-south-1", Fault::LoseFirst).await
}

/// No part is made twice, no part counts as gone, and no conflict with a part of the shoot is an error of
/// configuration. The same holds when the first answer to each call is lost.
async fn makes_parts_once(moto: &Moto, name: &'static str, fault: Fault) -> Result<()> {
    let region = Region::start(moto, name).await?;
    let (names, plan, notebook) = (Names::for_cluster(SHOOT), region.plan()?, Notebook::default());
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    region.proxy.set(fault);
    region.proxy.lag(LAG);
    let (made, awaited) = until_shown(|| notebook.make(&ec2, &names, &plan)).await?;
    is_complete(&region.list_parts().await?)?;
    let why = "does not show";
    ensure!(awaited.iter().any(|said| said.contains(why)), "{awaited:?}");
    ensure!(made.state.unlisted.is_empty(), "{:?}", made.state);
    let counts = region.proxy.counts();
    for (action, times) in [
        ("CreateVpc", 1),
        ("CreateInternetGateway", 1),
        ("CreateRouteTable", 3),
        ("AllocateAddress", 2),
        ("CreateNatGateway", 2),
    ] {
        ensure!(counts.get(action) == Some(&times), "{action}: {counts:?}");
    }
    let from = region.proxy.calls().len();
    let again = notebook.make(&ec2, &names, &plan).await?;
    let writes = region.proxy.writes_since(from);
    ensure!(again == made && writes.is_empty(), "{writes:?}");

    until_shown(|| remove(&ec2, &names, &made.state)).await?;
    let left = format!("{:?}", region.list_parts().await?);
    ensure!(left == format!("{:?}", NetworkParts::default()), "{left}");
    Ok(())
}

/// The VPC in use is recorded, or the subnets show the VPC. The second VPC is not used, and is removed when
/// both VPCs are listed.
async fn of_two_vpcs_the_hidden_one_is_waited_for(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "eu-west-3").await?;
    let (status, state) = region.made().await?;
    let (names, plan) = (Names::for_cluster(SHOOT), region.plan()?);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    for notebook in [Notebook::with(state.clone()), Notebook::default()] {
        let tags = names.tags(names.vpc());
        let second = refused(region.direct.create_vpc("10.250.0.0/16", &tags).await)?.vpc_id;
        region.proxy.hide("DescribeVpcs", &status.vpc.id);
        let from = region.proxy.calls().len();
        for _ in 0..3 {
            let error = notebook.make(&ec2, &names, &plan).await.unwrap_err();
            ensure!(error.class() == "NotReady", "{error}");
        }
        let writes = region.proxy.writes_since(from);
        ensure!(writes.is_empty(), "{writes:?}");

        region.proxy.show();
        let (made, _) = until_shown(|| notebook.make(&ec2, &names, &plan)).await?;
        ensure!(made.status == status, "{:?} was {status:?}", made.status);
        let found = region.list_parts().await?;
        ensure!(
            found.vpcs.iter().all(|vpc| vpc.vpc_id != second),
            "{second} is left"
        );
        is_complete(&found)?;
    }

    // The bound has passed: the VPC is gone, or belongs to a different account.
    region.proxy.hide("DescribeVpcs", &status.vpc.id);
    let late = region.ec2_listing_within(Duration::ZERO)?;
    let error = Notebook::with(state)
        .make(&late, &names, &plan)
        .await
        .unwrap_err();
    ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error}");
    ensure!(error.to_string().contains("put the tag back"), "{error}");
    Ok(())
}

/// The conflict may be with a part that is not listed yet. When the bound has passed, a foreign object is the
/// cause.
async fn an_object_of_others_is_named_when_the_bound_has_passed(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "me-south-1").await?;
    let (names, plan, notebook) = (Names::for_cluster(SHOOT), region.plan()?, Notebook::default());
    let ([zone, _], direct) = (region.zones(), &region.direct);
    let vpc = refused(direct.create_vpc("10.250.0.0/16", &names.tags(names.vpc())).await)?.vpc_id;
    let stranger = refused(
        direct
            .create_subnet(&vpc, &zone, "10.250.0.0/19", &[Tag::new("Name", "theirs")])
            .await,
    )?;
    let ec2 = region.ec2_listing_within(BOUND)?;
    let mut waited = 0;
    let error = loop {
        match notebook.make(&ec2, &names, &plan).await {
            Err(error) if error.is_retryable() => waited += 1,
            Err(error) => break error,
            Ok(_) => bail!("a subnet of others is used"),
        }
        tokio::time::sleep(LAG / 4).await;
    };
    ensure!(waited > 0, "it is not waited for the shoot's own subnet: {error}");
    ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error}");
    let said = error.to_string();
    ensure!(said.contains("a subnet of others in 10.250.0.0/19"), "{said}");
    refused(direct.delete_subnet(&stranger.subnet_id).await)?;
    until_shown(|| notebook.make(&ec2, &names, &plan)).await?;
    is_complete(&region.list_parts().await?)
}

/// The deletion of a Shoot whose network is still being made leaves no object.
async fn a_deletion_waits_for_what_is_not_listed_yet(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ap-northeast-2").await?;
    let (names, plan, notebook) = (Names::for_cluster(SHOOT), region.plan()?, Notebook::default());
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    // Longer than the steps here take on a slow machine.
    region.proxy.lag(Duration::from_secs(600));
    notebook.make(&ec2, &names, &plan).await.unwrap_err();
    let known = notebook.state().unwrap_or_default();
    let confirmed = confirm_removal(&ec2, &names, &known, &notebook).await;
    let awaited = confirmed.as_ref().is_err_and(Error::is_retryable);
    ensure!(awaited, "{known:?} is not waited for: {confirmed:?}");
    region.proxy.list_all();
    region.proxy.lag(3 * LAG);
    until_shown(|| confirm_removal(&ec2, &names, &known, &notebook)).await?;
    until_shown(|| remove(&ec2, &names, &known)).await?;
    let left = format!("{:?}", region.list_parts().await?);
    ensure!(left == format!("{:?}", NetworkParts::default()), "{left}");

    // The answer to a call was lost, and EC2 lists no object until the bound has passed.
    let lost = State {
        unlisted: [("vpc".to_owned(), runtime::clock::now())].into(),
        ..State::default()
    };
    let bounded = region.ec2_listing_within(BOUND)?;
    let ((), awaited) = until_shown(|| confirm_removal(&bounded, &names, &lost, &notebook)).await?;
    ensure!(!awaited.is_empty(), "a lost answer is not waited for");
    Ok(())
}

/// The machine's client token keeps the instance single, and an instance that is not listed is not gone, also
/// where EC2 lists a second instance of the machine.
async fn an_instance_is_made_once_and_is_not_gone(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ap-southeast-1").await?;
    let (status, _) = region.made().await?;
    let spec = spec(&region, &status);
    let machines = Machines::for_cluster(region.ec2(&Permit::sole("a test"))?, SHOOT);
    machines.find("pool-a-x1", None).await?;
    region.proxy.keep_tokens();
    region.proxy.lag(LAG);
    let one = bring(&machines, "pool-a-x1", &spec).await?;
    let again = bring(&machines, "pool-a-x1", &spec).await?;
    ensure!(one.instance_id == again.instance_id, "it is made twice");
    region.proxy.lag(Duration::ZERO);
    tokio::time::sleep(LAG).await;

    let known = ProviderId::from(&one);
    let direct = Machines::for_cluster(region.direct.clone(), SHOOT);
    let second = direct.launch("pool-a-x1", &spec, "true").await?;
    region.proxy.hide("DescribeInstances", one.id());
    let found = machines
        .find_launched("pool-a-x1", Some(&known), Duration::ZERO)
        .await;
    ensure!(matches!(found, Err(Error::NotReady { .. })), "{found:?}");
    for _ in 0..4 {
        let gone = machines
            .terminate("pool-a-x1", Some(&known), Duration::ZERO)
            .await;
        ensure!(matches!(gone, Err(Error::NotReady { .. })), "{gone:?}");
    }
    let left = direct.list().await?;
    let left: Vec<&str> = left.iter().map(Tagged::id).collect();
    ensure!(left == [one.id()], "{left:?} without {}", second.id());
    region.proxy.show();
    until_shown(|| machines.terminate("pool-a-x1", Some(&known), Duration::ZERO)).await?;
    ensure!(direct.list().await?.is_empty(), "an instance is left");
    Ok(())
}

/// Each list comes in pages, and half a list is none.
async fn all_pages_are_read(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ap-southeast-3").await?;
    let (status, _) = region.made().await?;
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    region.proxy.page();
    is_complete(&NetworkParts::list(&ec2, &Names::for_cluster(SHOOT)).await?)?;
    let zones = refused(ec2.zones().await)?;
    ensure!(zones == refused(region.direct.zones().await)?, "{zones:?}");
    let acls = refused(ec2.network_acls(&status.vpc.id).await)?;
    ensure!(
        acls == refused(region.direct.network_acls(&status.vpc.id).await)?,
        "{acls:?}"
    );
    let direct = Machines::for_cluster(region.direct.clone(), SHOOT);
    for name in ["pool-a-x1", "pool-a-x2", "pool-a-x3"] {
        direct.launch(name, &spec(&region, &status), "true").await?;
    }
    let listed = Machines::for_cluster(ec2, SHOOT).list().await?;
    ensure!(listed.len() == 3, "{listed:?}");
    Ok(())
}
