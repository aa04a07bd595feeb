//! The checks of a planned move that has not begun, in the order in which the first obstacle is reported.
//! Pure.
//!
//! A takeover ignores all of these checks, as the shoot would be lost without the takeover. Each check finds
//! an obstacle that only the source can remove, that chooses a seed, or that an earlier move has left.

use api::gardencore::Shoot;

use super::{
    eligibility, former_source_entry, pause, pending_edit, preflight::Verdict, reading::Judged, source,
    source_bucket,
};

/// The verdict on the move after all checks; `None` if no move is wanted.
pub(super) fn apply(shoot: &Shoot, judged: &Judged) -> Option<Verdict> {
    let seeds = [judged.source.as_ref(), judged.destination.as_ref()];
    let checks: [&dyn Fn(Verdict) -> Verdict; 6] = [
        &|verdict| former_source_entry::check(shoot, judged.source_entry.as_ref(), verdict),
        &|verdict| source_bucket::check(shoot, judged.source_bucket.as_ref(), verdict),
        &|verdict| eligibility::check(shoot, seeds, judged.profile.as_ref(), verdict),
        &|verdict| pause::check(shoot, seeds, verdict),
        &|verdict| source::with_reports(shoot, verdict),
        &|verdict| pending_edit::check(shoot, verdict),
    ];
    let verdict = judged.verdict.clone()?;
    Some(checks.iter().fold(verdict, |verdict, check| check(verdict)))
}
