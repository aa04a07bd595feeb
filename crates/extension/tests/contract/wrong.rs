//! Actuators that break the contract, each in one way. The suite has to see each, and say what it was.

use anyhow::{Result, ensure};
use futures::{StreamExt as _, stream};

use crate::{toy, world::Seeds};

/// In what way an actuator is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Nothing,
    /// Right, and particular about what it reads.
    ReadsStrictly,
    /// Right, and has objects in the shoot besides.
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

/// What the sentence must have in it: the step and what was violated.
const SENTENCES: &[(Wrong, &[&str])] = &[
    (
        Wrong::MakesASecond,
        &["the second reconcile: the world outside was"],
    ),
    (
        Wrong::RemembersInMemory,
        &["the second reconcile: the world outside was"],
    ),
    // Which request fails first after the thing is made is not told: Events go beside. On a busy machine it
    // may be one of a restore.
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
    (Wrong::WantsToFindIt, &["delete: there is nothing to delete"]),
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

/// As many as two cores have work for.
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
