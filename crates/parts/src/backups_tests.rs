use serde_json::json;

use super::*;

#[test]
fn an_answer_says_who_has_to_act() {
    let refused =
        json!({"code": "credentials", "error": "StoreCredentials: put working ones into the Secret"});
    let error = error_of("the final snapshot", StatusCode::BAD_GATEWAY, &refused);
    assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
    assert!(error.to_string().contains("put working ones"));
    assert!(
        error_of(
            "the final snapshot",
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({"code": "etcd"})
        )
        .is_retryable()
    );
    assert!(
        error_of(
            "the final snapshot",
            StatusCode::BAD_GATEWAY,
            &json!("a proxy's page")
        )
        .is_retryable()
    );
}

/// R17-52: the error of a missing final snapshot names the cause.
/// R17-51: the error names the obstacle, with the error code of the party that has to act.
#[test]
fn a_final_snapshot_that_does_not_come_says_why() {
    let of = |state: Option<&str>, error: Option<&str>| {
        not_finished(
            &json!({"state": state, "why": "no server answers"}),
            &json!({"error": error}),
        )
    };
    for (state, error, code, said) in [
        (Some("Serving"), None, None, "has not noticed yet"),
        (Some("Suspended"), None, None, "is Suspended (no server answers)"),
        (
            Some("Waiting"),
            Some("StoreCredentials: no"),
            None,
            "is Waiting (no server answers)",
        ),
        (Some("Sealed"), None, None, "not taken yet"),
        (
            Some("Sealed"),
            Some("EtcdUnavailable: no"),
            None,
            "not taken: EtcdUnavailable",
        ),
        (
            Some("Sealed"),
            Some("StoreCredentials: put working ones into the Secret"),
            Some(ErrorCode::ErrInfraUnauthenticated),
            "put working ones",
        ),
        (
            Some("Sealed"),
            Some("StoreUnavailable: no answer"),
            Some(ErrorCode::ErrRetryableInfraDependencies),
            "no answer",
        ),
        (None, None, None, "does not say who owns"),
    ] {
        let told = of(state, error);
        assert!(told.to_string().contains(said), "{state:?} {told}");
        assert_eq!(told.codes().first().copied(), code, "{state:?} {error:?}");
    }
}

/// I2: no volume is deleted before the proof that the bucket holds etcd's last revision.
#[test]
fn only_a_proven_snapshot_of_this_epoch_counts() {
    let proven = json!({"isFinal": true, "verified": true, "lastRevision": 7, "etcdRevision": 7, "epoch": 2, "snapName": "Full.final",
        "sha256": "aa"});
    let end = SealedEpoch {
        epoch: 2,
        revision: 7,
        snapshot: "Full.final".into(),
        sha256: "aa".into(),
    };
    assert_eq!(check_final(&proven, 2).ok(), Some(end));
    for (key, value) in [
        ("isFinal", json!(false)),
        ("verified", json!(false)),
        ("verified", Value::Null),
        ("lastRevision", json!(6)),
        ("etcdRevision", Value::Null),
        ("epoch", json!(1)),
        ("epoch", Value::Null),
        ("snapName", Value::Null),
        ("sha256", json!("")),
    ] {
        let mut other = proven.clone();
        other[key] = value;
        assert!(check_final(&other, 2).is_err(), "{other}");
    }
    assert!(check_final(&Value::Null, 1).is_err());
    // Leases expired behind the shut gate.
    for (sealed, etcd, counts) in [(7, 9, true), (6, 9, true), (8, 9, false), (6, 6, false)] {
        let mut after_seal = proven.clone();
        after_seal["sealedRevision"] = json!(sealed);
        after_seal["etcdRevision"] = json!(etcd);
        assert_eq!(check_final(&after_seal, 2).is_ok(), counts, "{after_seal}");
    }
}

/// R17-46: an answer with an error names no sealed revision, and would count the changes after the seal as
/// lost.
#[test]
fn a_refused_answer_states_no_end_of_the_epoch() {
    let refused = json!({"code": "etcd", "error": "etcd does not answer"});
    let end = read_acknowledged_end(854, StatusCode::SERVICE_UNAVAILABLE, &refused);
    let error = end.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("etcd does not answer"), "{error}");
    let latest = json!({"sealedRevision": 849});
    assert_eq!(read_acknowledged_end(854, StatusCode::OK, &latest), Ok(849));
}
