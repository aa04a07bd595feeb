#![allow(clippy::unwrap_used)]

use super::*;

const ARN: &str = "arn:aws:iam::123456789012:role/backups";
const NO_KEYS: &[(&str, &str)] = &[];
const JWT: &str = "aGVhZA.Ym9keQ.c2ln-_";

/// A Secret with these keys, in the region eu-west-1 by default.
fn role(data: &[(&str, &str)]) -> Result<Option<WebIdentityRole>, String> {
    let value = |name: &str| {
        let found = data.iter().find(|(key, _)| *key == name);
        found
            .map(|(_, value)| (*value).to_owned())
            .filter(|value| !value.is_empty())
    };
    let keys = WebIdentityKeys {
        role_arn: value("roleARN"),
        token: value("token"),
        sts_endpoint: value("stsEndpoint"),
        store_endpoint: value("endpoint"),
        region: value("region").unwrap_or_else(|| "eu-west-1".to_owned()),
    };
    let names: Vec<_> = data.iter().map(|(key, _)| *key).collect();
    keys.read_role(&names)
}

fn role_with(further: &[(&str, &str)]) -> Result<String, String> {
    let data = [&[("roleARN", ARN), ("token", JWT)][..], further].concat();
    role(&data).map(|role| role.unwrap().sts)
}

#[test]
fn a_secret_names_a_role_or_has_the_keys_of_an_account() {
    let account = [
        ("accessKeyID", "a"),
        ("secretAccessKey", "b"),
        ("endpoint", "http://s3"),
    ];
    assert_eq!(role(&account), Ok(None));
    let found = role(&[("roleARN", ARN), ("token", JWT), ("bucketName", "b")]);
    assert_eq!(found.unwrap().unwrap().arn, ARN);
    for (data, parts) in [
        (&[("roleARN", ARN)][..], ["has the key roleARN", "add token"]),
        (&[("token", JWT)], ["has the key token", "add roleARN"]),
        (
            &[("roleARN", ARN), ("token", "")],
            ["has the key roleARN", "add token"],
        ),
        (
            &[("stsEndpoint", "https://sts")],
            ["has the key stsEndpoint", "add roleARN"],
        ),
        (
            &[("roleARN", ARN), ("token", JWT), ("accessKeyID", "a")],
            [
                "has the key roleARN together with the key accessKeyID",
                "remove the others",
            ],
        ),
        (
            &[("roleARN", ARN), ("token", JWT), ("sessionToken", "a")],
            ["together with the key sessionToken", "remove the others"],
        ),
        (
            &[("roleARN", ARN), ("token", JWT), ("credential_process", "a")],
            ["has the key credential_process", "remove the key"],
        ),
        (
            &[("role_arn", ARN), ("token", JWT)],
            ["has the key role_arn", "remove the key"],
        ),
        (
            &[("roleARN", ARN), ("webIdentityTokenFile", "/token")],
            ["has the key webIdentityTokenFile", "remove the key"],
        ),
    ] {
        let refused = role(data).unwrap_err();
        assert!(parts.iter().all(|part| refused.contains(part)), "{refused}");
        assert!(!refused.contains(JWT), "{refused}");
    }
}

#[test]
fn the_role_has_the_form_of_a_role() {
    for arn in [
        ARN,
        "arn:aws-cn:iam::123456789012:role/path/to/name+=,.@_-1",
        "arn:aws-us-gov:iam::123456789012:role/a",
    ] {
        assert!(is_role_arn(arn), "{arn}");
    }
    let long = format!("{ARN}{}", "x".repeat(LONGEST_ARN));
    for arn in [
        "backups",
        "arn:aws:iam::12345678901:role/backups",
        "arn:aws:iam::12345678901x:role/backups",
        "arn:aws:iam::123456789012:user/backups",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::123456789012:role/a/",
        "arn:aws:iam::123456789012:role/a b",
        "arn:aws:iam:eu-west-1:123456789012:role/a",
        "arn:aws:sts::123456789012:assumed-role/a/b",
        "arn::iam::123456789012:role/a",
        &long,
    ] {
        assert!(!is_role_arn(arn), "{arn}");
        let refused = role(&[("roleARN", arn), ("token", JWT)]).unwrap_err();
        assert!(
            refused.contains("12 digits") && !refused.contains(arn),
            "{refused}"
        );
    }
}

#[test]
fn the_token_has_the_form_of_a_token_and_is_never_shown() {
    let (long, longest) = ("x".repeat(LONGEST_TOKEN - 3), "x".repeat(LONGEST_TOKEN - 4));
    assert_eq!(check_token(JWT), Ok(()));
    assert_eq!(check_token(&format!("a.b.{longest}")), Ok(()));
    let too_long = format!("a.b.{long}");
    for token in [
        "s3cret",
        "s3cret.b",
        "s3cret.b.c.d",
        "s3cret..c",
        "s3cret.b c.d",
        "s3cret.b=.c",
        &too_long,
    ] {
        let refused = role(&[("roleARN", ARN), ("token", token)]).unwrap_err();
        assert!(refused.contains("token that cannot be used"), "{refused}");
        assert!(!refused.contains("s3cret") && refused.len() < 300, "{refused}");
    }
}

#[test]
fn the_token_goes_to_the_service_of_the_region_or_of_the_operator() {
    for (data, sts) in [
        (NO_KEYS, "https://sts.eu-west-1.amazonaws.com/"),
        (
            &[("region", "cn-north-1")],
            "https://sts.cn-north-1.amazonaws.com.cn/",
        ),
        (
            &[(
                "endpoint",
                "https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com",
            )],
            "https://sts.eu-west-1.amazonaws.com/",
        ),
        (
            &[
                ("endpoint", "https://s3.test"),
                ("stsEndpoint", "https://sts.test:9000"),
            ],
            "https://sts.test:9000/",
        ),
        (
            &[
                ("endpoint", "http://127.0.0.1:9000"),
                ("stsEndpoint", "http://127.0.0.1:9000"),
            ],
            "http://127.0.0.1:9000/",
        ),
    ] {
        assert_eq!(role_with(data).as_deref(), Ok(sts));
    }
    let plain = "http://sts.test";
    for (data, part) in [
        (&[("endpoint", "https://s3.test")][..], "add stsEndpoint"),
        (&[("endpoint", "https://amazonaws.com.test")], "add stsEndpoint"),
        (&[("endpoint", "nonsense")], "add stsEndpoint"),
        (&[("region", "eu-west-1.test/")], "correct region"),
        (&[("stsEndpoint", plain)], "https URL"),
        (
            &[("stsEndpoint", plain), ("endpoint", "https://s3.test")],
            "https URL",
        ),
        (&[("stsEndpoint", "https://user:password@sts.test")], "https URL"),
        (&[("stsEndpoint", "https://sts.test/?a=b")], "https URL"),
        (&[("stsEndpoint", "sts.test")], "https URL"),
    ] {
        let refused = role_with(data).unwrap_err();
        assert!(
            refused.contains(part) && !refused.contains("password"),
            "{refused}"
        );
    }
}
