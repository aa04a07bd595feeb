//! Machines: each is there once, is found again, and is gone when that is said.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, ensure};
use api::meta::ErrorCode;
use aws_fixture::{
    proxy::Fault,
    region::{Region, SHOOT, right, until_done},
};
use cloud_aws::{
    Tagged,
    infrastructure::{InfrastructureStatus, Made},
    instances::Instance,
    machines::{LISTED_WITHIN, Machines, ProviderId, ProviderSpec, RootVolume},
};
use permit::Permit;
use runtime::Error;
use testkit::Moto;

/// An image that moto has.
const IMAGE: &str = "ami-1e749f67";
/// The user data of a machine; longer than a line of Base64.
const USER_DATA: &str = "#!/bin/sh\n# a token that nobody may see in a log: s3cret\n";

/// The spec of machines in the first zone.
pub fn spec(region: &Region, status: &InfrastructureStatus) -> ProviderSpec {
    let [zone, _] = region.zones();
    ProviderSpec {
        ami: IMAGE.into(),
        machine_type: "m5.large".into(),
        subnet_id: status.subnet_for_nodes(&zone).unwrap().to_owned(),
        security_group_ids: status.groups_of_nodes(),
        root_volume: Some(RootVolume {
            size_gib: 50,
            type_: Some("gp3".into()),
            encrypted: true,
        }),
        ..ProviderSpec::new(SHOOT, "any")
    }
}

/// Brings up a machine like the controllers: always with a lookup first.
pub async fn bring(machines: &Machines, name: &str, spec: &ProviderSpec) -> runtime::Result<Instance> {
    match machines.find(name, None).await? {
        Some(found) => Ok(found),
        None => machines.launch(name, spec, USER_DATA).await,
    }
}

/// Two machines are launched, found by name and by id, and terminated. No fault of a call makes a second
/// instance.
pub async fn come_and_go(region: &Region, made: &Made, fault: Fault) -> Result<()> {
    let machines = Machines::for_cluster(region.ec2(&Permit::sole("a test"))?, SHOOT);
    let spec = spec(region, &made.status);
    let [zone, _] = region.zones();
    let mut ids = BTreeSet::new();
    for name in ["pool-a-x1", "pool-a-x2"] {
        region.proxy.set(fault);
        let (instance, _) = until_done(|| bring(&machines, name, &spec)).await?;
        region.proxy.set(Fault::None);
        let id = ProviderId::from(&instance);
        ensure!(id.zone == zone && instance.name() == name, "{instance:?}");
        for known in [None, Some(&id)] {
            let found = machines.find(name, known).await?;
            ensure!(found.as_ref().map(Tagged::id) == Some(&id.id), "{found:?}");
        }
        ensure!(
            bring(&machines, name, &spec).await?.instance_id == id.id,
            "{name} is there twice"
        );
        ids.insert(id.id);
    }
    let listed: Vec<Instance> = machines.list().await?;
    let listed: BTreeSet<_> = listed.into_iter().map(|instance| instance.instance_id).collect();
    ensure!(listed == ids, "{listed:?} were {ids:?}");

    for name in ["pool-a-x1", "pool-a-x2"] {
        let found = machines
            .find(name, None)
            .await?
            .map(|found| ProviderId::from(&found));
        region.proxy.set(fault);
        let ((), waited) = until_done(|| machines.terminate(name, found.as_ref(), Duration::ZERO)).await?;
        region.proxy.set(Fault::None);
        ensure!(waited > 0, "{name} was said to be gone before it was seen so");
        let from = region.proxy.calls().len();
        machines.terminate(name, found.as_ref(), Duration::ZERO).await?;
        let writes = region.proxy.writes_since(from);
        ensure!(writes.is_empty(), "what is gone is ended once more: {writes:?}");
        for known in [None, found.as_ref()] {
            let left = machines.find(name, known).await?;
            ensure!(left.is_none(), "{left:?}");
        }
    }
    ensure!(machines.list().await?.is_empty(), "machines are left");
    Ok(())
}

/// Two instances of a machine, made by hand: all callers see the same instance, and both are terminated.
/// Machines of a different cluster are left alone. A missing image and an unknown instance id get a distinct
/// error each.
pub async fn are_told_apart(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "ca-central-1").await?;
    let (status, _) = region.made().await?;
    let (ec2, spec) = (region.direct.clone(), spec(&region, &status));
    let machines = Machines::for_cluster(ec2.clone(), SHOOT);
    let others = Machines::for_cluster(ec2.clone(), "shoot--dev--two");
    let of_others = others.launch("pool-a-x1", &spec, USER_DATA).await?;
    ensure!(
        machines.list().await?.is_empty(),
        "machines of another shoot are listed"
    );
    ensure!(
        machines.find("pool-a-x1", None).await?.is_none(),
        "a machine of another shoot is found"
    );

    // moto knows no client tokens. So the second call launches a second instance, like a launch by hand.
    let one = machines.launch("pool-a-x1", &spec, USER_DATA).await?;
    let two = machines.launch("pool-a-x1", &spec, USER_DATA).await?;
    ensure!(
        one.instance_id != two.instance_id,
        "moto knows client tokens: say so in docs/operate/provider-aws.md"
    );
    let found = machines.find("pool-a-x1", None).await?;
    let lowest = one.instance_id.clone().min(two.instance_id.clone());
    ensure!(
        found.map(|found| found.instance_id) == Some(lowest),
        "the one with the lowest id is it"
    );
    let known = ProviderId::from(&one);
    until_done(|| machines.terminate("pool-a-x1", Some(&known), Duration::ZERO)).await?;
    ensure!(machines.list().await?.is_empty(), "one of two is left");
    let left = others.find("pool-a-x1", None).await?;
    ensure!(
        left.map(|left| left.instance_id) == Some(of_others.instance_id),
        "another shoot's machine is gone"
    );

    // A Machine that was carried to this seed names the instance of a different shoot.
    let stolen = ProviderId::from(&others.find("pool-a-x1", None).await?.unwrap());
    for outcome in [
        machines.find("pool-a-x8", Some(&stolen)).await.map(drop),
        machines
            .terminate("pool-a-x8", Some(&stolen), LISTED_WITHIN)
            .await,
    ] {
        let error = outcome.unwrap_err();
        ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error:?}");
        ensure!(error.to_string().contains("is left alone"), "{error}");
    }
    let left = others.list().await?;
    ensure!(left.len() == 1, "another shoot's machine is gone");

    let never = ProviderId {
        zone: "ca-central-1a".into(),
        id: "i-0123456789abcdef0".into(),
    };
    ensure!(
        machines.find("pool-a-x9", Some(&never)).await?.is_none(),
        "an id that nobody has is found"
    );
    // EC2 lists a new instance late, by tags and by id: such an instance is not gone.
    for known in [None, Some(&never)] {
        let soon = LISTED_WITHIN.saturating_sub(Duration::from_secs(1));
        let early = machines.terminate("pool-a-x9", known, soon).await;
        ensure!(
            matches!(&early, Err(Error::NotReady { why, .. }) if why.contains("lists no instance of pool-a-x9")),
            "{early:?}"
        );
        machines.terminate("pool-a-x9", known, LISTED_WITHIN).await?;
    }
    let wrong = ProviderSpec {
        ami: "ami-00000000".into(),
        ..spec
    };
    let error = machines.launch("pool-a-x3", &wrong, USER_DATA).await.unwrap_err();
    ensure!(error.codes() == [ErrorCode::ErrConfigurationProblem], "{error:?}");
    ensure!(error.to_string().contains("ami-00000000"), "{error}");
    Ok(())
}

/// The permit ends after each single call: no further request leaves, and the next owner finds the instance.
pub async fn are_made_once_although_a_right_ends(moto: &Moto) -> Result<()> {
    let region = Region::start(moto, "sa-east-1").await?;
    let (status, _) = region.made().await?;
    let spec = spec(&region, &status);
    for calls in 1.. {
        let issuer = right();
        region.proxy.end_after(calls, std::sync::Arc::clone(&issuer));
        let machines = Machines::for_cluster(region.ec2(&issuer.permit())?, SHOOT);
        let (name, from) = (format!("pool-b-x{calls}"), region.proxy.calls().len());
        let done = issuer.permit().guard(bring(&machines, &name, &spec)).await;
        let made = region.proxy.calls().len() - from;
        if made < calls {
            ensure!(matches!(done, Ok(Ok(_))) && calls > 3, "{done:?}");
            return Ok(());
        }
        ensure!(
            made == calls,
            "after its right had ended it made {} calls more",
            made - calls
        );
        let next = Machines::for_cluster(region.ec2(&Permit::sole("a test"))?, SHOOT);
        until_done(|| bring(&next, &name, &spec)).await?;
        let all = next.list().await?;
        let count = all.iter().filter(|instance| instance.name() == name).count();
        ensure!(count == 1, "{name} is there {count} times");
    }
    Ok(())
}
