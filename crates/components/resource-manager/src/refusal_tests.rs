#![allow(clippy::unwrap_used)]
use rstest::rstest;
use serde_json::json;

use super::*;

fn status(code: u16, message: &str, causes: &[[&str; 3]]) -> Status {
    let causes: Vec<_> = causes
        .iter()
        .map(|[field, reason, message]| json!({"field": field, "reason": reason, "message": message}))
        .collect();
    serde_json::from_value(
        json!({"code": code, "message": message, "reason": "Because", "details": {"causes": causes}}),
    )
    .unwrap()
}

#[rstest]
#[case(
    r#"admission webhook "a.b" denied: no"#,
    "the API server answers 400: admission webhook … denied: no"
)]
#[case(
    r#"bad "s3\"cret", and `s3cret` too"#,
    "the API server answers 400: bad …, and … too"
)]
#[case(r#"an open "s3cret"#, "the API server answers 400: an open …")]
#[case(
    "failed: .spec.x: field not declared in schema",
    "the API server answers 400: failed: .spec.x: field not declared in schema"
)]
fn nothing_in_quotes_is_told(#[case] said: &str, #[case] told: &str) {
    assert_eq!(words(&status(400, said, &[]), false), told);
}

#[test]
fn of_what_is_invalid_the_field_is_told() {
    let causes = [
        [
            "spec.type",
            "FieldValueNotSupported",
            "Unsupported value: \"s3cret\"",
        ],
        [
            "data",
            "FieldValueInvalid",
            "Invalid value: s3cret: field is immutable when `immutable` is set",
        ],
    ];
    let told = words(&status(422, "s3cret", &causes), false);
    assert_eq!(
        told,
        "it is refused as invalid: spec.type has a value that is not supported; data must not be changed"
    );
}

#[test]
fn of_a_secret_no_sentence_is_told() {
    let told = words(&status(400, "cannot unmarshal s3cret", &[]), true);
    assert_eq!(told, "the API server answers 400 Because");
}
