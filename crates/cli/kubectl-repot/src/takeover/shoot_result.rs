//! The result of a takeover for each shoot.

use serde::Serialize;

use super::{decision::Verdict, report::TakeoverReport};
use crate::failure::Failure;

/// The result for a shoot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShootResult {
    pub(super) namespace: String,
    pub(super) shoot: String,
    pub(super) taken_over: bool,
    pub(super) message: String,
}

impl ShootResult {
    pub(super) fn new(report: &TakeoverReport, outcome: Result<Verdict, Failure>) -> Self {
        let (taken_over, message) = match outcome {
            Ok(Verdict::PlannedMove) => (
                false,
                format!(
                    "seed {} lives, and hands the shoot over in a planned move",
                    report.from
                ),
            ),
            Ok(_) => (true, format!("taken over by seed {}", report.to)),
            Err(failure) => (false, failure.to_string()),
        };
        Self {
            namespace: report.namespace.clone(),
            shoot: report.shoot.clone(),
            taken_over,
            message,
        }
    }
}
