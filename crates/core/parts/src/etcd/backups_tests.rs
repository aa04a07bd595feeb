use serde_json::{Value, json};

use super::*;

fn answer(status: StatusCode, content: &Value) -> SidecarAnswer {
    SidecarAnswer {
        status,
        body: content.to_string().into_bytes(),
    }
}

/// The error of an answer without success.
fn error_of_answer(status: StatusCode, body: &str) -> Error {
    let body = body.as_bytes().to_vec();
    let refused = SidecarAnswer { status, body }.check("report the final snapshot");
    refused.err().unwrap_or_else(|| Error::bug("success"))
}

/// Reads the answer as a full snapshot, and checks the snapshot.
fn check_answer(content: &Value, epoch: i64) -> Result<SealedEpoch> {
    check_final(
        &answer(StatusCode::OK, content).read("report the final snapshot")?,
        epoch,
    )
}

#[test]
fn an_answer_says_who_has_to_act() {
    let refused =
        json!({"code": "credentials", "error": "StoreCredentials: put working ones into the Secret"});
    let error = error_of_answer(StatusCode::BAD_GATEWAY, &refused.to_string());
    assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
    assert!(error.to_string().contains("put working ones"));
    for (status, body) in [
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"code":"etcd"}"#),
        (StatusCode::BAD_GATEWAY, "a proxy's page"),
    ] {
        let error = error_of_answer(status, body);
        assert!(error.is_retryable(), "{error}");
        assert_eq!(
            error.to_string().contains("a proxy's page"),
            !body.starts_with('{')
        );
    }
}

#[test]
fn a_failed_request_names_the_requested_action() {
    let error = error_of_answer(StatusCode::BAD_GATEWAY, r#"{"code":"etcd"}"#);
    let beginning = "etcd-backup-restore could not report the final snapshot (502 Bad Gateway): ";
    assert!(error.to_string().starts_with(beginning), "{error}");
    let unreadable = answer(StatusCode::OK, &json!("text")).read::<LatestSnapshots>("report the snapshots");
    let error = unreadable.err().unwrap_or_else(|| Error::bug("success"));
    let end = "to the request to report the snapshots cannot be read";
    assert!(error.to_string().contains(end), "{error}");
}

/// R17-52: the error of a missing final snapshot names the cause.
/// R17-51: the error names the obstacle, with the error code of the party that has to act.
#[test]
fn a_final_snapshot_that_does_not_come_says_why() {
    let of = |state: Option<&str>, error: Option<&str>| {
        not_finished(
            &SidecarOwnership {
                state: state.map(EtcdGateState::from),
                why: "no server answers".to_owned(),
                ..SidecarOwnership::default()
            },
            &SidecarHealth {
                error: error.map(str::to_owned),
                ..SidecarHealth::default()
            },
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
    assert_eq!(check_answer(&proven, 2).ok(), Some(end));
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
        assert!(check_answer(&other, 2).is_err(), "{other}");
    }
    assert!(check_answer(&Value::Null, 1).is_err());
    // Leases expired behind the shut gate.
    for (sealed, etcd, counts) in [(7, 9, true), (6, 9, true), (8, 9, false), (6, 6, false)] {
        let mut after_seal = proven.clone();
        after_seal["sealedRevision"] = json!(sealed);
        after_seal["etcdRevision"] = json!(etcd);
        assert_eq!(check_answer(&after_seal, 2).is_ok(), counts, "{after_seal}");
    }
}

/// R17-46: an answer with an error names no sealed revision, and would count the changes after the seal as
/// lost.
#[test]
fn a_refused_answer_states_no_end_of_the_epoch() {
    let refused = json!({"code": "etcd", "error": "etcd does not answer"});
    let end = read_acknowledged_end(854, &answer(StatusCode::SERVICE_UNAVAILABLE, &refused));
    let error = end.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("etcd does not answer"), "{error}");
    let latest = json!({"sealedRevision": 849});
    let latest = answer(StatusCode::OK, &latest);
    assert_eq!(read_acknowledged_end(854, &latest).ok(), Some(849));
}

/// Otherwise the destination waits for ever for an entry that no process can assign, while the API is down.
#[test]
fn a_move_does_not_begin_with_a_backup_entry_that_is_being_deleted() {
    let entry = |metadata: Value, status: Value| {
        let body =
            json!({"metadata": metadata, "spec": {"bucketName": "b", "seedName": "a"}, "status": status});
        serde_json::from_value::<BackupEntry>(body).ok()
    };
    let why = |entry: Option<BackupEntry>| {
        let judged = judge_backup_entry("e", entry);
        judged.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let healthy = entry(json!({"name": "e"}), json!(null));
    assert!(healthy.is_some() && why(healthy).is_empty());
    assert!(why(None).contains("has no BackupEntry e"));
    let leaving = entry(
        json!({"name": "e", "deletionTimestamp": "2026-01-01T00:00:00Z"}),
        json!(null),
    );
    assert!(why(leaving).contains("BackupEntry e is being deleted"));
    let failing = entry(
        json!({"name": "e"}),
        json!({"lastError": {"description": "no key"}}),
    );
    assert!(why(failing).contains("reports an error: no key"));
}
