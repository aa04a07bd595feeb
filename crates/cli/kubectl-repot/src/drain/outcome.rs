//! The results of a drain, as text and as JSON.

use api::gardencore::Shoot;
use kube::ResourceExt;
use serde::Serialize;

use crate::table::columns;

/// The result of a drain for a shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MoveResult {
    /// The shoot is complete in the destination.
    Moved,
    /// The Shoot was deleted meanwhile.
    Deleted,
    /// The shoot cannot move now, and was not touched.
    LeftOut,
    /// The caller leaves the shoot out.
    Excluded,
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

    /// Whether the drain is not complete because of the shoot. The caller accepts that a shoot of `--exclude`
    /// stays on the seed.
    #[must_use]
    pub fn is_obstacle(self) -> bool {
        !self.has_left() && self != Self::Excluded
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

    /// The row of a table: the name of the shoot, and the outcome.
    pub(super) fn row(&self) -> Vec<String> {
        let label = match self.result {
            MoveResult::Moved | MoveResult::Deleted => "",
            MoveResult::LeftOut | MoveResult::Excluded => "left out: ",
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
    let count = |is_counted: fn(MoveResult) -> bool| {
        let counted = outcomes.iter().filter(|outcome| is_counted(outcome.result));
        counted.count()
    };
    let rest = count(MoveResult::is_obstacle);
    let excluded = count(|result| result == MoveResult::Excluded);
    // A former seed that is switched off before the end of the clean-up takes no shoot back.
    let (end, advice) = if rest == 0 {
        let advice = " Switch the seed off only when no Shoot has the seed in status.formerSeeds.";
        let end = if excluded == 0 {
            format!("Seed {from} is drained")
        } else {
            format!(
                "Seed {from} is drained except for {excluded} shoots of --exclude, which are down while the seed is off"
            )
        };
        (end, advice)
    } else {
        let end =
            format!("{rest} shoots have not left seed {from}: remove the causes, and repeat the command");
        (end, "")
    };
    format!(
        "{}{end}. The seed stays cordoned until `kubectl repot uncordon {from}`.{advice}\n",
        columns(&rows)
    )
}

/// The results as text where the Shoots on the seed are not known after the moves.
pub(super) fn render_unchecked(from: &str, outcomes: &[ShootOutcome], why: &str) -> String {
    let rows: Vec<Vec<String>> = outcomes.iter().map(ShootOutcome::row).collect();
    format!(
        "{}{why}. The seed stays cordoned until `kubectl repot uncordon {from}`.\n",
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

    #[test]
    fn shoots_that_have_not_left_are_counted() {
        let moved = outcome("one", MoveResult::Moved, "is on seed b after 43s");
        let all = render_outcomes("a", std::slice::from_ref(&moved));
        assert!(
            all.contains("Seed a is drained. The seed stays cordoned"),
            "{all}"
        );
        assert!(all.contains("status.formerSeeds"), "{all}");
        let failed = outcome("two", MoveResult::Failed, "the bucket refuses");
        let some = render_outcomes("a", &[moved, failed]);
        assert!(
            some.contains("garden-dev/two   failed: the bucket refuses\n1 shoots have not left seed a"),
            "{some}"
        );
        assert!(!some.contains("status.formerSeeds"), "{some}");
    }

    /// A repeated drain finds no shoot, or finds only shoots that the caller leaves out.
    #[test]
    fn a_seed_without_further_shoots_is_drained() {
        let none = render_outcomes("a", &[]);
        assert!(none.starts_with("Seed a is drained. The seed stays"), "{none}");
        let kept = outcome("one", MoveResult::Excluded, "--exclude");
        assert!(!kept.result.is_obstacle() && !kept.result.has_left());
        let text = render_outcomes("a", std::slice::from_ref(&kept));
        assert!(
            text.contains(
                "garden-dev/one   left out: --exclude\nSeed a is drained except for 1 shoots of --exclude"
            ),
            "{text}"
        );
        let failed = outcome("two", MoveResult::Failed, "the bucket refuses");
        let some = render_outcomes("a", &[kept, failed]);
        assert!(some.contains("1 shoots have not left seed a"), "{some}");
    }
}
