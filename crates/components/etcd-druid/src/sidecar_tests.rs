#![allow(clippy::unwrap_used)]
use super::*;
use crate::wanted::lasts_beyond_a_fence;

#[test]
fn a_process_says_itself_whether_it_outlasts_a_fence() {
    for (answer, expected) in [
        (
            r#"{"epoch": 3, "answer": "Owned", "state": "Serving", "why": "w", "silence": "Deactivate",
                "leastFenceMilliseconds": 23036}"#,
            Some(false),
        ),
        (
            r#"{"state": "Serving", "silence": "Deactivate", "leastFenceMilliseconds": 24000}"#,
            Some(false),
        ),
        (
            r#"{"state": "Serving", "silence": "Deactivate", "leastFenceMilliseconds": 24001}"#,
            Some(true),
        ),
        (
            r#"{"state": "Serving", "silence": "Tolerate", "leastFenceMilliseconds": 23036}"#,
            Some(true),
        ),
        (
            r#"{"state": "Serving", "silence": "Other", "leastFenceMilliseconds": 23036}"#,
            Some(true),
        ),
        // The responses of processes from before these fields existed.
        (r#"{"state": "Serving", "why": "w", "etcd": null}"#, None),
        (r#"{"state": "Serving", "silence": "Deactivate"}"#, None),
        (r#"{"state": "Serving", "leastFenceMilliseconds": 23036}"#, None),
    ] {
        let said: SidecarOwnership = serde_json::from_str(answer).unwrap();
        let outlasts = reported_fence(&said).map(|(ends, fence)| lasts_beyond_a_fence(ends, fence));
        assert_eq!(outlasts, expected, "{answer}");
    }
}
