//! An upgrade from the previous release, in the order of docs/operate/upgrade.md: garden, seeds, provider.
//! Meanwhile a shoot with nodes moves there and back, and a second shoot is taken over. Then a seed is rolled
//! back and upgraded again. Users write to both shoots all the time.
//!
//! Needs the landscape `e2e` with the previous release installed, and the images of both versions on the
//! nodes: `make e2e-all PART=6` (hack/upgrade-test.sh).

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    env,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use api::{
    constants::OPERATION,
    gardencore::Shoot,
    meta::{LastOperationState, LastOperationType},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use repot_tests::{
    landscape::Landscape,
    lifecycle::{self, COLLECTED_WITHIN, MOVE_WITHIN, PROJECT, created, deleted, nothing_left},
    nodes::{Fleet, Instances, Web},
    proof::{self, PreservedState},
    shoot::UserShoot,
    takeover::{self, Plan, Takeover},
    trouble::Trouble,
    watched,
    writer::{Book, Writer},
};
use serde_json::json;
use tokio::process::Command;

const OBJECTS: usize = 200;
/// Number of the first object that is written during the takeover.
const TAKEN_OVER: u64 = 500_000;
/// A move during which a process of the suite is replaced: the successor waits for the lock.
const MOVE_IN_UPGRADE_WITHIN: Duration = Duration::from_secs(480);
/// Ends a step that hangs. Each wait in the script ends within 300 s.
const STEP_WITHIN: Duration = Duration::from_secs(900);
/// Tag of the images of this version.
const PRESENT: &str = "dev";

/// Processes of a chart, as namespace and name of the Deployment.
type Processes = &'static [[&'static str; 2]];
const OF_GARDEN: Processes = &[["garden", "garden-controller-manager"]];
const OF_SEED: Processes = &[
    ["garden", "gardenlet"],
    ["garden", "etcd-druid"],
    ["garden", "resource-manager"],
];
const OF_PROVIDER: Processes = &[["extension-provider-local", "provider-local"]];

#[tokio::test]
async fn an_upgrade_during_a_move_and_a_takeover_loses_no_write_and_no_node() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let mut upgrade = Box::pin(Upgrade::begin(&landscape)).await.unwrap();
    Box::pin(upgrade.upgrade_garden_during_a_move()).await.unwrap();
    Box::pin(upgrade.upgrade_first_seed_during_a_takeover())
        .await
        .unwrap();
    Box::pin(upgrade.upgrade_second_seed_during_the_way_back())
        .await
        .unwrap();
    Box::pin(upgrade.roll_back_second_seed()).await.unwrap();
    Box::pin(upgrade.upgrade_provider()).await.unwrap();
    Box::pin(upgrade.end()).await.unwrap();
}

/// The upgrade of a garden with two shoots.
struct Upgrade<'a> {
    landscape: &'a Landscape,
    /// Tag of the images of the previous release.
    previous: String,
    /// Moves from seed-a to seed-b and back.
    mover: Subject<'a>,
    nodes: Nodes,
    /// Stays on seed-a until seed-b takes the shoot over.
    stayer: Subject<'a>,
}

impl<'a> Upgrade<'a> {
    /// Creates both shoots with the previous release.
    async fn begin(landscape: &'a Landscape) -> Result<Self> {
        let previous = env::var("REPOT_PREVIOUS_TAG").context("run: make e2e-all PART=6")?;
        ensure!(previous != PRESENT, "both versions have the tag {PRESENT}");
        wait_for_tag_everywhere(landscape, &previous).await?;
        println!("creating shoots with release {previous}");
        let mover = lifecycle::created_with_workers(landscape, "upgraded").await?;
        let stayer = created(landscape, "outlasts").await?;
        Ok(Self {
            landscape,
            previous,
            nodes: Nodes::watch(landscape, &mover).await?,
            mover: Subject::fill(landscape, mover).await?,
            stayer: Subject::fill(landscape, stayer).await?,
        })
    }

    /// The gardenlets of the previous release move a shoot, while the kinds, the policies and the
    /// garden-controller-manager change.
    async fn upgrade_garden_during_a_move(&mut self) -> Result<()> {
        let phase = "upgrade of the garden";
        let (moving, staying) = (self.mover.write().await?, self.stayer.write().await?);
        self.mover.shoot.set_seed("seed-b").await?;
        let arrives = self.mover.shoot.wait_until_on("seed-b", MOVE_IN_UPGRADE_WITHIN);
        let (move_end, upgraded) = tokio::join!(arrives, take_step(self.landscape, "garden"));
        upgraded?;
        move_end.context("the move during the upgrade of the garden")?;
        wait_for_tag(&self.landscape.garden, OF_GARDEN, PRESENT).await?;
        self.mover.is_kept(phase, "seed-b", moving.stop().await?).await?;
        self.stayer
            .is_kept(phase, "seed-a", staying.stop().await?)
            .await?;
        self.nodes_are_kept(phase, "seed-b").await?;
        nothing_left(self.landscape, "seed-a", &self.nodes.technical_id).await?;
        self.source_entries_are_gone(phase).await
    }

    /// The source does not hear the garden, saves all data, and cleans up by the gardenlet of the previous
    /// release. The gardenlet of the destination is replaced during the restore.
    async fn upgrade_first_seed_during_a_takeover(&mut self) -> Result<()> {
        let phase = "upgrade of seed-b";
        let moving = self.mover.write().await?;
        let plan = Plan {
            from: "seed-a",
            to: "seed-b",
            trouble: Trouble::CutOff(&["garden"]),
            has_begun: false,
            kills: &[],
            first: TAKEN_OVER,
        };
        let taken_over = Box::pin(Takeover::run(self.landscape, &self.stayer.shoot, plan));
        let upgraded = async {
            let is_requested = |shoot: &Shoot| shoot.spec.seed_name.as_deref() == Some("seed-b");
            let what = "the takeover is requested";
            self.stayer.shoot.wait(what, MOVE_WITHIN, is_requested).await?;
            take_step(self.landscape, "seed-b").await
        };
        let (taken_over, upgraded) = tokio::join!(taken_over, upgraded);
        upgraded?;
        let taken_over = taken_over.context("the takeover during the upgrade of seed-b")?;
        println!(
            "{phase}: seed-b acknowledged a write {:.1} s after the decision; loss in the status: {:?}",
            taken_over.writable_after()?.as_secs_f64(),
            taken_over.told
        );
        wait_for_tag(self.landscape.seed("seed-b")?, OF_SEED, PRESENT).await?;
        self.stayer.is_kept(phase, "seed-b", taken_over.followed).await?;
        self.mover.is_kept(phase, "seed-b", moving.stop().await?).await?;
        self.nodes_are_kept(phase, "seed-b").await?;
        self.source_entries_are_gone(phase).await
    }

    /// The gardenlet of the destination is replaced after the begin of a move.
    async fn upgrade_second_seed_during_the_way_back(&mut self) -> Result<()> {
        let phase = "upgrade of seed-a";
        let (moving, staying) = (self.mover.write().await?, self.stayer.write().await?);
        self.mover.shoot.set_seed("seed-a").await?;
        let arrives = self.mover.shoot.wait_until_on("seed-a", MOVE_IN_UPGRADE_WITHIN);
        let upgraded = async {
            let what = "the way back has begun";
            self.mover
                .shoot
                .wait(what, MOVE_WITHIN, is_leaving_seed_b)
                .await?;
            take_step(self.landscape, "seed-a").await
        };
        let (move_end, upgraded) = tokio::join!(arrives, upgraded);
        upgraded?;
        move_end.context("the move during the upgrade of seed-a")?;
        wait_for_tag(self.landscape.seed("seed-a")?, OF_SEED, PRESENT).await?;
        self.mover.is_kept(phase, "seed-a", moving.stop().await?).await?;
        self.stayer
            .is_kept(phase, "seed-b", staying.stop().await?)
            .await?;
        self.nodes_are_kept(phase, "seed-a").await?;
        nothing_left(self.landscape, "seed-b", &self.nodes.technical_id).await?;
        self.source_entries_are_gone(phase).await?;
        self.new_field_is_readable(phase).await
    }

    /// The previous release reconciles a shoot that the present version has restored, under the garden of the
    /// present version. No field that only the present version knows is lost.
    async fn roll_back_second_seed(&mut self) -> Result<()> {
        let writer = self.mover.write().await?;
        let seed = self.landscape.seed("seed-a")?;
        take_step(self.landscape, "seed-a-back").await?;
        wait_for_tag(seed, OF_SEED, &self.previous).await?;
        reconcile(&self.mover.shoot).await?;
        self.new_field_is_readable("rollback of seed-a").await?;
        self.nodes_are_kept("rollback of seed-a", "seed-a").await?;
        take_step(self.landscape, "seed-a").await?;
        wait_for_tag(seed, OF_SEED, PRESENT).await?;
        reconcile(&self.mover.shoot).await?;
        let phase = "second upgrade of seed-a";
        self.new_field_is_readable(phase).await?;
        self.mover.is_kept(phase, "seed-a", writer.stop().await?).await?;
        self.nodes_are_kept(phase, "seed-a").await
    }

    /// A ControllerDeployment changes for all seeds at once.
    async fn upgrade_provider(&mut self) -> Result<()> {
        let phase = "upgrade of the provider";
        let (moving, staying) = (self.mover.write().await?, self.stayer.write().await?);
        take_step(self.landscape, "provider").await?;
        wait_for_tag_everywhere(self.landscape, PRESENT).await?;
        for subject in [&self.mover, &self.stayer] {
            reconcile(&subject.shoot).await?;
        }
        self.mover.is_kept(phase, "seed-a", moving.stop().await?).await?;
        self.stayer
            .is_kept(phase, "seed-b", staying.stop().await?)
            .await?;
        self.nodes_are_kept(phase, "seed-a").await
    }

    /// The present version manages the nodes, and deletes both shoots without leftovers.
    async fn end(&self) -> Result<()> {
        let (mover, stayer) = (&self.mover.shoot, &self.stayer.shoot);
        let client = mover.client().await?;
        self.nodes.before.leases_are_renewed(&client).await?;
        self.nodes
            .web
            .a_new_pod_runs_on(&client, &self.nodes.before)
            .await?;
        println!("deleting both shoots");
        let late = takeover::remove_late(self.landscape, stayer, "seed-a").await?;
        println!("seed-a has uploaded since the takeover: {late:?}");
        deleted(self.landscape, mover).await?;
        deleted(self.landscape, stayer).await?;
        Fleet::nothing_left(self.landscape, &self.nodes.technical_id).await
    }

    async fn nodes_are_kept(&self, phase: &str, seed: &str) -> Result<()> {
        let seed = self.landscape.seed(seed)?;
        self.nodes.are_kept(phase, &self.mover.shoot, seed).await
    }

    /// Waits until the garden has no source BackupEntry: no restore is under way.
    async fn source_entries_are_gone(&self, phase: &str) -> Result<()> {
        let left = proof::until_nothing(COLLECTED_WITHIN, || {
            proof::left_in_garden(&self.mover.shoot, &self.landscape.garden)
        })
        .await?;
        ensure!(left.is_empty(), "{phase}: left in the garden: {left:?}");
        Ok(())
    }

    /// `status.ownership.sourceBucket` names the bucket of seed-b. Release v0.1.0 does not know the field.
    async fn new_field_is_readable(&self, phase: &str) -> Result<()> {
        let bucket = lifecycle::bucket_name(&self.landscape.garden, "seed-b").await?;
        let status = self.mover.shoot.get().await?.status.unwrap_or_default();
        let ownership = status.ownership.context("the Shoot has no status.ownership")?;
        ensure!(
            ownership.recorded_source_bucket() == Some(bucket.as_str()),
            "{phase}: status.ownership.sourceBucket is {:?}, and the bucket of seed-b is {bucket}",
            ownership.source_bucket
        );
        println!("{phase}: status.ownership.sourceBucket is readable");
        Ok(())
    }
}

/// A shoot with a user, and the state and the acknowledged writes that each phase must keep.
struct Subject<'a> {
    landscape: &'a Landscape,
    shoot: UserShoot,
    before: PreservedState,
    /// A book of each phase.
    books: Vec<Book>,
}

impl<'a> Subject<'a> {
    /// A shoot on seed-a, with data.
    async fn fill(landscape: &'a Landscape, shoot: UserShoot) -> Result<Self> {
        proof::write_data(&shoot.client().await?, OBJECTS).await?;
        Ok(Self {
            landscape,
            before: proof::read(&shoot, landscape.seed("seed-a")?).await?,
            shoot,
            books: Vec::new(),
        })
    }

    /// Begins to write. No object has two writers.
    async fn write(&self) -> Result<Writer> {
        let numbers = self.books.iter().flat_map(|book| &book.writes);
        let last = numbers.map(|write| write.number).max();
        let shoot = UserShoot::new(self.landscape, PROJECT, &self.shoot.name);
        let mut writer = Writer::start(shoot, last.map_or(0, |last| last + 1));
        writer.has_begun().await?;
        Ok(writer)
    }

    /// Checks that the shoot has the writes of this phase and of all former phases, and the data of before.
    async fn is_kept(&mut self, phase: &str, seed: &str, book: Book) -> Result<()> {
        let name = &self.shoot.name;
        println!(
            "{phase}: {name} unwritable for {:.1} s, {} writes acknowledged, {} refused",
            book.longest_gap().as_secs_f64(),
            book.writes.len(),
            book.failures
        );
        ensure!(!book.writes.is_empty(), "{phase}: nothing was written to {name}");
        self.books.push(book);
        let client = self.shoot.client().await?;
        for book in &self.books {
            let lost = book.lost(&client).await?;
            ensure!(lost.is_empty(), "{phase}: {name} has lost the writes {lost:?}");
        }
        let writes = self.books.iter().flat_map(|book| &book.writes);
        let versions: Vec<u64> = writes.map(|write| write.version).collect();
        ensure!(
            versions.windows(2).all(|pair| pair[0] < pair[1]),
            "{phase}: resourceVersions of {name} went back"
        );
        let after = proof::read(&self.shoot, self.landscape.seed(seed)?).await?;
        // A new version may carry further Secrets.
        ensure!(
            after.objects == self.before.objects && after.ca == self.before.ca,
            "{phase}: {name} has changed: {:?}",
            self.before.differences(&after)
        );
        Ok(())
    }
}

/// The nodes of a shoot since the begin, and a page on the nodes.
struct Nodes {
    technical_id: String,
    before: Fleet,
    instances: Instances,
    web: Web,
}

impl Nodes {
    /// The nodes of a shoot on seed-a.
    async fn watch(landscape: &Landscape, shoot: &UserShoot) -> Result<Self> {
        let technical_id = proof::technical_id(shoot).await?;
        let client = shoot.client().await?;
        let web = Web::deploy(&client).await?;
        web.answers(&client).await?;
        let before = Fleet::read(landscape.seed("seed-a")?, &technical_id, &client).await?;
        ensure!(!before.nodes.is_empty(), "the shoot has no nodes");
        Ok(Self {
            instances: Instances::watch(landscape, &technical_id).await?,
            technical_id,
            before,
            web,
        })
    }

    /// Checks that no Node, Machine or instance of the cloud was created again, and no pod of the user was
    /// started again. Pods of the suite on the nodes change with the version.
    async fn are_kept(&self, phase: &str, shoot: &UserShoot, seed: &Client) -> Result<()> {
        let client = shoot.client().await?;
        let after = Fleet::read(seed, &self.technical_id, &client).await?;
        ensure!(
            self.before.machines == after.machines && self.before.nodes == after.nodes,
            "{phase}: nodes have changed: {:?}",
            self.before.differences(&after)
        );
        let mut pods = self.before.other_pods(&after);
        pods.retain(|pod| pod.starts_with("pod default/"));
        ensure!(pods.is_empty(), "{phase}: {pods:?}");
        let count = self.before.nodes.len();
        let instances = self.instances.ever_and_now().await?;
        ensure!(
            instances == [count, count],
            "{phase}: instances ever and now: {instances:?}, and {count} nodes"
        );
        self.web.answers(&client).await?;
        println!("{phase}: the same {count} nodes");
        Ok(())
    }
}

fn is_leaving_seed_b(shoot: &Shoot) -> bool {
    let Some(status) = &shoot.status else { return false };
    let last = status.last_operation.as_ref();
    status.seed_name.as_deref() != Some("seed-b")
        || last.is_some_and(|last| last.type_ == LastOperationType::Migrate)
}

/// Takes a step of the upgrade by the operator's commands.
async fn take_step(landscape: &Landscape, step: &str) -> Result<()> {
    let begun = Instant::now();
    println!("step {step} begins");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../hack/install.sh");
    let script = Command::new(path)
        .args([landscape.name.as_str(), step])
        .kill_on_drop(true)
        .status();
    let ended = testkit::timeout(STEP_WITHIN, script)
        .await
        .with_context(|| format!("step {step} does not end"))??;
    ensure!(ended.success(), "step {step}: {ended}");
    println!("step {step} took {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Waits until all processes of the suite run images with this tag.
async fn wait_for_tag_everywhere(landscape: &Landscape, tag: &str) -> Result<()> {
    wait_for_tag(&landscape.garden, OF_GARDEN, tag).await?;
    for seed in landscape.seeds.values() {
        wait_for_tag(seed, OF_SEED, tag).await?;
        wait_for_tag(seed, OF_PROVIDER, tag).await?;
    }
    Ok(())
}

/// Waits until these processes run images with this tag, and no former Pod is left.
async fn wait_for_tag(cluster: &Client, processes: Processes, tag: &str) -> Result<()> {
    for [namespace, name] in processes {
        let deployments: Api<Deployment> = Api::namespaced(cluster.clone(), namespace);
        let has_tag = |found: Option<&Deployment>| found.is_some_and(|found| is_rolled_out(found, tag));
        watched::until(&deployments, name, COLLECTED_WITHIN, has_tag)
            .await
            .with_context(|| format!("{namespace}/{name} does not run tag {tag}"))?;
    }
    Ok(())
}

fn is_rolled_out(deployment: &Deployment, tag: &str) -> bool {
    let spec = deployment.spec.as_ref();
    let pod = spec.and_then(|spec| spec.template.spec.as_ref());
    let image = pod.and_then(|pod| pod.containers.first()?.image.as_deref());
    let replicas = spec.and_then(|spec| spec.replicas);
    let status = deployment.status.clone().unwrap_or_default();
    image.and_then(|image| image.rsplit(':').next()) == Some(tag)
        && status.observed_generation == deployment.metadata.generation
        && status.replicas == replicas
        && status.updated_replicas == replicas
        && status.available_replicas == replicas
}

/// Requests a reconciliation, and waits for a success that is later than the request.
async fn reconcile(shoot: &UserShoot) -> Result<()> {
    let status = shoot.get().await?.status.unwrap_or_default();
    let before = status.last_operation.map(|last| last.last_update_time);
    let request = json!({"metadata": {"annotations": {OPERATION: "reconcile"}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(request));
    shoot.api().patch(&shoot.name, &params, &patch).await?;
    let is_done = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        let last = status.and_then(|status| status.last_operation.as_ref());
        !shoot.annotations().contains_key(OPERATION)
            && last.is_some_and(|last| {
                last.type_ == LastOperationType::Reconcile
                    && last.state == LastOperationState::Succeeded
                    && Some(&last.last_update_time) != before.as_ref()
            })
    };
    let what = format!("{} is reconciled", shoot.name);
    shoot.wait(&what, MOVE_WITHIN, is_done).await?;
    println!("{what}");
    Ok(())
}
