//! Whether a source that has sealed its epoch is still storing data.

use crate::seal_note::SealNote;
use std::time::Duration;
use tokio::time::Instant;

/// A source without a change for this time has ended. Three times the pause between two heartbeats
/// ([`crate::snapshotter::BEAT`]).
const STALLED: Duration = Duration::from_secs(15);

/// The last observation of the source, with the time since which the observation is unchanged.
#[derive(Default)]
pub(super) struct Storing(Option<(SealNote, usize, Instant)>);

impl Storing {
    /// Records the present observation of the source.
    pub(super) fn saw(&mut self, note: Option<SealNote>, objects: usize, now: Instant) {
        let Some(note) = note else { return };
        let is_same = |seen: &(SealNote, usize, Instant)| (seen.0, seen.1) == (note, objects);
        if !self.0.as_ref().is_some_and(is_same) {
            self.0 = Some((note, objects, now));
        }
    }

    /// Whether the source has reported its seal, and is still storing data.
    pub(super) fn goes_on(&mut self, note: Option<SealNote>, objects: usize, now: Instant) -> bool {
        self.saw(note, objects, now);
        let since = self.0.as_ref().map(|seen| seen.2);
        note.is_some() && since.is_some_and(|since| now.duration_since(since) < STALLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_waited_for_while_its_beat_or_its_objects_change() {
        let note = |beat| {
            Some(SealNote {
                epoch: 1,
                revision: 9,
                beat,
            })
        };
        let (mut now, mut storing) = (Instant::now(), Storing::default());
        assert!(!storing.goes_on(None, 3, now), "it has not sealed its epoch");
        for (beat, objects) in [(0, 3), (1, 3), (1, 4)] {
            assert!(storing.goes_on(note(beat), objects, now));
            now += STALLED.saturating_sub(Duration::from_secs(1));
            assert!(storing.goes_on(note(beat), objects, now), "{beat} {objects}");
        }
        now += Duration::from_secs(1);
        assert!(!storing.goes_on(note(1), 4, now), "it stands still");
    }
}
