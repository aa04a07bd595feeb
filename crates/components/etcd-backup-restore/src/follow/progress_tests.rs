//! The proof of a follower without an etcd.

#![allow(clippy::unwrap_used)]

use super::*;
use futures::FutureExt;

fn delete(key: &'static str) -> Vec<Change> {
    vec![Change::Delete(key.into())]
}

fn digest_of(number: i64, changes: &[Change]) -> HistoryDigest {
    let mut digest = HistoryDigest::default();
    digest.add(number, changes);
    digest
}

/// A follower that begins at a revision, with an equal history up to there.
fn begun(reached: i64) -> FollowProgress {
    let progress = FollowProgress::default();
    progress.begin(reached).unwrap();
    progress.pass_check(progress.history_checks().requested);
    progress
}

fn a_different_change_is_a_divergence() {
    let progress = begun(4);
    progress.expect(5, digest_of(5, &delete("a")));
    let error = progress.prove(5, &delete("b")).expect_err("the keys differ");
    assert_eq!(error.class, Class::Diverged);
    assert!(
        error.message.contains("revision 5 of the local etcd (b)"),
        "{error}"
    );
    assert_eq!(progress.status().revision, 4);
}

#[test]
fn a_history_that_differs_is_noticed() {
    a_different_change_is_a_divergence();
    Mutation::DigestsNotCompared.assert_killed_by(a_different_change_is_a_divergence, "the keys differ");
    let progress = begun(4);
    assert_eq!(
        progress.prove(5, &delete("a")).unwrap_err().class,
        Class::Diverged
    );
}

#[tokio::test(start_paused = true)]
async fn the_lag_is_the_age_of_the_oldest_change_that_is_not_proved() {
    let progress = begun(4);
    progress.phase(FollowPhase::CatchingUp);
    let second = Duration::from_secs(1);
    tokio::time::advance(second).await;
    assert_eq!(progress.lag(), second);
    progress.phase(FollowPhase::Following);
    assert_eq!(progress.lag(), Duration::ZERO);
    progress.source_at(5);
    tokio::time::advance(second).await;
    assert_eq!(progress.lag(), second);
    progress.expect(5, digest_of(5, &delete("a")));
    tokio::time::advance(second).await;
    assert_eq!(progress.lag(), second);
    progress.prove(5, &delete("a")).unwrap();
    let status = progress.status();
    assert_eq!((status.revision, status.source_revision), (5, 5));
    assert_eq!(status.lag_milliseconds, Some(0));
    progress.interrupted(&Error::new(Class::Etcd, "gone"));
    tokio::time::advance(second).await;
    assert_eq!(progress.lag(), second);
}

#[test]
fn a_revision_that_a_session_left_unproved_is_proved_by_the_next_session() {
    let progress = begun(4);
    let mut digest = HistoryDigest::default();
    for number in [5, 6] {
        digest.add(number, &delete("a"));
        progress.expect(number, digest);
    }
    progress.prove(5, &delete("a")).unwrap();
    // The connection breaks; the local etcd has applied revision 6.
    let begin = progress.begin(6).unwrap();
    assert_eq!((begin.proved, progress.status().revision), (5, 5));
    assert_eq!(progress.status().from_revision, 4);
    let mut continued = begin.digest;
    continued.add(6, &delete("a"));
    assert_eq!(continued, digest);
    progress.expect(6, continued);
    let error = progress.prove(6, &delete("foreign")).unwrap_err();
    assert_eq!((error.class, progress.status().revision), (Class::Diverged, 5));
    // The local etcd has lost a revision that was proved.
    assert_eq!(progress.begin(4).err().map(|e| e.class), Some(Class::Diverged));
}

#[test]
fn no_revision_is_reported_before_the_history_up_to_the_begin_is_compared() {
    let progress = FollowProgress::default();
    progress.begin(4).unwrap();
    progress.phase(FollowPhase::Following);
    progress.expect(5, digest_of(5, &delete("a")));
    progress.prove(5, &delete("a")).unwrap();
    let status = progress.status();
    assert_eq!((status.revision, status.phase), (0, FollowPhase::CatchingUp));
    progress.pass_check(progress.history_checks().requested);
    let status = progress.status();
    assert_eq!((status.revision, status.phase), (5, FollowPhase::Following));
    // The source may have a different history since the connection broke.
    progress.request_check();
    let mut digest = digest_of(5, &delete("a"));
    digest.add(6, &delete("a"));
    progress.expect(6, digest);
    progress.prove(6, &delete("a")).unwrap();
    // A comparison that began before the request proves nothing.
    progress.pass_check(1);
    assert_eq!((progress.status().revision, progress.revision()), (5, 6));
    progress.pass_check(2);
    assert_eq!(progress.status().revision, 6);
    // An etcd without history needs no comparison.
    let empty = FollowProgress::default();
    empty.begin(1).unwrap();
    assert!(empty.is_history_checked());
}

#[test]
fn a_revision_that_an_earlier_session_applied_waits_for_the_source() {
    let progress = begun(4);
    assert!(progress.wait_for_source(5).now_or_never().is_none());
    progress.expect(5, digest_of(5, &delete("a")));
    assert!(progress.wait_for_source(5).now_or_never().is_some());
}

#[test]
fn a_different_cluster_is_refused() {
    let progress = FollowProgress::default();
    progress.check_cluster(7).unwrap();
    progress.check_cluster(7).unwrap();
    assert_eq!(progress.check_cluster(8).unwrap_err().class, Class::Diverged);
}
