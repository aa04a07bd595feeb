//! The source of a live move: the order of the cut, the marks, and when the source opens again.

use std::time::Duration;

use super::record::{FollowedEnd, LiveOwnership, SealedAttempt};
use crate::phase::SeedEpoch;

/// The time for which the follower must have stayed close to the source before a cut.
const CLOSE_FOR: Duration = Duration::from_secs(10);

/// The longest delay of a stream at the gate before a cut: a stream that is far behind would end late.
const LONGEST_STREAM_DELAY: Duration = Duration::from_secs(10);

/// The mark beside the source's data, synced. The mark is lost with the volume; then the mark in the bucket
/// of the source shows the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceMark {
    /// This attempt may be cut. No record of this attempt was sent.
    Passing {
        /// The attempt.
        attempt: u32,
    },
    /// The gate of this attempt is shut at this end. The record may have been sent.
    Passed(SealedAttempt),
}

impl SourceMark {
    /// The attempt of the mark.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        match self {
            Self::Passing { attempt } => *attempt,
            Self::Passed(sealed) => sealed.attempt,
        }
    }

    /// The report for the record, after the mark was synced.
    #[must_use]
    pub fn report(&self) -> Option<SealedAttempt> {
        match self {
            Self::Passing { .. } => None,
            Self::Passed(sealed) => Some(*sealed),
        }
    }
}

/// The mark in the source's bucket: the attempt survives the loss of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BucketMark {
    /// The bucket was not read.
    #[default]
    Unread,
    /// The bucket has no mark: no cut has begun in this epoch.
    Absent,
    /// This attempt may be cut.
    Passing {
        /// The attempt.
        attempt: u32,
    },
}

/// The marks that a process beside the source's etcd finds when the process starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttemptMarks {
    /// The mark beside the data.
    pub beside_data: Option<SourceMark>,
    /// The volume is empty or was restored, so that the mark beside the data may be lost.
    pub is_volume_new: bool,
    /// The mark in the bucket.
    pub in_bucket: BucketMark,
}

/// Whether the garden shows that no record of this attempt can become valid any more, and that this owner
/// continues. A garden that still shows the attempt proves nothing: the record may be under way. An old
/// answer is safe, because attempts never go back.
#[must_use]
pub fn is_given_up<S: Clone + PartialEq>(attempt: u32, garden: &LiveOwnership<S>, me: &SeedEpoch<S>) -> bool {
    garden.is_owned_by(me) && garden.attempt > attempt
}

/// Whether the process beside the source's etcd may open the gate in this epoch, apart from the permit.
/// `garden`: the answer of the garden, if any.
#[must_use]
pub fn may_open_source<S: Clone + PartialEq>(
    found: &AttemptMarks,
    garden: Option<&LiveOwnership<S>>,
    me: &SeedEpoch<S>,
) -> bool {
    let given_up = |attempt| garden.is_some_and(|garden| is_given_up(attempt, garden, me));
    match (found.beside_data, found.is_volume_new, found.in_bucket) {
        // The record is sent after mark `Passed`, so no record of this attempt is under way.
        (Some(SourceMark::Passing { .. }), _, _) | (None, false, _) | (None, true, BucketMark::Absent) => {
            true
        }
        (Some(SourceMark::Passed(sealed)), _, _) => given_up(sealed.attempt),
        // Mark `Passed` may have been on the lost volume.
        (None, true, BucketMark::Passing { attempt }) => given_up(attempt),
        (None, true, BucketMark::Unread) => false,
    }
}

/// The steps of a cut, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutStep {
    /// The source's gate holds new requests, also those that the destination's gate has forwarded.
    HoldSource,
    /// All writes at the source's etcd are answered.
    AwaitWrites,
    /// Reads and streams end, except the streams of the follower. A stream that lives longer could show a
    /// revision after the end, such as the end of a lease.
    EndStreams,
    /// The last revision of the source's etcd is read.
    ReadEnd,
    /// The follower has written and answered everything up to the end, has closed its connection, and the
    /// digests are equal. The destination syncs this proof before the destination reports the proof.
    ProveFollower,
    /// The source syncs mark `Passed` and reports the end, and the gardenlet sends the record. No timer opens
    /// the gate from here on.
    Mark,
}

/// The finished steps of a cut. A process that starts again begins with no finished step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CutProgress {
    /// The attempt with which the cut began. The gardenlet may give this attempt up during the cut, and begin
    /// the next attempt: the end and the proof belong to the begun attempt.
    pub attempt: u32,
    /// The last finished step.
    pub last: Option<CutStep>,
    /// The last revision, once read.
    pub end: Option<i64>,
}

impl CutProgress {
    /// The next step; `None` when the end was reported.
    #[must_use]
    pub fn next_step(&self) -> Option<CutStep> {
        match self.last {
            None => Some(CutStep::HoldSource),
            Some(CutStep::HoldSource) => Some(CutStep::AwaitWrites),
            Some(CutStep::AwaitWrites) => Some(CutStep::EndStreams),
            Some(CutStep::EndStreams) => Some(CutStep::ReadEnd),
            Some(CutStep::ReadEnd) => Some(CutStep::ProveFollower),
            Some(CutStep::ProveFollower) => Some(CutStep::Mark),
            Some(CutStep::Mark) => None,
        }
    }

    /// The attempt and the end that the destination has proved: the proof of the destination, and the mark of
    /// the source.
    #[must_use]
    pub fn sealed(&self, end: FollowedEnd) -> SealedAttempt {
        SealedAttempt {
            attempt: self.attempt,
            end,
        }
    }

    /// Whether the source's gate holds requests.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.last.is_some()
    }
}

/// The reason why a cut cannot begin yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CutWait {
    /// The garden shows no attempt of this owner.
    #[error("the garden shows no attempt of a live move")]
    Garden,
    /// The mark beside the data is of an earlier attempt.
    #[error("the mark beside the data does not show attempt {0}")]
    Mark(u32),
    /// The mark in the bucket is of an earlier attempt.
    #[error("the mark in the bucket does not show attempt {0}")]
    Bucket(u32),
    /// The follower was too far behind in the last seconds.
    #[error("the follower was not close for long enough")]
    Follower,
    /// A stream at the gate is too far behind.
    #[error("a stream at the gate is too far behind")]
    Streams,
}

/// The attempt that may be cut now. `marks` are the marks of the running process, `close_for` the time for
/// which the follower has been close, and `stream_delay` the delay of the slowest stream.
///
/// # Errors
/// The reason to wait.
pub fn may_begin_cut<S: Clone + PartialEq>(
    garden: &LiveOwnership<S>,
    me: &SeedEpoch<S>,
    marks: &AttemptMarks,
    close_for: Duration,
    stream_delay: Duration,
) -> Result<u32, CutWait> {
    let attempt = garden.attempt;
    if !garden.is_owned_by(me) || garden.passing_to.is_none() {
        return Err(CutWait::Garden);
    }
    if marks.beside_data != Some(SourceMark::Passing { attempt }) {
        return Err(CutWait::Mark(attempt));
    }
    // The bucket alone shows the attempt after the volume was lost.
    if marks.in_bucket != (BucketMark::Passing { attempt }) {
        return Err(CutWait::Bucket(attempt));
    }
    if close_for < CLOSE_FOR {
        return Err(CutWait::Follower);
    }
    if stream_delay > LONGEST_STREAM_DELAY {
        return Err(CutWait::Streams);
    }
    Ok(attempt)
}
