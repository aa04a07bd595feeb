//! A Shoot that becomes too large with the approval of a move, because the approval repeats the
//! specification. The API server refuses verdict and approval, and users would see no obstacle. So the
//! obstacle is reported in a write without the approval.

use api::constants::condition::SHOOT_TOO_LARGE;

use super::preflight::Verdict;

/// The verdict on a move whose approval the API server refuses for the size of the Shoot.
#[must_use]
pub fn verdict(source: &str, destination: &str) -> Verdict {
    Verdict {
        ready: false,
        reason: SHOOT_TOO_LARGE,
        message: format!(
            "the Shoot is too large to move: the API server refuses the approval for seed {destination}, which repeats the \
             specification; shorten spec, annotations or labels of the Shoot, and the garden checks the move again; or set \
             spec.seedName back to {source}."
        ),
    }
}
