use super::*;

const PACE: Pace = Pace {
    quiet: Duration::from_secs(5),
    longest: Duration::from_secs(30),
    period: Duration::from_secs(600),
};

fn second(second: u64) -> Duration {
    Duration::from_secs(second)
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_followed_once_and_one_without_end_in_time() {
    let start = Instant::now();
    let mut changes = Debounce::default();
    changes.touch("a", start);
    let first = changes.time_until_due("a", Stage::Created, PACE, start);
    assert_eq!(
        first, None,
        "what was never done is due, although it has just changed"
    );
    changes.begin("a");
    changes.done("a", Stage::Created, start);
    assert_eq!(
        changes.time_until_due("a", Stage::Created, PACE, start),
        Some(second(600))
    );
    for at in 0..8 {
        changes.touch("a", start + second(at));
    }
    let left = |changes: &Debounce, at| changes.time_until_due("a", Stage::Created, PACE, start + second(at));
    assert_eq!(left(&changes, 8), Some(second(4)), "five seconds after the last");
    assert_eq!(left(&changes, 12), None);
    for at in 8..60 {
        changes.touch("a", start + second(at));
    }
    assert_eq!(
        left(&changes, 30),
        None,
        "thirty seconds after the first, whatever follows"
    );
    changes.begin("a");
    changes.touch("a", start + second(61));
    changes.done("a", Stage::Created, start + second(62));
    assert_eq!(
        left(&changes, 62),
        Some(second(4)),
        "what changed meanwhile is not lost"
    );
    assert_eq!(
        changes.time_until_due("b", Stage::Created, PACE, start),
        None,
        "keys are apart"
    );
    changes.forget("a");
    assert_eq!(left(&changes, 62), None);
}

// A seed that dies directly after the creation of a shoot must not lose any state of the shoot.
#[tokio::test(start_paused = true)]
async fn what_reaches_a_new_stage_is_due() {
    let start = Instant::now();
    let mut changes = Debounce::default();
    changes.done("a", Stage::Creating, start);
    changes.touch("a", start);
    assert_eq!(
        changes.time_until_due("a", Stage::Creating, PACE, start),
        Some(second(5))
    );
    assert_eq!(changes.time_until_due("a", Stage::Created, PACE, start), None);
    changes.begin("a");
    changes.done("a", Stage::Created, start);
    assert_eq!(
        changes.time_until_due("a", Stage::Created, PACE, start),
        Some(second(600))
    );
}
