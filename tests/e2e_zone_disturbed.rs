//! A zone is isolated from a shoot and taken back despite disturbances (GEP-21, RZ-02, RZ-10..14, RZ-20..35).
//! The user changes the request, the shoot moves or is taken over, processes are killed, and the zone blocks
//! the drain.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e-all`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{
    constants::OPERATION,
    extensions::SubnetIsolation,
    gardencore::{
        Shoot,
        shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
    machine::{Machine, labels},
    meta::LastOperationType,
};
use futures::StreamExt;
use k8s_openapi::api::{core::v1::Node, events::v1::Event, policy::v1::PodDisruptionBudget};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use repot_tests::{
    hunter::Hunter,
    isolation::{self, BACK_WITHIN, CUT_OFF_WITHIN, Probes, ZONE, ZONE_ID},
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, deleted, nothing_left},
    nodes::{Fleet, Zonal, hold, silence},
    proof,
    shoot::UserShoot,
    takeover::{self, Plan, Takeover},
    trouble::{OTHERS, Trouble},
};
use runtime::client::wait::{self, WaitState};
use serde_json::json;

/// Bounds the begin of the gardenlet's reaction to a change of the Shoot.
const BEGUN_WITHIN: Duration = Duration::from_secs(120);
const KILLS: usize = 4;
/// Bounds a round of the Worker, the grace of the gardenlet, and the closing of the network.
const CLOSED_WITHIN: Duration = Duration::from_secs(180);

/// A shoot with a machine in each of three zones, and the user's view of the shoot.
struct Stage {
    landscape: Landscape,
    shoot: UserShoot,
    id: String,
}

impl Stage {
    async fn set(name: &str) -> Result<Self> {
        let landscape = Landscape::open("e2e").await?;
        let shoot = lifecycle::created_in_three_zones(&landscape, name).await?;
        let id = proof::technical_id(&shoot).await?;
        Ok(Self { landscape, shoot, id })
    }

    async fn fleet(&self, seed: &str) -> Result<Fleet> {
        let client = self.shoot.client().await?;
        Fleet::read(self.landscape.seed(seed)?, &self.id, &client).await
    }

    /// Waits until each zone has as many Nodes as before. The drains of a failback outlast the operation.
    async fn shrinks_to(&self, before: &Fleet) -> Result<Fleet> {
        let nodes: Api<Node> = Api::all(self.shoot.client().await?);
        let mut changes = watcher(nodes, watcher::Config::default())
            .default_backoff()
            .touched_objects()
            .boxed();
        let shrinks = async {
            loop {
                let fleet = self.fleet("seed-a").await?;
                if fleet.zones() == before.zones() {
                    return Ok(fleet);
                }
                changes.next().await;
            }
        };
        let shrunk = testkit::timeout(BACK_WITHIN, shrinks).await;
        shrunk.context("the zones have not their former sizes")?
    }

    /// Waits for the end of the last operation of the shoot, of any type.
    async fn rests_on(&self, seed: &str) -> Result<()> {
        self.shoot.wait_until_on(seed, MOVE_WITHIN).await.map(drop)
    }

    async fn deleted(&self) -> Result<()> {
        deleted(&self.landscape, &self.shoot).await?;
        Fleet::nothing_left(&self.landscape, &self.id).await?;
        isolation::nothing_in_account(&self.landscape, &self.id).await
    }
}

/// RZ-02: a request for a missing zone is withdrawn. A request is cancelled at once, before any machine is
/// gone. The zone is isolated, and requested again during the failback. A process is killed during each
/// reversal.
#[tokio::test]
async fn whoever_changes_his_mind_gets_what_he_wanted_last() {
    let stage = Stage::set("fickle").await.unwrap();
    let Stage { landscape, shoot, .. } = &stage;
    let mut hunter = Hunter::new().unwrap();
    let before = stage.fleet("seed-a").await.unwrap();
    assert_eq!(before.zones(), [ZONE, "b", "c"], "one machine in each zone");

    isolation::ask(shoot, Some("az-of-nobody")).await.unwrap();
    isolation::tells(shoot, Phase::Failover, Status::Failed, BEGUN_WITHIN)
        .await
        .unwrap();
    isolation::take_back(shoot).await.unwrap();
    stage.rests_on("seed-a").await.unwrap();
    let given_up = stage.fleet("seed-a").await.unwrap();
    assert_eq!(before.nodes, given_up.nodes, "of a zone that nobody has");

    isolation::ask(shoot, Some(ZONE_ID)).await.unwrap();
    is_called_off(shoot, Phase::Failover, None).await.unwrap();
    hunter.kills(1, landscape, shoot).await.unwrap();
    isolation::done(shoot, Phase::Failback, BACK_WITHIN)
        .await
        .unwrap();
    stage.rests_on("seed-a").await.unwrap();
    let called_off = stage.fleet("seed-a").await.unwrap();
    for (name, node) in &before.nodes {
        assert_eq!(called_off.nodes.get(name), Some(node), "node {name} was lost");
    }

    isolation::cut_off(shoot).await.unwrap();
    isolation::ask(shoot, None).await.unwrap();
    is_called_off(shoot, Phase::Failback, Some(ZONE_ID))
        .await
        .unwrap();
    hunter.kills(1, landscape, shoot).await.unwrap();
    isolation::done(shoot, Phase::Failover, CUT_OFF_WITHIN)
        .await
        .unwrap();
    let away = stage.fleet("seed-a").await.unwrap();
    assert!(!away.zones().contains(&ZONE), "{:?}", away.zones());
    assert_eq!(away.machines.len(), 3, "{:?}", away.machines);

    maintenance_is_due(shoot).await.unwrap();
    stage.rests_on("seed-a").await.unwrap();
    let maintained = stage.fleet("seed-a").await.unwrap();
    assert_eq!(away.differences(&maintained), Vec::<String>::new());

    // A deletion opens the network, and leaves no resource.
    stage.deleted().await.unwrap();
}

/// RZ-13: the maintenance window is open, and updates are due. No maintenance runs here, least of all while a
/// zone is isolated; a manual request for maintenance is answered with a report.
async fn maintenance_is_due(shoot: &UserShoot) -> Result<()> {
    let maintenance = json!({
        "autoUpdate": {"kubernetesVersion": true, "machineImageVersion": true},
        "timeWindow": {"begin": "000000+0000", "end": "235900+0000"},
    });
    let (api, params) = (shoot.api(), PatchParams::default());
    let due = Patch::Merge(json!({"spec": {"maintenance": maintenance}}));
    let due = api.patch(&shoot.name, &params, &due).await?;
    let carried_out = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        status.is_some_and(|status| status.observed_generation == due.metadata.generation)
    };
    shoot.wait("the edit is seen", BEGUN_WITHIN, carried_out).await?;
    let by_hand = Patch::Merge(json!({"metadata": {"annotations": {OPERATION: "maintain"}}}));
    let refused = api.patch(&shoot.name, &params, &by_hand).await.err();
    let why = refused.map(|error| error.to_string()).unwrap_or_default();
    ensure!(why.contains("maintain"), "it is not refused: {why:?}");
    Ok(())
}

/// The user requests a change during this phase, and the status reports the end of the phase.
async fn is_called_off(shoot: &UserShoot, phase: Phase, asked: Option<&str>) -> Result<()> {
    isolation::tells(shoot, phase, Status::InProgress, BEGUN_WITHIN).await?;
    isolation::tells_when_asked(shoot, asked, (phase, Status::Aborting), BEGUN_WITHIN).await
}

/// I4, RZ-30: an isolated zone stays isolated in each seed, despite killed processes, with or without the
/// help of the source; and no machine notices.
#[tokio::test]
async fn a_zone_stays_cut_off_while_its_shoot_moves_and_is_taken_over() {
    let stage = Stage::set("wanderer").await.unwrap();
    let Stage { landscape, shoot, id } = &stage;
    let web = Zonal::deploy(&shoot.client().await.unwrap(), 3, "b")
        .await
        .unwrap();
    let failed = web.failed(&shoot.client().await.unwrap()).await.unwrap();
    let probes = Probes::start(landscape, id).await.unwrap();
    let mut hunter = Hunter::new().unwrap();
    let before = stage.fleet("seed-a").await.unwrap();

    isolation::ask(shoot, Some(ZONE_ID)).await.unwrap();
    hunter.kills(KILLS, landscape, shoot).await.unwrap();
    isolation::done(shoot, Phase::Failover, CUT_OFF_WITHIN)
        .await
        .unwrap();
    stage.rests_on("seed-a").await.unwrap();
    probes.find_the_zone_closed(true).await.unwrap();
    let away = stage.fleet("seed-a").await.unwrap();
    assert_eq!(away.zones().len(), 3, "{:?}", away.zones());
    assert!(!away.zones().contains(&ZONE), "{:?}", away.zones());

    shoot.set_seed("seed-b").await.unwrap();
    // A request during the move waits, and is cancelled here before the execution.
    let what = "it is on its way";
    shoot.wait(what, BEGUN_WITHIN, is_on_its_way).await.unwrap();
    isolation::ask(shoot, None).await.unwrap();
    isolation::tells(shoot, Phase::Failback, Status::Pending, BEGUN_WITHIN)
        .await
        .unwrap();
    isolation::ask(shoot, Some(ZONE_ID)).await.unwrap();
    hunter.kills(KILLS, landscape, shoot).await.unwrap();
    stage.rests_on("seed-b").await.unwrap();
    isolation::done(shoot, Phase::Failover, CUT_OFF_WITHIN)
        .await
        .unwrap();
    stage.rests_on("seed-b").await.unwrap();
    let moved = stage.fleet("seed-b").await.unwrap();
    assert_eq!(away.differences(&moved), Vec::<String>::new());
    probes.find_the_zone_closed(true).await.unwrap();
    remembers_what_was_there(landscape, "seed-b", shoot, id)
        .await
        .unwrap();
    nothing_left(landscape, "seed-a", id).await.unwrap();

    let plan = Plan {
        from: "seed-b",
        to: "seed-a",
        trouble: Trouble::CutOff(&OTHERS),
        has_begun: false,
        kills: &[],
        first: 0,
    };
    let taken = Box::pin(Takeover::run(landscape, shoot, plan)).await.unwrap();
    println!(
        "with a zone cut off, seed-a is writable {:.1} s after the decision",
        taken.writable_after().unwrap().as_secs_f64()
    );
    let back = stage.fleet("seed-a").await.unwrap();
    assert_eq!(away.differences(&back), Vec::<String>::new());
    probes.find_the_zone_closed(true).await.unwrap();
    remembers_what_was_there(landscape, "seed-a", shoot, id)
        .await
        .unwrap();

    takeover::remove_late(landscape, shoot, "seed-b").await.unwrap();

    isolation::ask(shoot, None).await.unwrap();
    hunter.kills(KILLS, landscape, shoot).await.unwrap();
    isolation::done(shoot, Phase::Failback, BACK_WITHIN)
        .await
        .unwrap();
    probes.find_the_zone_closed(false).await.unwrap();
    let last = stage.shrinks_to(&before).await.unwrap();
    check_one_was_drained(&before, &away, &last);
    let client = shoot.client().await.unwrap();
    assert_eq!(
        web.failed(&client).await.unwrap(),
        failed,
        "requests from other zones"
    );
    probes.remove().await.unwrap();
    stage.deleted().await.unwrap();
}

/// After the failback: one machine of the zone that has grown was drained, as no autoscaler runs. After a
/// move, all machines have the age of their restoration: any machine of this zone may be the newest.
fn check_one_was_drained(before: &Fleet, away: &Fleet, last: &Fleet) {
    assert_eq!(last.zones(), before.zones());
    let is_gone = |name: &&String| !last.nodes.contains_key(*name);
    assert_eq!(
        away.nodes.keys().filter(is_gone).count(),
        1,
        "{away:?} became {last:?}"
    );
    let stays = away.clone().on_nodes_of(last);
    assert_eq!(stays.other_pods(last), Vec::<String>::new(), "pods elsewhere");
}

/// Until then, the present seed executes requests.
fn is_on_its_way(shoot: &Shoot) -> bool {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    last.is_some_and(|last| last.type_ == LastOperationType::Migrate)
}

/// RZ-33: the recorded state was carried with the shoot.
async fn remembers_what_was_there(
    landscape: &Landscape,
    seed: &str,
    shoot: &UserShoot,
    id: &str,
) -> Result<()> {
    let objects: Api<SubnetIsolation> = Api::namespaced(landscape.seed(seed)?.clone(), id);
    let status = objects.get(&shoot.name).await?.status.context("no status")?;
    let state = status.state.context("no state")?;
    ensure!(state.0["before"].is_object(), "{:?}", state.0);
    Ok(())
}

/// RZ-21: neither a PodDisruptionBudget that allows no eviction nor a silent Node holds up the end of the
/// zone; the lost pods are reported.
#[tokio::test]
async fn a_zone_that_does_not_let_go_is_cut_off_all_the_same() {
    let stage = Stage::set("obstinate").await.unwrap();
    let Stage { landscape, shoot, id } = &stage;
    let client = shoot.client().await.unwrap();
    let web = Zonal::deploy(&client, 3, "b").await.unwrap();
    keep_all(&client).await.unwrap();
    let before = stage.fleet("seed-a").await.unwrap();
    silence(landscape, id, ZONE).await.unwrap();
    let probes = Probes::start(landscape, id).await.unwrap();

    let begin = Instant::now();
    drain_for(shoot, "30s").await.unwrap();
    isolation::cut_off(shoot).await.unwrap();
    println!(
        "a zone that does not let go is cut off after {:?}",
        begin.elapsed()
    );
    probes.find_the_zone_closed(true).await.unwrap();
    let away = stage.fleet("seed-a").await.unwrap();
    assert!(!away.zones().contains(&ZONE), "{:?}", away.zones());
    for (name, node) in before.nodes.iter().filter(|(_, node)| node[2] != ZONE) {
        assert_eq!(away.nodes.get(name), Some(node), "node {name} elsewhere was lost");
    }
    let told = told_of_lost_pods(landscape, id).await.unwrap();
    assert!(told.contains("default/web-"), "{told}");
    println!("{told}");
    assert_eq!(web.served(&client).await.unwrap().len(), 3);

    isolation::take_back(shoot).await.unwrap();
    probes.remove().await.unwrap();
    stage.deleted().await.unwrap();
}

/// RZ-32: an instance does not end. The network is closed within the budget, here after the annotation that
/// spends the rest, and the status names the machine. The failover becomes Done without further action when
/// the instance is gone.
#[tokio::test]
async fn a_zone_with_an_instance_that_does_not_end_is_closed_in_its_budget() {
    let stage = Stage::set("hanging").await.unwrap();
    let Stage { landscape, shoot, id } = &stage;
    let probes = Probes::start(landscape, id).await.unwrap();
    hold(landscape, id, ZONE, true).await.unwrap();

    let begin = Instant::now();
    isolation::ask(shoot, Some(ZONE_ID)).await.unwrap();
    let machine = machine_goes(landscape, id).await.unwrap();
    isolation::close_now(shoot, &machine, CLOSED_WITHIN)
        .await
        .unwrap();
    println!(
        "a zone with a hanging instance is closed after {:?}",
        begin.elapsed()
    );
    probes.find_the_zone_closed(true).await.unwrap();
    isolation::tells(shoot, Phase::Failover, Status::InProgress, BEGUN_WITHIN)
        .await
        .unwrap();
    let machines: Api<Machine> = Api::namespaced(landscape.seed("seed-a").unwrap().clone(), id);
    machines.get(&machine).await.unwrap();

    hold(landscape, id, ZONE, false).await.unwrap();
    isolation::done(shoot, Phase::Failover, CUT_OFF_WITHIN)
        .await
        .unwrap();
    let away = stage.fleet("seed-a").await.unwrap();
    assert!(!away.zones().contains(&ZONE), "{:?}", away.zones());
    isolation::take_back(shoot).await.unwrap();
    probes.remove().await.unwrap();
    stage.deleted().await.unwrap();
}

/// The Machine of the zone is in deletion: the drain and the end of the instance have begun.
async fn machine_goes(landscape: &Landscape, id: &str) -> Result<String> {
    let machines: Api<Machine> = Api::namespaced(landscape.seed("seed-a")?.clone(), id);
    let of_zone = ListParams::default().labels(&format!("{}={ZONE}", labels::ZONE));
    let only = machines.list(&of_zone).await?.items;
    let machine = only.first().context("no machine is in the zone")?;
    let look = |found: Option<&Machine>| match found {
        Some(found) if found.metadata.deletion_timestamp.is_none() => WaitState::Wait("it stays".into()),
        _ => WaitState::Done,
    };
    let name = machine.name_any();
    let goes = testkit::measured("the machine of the zone is deleted", CUT_OFF_WITHIN, |bound| {
        wait::until(&machines, &name, bound, look)
    });
    goes.await.context("the machine of the zone")?;
    Ok(name)
}

/// No server may be evicted.
async fn keep_all(shoot: &Client) -> Result<()> {
    let budget = serde_json::from_value(json!({"metadata": {"name": "web"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}}))?;
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(shoot.clone());
    budgets.create(&PostParams::default(), &budget).await?;
    Ok(())
}

/// Sets the drain timeout of the pool's machines.
async fn drain_for(shoot: &UserShoot, time: &str) -> Result<()> {
    let patch = json!([{"op": "add", "path": "/spec/provider/workers/0/machineControllerManager",
        "value": {"machineDrainTimeout": time}}]);
    let patch: json_patch::Patch = serde_json::from_value(patch)?;
    let params = PatchParams::default();
    shoot
        .api()
        .patch(&shoot.name, &params, &Patch::Json::<()>(patch))
        .await?;
    Ok(())
}

/// The report of the machine manager on deleted pods.
async fn told_of_lost_pods(landscape: &Landscape, id: &str) -> Result<String> {
    let events: Api<Event> = Api::namespaced(landscape.seed("seed-a")?.clone(), id);
    let events = events.list(&ListParams::default()).await?.items;
    let told = events
        .iter()
        .filter(|event| event.reason.as_deref() == Some("DrainTimedOut"));
    let notes: Vec<_> = told.filter_map(|event| event.note.clone()).collect();
    ensure!(!notes.is_empty(), "no Event tells it");
    Ok(notes.join("; "))
}
