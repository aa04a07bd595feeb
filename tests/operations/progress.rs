//! Scripts give a sign of life while a command or a wait takes long.

use crate::programs::{Desk, root};

/// The command and the wait end as soon as a line about the progress is in the file of errors.
const PROGRESS: &str = r#"
    LOG=$PWD/log ERRORS=$PWD/errors
    cd "$0"
    . hack/progress.sh
    PAUSE=0
    exec 2>"$ERRORS"
    wait_for 60 "the line is there" grep -q "waiting for 0 s of at most 60 s: the line is there" "$ERRORS"
    PAUSE=0.1
    logged "$LOG" sh -c 'until grep -q "at work, log:" "$0"; do :; done; echo done' "$ERRORS"
    cat "$LOG"
    logged "$LOG" sh -c 'echo broken; exit 3' || echo "status $?"
    start_ticker "in the background"
    logged "$LOG" true
    until grep -q "in the background (" "$ERRORS"; do :; done
    ticker=$TICKER
    stop_ticker
    kill -0 "$ticker" || echo "ended""#;

#[tokio::test]
async fn a_long_command_and_a_long_wait_show_progress() {
    let desk = Desk::new().unwrap();
    let root = root().canonicalize().unwrap();
    let args = ["-euo", "pipefail", "-c", PROGRESS, root.to_str().unwrap()];
    let output = desk.run("bash", &args).await.unwrap();
    assert!(output.success, "{output:?}");
    assert_eq!(output.out, "done\nstatus 3\nended\n");
}

/// A user waits for at most 15 s between two lines.
#[test]
fn the_pause_between_two_lines_is_short() {
    let script = std::fs::read_to_string(root().join("hack/progress.sh")).unwrap();
    let pause = script.lines().find_map(|line| line.strip_prefix("PAUSE="));
    let pause: u32 = pause.unwrap().parse().unwrap();
    assert!((1..15).contains(&pause), "{pause}");
}
