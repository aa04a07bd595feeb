//! Conditions whose times are not in the model.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::{AttemptMarks, BucketMark, CutWait, LiveOwnership, SourceMark, may_begin_cut};
use crate::phase::{Ownership, SeedEpoch, Step, Writer};

/// The garden in the first attempt of seed `a` to pass to seed `b`.
fn passing() -> LiveOwnership<&'static str> {
    let leaving = Ownership::first("a")
        .step(&Writer::Seed("a"), Step::Leave)
        .unwrap();
    let leaving = LiveOwnership::of_epoch(leaving.becomes);
    leaving.begin_passing(&"a", "b").unwrap().becomes
}

#[test]
fn a_cut_waits_for_marks_follower_and_streams() {
    let garden = passing();
    let me = SeedEpoch { seed: "a", epoch: 1 };
    let marked = |attempt| AttemptMarks {
        beside_data: Some(SourceMark::Passing { attempt }),
        is_volume_new: false,
        in_bucket: BucketMark::Passing { attempt },
    };
    let is_in_bucket = |in_bucket| AttemptMarks {
        in_bucket,
        ..marked(1)
    };
    for (marks, close_for, stream_delay, expected) in [
        (marked(1), 10, 10, Ok(1)),
        (marked(0), 10, 0, Err(CutWait::Mark(1))),
        (AttemptMarks::default(), 10, 0, Err(CutWait::Mark(1))),
        (
            is_in_bucket(BucketMark::Passing { attempt: 0 }),
            10,
            0,
            Err(CutWait::Bucket(1)),
        ),
        (is_in_bucket(BucketMark::Absent), 10, 0, Err(CutWait::Bucket(1))),
        (is_in_bucket(BucketMark::Unread), 10, 0, Err(CutWait::Bucket(1))),
        (marked(1), 9, 0, Err(CutWait::Follower)),
        (marked(1), 10, 11, Err(CutWait::Streams)),
    ] {
        let (close_for, stream_delay) = (Duration::from_secs(close_for), Duration::from_secs(stream_delay));
        assert_eq!(
            may_begin_cut(&garden, &me, &marks, close_for, stream_delay),
            expected
        );
    }
    let cancelled = garden.cancel(&"a").unwrap().becomes;
    let later = SeedEpoch { seed: "a", epoch: 2 };
    for (garden, me) in [(&cancelled, &me), (&garden, &later)] {
        let waits = may_begin_cut(garden, me, &marked(1), Duration::MAX, Duration::ZERO);
        assert_eq!(waits, Err(CutWait::Garden));
    }
}
