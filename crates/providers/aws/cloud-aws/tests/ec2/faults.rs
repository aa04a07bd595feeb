//! Faults of EC2 that a client handles in place, and refusals with a misleading code.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use aws_fixture::{
    proxy::Fault,
    region::{Region, credentials, refused},
};
use cloud_aws::Ec2Access;
use permit::Permit;
use runtime::client::Credentials;
use testkit::Moto;

// In sequence: the scenarios count the calls in a single region.
testkit::scenarios! {
    mod faults_of_ec2 for Moto = Moto::start();
    in_sequence:
    who_is_throttled_gives_up_in_time,
    a_call_that_only_reads_is_repeated_in_place,
    a_wrong_clock_is_reported_as_a_wrong_clock,
    a_refusal_names_the_service,
    temporary_keys_are_sent_with_their_session_token;
}

/// The pauses have an end: the waiting caller then gets the error.
async fn who_is_throttled_gives_up_in_time(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "us-west-2").await?;
    region.proxy.set(Fault::ThrottleAll);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let error = refused(ec2.zones().await).unwrap_err();
    ensure!(error.class() == "Transient", "{error:?}");
    ensure!(error.to_string().contains("RequestLimitExceeded"), "{error}");
    ensure!(region.proxy.calls().len() == 6, "{:?}", region.proxy.calls());
    Ok(())
}

/// After a fault of EC2 or of the connection a call that only reads costs a pause, and no attempt of the
/// waiting object. A call that changes an object may have been carried out, and is not repeated.
async fn a_call_that_only_reads_is_repeated_in_place(moto: &Moto) -> Result<()> {
    for fault in [Fault::FailFirst, Fault::LoseFirst] {
        let region = Region::start(moto, "us-west-2").await?;
        region.proxy.set(fault);
        let ec2 = region.ec2(&Permit::sole("a test"))?;
        ensure!(!refused(ec2.zones().await)?.is_empty(), "{fault:?}");
        ensure!(region.proxy.calls().len() == 2, "{:?}", region.proxy.calls());
        let changed = ec2.allocate_address(&[]).await;
        ensure!(changed.is_err_and(|failed| failed.is_fault()), "{fault:?}");
        ensure!(region.proxy.calls().len() == 3, "{:?}", region.proxy.calls());
    }
    Ok(())
}

/// EC2 refuses a signature with a wrong time by the codes for wrong keys. The answer has EC2's time.
async fn a_wrong_clock_is_reported_as_a_wrong_clock(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "us-west-2").await?;
    region.proxy.set(Fault::Refuse);
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    let keys = refused(ec2.zones().await).unwrap_err();
    ensure!(keys.class() == "Config", "{keys}");

    region.proxy.set_clock("Wed, 01 Jan 2020 00:00:00 GMT");
    let clock = refused(ec2.zones().await).unwrap_err();
    ensure!(
        clock.class() == "Transient" && clock.codes().is_empty(),
        "{clock}"
    );
    let said = clock.to_string();
    ensure!(
        said.contains("s ahead of the clock of EC2: correct the time"),
        "{said}"
    );
    Ok(())
}

/// After a message about EC2 a user would check rights to EC2, while STS refuses.
async fn a_refusal_names_the_service(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "us-west-2").await?;
    let ec2 = region.ec2(&Permit::sole("a test"))?;
    region.proxy.set(Fault::Refuse);
    let by_sts = refused(ec2.account_id().await).unwrap_err().to_string();
    ensure!(
        by_sts.starts_with("STS refuses GetCallerIdentity") && !by_sts.contains("EC2"),
        "{by_sts}"
    );
    let by_ec2 = refused(ec2.zones().await).unwrap_err().to_string();
    ensure!(
        by_ec2.starts_with("EC2 refuses DescribeAvailabilityZones"),
        "{by_ec2}"
    );
    Ok(())
}

/// A Secret with temporary keys has a session token. A Secret without keys is refused before any call, so
/// that the client never asks the metadata service of the seed's instances instead.
async fn temporary_keys_are_sent_with_their_session_token(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "us-west-2").await?;
    let access = Ec2Access::new(Some(region.proxy.endpoint.clone()));
    let permit = Permit::sole("a test");
    let open = |data| access.open(&Credentials::new("garden/aws", data), "us-west-2", &permit);
    let mut data = credentials().data().clone();
    refused(open(data.clone())?.zones().await)?;
    ensure!(
        region.proxy.session_tokens().is_empty(),
        "a token comes from elsewhere"
    );
    data.insert("sessionToken".into(), b"t0ken".to_vec());
    refused(open(data.clone())?.zones().await)?;
    ensure!(
        region.proxy.session_tokens() == BTreeSet::from(["t0ken".to_owned()]),
        "no token"
    );

    data.remove("accessKeyID");
    let error = open(data)
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    ensure!(
        error.contains("garden/aws") && error.contains("accessKeyID"),
        "{error}"
    );
    Ok(())
}
