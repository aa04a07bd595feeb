//! Actuators that break the contract, each in one respect. The test must detect and name each violation.

use anyhow::{Result, ensure};
use futures::{StreamExt as _, stream};

use crate::{toy, world::Seeds};

/// The violation of an actuator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    /// Correct, and strict about the input.
    ReadsStrictly,
    /// Correct, and with objects in the shoot.
    KeepsObjects,
    MakesASecond,
    RemembersInMemory,
    UndoesOnError,
    RestlessState,
    GarbageState,
    StateTooLarge,
    NeverAnswers,
    NamesWhatIsNot,
    DeletesOnMigrate,
    LeavesThings,
    LosesState,
    RemovesTheKey,
    DeletesItself,
    IgnoresState,
    BeginsEmpty,
    LeavesOutside,
    WantsToFindIt,
    Detaches,
    CannotBeForced,
    LeavesSilently,
    RestlessResources,
    TakesObjectsAlong,
    LeavesInside,
    LeavesInsideByForce,
}

/// The required text of the sentence: the step and the violation.
const SENTENCES: &[(Wrong, &[&str])] = &[
    (
        Wrong::MakesASecond,
        &["the second reconcile: the world outside was"],
    ),
    (
        Wrong::RemembersInMemory,
        &["the second reconcile: the world outside was"],
    ),
    // The first failing request after the creation is not deterministic, because Events are written
    // concurrently. On a busy machine the step may be a restore.
    (Wrong::UndoesOnError, &["", "the world outside was"]),
    (Wrong::RestlessState, &["the second reconcile: status.state was"]),
    (
        Wrong::GarbageState,
        &["reconcile: ", "actuator toy", "Infrastructure one is no object"],
    ),
    (
        Wrong::StateTooLarge,
        &[
            "the second reconcile: Infrastructure one has a status of 20",
            "the former state is kept",
        ],
    ),
    (
        Wrong::NeverAnswers,
        &[
            "reconcile: Create of Infrastructure one did not end within 100ms",
            "actuator toy",
        ],
    ),
    (
        Wrong::NamesWhatIsNot,
        &[
            "migrate: status.resources names none, which is not there",
            "RX-33",
        ],
    ),
    (Wrong::DeletesOnMigrate, &["migrate: the world outside was"]),
    (
        Wrong::LeavesThings,
        &["migrate: the namespace in the source still holds", "RX-20"],
    ),
    (
        Wrong::LosesState,
        &["migrate: status.state was", "is gone", "RX-11"],
    ),
    (
        Wrong::RemovesTheKey,
        &[
            "migrate: status.resources names toy-key, which is not there",
            "RX-33",
        ],
    ),
    (Wrong::DeletesItself, &["migrate: the object is gone", "RX-11"]),
    (Wrong::IgnoresState, &["restore: the world outside was"]),
    (
        Wrong::BeginsEmpty,
        &["restore without its state: it went on", "RX-31"],
    ),
    (Wrong::LeavesOutside, &["delete: the world outside was"]),
    // A deletion that was interrupted after its work, or the second deletion, finds nothing.
    (
        Wrong::WantsToFindIt,
        &["", "delete: th", "there is nothing to delete"],
    ),
    // R17-60..62.
    (
        Wrong::Detaches,
        &[
            "reconcile while the shoot is lost: ",
            "something goes on",
            "the world outside was",
        ],
    ),
    (
        Wrong::CannotBeForced,
        &["refused forced delete: the cloud refuses"],
    ),
    (
        Wrong::LeavesSilently,
        &["refused forced delete: ", "is left outside, and no Event"],
    ),
    (
        Wrong::RestlessResources,
        &["the second reconcile: status.resources was"],
    ),
    // RX-23.
    (Wrong::TakesObjectsAlong, &["migrate: the world outside was"]),
    (Wrong::LeavesInside, &["delete: the namespace still holds"]),
    (
        Wrong::LeavesInsideByForce,
        &["refused forced delete: the namespace still holds"],
    ),
];

/// As many as two cores can run.
const AT_ONCE: usize = 4;

pub async fn each_fails(seeds: &Seeds) -> Result<()> {
    let all = stream::iter(SENTENCES).map(|(wrong, expected)| fails(seeds, *wrong, expected));
    let seen: Vec<Result<()>> = all.buffer_unordered(AT_ONCE).collect().await;
    let missed: Vec<String> = seen
        .into_iter()
        .filter_map(|one| one.err().map(|e| e.to_string()))
        .collect();
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}

async fn fails(seeds: &Seeds, wrong: Wrong, expected: &[&str]) -> Result<()> {
    let namespace = format!("shoot--toy--{}", format!("{wrong:?}").to_lowercase());
    let said = match toy::prove(seeds, &namespace, wrong).await {
        Ok(proof) => format!("nothing: it passes ({proof:?})"),
        Err(said) => said,
    };
    let all =
        expected.iter().all(|part| said.contains(part)) && said.starts_with(expected.first().unwrap_or(&""));
    ensure!(
        all,
        "{wrong:?}: expected {expected:?}, the suite says {said:.600}"
    );
    Ok(())
}
