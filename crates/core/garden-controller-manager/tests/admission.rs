//! The time that the garden's policies take for a write does not grow with the number of Shoots in the
//! garden.
//!
//! `hack/bench.sh admission` runs this test; `REPOT_ADMISSION_SHOOTS` sets the number of Shoots,
//! `REPOT_ADMISSION_SHOOTS_OF_PROJECT` the number of them in the project of the writes. Policies with Shoots
//! as parameters are evaluated against each Shoot of the project.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "garden/mod.rs"]
mod garden;

use std::{
    fmt::{self, Display},
    time::Duration,
};

use anyhow::{Result, ensure};
use api::gardencore::Shoot;
use futures::{StreamExt, stream};
use garden::{Garden, NAMESPACE, try_patch, until_allowed};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::json;
use testkit::size;
use tokio::time::Instant;

const SHOOTS: usize = 5000;
const OF_PROJECT: usize = 100;
/// Creations under way at the same time.
const AT_A_TIME: usize = 16;
/// Writes of each kind, whose median counts.
const WRITES: usize = 41;
/// The Shoot of the writes.
const MEASURED: &str = "measured";
/// Most that a median may grow by, beside a factor of 2: noise of a busy machine.
const NOISE: Duration = Duration::from_millis(20);

#[ignore = "a measurement of some minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admission_stays_cheap_with_many_shoots() -> Result<()> {
    let count = size("REPOT_ADMISSION_SHOOTS", SHOOTS)?;
    let of_project = size("REPOT_ADMISSION_SHOOTS_OF_PROJECT", OF_PROJECT)?.min(count);
    let garden = Garden::start().await?;
    garden
        .shoot(MEASURED, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.secret("measured.kubeconfig", "Opaque").await;
    garden.grant_gardenlets("", "secrets", "patch").await;
    let few = Box::pin(Medians::measure(&garden)).await?;
    fill(&garden, count, of_project).await?;
    let many = Box::pin(Medians::measure(&garden)).await?;
    println!("bench: | a few Shoots | {few} |");
    println!("bench: | {count} Shoots, {of_project} of them in the project | {many} |");
    for (what, before, after) in [
        ("an edit of a Shoot", few.edit, many.edit),
        ("a status of a gardenlet", few.status, many.status),
    ] {
        ensure!(
            after <= before * 2 + NOISE,
            "{what} took {before:?}, and takes {after:?} with {count} Shoots"
        );
    }
    Ok(())
}

/// Creates Shoots in the project of the writes, and the rest in further projects of the same size.
async fn fill(garden: &Garden, count: usize, of_project: usize) -> Result<()> {
    let step = of_project.max(1);
    for project in 1..count.div_ceil(step) {
        let name = format!("garden-p{project}");
        let labels =
            json!({"project.gardener.cloud/name": format!("p{project}"), "gardener.cloud/role": "project"});
        let metadata = json!({"name": name, "labels": labels});
        garden
            .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await?;
    }
    let created = stream::iter(0..count).map(|number| async move {
        let namespace = match number / step {
            0 => NAMESPACE.to_owned(),
            project => format!("garden-p{project}"),
        };
        let name = format!("s{number}");
        garden.shoot_in(&namespace, &name, "seed-b", None, ("", "")).await;
    });
    created.buffer_unordered(AT_A_TIME).collect::<()>().await;
    Ok(())
}

/// Median times of writes.
struct Medians {
    /// A user edits a Shoot.
    edit: Duration,
    /// A gardenlet writes the status of a Shoot.
    status: Duration,
    /// A gardenlet writes the kubeconfig of a Shoot.
    kubeconfig: Duration,
}

impl Medians {
    async fn measure(garden: &Garden) -> Result<Self> {
        let edited: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await?, NAMESPACE);
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        until_allowed(|| try_patch(&edited, MEASURED, &label)).await;
        let edit = median(async |_| try_patch(&edited, MEASURED, &label).await).await?;
        let shoots: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
        let status = median(async |number| {
            let status = json!({"observedGeneration": number});
            garden.patch_status(&shoots, MEASURED, status).await
        })
        .await?;
        let secrets: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
        let data = json!({"data": {"kubeconfig": "eA=="}});
        until_allowed(|| try_patch(&secrets, "measured.kubeconfig", &data)).await;
        let kubeconfig = median(async |_| try_patch(&secrets, "measured.kubeconfig", &data).await).await?;
        Ok(Self {
            edit,
            status,
            kubeconfig,
        })
    }
}

impl Display for Medians {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(
            f,
            "{:.1} ms | {:.1} ms | {:.1} ms",
            milliseconds(self.edit),
            milliseconds(self.status),
            milliseconds(self.kubeconfig)
        )
    }
}

async fn median(write: impl AsyncFn(usize) -> Result<(), kube::Error>) -> Result<Duration> {
    let mut times = Vec::with_capacity(WRITES);
    for number in 0..WRITES {
        let begun = Instant::now();
        write(number).await?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[WRITES / 2])
}
