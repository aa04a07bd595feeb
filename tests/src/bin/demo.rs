//! `make demo`: creates a Shoot with two nodes and a web page, writes data, and moves the shoot to the second
//! seed. A writer and a reader of the page run all the time, and the demo compares the state afterwards. With
//! `BAD_CASE=1`, the seed is cut off, the second seed takes the shoot over, and the first seed returns.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt, api::ListParams};
use repot_tests::{
    landscape::Landscape,
    lifecycle, manifests,
    nodes::{Counts, Fleet, Web},
    proof,
    shoot::UserShoot,
    takeover::{Plan, Takeover},
    timeline::Timeline,
    trouble::{OTHERS, Trouble},
    writer::{Book, Writer},
};
use tokio::process::{Child, Command};

/// Objects that are written before the move.
const OBJECTS: usize = 500;
/// Bounds making and moving a shoot, on a slow machine too.
const WITHIN: Duration = Duration::from_secs(300);
const PROJECT: &str = "garden-dev";
const NAME: &str = "demo";

fn say(text: &str) {
    println!("\n=== {text}");
}

/// The state before the move.
struct Before {
    seed: String,
    technical_id: String,
    token: String,
    user: String,
    preserved: proof::PreservedState,
    fleet: Fleet,
    web: Web,
    counts: Counts,
    at: Instant,
}

/// The observations during the move.
struct Moved {
    /// The writes of a user meanwhile.
    book: Book,
    timeline: Timeline,
    /// The lost writes according to the status. Empty if the source helped.
    told: Vec<u64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let landscape = Landscape::open("demo").await?;
    let shoot = UserShoot::new(&landscape, PROJECT, NAME);
    let before = Box::pin(make_and_fill(&landscape, &shoot)).await?;
    let to = if before.seed == "seed-a" {
        "seed-b"
    } else {
        "seed-a"
    };
    let moved = if std::env::var("BAD_CASE").is_ok_and(|set| set == "1") {
        Box::pin(take_it_over(&landscape, &shoot, &before.seed, to)).await?
    } else {
        Box::pin(move_it(&landscape, &shoot, to)).await?
    };
    Box::pin(prove(&landscape, &shoot, &before, to, &moved)).await?;
    println!(
        "\nLook around: docs/operate/README.md tells how. `make demo` again moves it back; `make demo-down` takes all away."
    );
    Ok(())
}

async fn make_and_fill(landscape: &Landscape, shoot: &UserShoot) -> Result<Before> {
    say("Project, CloudProfile, credentials and Shoot, written as Gardener's users write them");
    manifests::apply_project(landscape).await?;
    let exists = shoot.api().get_opt(NAME).await?.is_some();
    if !exists {
        print!("{}", manifests::apply_shoot_with_workers(landscape, NAME).await?);
    }
    let placed = |shoot: &api::gardencore::Shoot| {
        shoot
            .status
            .as_ref()
            .is_some_and(|status| status.seed_name.is_some())
    };
    let placed = shoot.wait("the Shoot has a seed", WITHIN, placed).await?;
    let seed = placed
        .status
        .and_then(|status| status.seed_name)
        .unwrap_or_default();
    shoot.wait_until_on(&seed, WITHIN).await?;
    let host = shoot.host().await?;
    say(&format!(
        "The API answers as https://{host} on {seed}; writing {OBJECTS} ConfigMaps and a CRD into it"
    ));
    let client = shoot.client().await?;
    proof::write_data(&client, OBJECTS).await?;
    let token = proof::service_account_token(&client).await?;
    let technical_id = proof::technical_id(shoot).await?;
    say(
        "A web page on both nodes, and a pod that asks for it five times a second by the name of its Service",
    );
    let web = Web::deploy(&client).await?;
    web.answers(&client).await?;
    let fleet = Fleet::read(landscape.seed(&seed)?, &technical_id, &client).await?;
    for (machine, [id, _]) in &fleet.machines {
        println!("machine {machine} is {}", id.as_deref().unwrap_or("nothing yet"));
    }
    Ok(Before {
        user: proof::whoami(shoot, &token).await?,
        preserved: proof::read(shoot, landscape.seed(&seed)?).await?,
        counts: web.counts(&client).await?,
        at: Instant::now(),
        fleet,
        web,
        technical_id,
        token,
        seed,
    })
}

async fn move_it(landscape: &Landscape, shoot: &UserShoot, to: &str) -> Result<Moved> {
    say(&format!(
        "kubectl patch shoot {NAME} -p '{{\"spec\":{{\"seedName\":\"{to}\"}}}}', and what `kubectl get shoot -w` shows"
    ));
    let first = next_number(&shoot.client().await?).await?;
    let writer = Writer::start(UserShoot::new(landscape, PROJECT, NAME), first);
    let timeline = Timeline::start(shoot);
    let mut watch = watch(landscape)?;
    shoot.set_seed(to).await?;
    shoot.wait_until_on(to, WITHIN).await?;
    watch.kill().await?;
    Ok(Moved {
        book: writer.stop().await?,
        timeline,
        told: Vec::new(),
    })
}

/// The bad case (GEP-17).
async fn take_it_over(landscape: &Landscape, shoot: &UserShoot, from: &str, to: &str) -> Result<Moved> {
    say(&format!(
        "The bucket of {from} gets what was written so far; what comes after it will be lost, and the status will say how much"
    ));
    lifecycle::backed_up(landscape, shoot, from).await?;
    say(&format!(
        "{from} hears nothing of {} any more, and users still reach it. Then, as an operator: kubectl patch shoot {NAME} -p \
         '{{\"spec\":{{\"seedName\":\"{to}\"}}}}' and kubectl annotate shoot {NAME} shoot.gardener.cloud/force-restore=true",
        OTHERS.join(", ")
    ));
    let first = next_number(&shoot.client().await?).await?;
    let timeline = Timeline::start(shoot);
    let mut watch = watch(landscape)?;
    let plan = Plan {
        from,
        to,
        trouble: Trouble::CutOff(&OTHERS),
        has_begun: false,
        kills: &[],
        first,
    };
    let taken = Takeover::run(landscape, shoot, plan).await?;
    watch.kill().await?;
    say("The bad case");
    println!(
        "fenced      {from} acknowledged its last write {:.1} s after it was cut off",
        taken.served_for()?.as_secs_f64()
    );
    println!(
        "writable    on {to} {:.1} s after the operator's word, restored after {:.1} s",
        taken.writable_after()?.as_secs_f64(),
        taken.restored.as_secs_f64()
    );
    let loss = taken
        .told
        .as_ref()
        .context("the status does not tell of the loss")?;
    let (Some(revision), Some(saved)) = (loss.last_revision, &loss.saved) else {
        bail!("the status tells no bound of the loss: {loss:?}");
    };
    println!(
        "told        what {from} acknowledged after revision {revision}, between {} and {}, is lost",
        saved.0, loss.fenced.0
    );
    Ok(Moved {
        told: taken.lost_as_told()?,
        book: taken.followed,
        timeline,
    })
}

/// `kubectl get shoot -w`, until killed or dropped.
fn watch(landscape: &Landscape) -> Result<Child> {
    let kubeconfig = landscape.variable("GARDEN_KUBECONFIG")?;
    let child = Command::new("kubectl")
        .args(["--kubeconfig", kubeconfig, "-n", PROJECT])
        .args(["get", "shoot", NAME, "-w"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    Ok(child)
}

async fn prove(
    landscape: &Landscape,
    shoot: &UserShoot,
    before: &Before,
    to: &str,
    moved: &Moved,
) -> Result<()> {
    let book = &moved.book;
    say("What this proves");
    let differences = before
        .preserved
        .differences(&proof::read(shoot, landscape.seed(to)?).await?);
    let lost = book.lost(&shoot.client().await?).await?;
    let back = book.versions_that_went_back();
    let source = landscape.seed(&before.seed)?;
    let look = || proof::left_behind(source, &before.technical_id);
    let left = proof::until_nothing(Duration::from_secs(60), look).await?;
    let still = proof::whoami(shoot, &before.token).await?;
    println!(
        "data        {} objects read back, {} differences",
        before.preserved.objects.len(),
        differences.len()
    );
    println!(
        "writes      {} acknowledged while it moved, {} lost, {} resourceVersions went back",
        book.writes.len(),
        lost.len(),
        back.len()
    );
    println!("identity    same CA; a token made before the move is still {still}");
    println!(
        "secrets     {} carried, byte for byte",
        before.preserved.secrets.len()
    );
    println!(
        "left behind on {}: {}",
        before.seed,
        if left.is_empty() {
            "nothing".into()
        } else {
            left.join(", ")
        }
    );
    let changes = prove_nodes(landscape, shoot, before, to).await?;
    println!("unwritable  {:.1} s", book.longest_gap().as_secs_f64());
    if let Some((from, to)) = book.longest_gap_between() {
        print!("{}", moved.timeline.between(from, to));
    }
    ensure!(differences.is_empty(), "not kept: {differences:#?}");
    ensure!(
        lost == moved.told && back.is_empty(),
        "lost {lost:?}, told {:?}, went back {back:?}",
        moved.told
    );
    ensure!(left.is_empty(), "left behind: {left:?}");
    ensure!(changes.is_empty(), "nodes or pods changed: {changes:#?}");
    ensure!(
        still == before.user,
        "the token was {} and is now {still}",
        before.user
    );
    Ok(())
}

/// The changes of machines, nodes and pods. Fails if the page was not reachable.
async fn prove_nodes(
    landscape: &Landscape,
    shoot: &UserShoot,
    before: &Before,
    to: &str,
) -> Result<Vec<String>> {
    let client = shoot.client().await?;
    let after = Fleet::read(landscape.seed(to)?, &before.technical_id, &client).await?;
    let changes = before.fleet.differences(&after);
    println!(
        "nodes       {} machines, {} nodes and {} pods, {} changes; no pod was started again",
        after.machines.len(),
        after.nodes.len(),
        before.fleet.pods.len(),
        changes.len()
    );
    let counts = before.web.counts(&client).await?;
    println!(
        "web page    {} requests answered inside the shoot meanwhile, {} lost",
        counts.served - before.counts.served,
        counts.failed - before.counts.failed
    );
    counts.nothing_lost_since(before.counts, before.at.elapsed())?;
    Ok(changes)
}

/// The number after the last write of an earlier run, so that the demo can be run again.
async fn next_number(client: &Client) -> Result<u64> {
    let written = Api::<ConfigMap>::default_namespaced(client.clone())
        .list(&ListParams::default())
        .await?;
    let numbers = written
        .iter()
        .filter_map(|map| map.name_any().strip_prefix("written-")?.parse::<u64>().ok());
    Ok(numbers.max().map_or(0, |number| number + 1))
}
