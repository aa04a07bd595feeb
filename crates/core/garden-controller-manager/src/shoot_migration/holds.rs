//! The holds of a planned move that has not begun, in the order in which the first obstacle is reported.
//! Pure.
//!
//! A takeover ignores all holds, as the shoot would be lost without the takeover. A hold is an obstacle that
//! only the source can remove, that chooses a seed, or that an earlier move has left.

use api::gardencore::Shoot;

use super::{eligibility, pause, pending_edit, preflight::Verdict, reading::Judged, source, source_entry};

/// The verdict on the move after all holds; `None` if no move is wanted.
pub(super) fn apply(shoot: &Shoot, judged: &Judged) -> Option<Verdict> {
    let seeds = [judged.source.as_ref(), judged.destination.as_ref()];
    let holds: [&dyn Fn(Verdict) -> Verdict; 5] = [
        &|verdict| source_entry::hold(shoot, judged.source_entry.as_ref(), verdict),
        &|verdict| eligibility::hold(shoot, seeds, judged.profile.as_ref(), verdict),
        &|verdict| pause::hold(shoot, seeds, verdict),
        &|verdict| source::with_reports(shoot, verdict),
        &|verdict| pending_edit::hold(shoot, verdict),
    ];
    let verdict = judged.verdict.clone()?;
    Some(holds.iter().fold(verdict, |verdict, hold| hold(verdict)))
}
