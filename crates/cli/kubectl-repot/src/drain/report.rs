//! The plan and the results of a drain, as text and as JSON.

use api::gardencore::Shoot;
use kube::ResourceExt;
use serde::Serialize;

use super::{DrainRequest, planning::Work};
use crate::{age::span, history::FormerMoves, table::columns};

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

/// The result of a drain for a shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MoveResult {
    /// The shoot is complete in the destination.
    Moved,
    /// The Shoot was deleted meanwhile.
    Deleted,
    /// The shoot cannot move now, and was not touched.
    LeftOut,
    /// The move was refused, and has not begun.
    Refused,
    /// The move has begun and has failed, or did not end within the bound.
    Failed,
    /// The move was not requested, because a move before has failed.
    NotRequested,
}

impl MoveResult {
    /// Whether the seed of the drain does not have the shoot any more.
    #[must_use]
    pub fn has_left(self) -> bool {
        matches!(self, Self::Moved | Self::Deleted)
    }
}

/// The outcome of a drain for a shoot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootOutcome {
    /// Namespace of the Shoot.
    pub namespace: String,
    /// Name of the Shoot.
    pub shoot: String,
    /// The destination, if there is a destination.
    pub seed: Option<String>,
    /// The result, as a single word for programs.
    pub result: MoveResult,
    /// The result as a sentence.
    pub message: String,
}

impl ShootOutcome {
    pub(super) fn new(shoot: &Shoot, to: Option<&str>, result: MoveResult, message: &str) -> Self {
        Self {
            namespace: shoot.namespace().unwrap_or_default(),
            shoot: shoot.name_any(),
            seed: to.map(str::to_owned),
            result,
            message: message.to_owned(),
        }
    }

    fn row(&self) -> Vec<String> {
        let label = match self.result {
            MoveResult::Moved | MoveResult::Deleted => "",
            MoveResult::LeftOut => "left out: ",
            MoveResult::Refused => "refused: ",
            MoveResult::Failed => "failed: ",
            MoveResult::NotRequested => "not requested: ",
        };
        let name = format!("{}/{}", self.namespace, self.shoot);
        vec![name, format!("{label}{}", self.message)]
    }
}

/// The results as text.
pub(super) fn render_outcomes(from: &str, outcomes: &[ShootOutcome]) -> String {
    let rows: Vec<Vec<String>> = outcomes.iter().map(ShootOutcome::row).collect();
    let left = outcomes
        .iter()
        .filter(|outcome| outcome.result.has_left())
        .count();
    let rest = outcomes.len() - left;
    let end = if rest == 0 {
        format!("Seed {from} is drained")
    } else {
        format!("{rest} shoots have not left seed {from}: remove the causes, and repeat the command")
    };
    format!(
        "{}{end}. The seed stays cordoned until `kubectl repot uncordon {from}`.\n",
        columns(&rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(shoot: &str, result: MoveResult, message: &str) -> ShootOutcome {
        ShootOutcome {
            namespace: "garden-dev".to_owned(),
            shoot: shoot.to_owned(),
            seed: Some("b".to_owned()),
            result,
            message: message.to_owned(),
        }
    }

    fn plan(former_moves: Option<FormerMoves>) -> DrainPlan {
        let to = ["b".to_owned()];
        let request = DrainRequest {
            from: "a",
            to: &to,
            parallel: 2,
            approval: None,
            within: std::time::Duration::ZERO,
        };
        let planned = |shoot: &str, is_under_way: bool| PlannedMove {
            namespace: "garden-dev".to_owned(),
            shoot: shoot.to_owned(),
            seed: "b".to_owned(),
            is_under_way,
        };
        let moves = vec![
            planned("one", true),
            planned("two", false),
            planned("three", false),
        ];
        let left_out = vec![outcome("four", MoveResult::LeftOut, "DestinationSeedFull: full")];
        DrainPlan::new(request, moves, left_out, former_moves)
    }

    #[test]
    fn a_plan_shows_moves_and_the_expected_duration() {
        let former = FormerMoves {
            median_seconds: 90,
            count: 4,
        };
        assert_eq!(
            plan(Some(former)).render(),
            "Drain of seed a: 3 shoots to move, 1 left out\n\
             garden-dev/one     is on the way to seed b\n\
             garden-dev/two     moves to seed b\n\
             garden-dev/three   moves to seed b\n\
             garden-dev/four    left out: DestinationSeedFull: full\n\
             expected duration: 3m, with 2 at a time and 90s (median of 4 former moves) for each\n"
        );
        let unknown = plan(None);
        assert_eq!(unknown.expected_seconds, None);
        assert!(unknown.render().contains("expected duration: unknown"));
    }

    #[test]
    fn moves_side_by_side_take_one_round() {
        for (moves, parallel, seconds) in [(0, 2, 0), (1, 2, 60), (2, 2, 60), (5, 2, 180), (3, 0, 180)] {
            assert_eq!(
                expected_seconds(moves, parallel, 60),
                seconds,
                "{moves} {parallel}"
            );
        }
    }

    #[test]
    fn shoots_that_have_not_left_are_counted() {
        let moved = outcome("one", MoveResult::Moved, "is on seed b after 43s");
        let all = render_outcomes("a", std::slice::from_ref(&moved));
        assert!(
            all.contains("Seed a is drained. The seed stays cordoned"),
            "{all}"
        );
        let failed = outcome("two", MoveResult::Failed, "the bucket refuses");
        let some = render_outcomes("a", &[moved, failed]);
        assert!(
            some.contains("garden-dev/two   failed: the bucket refuses\n1 shoots have not left seed a"),
            "{some}"
        );
    }
}
