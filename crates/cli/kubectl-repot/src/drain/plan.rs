//! The plan of a drain, as text and as JSON.

use api::gardencore::Shoot;
use kube::ResourceExt;
use serde::Serialize;

use super::{outcome::ShootOutcome, request::DrainRequest};
use crate::{age::span, history::FormerMoves, table::columns};

/// A shoot that moves.
#[derive(Debug)]
pub(super) struct Work {
    /// The Shoot as read.
    pub(super) shoot: Shoot,
    /// Name of the destination Seed.
    pub(super) to: String,
    /// Whether the move was requested before this command.
    pub(super) is_under_way: bool,
}

/// A move of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedMove {
    namespace: String,
    shoot: String,
    seed: String,
    is_under_way: bool,
}

impl PlannedMove {
    pub(super) fn new(work: &Work) -> Self {
        Self {
            namespace: work.shoot.namespace().unwrap_or_default(),
            shoot: work.shoot.name_any(),
            seed: work.to.clone(),
            is_under_way: work.is_under_way,
        }
    }
}

/// The plan of a drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainPlan {
    /// The seed that is to lose all shoots.
    pub seed: String,
    /// Shoots that move at a time.
    pub parallel: usize,
    /// The moves, in order.
    pub moves: Vec<PlannedMove>,
    /// Shoots that cannot move now.
    pub left_out: Vec<ShootOutcome>,
    /// The expected duration of all moves in seconds. Absent where no former move is known.
    pub expected_seconds: Option<i64>,
    former_moves: Option<FormerMoves>,
}

impl DrainPlan {
    pub(super) fn new(
        request: DrainRequest<'_>,
        moves: Vec<PlannedMove>,
        left_out: Vec<ShootOutcome>,
        former_moves: Option<FormerMoves>,
    ) -> Self {
        let expected_seconds =
            former_moves.map(|former| expected_seconds(moves.len(), request.parallel, former.median_seconds));
        Self {
            seed: request.from.to_owned(),
            parallel: request.parallel,
            moves,
            left_out,
            expected_seconds,
            former_moves,
        }
    }

    /// The plan as text.
    #[must_use]
    pub fn render(&self) -> String {
        let moves = self.moves.iter().map(|one| {
            let step = if one.is_under_way {
                format!("is on the way to seed {}", one.seed)
            } else {
                format!("moves to seed {}", one.seed)
            };
            vec![format!("{}/{}", one.namespace, one.shoot), step]
        });
        let left_out = self.left_out.iter().map(ShootOutcome::row);
        let rows: Vec<Vec<String>> = moves.chain(left_out).collect();
        let count = self.moves.len();
        let mut text = format!(
            "Drain of seed {}: {count} shoots to move, {} left out\n{}",
            self.seed,
            self.left_out.len(),
            columns(&rows)
        );
        if count > 0 {
            text.push_str(&self.describe_duration());
        }
        text
    }

    fn describe_duration(&self) -> String {
        match (self.former_moves, self.expected_seconds) {
            (Some(former), Some(seconds)) => format!(
                "expected duration: {}, with {} at a time and {} for each\n",
                span(seconds),
                self.parallel,
                former.describe()
            ),
            _ => format!(
                "expected duration: unknown, with {} at a time; the garden has no Events of former moves that you may read\n",
                self.parallel
            ),
        }
    }
}

/// Rounds of moves that run side by side, each as long as a single move.
pub(super) fn expected_seconds(moves: usize, parallel: usize, seconds_each: i64) -> i64 {
    let rounds = moves.div_ceil(parallel.max(1));
    i64::try_from(rounds)
        .unwrap_or(i64::MAX)
        .saturating_mul(seconds_each)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
