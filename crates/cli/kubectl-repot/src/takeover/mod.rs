//! `kubectl repot takeover`: takes shoots over from a seed that does not answer. The loss, the fence and the
//! processes that no fence stops are shown before the approval.

mod all;
mod decision;
mod fence_forecast;
mod order;
mod report;
mod settings;
mod shoot_result;
mod single;
mod trials;

pub(crate) use order::{ProjectStates, importance, next_of_rest, order_by_turns};

pub use all::take_over_seed;
pub use report::TakeoverReport;
pub use settings::{LANE_WITHIN, TakeoverSettings};
pub use single::take_over_shoot;
