//! A zone that hangs is closed in its budget (RZ-11, RZ-21, RZ-32): the Worker, the SubnetIsolation, the
//! machine controllers and the Infrastructure of the provider run against one API server, and EC2 gives the
//! answers of a sick zone. Each cause has a shoot, and all shoots are side by side.

use std::{collections::BTreeSet, convert::Infallible, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use api::{
    constants::{
        ISOLATED_ZONE_CLOSE_DEADLINE, ISOLATED_ZONE_PODS_FIRST, OPERATION, SHOOT_ISOLATED_ZONE_ORDER,
        operation::RECONCILE,
    },
    extensions::{Cluster, ExtensionObject, Infrastructure, SubnetIsolation, Worker},
    machine::{Machine, MachineDeployment, labels},
};
use aws_fixture::region::{Region, refused};
use cloud_aws::{
    Ec2Access,
    acls::Entry,
    infrastructure::{InfrastructureStatus, Names},
};
use extension::{
    Actuator, ExtensionReconciler, subnet_isolation::SubnetIsolationActuator, worker::WorkerActuator,
};
use futures::future::join_all;
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::Time};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{ListParams, PostParams},
    config::KubeConfigOptions,
};
use machine_controllers::Timing;
use provider_aws::{
    account::AccountAccess, infrastructure::InfrastructureActuator, subnet_isolation::AwsZones,
    worker::AwsMachines,
};
use provider_aws_fixture::{TEST, add_shoot, equip_shoot, object_of, reconciler, worker_of};
use runtime::clock;
use serde_json::{Value, json};
use testkit::{ControlPlane, Moto, Relay, eventually};
use tokio::time::MissedTickBehavior;

use crate::{
    managers,
    sick_ec2::{RecordedCall, SickAnswer, SickEc2},
};

/// Time until the deadline of the failover. Long enough for machines that leave without a hindrance.
const BUDGET: Duration = Duration::from_secs(8);
/// Time from the deadline until the network is closed.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);
/// Longer than two reports of a SubnetIsolation are apart.
const NAMED_WITHIN: Duration = Duration::from_secs(30);
/// Longer than each step before the failover takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// Pause between two operations on an object, in the place of the runner.
const PAUSE: Duration = Duration::from_millis(200);
/// A finalizer of a controller that is gone.
const HOLD: &str = "example.com/hold";
/// The calls that close the two subnets of a zone.
const CLOSES: &str = "ReplaceNetworkAclAssociation";

/// A hindrance, and the words of the status that name the hindrance.
struct Case {
    name: &'static str,
    /// moto lists the NAT gateways of all shoots in a region, so that each shoot has a region.
    region: &'static str,
    hindrance: Hindrance,
    /// `None` where the hindrance holds up nothing: all objects succeed.
    cause: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Hindrance {
    ShuttingDown,
    TerminationRefused(&'static str),
    SilentShoot,
    NatGateway(&'static str),
    WithoutSubnet,
    Finalizer,
}

static CASES: [Case; 8] = [
    Case {
        name: "hangs",
        region: "us-east-1",
        hindrance: Hindrance::ShuttingDown,
        cause: Some("shuts down"),
    },
    Case {
        name: "denied",
        region: "us-east-2",
        hindrance: Hindrance::TerminationRefused("UnauthorizedOperation"),
        cause: Some("UnauthorizedOperation"),
    },
    Case {
        name: "protected",
        region: "us-west-2",
        hindrance: Hindrance::TerminationRefused("OperationNotPermitted"),
        cause: Some("OperationNotPermitted"),
    },
    Case {
        name: "silent",
        region: "eu-west-1",
        hindrance: Hindrance::SilentShoot,
        cause: Some("the shoot's API does not answer"),
    },
    Case {
        name: "held",
        region: "eu-west-2",
        hindrance: Hindrance::Finalizer,
        cause: Some(HOLD),
    },
    Case {
        name: "pending",
        region: "eu-west-3",
        hindrance: Hindrance::NatGateway("pending"),
        cause: None,
    },
    Case {
        name: "failed",
        region: "eu-north-1",
        hindrance: Hindrance::NatGateway("failed"),
        cause: None,
    },
    Case {
        name: "unlisted",
        region: "ap-south-1",
        hindrance: Hindrance::WithoutSubnet,
        cause: None,
    },
];

/// The zone's network is closed at the deadline, the status names the cause, and no object is made there.
pub async fn is_closed_in_its_budget(moto: &Moto, plane: &ControlPlane) -> Result<()> {
    let client = plane.admin();
    let cases = CASES.iter().map(|case| async {
        let stage = Box::pin(Stage::set(moto, &client, case)).await?;
        Box::pin(stage.play()).await
    });
    let ended = join_all(cases).await;
    let failures: Vec<String> = CASES
        .iter()
        .zip(ended)
        .filter_map(|(case, ended)| Some(format!("{}: {:#}", case.name, ended.err()?)))
        .collect();
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// An object, and the reconciler of the object.
struct Operated<K, A> {
    by: ExtensionReconciler<K, A>,
    api: Api<K>,
    object: K,
}

impl<K, A> Operated<K, A>
where
    K: ExtensionObject + Resource<Scope = NamespaceResourceScope>,
    A: Actuator<K>,
{
    async fn create(client: &Client, actuator: A, object: &K) -> Result<Self> {
        let api = Api::namespaced(client.clone(), &object.namespace().context("no namespace")?);
        Ok(Self {
            by: reconciler(client, actuator),
            object: api.create(&PostParams::default(), object).await?,
            api,
        })
    }

    /// Runs the operation until the operation succeeds. Returns the provider's status.
    async fn succeed(&self) -> Result<Value> {
        let kind = K::kind(&());
        eventually(&format!("the {kind} succeeds"), SOON, || async {
            Box::pin(self.by.run(&self.object)).await.map(drop)
        })
        .await?;
        let object = self.api.get(&self.object.name_any()).await?;
        let status = object.default_status().cloned().unwrap_or_default();
        Ok(status.provider_status.unwrap_or_default().0)
    }

    async fn reconcile(&self) -> Result<Value> {
        TEST.annotate(&self.api, &self.object.name_any(), OPERATION, Some(RECONCILE))
            .await?;
        self.succeed().await
    }

    /// Runs operations without an end.
    async fn keep_running(&self) -> Infallible {
        let mut pause = tokio::time::interval(PAUSE);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            pause.tick().await;
            // The status reports the outcome.
            let _reported = Box::pin(self.by.run(&self.object)).await;
        }
    }

    /// The last operation and the last error.
    async fn report(&self) -> Result<String> {
        let object = self.api.get(&self.object.name_any()).await?;
        let status = object.default_status().cloned().unwrap_or_default();
        let operation = status.last_operation.map(|last| last.description);
        let error = status.last_error.map(|last| last.description);
        Ok(format!(
            "{}; {}",
            operation.unwrap_or_default(),
            error.unwrap_or_default()
        ))
    }
}

/// A shoot with a machine in each of two zones.
struct Stage<'a> {
    case: &'a Case,
    shoot: String,
    client: &'a Client,
    region: Region,
    ec2: SickEc2,
    relay: Relay,
    infrastructure: Operated<Infrastructure, InfrastructureActuator>,
    worker: Operated<Worker, WorkerActuator<AwsMachines>>,
    place: AccountAccess,
    network: InfrastructureStatus,
    _tasks: [tokio::task::JoinSet<()>; 2],
}

impl<'a> Stage<'a> {
    async fn set(moto: &Moto, client: &'a Client, case: &'a Case) -> Result<Self> {
        let shoot = format!("shoot--sick--{}", case.name);
        let region = Region::start(moto, case.region).await?;
        add_shoot(client, &shoot, case.region).await?;
        equip_shoot(
            client,
            &shoot,
            case.region,
            b"for a process; the test runs the process".to_vec(),
        )
        .await?;
        let (ec2, relay) = (SickEc2::start(moto).await?, Relay::start(client.clone()).await?);
        let config =
            Config::from_custom_kubeconfig(relay.kubeconfig()?, &KubeConfigOptions::default()).await?;
        let timing = Timing {
            poll_interval: Duration::from_millis(300),
            ..Timing::default()
        };
        let nodes = Client::try_from(config)?;
        let tasks = [
            managers::manage_in(&shoot, client, &nodes, &ec2.endpoint, timing),
            managers::play_nodes_of(&shoot, client, client),
        ];
        let place = AccountAccess {
            access: Ec2Access::with_bound(Some(ec2.endpoint.clone()), Duration::ZERO),
        };
        let config = json!({"providerConfig": region.config()});
        let object: Infrastructure = object_of(&shoot, "one", case.region, config)?;
        let infrastructure = Operated::create(client, InfrastructureActuator(place.clone()), &object).await?;
        let made = infrastructure.succeed().await?;
        let machines = AwsMachines {
            manager_image: "machine-controller-manager-aws:test".into(),
            manager_environment: Vec::new(),
            place: place.clone(),
        };
        let object = worker_of(&shoot, case.region, &made, &region.zones(), [2, 4])?;
        let worker = Operated::create(client, WorkerActuator(machines), &object).await?;
        worker.succeed().await?;
        Ok(Self {
            case,
            shoot,
            client,
            region,
            ec2,
            relay,
            infrastructure,
            worker,
            place,
            network: serde_json::from_value(made)?,
            _tasks: tasks,
        })
    }

    async fn play(&self) -> Result<()> {
        let sick = &self.region.zones()[0];
        let zone = self.network.zones.iter().find(|zone| zone.name == *sick);
        let id = &zone.context("the zone has no ID")?.id;
        let before = self.machines_in(sick).await?;
        ensure!(before.len() == 1, "{} machines in the zone", before.len());

        self.hinder(sick).await?;
        let from = self.ec2.calls_after(0).len();
        self.isolate_in_cluster(id).await?;
        self.infrastructure.reconcile().await?;
        let deadline = Time(clock::now() + BUDGET);
        let annotations =
            json!({(OPERATION): RECONCILE, (ISOLATED_ZONE_CLOSE_DEADLINE): deadline.0.to_string()});
        let asked = json!({"metadata": {"annotations": annotations}, "spec": {"isolatedZoneID": id}});
        TEST.merge(&self.worker.api, "one", &asked).await?;
        self.worker.succeed().await?;

        let mut isolation: SubnetIsolation = object_of(
            &self.shoot,
            "one",
            self.case.region,
            json!({"isolatedZoneID": id, "infrastructureProviderStatus": self.network}),
        )?;
        let recorded = (ISOLATED_ZONE_CLOSE_DEADLINE.to_owned(), deadline.0.to_string());
        isolation.annotations_mut().extend([recorded]);
        let network = SubnetIsolationActuator(AwsZones(self.place.clone()));
        let isolation = Operated::create(self.client, network, &isolation).await?;
        let closing = async {
            self.closed(sick, from, &deadline).await?;
            match self.case.cause {
                Some(cause) => is_named(&isolation, cause).await,
                None => Ok(()),
            }
        };
        tokio::select! {
            named = closing => named?,
            never = isolation.keep_running() => match never {},
        }
        if self.case.cause.is_none() {
            isolation.succeed().await?;
        }
        self.is_asked_to_leave_first(sick, from).await?;
        self.nothing_is_made(sick, from, &before).await?;
        let is_of_cloud = !matches!(self.case.hindrance, Hindrance::SilentShoot | Hindrance::Finalizer);
        ensure!(
            !is_of_cloud || self.ec2.changed_answers() > 0,
            "EC2 gave no answer of a sick zone"
        );
        Ok(())
    }

    async fn hinder(&self, sick: &str) -> Result<()> {
        let answer = match self.case.hindrance {
            Hindrance::ShuttingDown => SickAnswer::ShuttingDown,
            Hindrance::TerminationRefused(code) => SickAnswer::TerminationRefused(code),
            Hindrance::NatGateway(state) => {
                let owned = Names::for_cluster(&self.shoot).owned();
                let all = refused(self.region.direct.nat_gateways(&owned).await)?;
                let subnets = self.network.subnets_of(sick);
                let gateway = all.into_iter().find(|nat| subnets.contains(&nat.subnet_id));
                let id = gateway.context("the zone has no NAT gateway")?.nat_gateway_id;
                SickAnswer::NatGateway { id, state }
            }
            Hindrance::WithoutSubnet => {
                let subnet = self.network.subnet_for_nodes(sick);
                SickAnswer::WithoutSubnet(subnet.context("the zone has no subnet")?.to_owned())
            }
            Hindrance::SilentShoot => {
                self.relay.hold_after(0);
                return Ok(());
            }
            Hindrance::Finalizer => return self.hold_deployment(sick).await,
        };
        self.ec2.fall_sick(answer);
        Ok(())
    }

    async fn hold_deployment(&self, sick: &str) -> Result<()> {
        let deployments: Api<MachineDeployment> = Api::namespaced(self.client.clone(), &self.shoot);
        let found = deployments.list(&in_zone(sick)).await?.items;
        let [deployment] = found.as_slice() else {
            bail!("{} deployments in the zone", found.len());
        };
        let mut finalizers = deployment.finalizers().to_vec();
        finalizers.push(HOLD.to_owned());
        let held = json!({"metadata": {"finalizers": finalizers}});
        TEST.merge(&deployments, &deployment.name_any(), &held).await?;
        Ok(())
    }

    /// Records in the Cluster that a failover is under way, and that pods leave the zone first.
    async fn isolate_in_cluster(&self, id: &str) -> Result<()> {
        let status =
            json!({"zoneIsolation": {"phase": "Failover", "status": "InProgress", "isolatedZoneID": id}});
        let annotations = json!({(SHOOT_ISOLATED_ZONE_ORDER): ISOLATED_ZONE_PODS_FIRST});
        let shoot = json!({"metadata": {"annotations": annotations}, "status": status});
        let clusters: Api<Cluster> = Api::all(self.client.clone());
        TEST.merge(&clusters, &self.shoot, &json!({"spec": {"shoot": shoot}}))
            .await?;
        Ok(())
    }

    /// Waits until the subnets of the zone have the ACL that denies everything.
    async fn closed(&self, sick: &str, from: usize, deadline: &Time) -> Result<()> {
        let vpc = &self.network.vpc.id;
        let subnets = self.network.subnets_of(sick);
        let limit = BUDGET + CLOSED_WITHIN;
        eventually("the network of the zone is closed", limit, || async {
            let closing = self.ec2.calls_after(from);
            let closing = closing.iter().filter(|call| call.action == CLOSES).count();
            ensure!(
                closing >= subnets.len(),
                "{closing} of {} subnets are closed",
                subnets.len()
            );
            let acls = self.region.acls(vpc).await?;
            let of_zone = acls.acl_ids(&subnets);
            let [acl] = of_zone.iter().collect::<Vec<_>>()[..] else {
                bail!("the subnets have the ACLs {of_zone:?}");
            };
            let is_elsewhere = |(subnet, of): (&String, &String)| of == acl && !subnets.contains(subnet);
            ensure!(
                !acls.subnets.iter().any(is_elsewhere),
                "another zone is closed: {acls:?}"
            );
            let mut denied: Vec<Entry> = acls.rules[acl].0.clone();
            denied.retain(|entry| entry.rule_number < 32_767);
            let mut all = Entry::that_deny_all();
            all.sort();
            ensure!(denied == all, "packets pass: {denied:?}");
            anyhow::Ok(())
        })
        .await?;
        let closed = self.first_call(CLOSES, from)?;
        ensure!(
            self.case.cause.is_none() || closed.at.0 >= deadline.0,
            "closed at {:?}, before the deadline {deadline:?}",
            closed.at
        );
        let late = closed.at.0.duration_since(deadline.0);
        ensure!(
            late.as_secs_f64() <= CLOSED_WITHIN.as_secs_f64(),
            "closed {late:?} after the deadline"
        );
        Ok(())
    }

    fn first_call(&self, action: &str, from: usize) -> Result<RecordedCall> {
        let calls = self.ec2.calls_after(from);
        let call = calls.into_iter().find(|call| call.action == action);
        call.with_context(|| format!("EC2 was not asked for {action}"))
    }

    /// The machine of the zone has been asked to leave before the network was closed.
    async fn is_asked_to_leave_first(&self, sick: &str, from: usize) -> Result<()> {
        let closed = self.first_call(CLOSES, from)?.at;
        let left = self.machines_in(sick).await?;
        for machine in &left {
            let asked = machine.metadata.deletion_timestamp.as_ref();
            ensure!(
                asked.is_some_and(|asked| asked.0 <= closed.0),
                "{} was asked to leave at {asked:?}, and the network was closed at {closed:?}",
                machine.name_any()
            );
        }
        if left.is_empty() {
            let terminated = self.first_call("TerminateInstances", from)?.at;
            ensure!(
                terminated.0 <= closed.0,
                "terminated at {terminated:?}, closed at {closed:?}"
            );
        }
        Ok(())
    }

    /// Nothing new is in the zone: no instance, no Machine and no part of the network.
    async fn nothing_is_made(&self, sick: &str, from: usize, before: &[Machine]) -> Result<()> {
        let subnets = self.network.subnets_of(sick);
        for call in self.ec2.calls_after(from) {
            let is_in_zone = subnets.iter().any(|subnet| call.form.contains(subnet.as_str()));
            let is_made = match call.action.as_str() {
                "CreateTags" | "CreateNetworkAcl" | "CreateNetworkAclEntry" => false,
                "RunInstances" => is_in_zone,
                action => action.starts_with("Create") || action == "AllocateAddress",
            };
            ensure!(!is_made, "{call:?}");
        }
        let names: BTreeSet<_> = before.iter().map(ResourceExt::name_any).collect();
        for machine in self.machines_in(sick).await? {
            ensure!(names.contains(&machine.name_any()), "{machine:?} is new");
        }
        Ok(())
    }

    async fn machines_in(&self, zone: &str) -> Result<Vec<Machine>> {
        let machines: Api<Machine> = Api::namespaced(self.client.clone(), &self.shoot);
        Ok(machines.list(&in_zone(zone)).await?.items)
    }
}

fn in_zone(zone: &str) -> ListParams {
    ListParams::default().labels(&format!("{}={zone}", labels::ZONE))
}

/// The status says that the network is closed, and names the cause of the rest.
async fn is_named<A: Actuator<SubnetIsolation>>(
    isolation: &Operated<SubnetIsolation, A>,
    cause: &str,
) -> Result<()> {
    eventually(&format!("{cause:?} is named"), NAMED_WITHIN, || async {
        let report = isolation.report().await?;
        ensure!(report.contains("is closed") && report.contains(cause), "{report}");
        anyhow::Ok(())
    })
    .await
}
