//! The worked example of docs/understand/leader-migration.md on real clusters. The backup controllers of
//! seed-b move from the gardenlet into provider-local during rolling upgrades, back, there again, and out of
//! the migration (RK-20 to RK-25). All the time, BackupEntries and BackupBuckets are created and deleted in
//! the garden; each must become ready and be deleted, with any lock holder.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`. Upgrades follow the operator's procedure:
//! the gardenlet by Helm, provider-local by the seed's values in the ControllerDeployment. The seed is
//! restored to the original state, also after a failure.

#![allow(clippy::unwrap_used, clippy::panic)]

mod backup_controllers {
    pub mod managers;
    pub mod writer;
}

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use api::gardencore::{BackupBucket, BackupEntry, Seed};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use repot_tests::{landscape::Landscape, lifecycle::PROJECT, manifests};
use serde_json::{Value, json};

use backup_controllers::{
    managers::{
        GUEST, HOME, Manager, guest_is_told, held_by, holder, is_of, processes, rolled_out, starts, sum,
        upgrade, upgrade_guest,
    },
    writer::{Writer, all_gone},
};

const SEED: &str = "seed-b";
/// The migration lock, in the namespace of the gardenlet, as both main locks.
const LOCK: &str = "backup-migration";
/// Namespace in the seed with the Secrets of this test's entries; also the first part of the entries' names.
const CONTROL_PLANE: &str = "shoot--dev--guests";
/// The provider's copy of the credential for the garden.
const CREDENTIAL: &str = "garden-kubeconfig";
const LABEL: &str = "repot.test/made=by-backup-controllers";
/// Bounds the wait for an object. Longer than a lock of a process that died (15 s), the pause after a failure
/// and a start together, also on a busy machine.
const WITHIN: Duration = Duration::from_secs(180);
/// Maximum repetitions of a step in which a manager has lost a lock.
const TRIES: usize = 3;
const CONTROLLERS: [&str; 2] = ["backup-bucket", "backup-entry"];

/// The role of a manager in the migration.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// No part in the migration.
    Out,
    /// Any manager may run the controllers.
    Any,
    /// The controllers belong to provider-local.
    GivenAway,
    /// The flags are gone, but the right to the lock stays, so that running processes can release the lock.
    Ended,
}

impl Part {
    fn values(self) -> Value {
        let component = if self == Self::GivenAway { GUEST.name } else { "*" };
        let leaders = CONTROLLERS.map(|name| json!({"name": name, "component": component}));
        let config = json!({
            "apiVersion": "controllermanager.config.k8s.io/v1", "kind": "LeaderMigrationConfiguration",
            "leaderName": LOCK, "controllerLeaders": leaders,
        });
        match self {
            Self::Out => json!({"enabled": false}),
            Self::Ended => json!({"enabled": false, "config": config}),
            Self::Any | Self::GivenAway => json!({"enabled": true, "config": config}),
        }
    }

    /// Prefixes of the provider's flags, with the expected presence.
    fn flags(self) -> [(&'static str, bool); 2] {
        [
            (
                "--enable-leader-migration",
                matches!(self, Self::Any | Self::GivenAway),
            ),
            ("--garden-kubeconfig=", self != Self::Out),
        ]
    }
}

/// An upgrade, with the expected result.
#[derive(Clone, Copy)]
struct Step {
    what: &'static str,
    home: Part,
    guest: Part,
    /// The manager that runs the controllers.
    runs: &'static Manager,
    /// The lock that the manager holds.
    lock: &'static str,
    /// Whether the lock holder before the upgrade must still hold the lock afterwards.
    undisturbed: bool,
}

const fn step(what: &'static str, home: Part, guest: Part, runs: &'static Manager) -> Step {
    Step {
        what,
        home,
        guest,
        runs,
        lock: LOCK,
        undisturbed: false,
    }
}

const fn undisturbed(step: Step) -> Step {
    Step {
        undisturbed: true,
        ..step
    }
}

const fn under_main_lock(step: Step) -> Step {
    Step {
        lock: HOME.name,
        ..step
    }
}

/// The home gets the file of leader migration first and loses the file last.
const STEPS: [Step; 11] = [
    under_main_lock(step("more processes", Part::Out, Part::Out, &HOME)),
    step("gardenlet takes part", Part::Any, Part::Out, &HOME),
    undisturbed(step(
        "provider-local takes part and waits",
        Part::Any,
        Part::Any,
        &HOME,
    )),
    step("gardenlet gives them away", Part::GivenAway, Part::Any, &GUEST),
    undisturbed(step(
        "back: gardenlet may run them again and waits",
        Part::Any,
        Part::Any,
        &GUEST,
    )),
    step("back: provider-local leaves", Part::Any, Part::Ended, &HOME),
    undisturbed(step(
        "again: provider-local takes part and waits",
        Part::Any,
        Part::Any,
        &HOME,
    )),
    step(
        "again: gardenlet gives them away",
        Part::GivenAway,
        Part::Any,
        &GUEST,
    ),
    undisturbed(step(
        "out: gardenlet may run them again and waits",
        Part::Any,
        Part::Any,
        &GUEST,
    )),
    step("out: provider-local leaves", Part::Any, Part::Ended, &HOME),
    under_main_lock(step("out: gardenlet leaves", Part::Ended, Part::Ended, &HOME)),
];

#[tokio::test]
async fn the_backup_controllers_move_into_a_provider_and_back_during_rolling_upgrades() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let walked = walk(&landscape).await;
    let given_back = give_back(&landscape, walked.is_err()).await;
    walked.unwrap();
    given_back.unwrap();
}

async fn walk(landscape: &Landscape) -> Result<()> {
    let (garden, seed) = (&landscape.garden, landscape.seed(SEED)?);
    manifests::apply_project(landscape).await?;
    give_credential(seed).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL_PLANE}});
    Api::<Namespace>::all(seed.clone())
        .patch(CONTROL_PLANE, &by_test(), &Patch::Apply(namespace))
        .await?;
    let bucket = Api::<Seed>::all(garden.clone())
        .get(SEED)
        .await?
        .uid()
        .context("the Seed has no uid")?;
    let mut writer = Writer::start(garden.clone(), bucket);
    for step in &STEPS {
        let began = Instant::now();
        let outcome = walk_one(landscape, seed, step, &mut writer).await;
        let took = began.elapsed().as_secs_f64();
        println!("{}: {took:.1} s; {}", step.what, writer.since(began));
        if let Err(why) = outcome {
            // An object that never became ready is the cause; later findings are consequences.
            writer.stop().await?;
            return Err(why.context(step.what));
        }
    }
    writer.stop().await
}

async fn walk_one(landscape: &Landscape, seed: &Client, step: &Step, writer: &mut Writer) -> Result<()> {
    let before = holder(seed, LOCK).await?;
    upgrade_to(landscape, seed, step.home, step.guest).await?;
    held_by(seed, step.lock, step.runs).await?;
    let after = holder(seed, step.lock).await?;
    if step.undisturbed {
        ensure!(before == after, "the lock went from {before:?} to {after:?}");
    }
    for _ in 1..TRIES {
        let counted = starts(seed).await?;
        match stays_where_it_is(seed, step, writer).await {
            Err(why) if counted != starts(seed).await? => println!("{}: once more: {why:#}", step.what),
            ended => return ended,
        }
    }
    stays_where_it_is(seed, step, writer).await
}

async fn stays_where_it_is(seed: &Client, step: &Step, writer: &mut Writer) -> Result<()> {
    let before = holder(seed, step.lock).await?;
    works_in_one_process(seed, step, writer).await?;
    let after = holder(seed, step.lock).await?;
    ensure!(
        before == after,
        "the lock went from {before:?} to {after:?} with nobody rolled"
    );
    Ok(())
}

async fn upgrade_to(landscape: &Landscape, seed: &Client, home: Part, guest: Part) -> Result<()> {
    let of_home = json!({HOME.name: {"replicas": HOME.replicas, "leaderMigration": home.values()}});
    let mut of_guest = json!({"replicas": GUEST.replicas, "leaderMigration": guest.values()});
    if guest != Part::Out {
        of_guest["garden"] = json!({
            "kubeconfigSecret": CREDENTIAL, "seedName": SEED, "backupEntryDeletionGracePeriodHours": 0,
        });
    }
    upgrade(landscape, &of_home).await?;
    upgrade_guest(landscape, &of_guest).await?;
    rolled_out(seed, &HOME, HOME.replicas).await?;
    guest_is_told(seed, GUEST.replicas, guest.flags()).await?;
    rolled_out(seed, &GUEST, GUEST.replicas).await
}

/// While objects are created and deleted, each of the controllers works in the lock holder and in no further
/// process.
async fn works_in_one_process(seed: &Client, step: &Step, writer: &mut Writer) -> Result<()> {
    let before = processes(seed).await?;
    writer.rounds(2).await?;
    let after = processes(seed).await?;
    let holder = holder(seed, step.lock).await?;
    for controller in CONTROLLERS {
        let sample = format!("controller_reconciles_total{{controller=\"{controller}\",");
        let count =
            |pods: &BTreeMap<String, String>, pod: &str| pods.get(pod).map_or(0.0, |text| sum(text, &sample));
        let busy: Vec<&String> = after
            .keys()
            .filter(|pod| count(&after, pod) > count(&before, pod))
            .collect();
        let is_holder = busy.len() == 1 && is_of(&holder, busy[0]);
        ensure!(
            is_holder,
            "{controller} works in {busy:?}; {} is held by {holder}",
            step.lock
        );
    }
    let active = format!("leader_active{{name=\"{}\"}}", step.lock);
    let leaders: Vec<&String> = after
        .iter()
        .filter(|(_, text)| sum(text, &active) > 0.0)
        .map(|(pod, _)| pod)
        .collect();
    ensure!(
        leaders.len() == 1 && is_of(&holder, leaders[0]),
        "{active} is 1 in {leaders:?}; it is held by {holder}"
    );
    Ok(())
}

/// The provider needs the identity of the seed in the garden while the provider runs the controllers.
async fn give_credential(seed: &Client) -> Result<()> {
    let theirs: Api<Secret> = Api::namespaced(seed.clone(), HOME.namespace);
    let original = theirs.get("gardenlet-garden-kubeconfig").await?;
    let copy = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": CREDENTIAL}, "data": original.data});
    Api::<Secret>::namespaced(seed.clone(), GUEST.namespace)
        .patch(CREDENTIAL, &by_test(), &Patch::Apply(copy))
        .await?;
    Ok(())
}

/// Restores the original state of the seed.
async fn give_back(landscape: &Landscape, midway: bool) -> Result<()> {
    let (garden, seed) = (&landscape.garden, landscape.seed(SEED)?);
    if midway {
        // The order applies here too: the home leaves last.
        give_credential(seed).await?;
        upgrade_to(landscape, seed, Part::Any, Part::Ended).await?;
    }
    upgrade(landscape, &json!({})).await?;
    upgrade_guest(landscape, &json!({})).await?;
    rolled_out(seed, &HOME, 1).await?;
    guest_is_told(seed, 1, Part::Out.flags()).await?;
    rolled_out(seed, &GUEST, 1).await?;
    held_by(seed, HOME.name, &HOME).await?;
    let made = ListParams::default().labels(LABEL);
    let entries: Api<BackupEntry> = Api::namespaced(garden.clone(), PROJECT);
    let buckets: Api<BackupBucket> = Api::all(garden.clone());
    all_gone(&entries, &made).await?;
    all_gone(&buckets, &made).await?;
    let credentials: Api<Secret> = Api::namespaced(seed.clone(), GUEST.namespace);
    all_gone(
        &credentials,
        &ListParams::default().fields(&format!("metadata.name={CREDENTIAL}")),
    )
    .await?;
    let leases: Api<Lease> = Api::namespaced(seed.clone(), HOME.namespace);
    all_gone(
        &leases,
        &ListParams::default().fields(&format!("metadata.name={LOCK}")),
    )
    .await?;
    let namespaces: Api<Namespace> = Api::all(seed.clone());
    all_gone(
        &namespaces,
        &ListParams::default().fields(&format!("metadata.name={CONTROL_PLANE}")),
    )
    .await
}

fn by_test() -> PatchParams {
    PatchParams::apply("repot-test").force()
}
