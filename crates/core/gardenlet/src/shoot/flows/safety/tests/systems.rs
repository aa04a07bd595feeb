//! The rules for tasks that may change an external system, by the declarations of the parts.

use parts::{
    AllExtensions, ClaimSteps, ContainerRuntimes, ControlPlane, Departure, Deploy, Destroy, DnsRecords,
    ExternalSystem, Facts, FurtherExtensions, Infrastructure, Network, OperatingSystemConfigs, OwnerRecord,
    PartTask, Sleep, SubnetIsolation, Workers, Writers,
};

use super::{
    ASLEEP, DELETION, DESTINATION, FORCED, FlowKind, LEFT, RECONCILIATION, SOURCE, breaches, sample_inputs,
    samples::{self, CLAIMS, Sample, SampleInputs},
};
use crate::shoot::flows::{
    ShootFlow,
    extension_steps::{AfterKubeAPIServer, AfterWorker, BeforeKubeAPIServer},
    graph::{RETRY_LIMIT, Steps, graph},
};

/// The tasks of the owner record.
pub(super) const OF_OWNER_RECORD: [[&str; 2]; 3] = [
    <OwnerRecord as Deploy>::TASKS,
    [OwnerRecord::WITHDRAW[0].name(), OwnerRecord::WITHDRAW[1].name()],
    <OwnerRecord as Destroy>::TASKS,
];

/// I2, I3, R17-20..31: every rule of the module, for each flow under many conditions.
#[tokio::test]
async fn each_task_touches_an_external_system_only_as_the_owner() {
    let inputs = sample_inputs();
    let samples = samples::all(&inputs);
    let found: Vec<_> = samples.iter().flat_map(Sample::breaches).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// A rule without a task would hold for every flow.
#[tokio::test]
async fn each_flow_has_tasks_that_touch_an_external_system() {
    use ExternalSystem::{Bucket, Cloud, Dns};
    let inputs = sample_inputs();
    let drawn = samples::drawn(&inputs);
    for (title, [cloud, dns, bucket]) in [
        (SOURCE, [2, 2, 3]),
        (DESTINATION, [20, 3, 10]),
        (RECONCILIATION, [20, 3, 10]),
        (ASLEEP, [10, 3, 10]),
        (LEFT, [2, 2, 2]),
        (DELETION, [6, 2, 2]),
        (FORCED, [2, 2, 2]),
    ] {
        let sample = drawn.iter().find(|sample| sample.title == title).unwrap();
        for (system, at_least) in [(Cloud, cloud), (Dns, dns), (Bucket, bucket)] {
            let touches = sample.flow.touches();
            let count = touches.filter(|(_, systems)| systems.contains(&system)).count();
            assert!(count >= at_least, "{title}: {count} tasks touch {system}");
        }
    }
}

/// The provider of an extension resource may change the cloud, and the provider of a DNSRecord DNS.
#[test]
fn tasks_of_extension_resources_declare_the_system_of_the_provider() {
    let of_cloud = [
        Infrastructure::deploy_tasks(),
        ControlPlane::deploy_tasks(),
        ControlPlane::sleep_tasks(),
        Network::deploy_tasks(),
        Workers::deploy_tasks(),
        OperatingSystemConfigs::deploy_tasks(),
        ContainerRuntimes::deploy_tasks(),
        SubnetIsolation::deploy_tasks(),
        SubnetIsolation::DESTROY_STALE,
        OperatingSystemConfigs::DELETE_STALE,
        ContainerRuntimes::DELETE_STALE,
        FurtherExtensions::DELETE_STALE,
        FurtherExtensions::deployment(BeforeKubeAPIServer),
        FurtherExtensions::deployment(AfterKubeAPIServer),
        FurtherExtensions::deployment(AfterWorker),
    ];
    let touches = |task: &PartTask<Facts>, system| {
        assert!(task.touches().contains(&system), "{task:?}");
    };
    for task in of_cloud.as_flattened() {
        touches(task, ExternalSystem::Cloud);
    }
    let of_dns = [
        DnsRecords::DEPLOY_INTERNAL,
        DnsRecords::DEPLOY_EXTERNAL,
        DnsRecords::READY,
    ];
    let [publish, published] = OwnerRecord::deploy_tasks();
    for task in of_dns.iter().chain([&publish, &published]) {
        touches(task, ExternalSystem::Dns);
    }
}

/// A flow with all gates and the deployment of the infrastructure, after or beside the gates.
fn flow_with_gates(inputs: &SampleInputs, after_the_gates: bool) -> ShootFlow<'_> {
    let SampleInputs {
        facts: f, findings, ..
    } = inputs;
    let mut g = graph("a flow with all gates", RETRY_LIMIT);
    g.deploy::<OwnerRecord>(f, []);
    g.migrate::<AllExtensions>(&f.residency, []);
    g.destroy::<Writers>(&f.residency, []);
    g.exchange(ClaimSteps::OPEN, (f, &findings.claim), []);
    g.exchange(ClaimSteps::HOLD, (f, &findings.claim.fence), []);
    g.step(Departure::SEAL, f, []);
    g.destroy::<OwnerRecord>(&f.residency, []);
    let gates = if after_the_gates {
        g.leaf_tasks()
    } else {
        Vec::new()
    };
    g.deploy::<Infrastructure>(f, gates);
    g.compile()
}

/// Every rule finds the breach of a flow that ignores the gates.
#[tokio::test]
async fn a_task_on_the_wrong_side_of_a_gate_is_a_breach() {
    let inputs = sample_inputs();
    let kinds = CLAIMS.map(FlowKind::Deploys).into_iter();
    let kinds = kinds.chain([FlowKind::Migrates, FlowKind::Leaves, FlowKind::Deletes]);
    for kind in kinds.chain([FlowKind::Prepares]) {
        let count = |after_the_gates| {
            let found = breaches(kind, &flow_with_gates(&inputs, after_the_gates));
            let deploys = <Infrastructure as Deploy>::TASKS.map(|task| format!("{task:?} may change"));
            found
                .iter()
                .filter(|breach| deploys.iter().any(|task| breach.starts_with(task)))
                .count()
        };
        assert_eq!(count(false), 2, "{kind:?}");
        // Before the gates, or not at all.
        let is_too_late = matches!(kind, FlowKind::Migrates | FlowKind::Deletes | FlowKind::Prepares);
        assert_eq!(count(true), if is_too_late { 2 } else { 0 }, "{kind:?}");
    }
}
